"""An AWS account in this process: moto, one call at a time, on the deployment's clock, with a hook around each call.

moto is not safe for concurrent writes, so one lock is around every call that it answers. What it cannot answer without
Docker, or not in virtual time, is answered by `answers`: outside of the lock, since a function may take a while.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from threading import RLock
from typing import Any, Final
from unittest.mock import patch

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.sqs.models import sqs_backends
from msgspec import Struct

from sweephand.local.cloud import shortcut
from sweephand.local.cloud.mends import EPOCH, mended
from sweephand.ports import Clock
from sweephand.topology import ARCHIVE, TABLES, UNDELIVERED, Names, Queue, Table

ACCOUNT: Final = DEFAULT_ACCOUNT_ID
REGION: Final = "us-east-1"
AGENT: Final = "sweephand/"
"""How the clients of a function begin to name it, in what they add to their user agent."""

ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
_LOCK: Final = RLock()
"""moto's state belongs to the process, and so does this."""
_CLIENTS: Final[dict[object, BaseClient]] = {}
_make_client: Final = boto3.client

CONFIG: Final = Config(retries={"mode": "standard", "total_max_attempts": 1}, parameter_validation=True)
"""One attempt: what a hook raises is seen at once, not after botocore's sleeps."""


class AwsCall(Struct, frozen=True):
    """A call of a boto3 client: `dynamodb`, `PutItem`, its parameters, and the function that makes it.

    The function is empty where the deployment itself calls, such as to receive a batch for a function.
    """

    service: str
    operation: str
    params: Mapping[str, Any]
    function: str = ""


Perform = Callable[[Mapping[str, Any]], Any]
"""Carries a call out, with these parameters."""
Around = Callable[[AwsCall, Perform], Any]
"""Decides about a call: answers for it, or raises, or performs it before or after."""
Answers = Mapping[tuple[str, str], Callable[[Mapping[str, Any]], Any]]
"""Who answers which operation of which service instead of moto."""


def directly(call: AwsCall, perform: Perform) -> Any:
    """Around nothing."""
    return perform(call.params)


@contextmanager
def account(clock: Clock, *, around: Around = directly, answers: Answers | None = None) -> Iterator[None]:
    """An empty account for every boto3 client of this process, old or new."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, ENVIRONMENT))
        stack.enter_context(mock_aws())
        stack.enter_context(mended(clock))
        stack.enter_context(patch.object(boto3, "client", _client))
        stack.enter_context(patch.object(BaseClient, "_make_api_call", _guarded(around, answers or {})))
        yield


class NotOurs(Exception):
    """Whoever answers instead of moto knows nothing of this resource: moto answers."""


def _client(
    service_name: Any,
    *,
    config: Config,
    endpoint_url: str | None = None,
    region_name: str | None = None,
    **credentials: str,
) -> BaseClient:
    """Made once in a process: a client knows nothing of the account, and making it takes longer than building that.

    Whoever brings credentials, as moto's own interpreter of machines does, has a client of its own.
    """
    make: Callable[..., BaseClient] = partial(
        _make_client, service_name, config=config, endpoint_url=endpoint_url, region_name=region_name
    )
    if credentials:
        return make(**credentials)
    key = (service_name, endpoint_url, region_name, repr(vars(config)))
    with _LOCK:
        if key not in _CLIENTS:
            _CLIENTS[key] = make()
        return _CLIENTS[key]


def _guarded(around: Around, answers: Answers) -> Callable[[BaseClient, str, dict[str, Any]], Any]:
    carry_out = BaseClient._make_api_call  # type: ignore[attr-defined]  # botocore's stubs leave it out

    def make_api_call(client: BaseClient, operation: str, params: dict[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        answer = answers.get((service, operation))

        def perform(params: Mapping[str, Any]) -> Any:
            try:
                if answer is not None:
                    return answer(params)
            except NotOurs:
                pass  # moto's
            with _LOCK:
                if service in shortcut.HANDLERS:
                    return shortcut.answer(client, operation, dict(params))
                return carry_out(client, operation, dict(params))

        with nullcontext() if answer else _LOCK:
            return around(AwsCall(service, operation, params, _function_of(client)), perform)

    return make_api_call


def _function_of(client: BaseClient) -> str:
    extra: str = client.meta.config.user_agent_extra or ""  # type: ignore[attr-defined]  # made by botocore
    return extra.removeprefix(AGENT) if extra.startswith(AGENT) else ""


def refusal(code: str, operation: str, *, status: int = 400, message: str = "") -> ClientError:
    """The service's answer is this error."""
    error: Any = {
        "Error": {"Code": code, "Message": message or code},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(error, operation)


def build(names: Names, dynamodb: Any, sqs: Any) -> None:
    """Every table and queue that the topology names, and where logs and artifacts go."""
    for table in TABLES:
        _build_table(names.table(table), table, dynamodb)
    for name, dead, queue in names.queues():
        _build_queue(name, dead, queue, sqs)
    sqs.create_queue(QueueName=names.queue(UNDELIVERED))
    boto3.client("logs", config=CONFIG).create_log_group(logGroupName=names.run_log)
    boto3.client("s3", config=CONFIG).create_bucket(Bucket=artifacts_bucket(names))


def artifacts_bucket(names: Names) -> str:
    """Where the files of attempts are; in a real account its name is generated."""
    return names.of("artifacts")


def _build_table(name: str, table: Table, dynamodb: Any) -> None:
    keys = {table.partition_key: "HASH", table.sort_key: "RANGE"}
    dynamodb.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": bool(table.stream)}
        | ({"StreamViewType": table.stream} if table.stream else {}),
    )
    if table.ttl:
        expiry = {"Enabled": True, "AttributeName": table.ttl}
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)


def _build_queue(name: str, dead: str, queue: Queue, sqs: Any) -> None:
    retention = {"MessageRetentionPeriod": str(int(queue.retention.total_seconds()))}
    sqs.create_queue(QueueName=dead, Attributes=retention)
    redrive = f'{{"deadLetterTargetArn":"{arn("sqs", dead)}","maxReceiveCount":{queue.receives_max}}}'
    visibility = {"VisibilityTimeout": str(int(queue.visibility.total_seconds()))}
    sqs.create_queue(QueueName=name, Attributes=retention | visibility | {"RedrivePolicy": redrive})


def build_key(names: Names) -> None:
    """The customer key; moto encrypts with it only what it is asked to."""
    kms = boto3.client("kms", config=CONFIG)
    key = kms.create_key(Description=names.prefix)["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName=names.key, TargetKeyId=key)


def build_archive(names: Names) -> None:
    """The delivery stream of ended runs, and the bucket that it fills."""
    bucket = names.of(ARCHIVE)
    boto3.client("s3", config=CONFIG).create_bucket(Bucket=bucket)
    boto3.client("firehose", config=CONFIG).create_delivery_stream(
        DeliveryStreamName=bucket,
        ExtendedS3DestinationConfiguration={
            "RoleARN": f"arn:aws:iam::{ACCOUNT}:role/{bucket}",
            "BucketARN": f"arn:aws:s3:::{bucket}",
        },
    )


def arn(service: str, name: str) -> str:
    """The name of something in this account."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"


def next_visible_at(queue: str) -> datetime | None:
    """When the first message of a queue can be received, if nothing more is sent."""
    with _LOCK:
        messages = sqs_backends[ACCOUNT][REGION].queues[queue]._messages
        moments = [max(message.visible_at, message.delayed_until) for message in messages]
    return EPOCH + timedelta(milliseconds=min(moments)) if moments else None


def changes(table: str, *, beyond: int) -> list[dict[str, Any]]:
    """What changed in a table, after so many changes; oldest first, as its stream has it."""
    with _LOCK:
        shard = dynamodb_backends[ACCOUNT][REGION].tables[table].stream_shard
        return [change.to_json() for change in shard.items[beyond:]] if shard is not None else []
