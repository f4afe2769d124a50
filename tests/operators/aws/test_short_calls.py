"""Functions, queues, topics and buses: what they are told, what comes back, and what their errors mean."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.targets import Targets
from sweephand.engine.complete import TIMEOUT
from sweephand.local.cloud.account import ACCOUNT, REGION, refusal
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.operators import Operators
from sweephand.testing.virtual import VirtualClock
from tests.moto_world import Fault, timed_out, unreachable
from tests.operators.aws.account import (
    Neighbourhood,
    a_call,
    operators,
    output_of,
    permanent,
    received,
    transient,
)

KEY = "team/report/20261003T233000Z/main"
RUN = {
    "job": "report",
    "namespace": "team",
    "runId": "20261003T233000Z",
    "taskId": "main",
    "attempt": 1,
    "fireAt": "2026-10-03T23:30:00Z",
    "idempotencyKey": KEY,
}

CALLS: dict[str, dict[str, Any]] = {
    "lambda": {"lambda": "load-sales"},
    "sqs": {"sqs": "orders"},
    "sns": {"sns": "news"},
    "event": {"event": {"source": "shop", "type": "sold", "bus": "shop"}},
    "stateMachine": {"stateMachine": "bake"},
    "awsSdk": {"awsSdk": {"service": "dynamodb", "action": "GetItem", "params": {"TableName": "t", "Key": {}}}},
    "sensor": {"sensor": {"s3": {"bucket": "inbox", "key": "orders/a"}}},
}
"""A call of each kind, to something that is in the list."""
each_kind = pytest.mark.parametrize("kind", CALLS)


# Functions.


def test_a_function_gets_its_payload_with_the_run_beside_it_and_its_answer_is_the_output(
    place: Neighbourhood, there: Operators
) -> None:
    place.functions["load-sales"] = lambda event: {"heard": event}
    task = {"lambda": "load-sales", "payload": {"path": "s3://${params.bucket}/x"}}
    assert output_of(there.execute(a_call(task, bucket="b"))) == {"heard": {"path": "s3://b/x", "sweephand": RUN}}
    (call,) = place.calls
    assert call.params["InvocationType"] == "RequestResponse"


@pytest.mark.parametrize("payload", [[1, 2], "text", 7, {"sweephand": "mine"}])
def test_a_payload_that_is_no_object_or_has_such_a_field_is_handed_over_as_it_is(
    place: Neighbourhood, there: Operators, payload: Any
) -> None:
    place.functions["load-sales"] = lambda event: event
    assert output_of(there.execute(a_call({"lambda": "load-sales", "payload": payload}))) == payload


def test_an_asynchronous_function_is_accepted_and_not_waited_for(place: Neighbourhood, there: Operators) -> None:
    place.functions["load-sales"] = lambda event: "nobody hears this"
    outcome = there.execute(a_call({"lambda": "load-sales", "async": True}))
    assert output_of(outcome) == {"requestId": "request-1"}
    assert place.calls[0].params["InvocationType"] == "Event"


def test_a_qualifier_names_a_version_or_an_alias(place: Neighbourhood, there: Operators) -> None:
    place.functions["load-sales:prod"] = lambda event: "prod"
    for task in (
        {"lambda": "load-sales", "qualifier": "prod"},
        {"lambda": "load-sales:prod"},
        {"lambda": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:load-sales:prod"},
    ):
        assert output_of(there.execute(a_call(task))) == "prod"
    twice = there.execute(a_call({"lambda": "load-sales:prod", "qualifier": "dev"}))
    assert permanent(twice) == ("InvalidInput", "qualifier: 'load-sales:prod' has a qualifier of its own.")


def test_a_functions_own_error_is_permanent_and_named_by_its_type(place: Neighbourhood, there: Operators) -> None:
    def fails(event: Any) -> Any:
        raise FunctionFailed("ValueError", "no such region")

    place.functions["load-sales"] = fails
    assert permanent(there.execute(a_call(CALLS["lambda"]))) == ("ValueError", "no such region")


def test_an_error_without_a_type_is_told_as_it_came(place: Neighbourhood, there: Operators) -> None:
    class Bare(FunctionFailed):
        @property
        def payload(self) -> Any:
            return ["?"]

    def fails(event: Any) -> Any:
        raise Bare("", "")

    place.functions["load-sales"] = fails
    assert permanent(there.execute(a_call(CALLS["lambda"]))) == ("FunctionError", '["?"]')


@pytest.mark.parametrize(
    ("answer", "error"),
    [("x" * OUTPUT_BYTES_MAX, "OutputTooLarge"), (b"<html>", "InvalidOutput"), (b'{"a": 1e999}', "InvalidOutput")],
)
def test_an_answer_that_cannot_be_kept_fails_the_task(
    place: Neighbourhood, there: Operators, answer: Any, error: str
) -> None:
    place.functions["load-sales"] = lambda event: answer
    assert permanent(there.execute(a_call(CALLS["lambda"])))[0] == error


def test_a_function_that_answers_nothing_has_no_output(place: Neighbourhood, there: Operators) -> None:
    place.functions["load-sales"] = lambda event: b""
    assert output_of(there.execute(a_call(CALLS["lambda"]))) is None


def test_a_function_that_takes_too_long_is_a_time_out_and_is_not_called_again(
    place: Neighbourhood, there: Operators
) -> None:
    place.functions["load-sales"] = lambda event: None
    place.faults = [timed_out()]
    error, message = transient(there.execute(a_call(CALLS["lambda"], timeout_s=7)))
    assert (error, len(place.calls)) == (TIMEOUT, 1)
    assert "7s" in message


# Queues.


@pytest.mark.parametrize(
    "name",
    [
        "orders",
        f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders",
        f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders",
    ],
)
def test_a_queue_gets_the_body_and_the_key_by_whichever_name_it_has(
    place: Neighbourhood, there: Operators, name: str
) -> None:
    task = {"sqs": name, "body": {"day": "${run.localDate}"}, "attributes": {"colour": "red"}}
    told = output_of(there.execute(a_call(task)))
    (message,) = received("orders")
    assert json.loads(message["Body"]) == {"day": "2026-10-03"}
    assert message["MessageId"] == told["messageId"]
    found = {name: one["StringValue"] for name, one in message["MessageAttributes"].items()}
    assert found == {"colour": "red", "Sweephand-Idempotency-Key": KEY}


def test_a_body_that_is_text_is_sent_as_it_is_and_without_one_the_run_is(
    place: Neighbourhood, there: Operators
) -> None:
    there.execute(a_call({"sqs": "orders", "body": "hello"}))
    there.execute(a_call({"sqs": "orders"}))
    bodies = [message["Body"] for message in received("orders")]
    assert bodies[0] == "hello"
    assert json.loads(bodies[1]) == {"sweephand": RUN}
    assert permanent(there.execute(a_call({"sqs": "orders", "body": ""})))[0] == "InvalidInput"


def test_a_fifo_queue_gets_a_group_and_one_message_of_all_attempts(place: Neighbourhood, there: Operators) -> None:
    for attempt in (1, 2):
        there.execute(a_call({"sqs": "orders.fifo", "body": "x"}, attempt=attempt))
    (message,) = received("orders.fifo")
    assert message["Attributes"]["MessageGroupId"] == "report"
    assert message["Attributes"]["MessageDeduplicationId"] == sha256(KEY.encode()).hexdigest()
    own = {"sqs": "orders.fifo", "body": "y", "group": "g", "deduplicationId": "d"}
    assert output_of(there.execute(a_call(own)))["sequenceNumber"]
    sent = place.calls[-1].params
    assert (sent["MessageGroupId"], sent["MessageDeduplicationId"]) == ("g", "d")


def test_a_message_can_be_delayed_and_what_a_queue_cannot_do_is_told(place: Neighbourhood, there: Operators) -> None:
    there.execute(a_call({"sqs": "orders", "delay": "5m"}))
    assert place.calls[-1].params["DelaySeconds"] == 300
    for task, field in (
        ({"sqs": "orders", "delay": "${params.never}"}, "delay"),
        ({"sqs": "orders", "delay": "${params.late}"}, "delay"),
        ({"sqs": "orders.fifo", "delay": "5m"}, "delay"),
        ({"sqs": "orders", "deduplicationId": "d"}, "deduplicationId"),
    ):
        error, message = permanent(there.execute(a_call(task, never="never", late="16m")))
        assert (error, message.split(":")[0]) == ("InvalidInput", field)
    assert len(place.calls) == 1


# Topics.


def test_a_topic_gets_the_message_with_its_subject_and_the_key(place: Neighbourhood, there: Operators) -> None:
    task = {"sns": "news", "message": {"a": 1}, "subject": "Sold", "attributes": {"colour": "red"}}
    told = output_of(there.execute(a_call(task)))
    (message,) = received("reader-news")
    assert json.loads(message["Body"]) == {"a": 1}
    assert message["MessageAttributes"]["Sweephand-Idempotency-Key"]["StringValue"] == KEY
    assert place.calls[0].params["Subject"] == "Sold"
    assert told["messageId"]


def test_a_fifo_topic_gets_a_group_and_one_message_of_all_attempts(place: Neighbourhood, there: Operators) -> None:
    there.execute(a_call({"sns": "news.fifo", "message": "x"}))
    sent = place.calls[0].params
    assert (sent["MessageGroupId"], sent["MessageDeduplicationId"]) == ("report", sha256(KEY.encode()).hexdigest())


# Events.


def test_a_bus_gets_the_event_with_the_run_in_its_detail(place: Neighbourhood, there: Operators) -> None:
    task = {"event": {"source": "shop", "type": "sold", "detail": {"id": "${params.id}"}, "bus": "shop"}}
    assert output_of(there.execute(a_call(task, id=7)))["eventId"]
    (entry,) = place.calls[0].params["Entries"]
    assert json.loads(entry["Detail"]) == {"id": 7, "sweephand": RUN}
    assert (entry["Source"], entry["DetailType"]) == ("shop", "sold")
    assert entry["EventBusName"] == f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/shop"


@pytest.mark.parametrize(
    ("code", "judge"),
    [("ThrottlingException", transient), ("InternalFailure", transient), ("MalformedDetail", permanent)],
)
def test_an_event_that_the_bus_did_not_take_is_a_failure_although_the_call_succeeded(
    place: Neighbourhood, there: Operators, code: str, judge: Any
) -> None:
    refused = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "no"}]}
    place.told["PutEvents"] = refused
    assert judge(there.execute(a_call(CALLS["event"])))[0] == code


# What holds for all of them.


@each_kind
@pytest.mark.parametrize(
    ("code", "status", "judge"),
    [
        ("ThrottlingException", 400, transient),
        ("TooManyRequestsException", 429, transient),
        ("InternalError", 500, transient),
        ("SomethingNew", 503, transient),
        ("AccessDeniedException", 403, permanent),
        ("ResourceNotFoundException", 404, permanent),
        ("ValidationException", 400, permanent),
    ],
)
def test_the_code_of_an_error_is_its_name_and_says_whether_another_try_can_help(
    place: Neighbourhood, there: Operators, kind: str, code: str, status: int, judge: Any
) -> None:
    place.faults = [Fault(refusal(code, "X", status=status, message="because"))]
    error, message = judge(there.execute(a_call(CALLS[kind])))
    assert error == code
    assert message.endswith(": because")
    assert len(place.calls) == 1


@each_kind
def test_what_cannot_be_reached_is_transient(place: Neighbourhood, there: Operators, kind: str) -> None:
    place.faults = [unreachable()]
    assert transient(there.execute(a_call(CALLS[kind])))[0] == "EndpointConnectionError"


@each_kind
def test_an_answer_that_does_not_come_is_a_time_out(place: Neighbourhood, there: Operators, kind: str) -> None:
    place.faults = [Fault(ReadTimeoutError(endpoint_url="https://aws.test"))]
    assert transient(there.execute(a_call(CALLS[kind])))[0] == TIMEOUT


@each_kind
def test_what_was_cancelled_before_it_began_calls_nobody(place: Neighbourhood, there: Operators, kind: str) -> None:
    call = a_call(CALLS[kind])
    there.cancel(call)
    assert transient(there.execute(call))[0] == "Cancelled"
    assert place.calls == []


@each_kind
def test_nothing_is_allowed_where_nothing_is_listed(
    place: Neighbourhood, tmp_path: Path, clock: VirtualClock, kind: str
) -> None:
    error, message = permanent(operators(tmp_path, clock, Targets()).execute(a_call(CALLS[kind])))
    assert error == "InvalidInput"
    assert "Tasks may not" in message
    assert place.calls == []


@pytest.mark.parametrize(
    "task",
    [
        {"lambda": "other"},
        {"lambda": f"arn:aws:lambda:{REGION}:210987654321:function:load-sales"},
        {"lambda": f"arn:aws:lambda:eu-west-3:{ACCOUNT}:function:load-sales"},
        {"sqs": f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"},
        {"sqs": "https://sqs.us-east-1.amazonaws.com.evil.test/123456789012/orders"},
        {"sqs": "http://169.254.169.254/123456789012/orders"},
        {"sqs": "reader-news"},
        {"sns": "orders"},
        {"event": {"source": "s", "type": "t"}},
        {"stateMachine": "fry"},
        {"stateMachine": f"arn:aws:states:{REGION}:{ACCOUNT}:execution:bake:1"},
        {"sqs": "${params.name}"},
        {"awsSdk": {"service": "dynamodb", "action": "DeleteTable", "params": {"TableName": "t"}}},
        {"awsSdk": {"service": "sts", "action": "AssumeRole"}},
    ],
    ids=json.dumps,
)
def test_what_is_not_in_the_list_is_refused_before_anybody_is_called(
    place: Neighbourhood, there: Operators, task: Any
) -> None:
    assert permanent(there.execute(a_call(task, name="elsewhere")))[0] == "InvalidInput"
    assert place.calls == []


@pytest.mark.parametrize(
    "task",
    [
        {"lambda": "sweephand-attempt"},
        {"lambda": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:sweephand-attempt"},
        {"sqs": "sweephand-normal"},
        {"sns": "sweephand-alarms"},
        {"event": {"source": "s", "type": "t", "bus": "sweephand-events"}},
        {"stateMachine": "sweephand-execute"},
    ],
    ids=json.dumps,
)
def test_our_own_control_plane_is_no_target_even_where_the_list_would_allow_it(
    place: Neighbourhood, tmp_path: Path, clock: VirtualClock, task: Any
) -> None:
    services = {"lambda": "function:*", "sqs": "*", "sns": "*", "events": "event-bus/*", "states": "stateMachine:*"}
    everything = Targets.of([f"arn:aws:{one}:*:{ACCOUNT}:{all_}" for one, all_ in services.items()], own="sweephand")
    error, message = permanent(operators(tmp_path, clock, everything).execute(a_call(task)))
    assert error == "InvalidInput"
    assert "belongs to Sweephand itself" in message
    assert place.calls == []


def test_a_place_for_calls_runs_no_users_code(place: Neighbourhood, there: Operators) -> None:
    assert permanent(there.execute(a_call({"command": ["true"]})))[0] == "UnknownOperator"
    assert "command" not in there.kinds
