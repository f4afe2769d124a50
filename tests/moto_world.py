"""AWS in this process: moto, built from the topology, one call at a time, on a virtual clock, failing on demand.

What moto lacks is made up for here, never in the product:

- It is not safe for concurrent writes: one lock is around every call of every client.
- Its queues live by the machine's clock: they are given the world's.
- Its messages come back a moment after their hold; here at its end. Its 12 hours of hold count from the sending;
  here, as on AWS, from the receipt.
- It copies whole tables for every transaction; here only the directory of their items, which is enough since a put
  replaces an item and never changes it. It sorts whole tables for every query; here only the partition asked for.
"""

from __future__ import annotations

import copy
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from threading import RLock
from types import SimpleNamespace
from typing import Any, Final, Protocol
from unittest.mock import patch

import moto.dynamodb.models
import moto.sqs.models
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from moto import mock_aws
from moto.dynamodb.models.table import Table as MotoTable
from moto.sqs.exceptions import InvalidParameterValue, ReceiptHandleIsInvalid

from sweephand import aws
from sweephand.ports import Clock, Stores
from sweephand.topology import TABLES, Names

REGION: Final = "us-east-1"
NAMES: Final = Names("test")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_HOLD_MAX_S: Final = 43_200

_ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
_CONFIG: Final = Config(retries={"mode": "standard", "total_max_attempts": 1}, parameter_validation=True)
"""One attempt: a fault that a test injects is seen at once, not after botocore's sleeps."""


@dataclass(frozen=True)
class Fault:
    """What a call ends in; `applied`: it takes effect all the same."""

    error: Exception
    applied: bool = False


@dataclass(frozen=True)
class Partial:
    """Of a batch, only the first so many are taken; the answer names the others."""

    taken: int


def throttled(operation: str) -> Fault:
    return Fault(_client_error("ProvisionedThroughputExceededException", operation, 400))


def broken(operation: str) -> Fault:
    return Fault(_client_error("InternalServerError", operation, 500))


def refused(operation: str, code: str) -> Fault:
    """The service's answer is this error code."""
    return Fault(_client_error(code, operation, 400))


def unreachable() -> Fault:
    return Fault(EndpointConnectionError(endpoint_url="https://aws.test"))


def timed_out(*, applied: bool = True) -> Fault:
    """The answer is lost, after the call took effect or before."""
    return Fault(ReadTimeoutError(endpoint_url="https://aws.test"), applied)


def cancelled(*codes: str) -> Fault:
    """A transaction does not come about, for these reasons, item by item."""
    fault = refused("TransactWriteItems", "TransactionCanceledException")
    fault.error.response["CancellationReasons"] = [{"Code": code} for code in codes]  # type: ignore[attr-defined]
    return fault


Faults = Callable[[str, str, Mapping[str, Any]], Fault | Partial | None]
"""Decides about a call, by service ('dynamodb'), operation ('PutItem') and parameters."""


class Meter(Protocol):
    """Watches calls: `before` sees the world as it was, `after` the answer, or None where the call was refused."""

    def before(self, service: str, operation: str, params: Mapping[str, Any]) -> None: ...

    def after(
        self, service: str, operation: str, params: Mapping[str, Any], answer: Mapping[str, Any] | None
    ) -> None: ...


@contextmanager
def moto_world(
    clock: Clock, *, meter: Meter | None = None, faults: Faults | None = None, abreast: int = 1, shards: int = 8
) -> Iterator[Stores]:
    """The stores over an empty AWS account; with `abreast` 1, calls come in one order that a seed reproduces."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, _ENVIRONMENT))
        stack.enter_context(mock_aws())
        _on_virtual_time(stack, clock)
        _with_cheap_tables(stack)
        dynamodb, sqs = _clients()
        _build(dynamodb, sqs)
        _one_at_a_time(stack, meter, faults)
        yield aws.connect(NAMES, dynamodb, sqs, clock=clock, abreast=abreast, shards=shards)


@cache
def _clients() -> tuple[Any, Any]:
    """Made once: they know nothing of the account, and making them takes longer than building the account."""
    return aws.clients(_CONFIG)


def _build(dynamodb: Any, sqs: Any) -> None:
    """Everything that the topology names."""
    for table in TABLES:
        keys = {table.partition_key: "HASH", table.sort_key: "RANGE"}
        stream = {"StreamEnabled": True, "StreamViewType": table.stream} if table.stream else {"StreamEnabled": False}
        dynamodb.create_table(
            TableName=NAMES.table(table),
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification=stream,
        )
        if table.ttl:
            dynamodb.update_time_to_live(
                TableName=NAMES.table(table),
                TimeToLiveSpecification={"Enabled": True, "AttributeName": table.ttl},
            )
    for name, dead, queue in NAMES.queues():
        retention = {"MessageRetentionPeriod": str(int(queue.retention.total_seconds()))}
        url = sqs.create_queue(QueueName=dead, Attributes=retention)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{queue.receives_max}}}'
        visibility = {"VisibilityTimeout": str(int(queue.visibility.total_seconds()))}
        sqs.create_queue(QueueName=name, Attributes=retention | visibility | {"RedrivePolicy": redrive})


def _one_at_a_time(stack: ExitStack, meter: Meter | None, faults: Faults | None) -> None:
    """Every call of every client made from now on: one lock, then the faults, then the meter, then moto."""
    lock = RLock()
    call = BaseClient._make_api_call  # type: ignore[attr-defined]  # botocore's stubs leave it out

    def guarded(client: BaseClient, operation: str, params: dict[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        with lock:
            fault = faults(service, operation, params) if faults else None
            if isinstance(fault, Fault) and not fault.applied:
                raise fault.error
            left_over: dict[str, Any] = {}
            if isinstance(fault, Partial):
                params, left_over = _divided(operation, params, fault.taken)
                if fault.taken == 0:
                    return left_over
            answer = _metered(service, operation, params, lambda: call(client, operation, params))
            if isinstance(fault, Fault):
                raise fault.error
            return answer | left_over

    def _metered(service: str, operation: str, params: dict[str, Any], perform: Callable[[], Any]) -> Any:
        if meter is None:
            return perform()
        meter.before(service, operation, params)
        answer = None
        try:
            answer = perform()
        finally:
            meter.after(service, operation, params, answer)
        return answer

    stack.enter_context(patch.object(BaseClient, "_make_api_call", guarded))


def _divided(operation: str, params: dict[str, Any], taken: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The call with the first entries of its batch, and what the answer says about the others."""
    if operation in {"SendMessageBatch", "DeleteMessageBatch"}:
        failed = [{"Id": one["Id"], "Code": "InternalError", "SenderFault": False} for one in params["Entries"][taken:]]
        return params | {"Entries": params["Entries"][:taken]}, {"Failed": failed}
    ((table, wanted),) = params["RequestItems"].items()
    if operation == "BatchWriteItem":
        return {"RequestItems": {table: wanted[:taken]}}, {"UnprocessedItems": {table: wanted[taken:]}}
    first, rest = wanted["Keys"][:taken], wanted["Keys"][taken:]
    return (
        {"RequestItems": {table: wanted | {"Keys": first}}},
        {"UnprocessedKeys": {table: wanted | {"Keys": rest}}} | ({} if taken else {"Responses": {}}),
    )


def _on_virtual_time(stack: ExitStack, clock: Clock) -> None:
    def millis() -> float:
        return (clock.now() - _EPOCH) / _MILLISECOND

    models = moto.sqs.models
    stack.enter_context(patch.object(models, "unix_time_millis", millis))
    stack.enter_context(patch.object(models, "unix_time", lambda: millis() / 1000))
    stack.enter_context(patch.object(models.Message, "visible", property(lambda self: millis() >= self.visible_at)))
    stack.enter_context(patch.object(models.SQSBackend, "change_message_visibility", _change_visibility))


def _change_visibility(backend: Any, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
    queue = backend.get_queue(queue_name)
    for message in queue._messages:
        if message.had_receipt_handle(receipt_handle):
            if int(visibility_timeout) > _HOLD_MAX_S:
                raise InvalidParameterValue("VisibilityTimeout is beyond the limit [43200 seconds]")
            message.change_visibility(visibility_timeout)
            return
    raise ReceiptHandleIsInvalid


def _with_cheap_tables(stack: ExitStack) -> None:
    def snapshot(thing: Any) -> Any:
        if not isinstance(thing, MotoTable):
            return copy.deepcopy(thing)
        directory = {partition: dict(items) for partition, items in thing.items.items()}
        return _with_items(thing, defaultdict(dict, directory))

    query = MotoTable.query

    def query_of_partition(table: MotoTable, hash_key: Any, *args: Any, **kwargs: Any) -> Any:
        return query(_with_items(table, {hash_key: table.items.get(hash_key, {})}), hash_key, *args, **kwargs)

    cheap = SimpleNamespace(copy=copy.copy, deepcopy=snapshot)
    stack.enter_context(patch.object(moto.dynamodb.models, "copy", cheap))
    stack.enter_context(patch.object(MotoTable, "query", query_of_partition))


def _with_items(table: MotoTable, items: Any) -> MotoTable:
    twin = copy.copy(table)
    twin.items = items
    return twin


def _client_error(code: str, operation: str, status: int) -> ClientError:
    answer: Any = {
        "Error": {"Code": code, "Message": f"{code}, injected"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, operation)
