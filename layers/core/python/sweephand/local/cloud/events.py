"""Events as AWS sends them to functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sweephand.local.cloud.account import ACCOUNT, REGION, arn

Event = dict[str, Any]
Record = Mapping[str, Any]


def scheduled(schedule: str, *, at: datetime, event_id: str) -> Event:
    """From EventBridge Scheduler."""
    return {
        "version": "0",
        "id": event_id,
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": ACCOUNT,
        "time": _utc(at),
        "region": REGION,
        "resources": [arn("scheduler", f"schedule/default/{schedule}")],
        "detail": "{}",
    }


def messages(queue: str, received: Iterable[Mapping[str, Any]]) -> Event:
    """A batch from a queue, of messages as a client receives them."""
    return {
        "Records": [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
                "messageAttributes": {},
                "md5OfBody": message["MD5OfBody"],
                "eventSource": "aws:sqs",
                "eventSourceARN": arn("sqs", queue),
                "awsRegion": REGION,
            }
            for message in received
        ]
    }


def change(table: str, record: Record) -> Event:
    """What a table's stream says about one change."""
    told = record["dynamodb"]
    at = told["ApproximateCreationDateTime"].replace(tzinfo=UTC)
    return {
        **record,
        "dynamodb": {**told, "ApproximateCreationDateTime": at.timestamp()},
        "eventSourceARN": stream_arn(table),
    }


def stream_arn(table: str) -> str:
    """The name of a table's stream."""
    return arn("dynamodb", f"table/{table}/stream/1970-01-01T00:00:00.000")


def put_aside(table: str, function_arn: str, records: Sequence[Record], *, tries: int, at: datetime) -> str:
    """The message about a batch of changes that a function failed at too often; the changes are not in it."""
    first, last = records[0]["dynamodb"], records[-1]["dynamodb"]
    return json.dumps(
        {
            "requestContext": {
                "functionArn": function_arn,
                "condition": "RetryAttemptsExhausted",
                "approximateInvokeCount": tries,
            },
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "version": "1.0",
            "timestamp": _utc(at),
            "DDBStreamBatchInfo": {
                "shardId": "shardId-00000000000000000000-00000000",
                "startSequenceNumber": first["SequenceNumber"],
                "endSequenceNumber": last["SequenceNumber"],
                "approximateArrivalOfFirstRecord": _utc(_arrival(first)),
                "approximateArrivalOfLastRecord": _utc(_arrival(last)),
                "batchSize": len(records),
                "streamArn": stream_arn(table),
            },
        }
    )


def stopped(
    task: Mapping[str, Any],
    codes: Mapping[str, int | None],
    reasons: Mapping[str, str],
    *,
    code: str,
    reason: str,
    at: datetime,
) -> Event:
    """From ECS: a task has stopped, with what became of its containers."""
    containers = [
        {
            "name": name,
            "lastStatus": "STOPPED",
            **({"exitCode": exit_code} if exit_code is not None else {}),
            **({"reason": reasons[name]} if name in reasons else {}),
        }
        for name, exit_code in codes.items()
    ]
    return {
        "version": "0",
        "detail-type": "ECS Task State Change",
        "source": "aws.ecs",
        "account": ACCOUNT,
        "time": _utc(at),
        "region": REGION,
        "resources": [task["taskArn"]],
        "detail": {
            **task,
            "lastStatus": "STOPPED",
            "desiredStatus": "STOPPED",
            "launchType": "FARGATE",
            "stopCode": code,
            "stoppedReason": reason,
            "stoppedAt": _utc(at),
            "containers": containers,
        },
    }


def matches(pattern: Any, value: Any) -> bool:
    """Whether an event passes a filter: of what filters can say, as much as the topology's say."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and matches(wanted, value[name]) for name, wanted in pattern.items()
        )
    return any(_is_as_said(choice, value) for choice in pattern)


def _is_as_said(choice: Any, value: Any) -> bool:
    if not isinstance(choice, Mapping):
        return bool(choice == value)
    ((rule, operand),) = choice.items()
    match rule:
        case "prefix":
            return isinstance(value, str) and value.startswith(operand)
        case "anything-but":
            return value not in operand
        case _:
            raise ValueError(f"The filter rule {rule} is unknown here.")


def _arrival(told: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(told["ApproximateCreationDateTime"], UTC)


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
