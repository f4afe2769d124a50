"""Any call of boto3: those that are listed, with what botocore says about their parameters."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from botocore.response import StreamingBody

from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.targets import Targets
from sweephand.operators import Operators
from sweephand.testing.virtual import VirtualClock
from tests.operators.aws.account import Neighbourhood, a_call, client, operators, output_of, permanent


def sdk(service: str, action: str, **more: Any) -> Any:
    return a_call({"awsSdk": {"service": service, "action": action, **more}}, name="t")


@pytest.fixture
def table(place: Neighbourhood) -> str:
    client("dynamodb").create_table(
        TableName="t",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return "t"


@pytest.mark.parametrize("action", ["PutItem", "put_item"])
def test_a_listed_call_is_made_and_its_answer_is_the_output(there: Operators, table: str, action: str) -> None:
    item = {"pk": {"S": "a"}, "blob": {"B": "raw"}}
    assert output_of(there.execute(sdk("dynamodb", action, params={"TableName": "${params.name}", "Item": item}))) == {}
    get = {"TableName": table, "Key": {"pk": {"S": "a"}}}
    whole = output_of(there.execute(sdk("dynamodb", "GetItem", params=get)))
    assert whole == {"Item": {"pk": {"S": "a"}, "blob": {"B": "raw"}}}
    picked = there.execute(sdk("dynamodb", "GetItem", params=get, query="Item.pk.S"))
    assert output_of(picked) == "a"


def test_parameters_are_checked_by_botocore_and_told_in_its_words(place: Neighbourhood, there: Operators) -> None:
    error, message = permanent(there.execute(sdk("dynamodb", "PutItem", params={"TableName": "t", "Itm": {}})))
    assert error == "ParamValidationError"
    assert 'Unknown parameter in input: "Itm"' in message
    assert 'Missing required parameter in input: "Item"' in message


@pytest.mark.parametrize(
    ("service", "action", "field"),
    [
        ("dynamodb", "DeleteTable", "action"),
        ("dynamodb", "PutItems", "action"),
        ("dynamodb", "can_paginate", "action"),
        ("dynamodb", "_make_api_call", "action"),
        ("s3", "PutObject", "action"),
        ("s3", "select_object_content", "action"),
    ],
)
def test_no_other_call_is_made(place: Neighbourhood, there: Operators, service: str, action: str, field: str) -> None:
    error, message = permanent(there.execute(sdk(service, action)))
    assert (error, message.split(":")[0]) == ("InvalidInput", field)
    assert place.calls == []


def test_a_service_that_is_none_is_told(place: Neighbourhood, there: Operators) -> None:
    assert permanent(there.execute(sdk("dynamo", "GetItem")))[0] == "UnknownServiceError"


@pytest.mark.parametrize(
    "params",
    [
        {"roleArn": "r"},
        {"RoleArn": "r"},
        {"a": [{"executionRoleArn": "r"}]},
        {"Role": "r"},
        {"Job": {"IamRole": "r"}},
        {"RoleName": "r"},
        {"IamInstanceProfile": {"Name": "r"}},
        {"InstanceProfileArn": "r"},
    ],
)
def test_a_task_cannot_hand_a_role_to_a_service(place: Neighbourhood, there: Operators, params: Any) -> None:
    error, message = permanent(there.execute(sdk("dynamodb", "PutItem", params=params)))
    assert error == "InvalidInput"
    assert "cannot hand a role" in message
    assert place.calls == []


def test_an_answer_is_made_plain(place: Neighbourhood, there: Operators, clock: VirtualClock) -> None:
    def body(content: bytes) -> StreamingBody:
        return StreamingBody(BytesIO(content), len(content))

    place.told["GetObject"] = {"Body": body("ü".encode()), "LastModified": clock.now(), "ResponseMetadata": {"x": 1}}
    get = sdk("s3", "GetObject", params={"Bucket": "b", "Key": "k"})
    assert output_of(there.execute(get)) == {"Body": "ü", "LastModified": "2026-10-03T23:30:00Z"}
    place.told["GetObject"] = {"Body": b"\xff\x00"}
    assert output_of(there.execute(get)) == {"Body": "/wA="}
    for long in (body(b"x" * 10**7), "x" * OUTPUT_BYTES_MAX, ["x"] * OUTPUT_BYTES_MAX * 10):
        place.told["GetObject"] = {"Body": long}
        assert permanent(there.execute(get))[0] == "OutputTooLarge"


def test_a_query_that_cannot_be_read_is_refused_before_anything_is_done(place: Neighbourhood, there: Operators) -> None:
    error, message = permanent(there.execute(sdk("s3", "GetObject", params={}, query="a[")))
    assert (error, message.split(":")[0], place.calls) == ("InvalidInput", "query", [])


def test_what_answers_in_a_stream_of_events_is_refused(
    place: Neighbourhood, tmp_path: Path, clock: VirtualClock
) -> None:
    streams = operators(tmp_path, clock, Targets.of((), ("s3:SelectObjectContent",)))
    assert "stream" in permanent(streams.execute(sdk("s3", "SelectObjectContent")))[1]
    assert place.calls == []


def test_a_service_is_listed_under_its_name_in_iam(place: Neighbourhood, tmp_path: Path, clock: VirtualClock) -> None:
    listed = operators(tmp_path, clock, Targets.of((), ("states:ListStateMachines",)))
    machines = output_of(listed.execute(sdk("stepfunctions", "ListStateMachines", query="stateMachines[].name")))
    assert machines == ["bake"]
