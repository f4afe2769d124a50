"""The short way to moto's tables and queues means what the long one does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ParamValidationError

from sweephand.local.cloud import shortcut
from sweephand.local.cloud.account import CONFIG, account, build
from sweephand.testing import VirtualClock
from sweephand.topology import TABLES, Names

NAMES: Final = Names("short")
TABLE: Final = TABLES[0]
THING: Final = {TABLE.partition_key: {"S": "a"}, TABLE.sort_key: {"S": "b"}}
ITEM: Final = THING | {"bytes": {"B": b"\x00\xff"}, "deep": {"M": {"list": {"L": [{"N": "1.5"}, {"NULL": True}]}}}}
ABSENT: Final = f"attribute_not_exists({TABLE.partition_key})"
FAILS: Final = {"ConditionExpression": ABSENT, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
IN_TABLE: Final = {"TableName": NAMES.table(TABLE)}
QUEUE: Final = {"QueueName": next(iter(NAMES.queues()))[0]}

CALLS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("dynamodb", "GetItem", IN_TABLE | {"Key": THING}),
    ("dynamodb", "PutItem", IN_TABLE | {"Item": ITEM} | FAILS),
    ("dynamodb", "GetItem", IN_TABLE | {"Key": THING, "ConsistentRead": True}),
    ("dynamodb", "PutItem", IN_TABLE | {"Item": ITEM} | FAILS),
    ("dynamodb", "BatchGetItem", {"RequestItems": {NAMES.table(TABLE): {"Keys": [THING]}}}),
    (
        "dynamodb",
        "UpdateItem",
        IN_TABLE
        | {"Key": THING, "UpdateExpression": "SET n = :n REMOVE deep", "ExpressionAttributeValues": {":n": {"N": "7"}}}
        | {"ReturnValues": "ALL_NEW"},
    ),
    ("dynamodb", "UpdateItem", IN_TABLE | {"Key": THING, "UpdateExpression": "SET nonsense"}),
    ("dynamodb", "TransactWriteItems", {"TransactItems": [{"Put": IN_TABLE | {"Item": ITEM} | FAILS}]}),
    (
        "dynamodb",
        "Query",
        IN_TABLE
        | {"KeyConditionExpression": f"{TABLE.partition_key} = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}},
    ),
    ("dynamodb", "DeleteItem", IN_TABLE | {"Key": THING, "ReturnValues": "ALL_OLD"}),
    ("dynamodb", "GetItem", {"TableName": "nowhere", "Key": THING}),
    ("dynamodb", "GetItem", IN_TABLE | {"Key": {"unknown": {"S": "a"}}}),
    ("dynamodb", "GetItem", {"Key": THING}),
    ("sqs", "GetQueueUrl", QUEUE),
    ("sqs", "GetQueueUrl", {"QueueName": "nowhere"}),
    ("sqs", "ReceiveMessage", {"QueueUrl": "http://nowhere"}),
]


def told(service: str, operation: str, params: Mapping[str, Any], *, short: bool) -> Any:
    client: Any = boto3.client(service, config=CONFIG)  # type: ignore[call-overload]
    way = shortcut.answer if short else BaseClient._make_api_call  # type: ignore[attr-defined]
    try:
        answer = way(client, operation, dict(params))
    except ClientError as error:
        answer = {"raised": type(error).__name__, **error.response}
    except ParamValidationError as error:
        return str(error)
    status = answer.pop("ResponseMetadata")["HTTPStatusCode"]
    return status, answer


def test_both_ways_give_the_same_answers_and_raise_the_same() -> None:
    long_way = BaseClient._make_api_call  # type: ignore[attr-defined]
    found = {}
    for short in (True, False):
        with account(VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))):
            build(NAMES, boto3.client("dynamodb", config=CONFIG), boto3.client("sqs", config=CONFIG))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(BaseClient, "_make_api_call", long_way)
                found[short] = [told(*call, short=short) for call in CALLS]
    for call, short_answer, long_answer in zip(CALLS, found[True], found[False], strict=True):
        assert short_answer == long_answer, call
