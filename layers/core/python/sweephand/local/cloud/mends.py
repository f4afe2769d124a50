"""What moto lacks, made up for here and never in the product.

- Its queues, streams and logs live by the machine's clock: they are given the deployment's.
- Its messages come back a moment after their hold; here at its end. Its 12 hours of hold count from the sending; here,
  as on AWS, from the receipt.
- It copies whole tables for every transaction; here only the directory of their items, which is enough since a put
  replaces an item and never changes it. It sorts whole tables for every query; here only the partition asked for.
- It makes a new RSA key for every key of KMS, and looks a class over for every call; here once.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import moto.core.responses
import moto.dynamodb.models
import moto.dynamodb.models.table
import moto.kms.models
import moto.logs.models
import moto.sqs.models
from moto.dynamodb.models.table import Table as MotoTable
from moto.sqs.exceptions import InvalidParameterValue, ReceiptHandleIsInvalid

from sweephand.ports import Clock

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_HOLD_MAX_S: Final = 43_200
_KNOWN_BY_NOW: Final = (
    (moto.kms.models, "generate_private_key"),
    (moto.core.responses, "method_names_from_class"),
    (moto.core.responses, "camelcase_to_underscores"),
)


def mended(clock: Clock) -> ExitStack:
    """The mends, in place until the stack is closed."""
    with ExitStack() as stack:
        _on_time(stack, clock)
        _with_cheap_tables(stack)
        for module, name in _KNOWN_BY_NOW:
            stack.enter_context(patch.object(module, name, _once(getattr(module, name))))
        return stack.pop_all()


_once: Final = cache(cache)
"""A function that computes each of its answers once in the life of the process."""


def _on_time(stack: ExitStack, clock: Clock) -> None:
    def millis() -> float:
        return (clock.now() - EPOCH) / _MILLISECOND

    models = moto.sqs.models
    stack.enter_context(patch.object(models, "unix_time_millis", millis))
    stack.enter_context(patch.object(models, "unix_time", lambda: millis() / 1000))
    stack.enter_context(patch.object(models.Message, "visible", property(lambda self: millis() >= self.visible_at)))
    stack.enter_context(patch.object(models.SQSBackend, "change_message_visibility", _change_visibility))
    for module in (moto.dynamodb.models.table, moto.logs.models):
        stack.enter_context(patch.object(module, "utcnow", lambda: clock.now().replace(tzinfo=None)))


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
        twin = _with_items(thing, defaultdict(dict, directory))
        if twin.stream_shard is not None:
            # A transaction that is rolled back leaves no trace in the stream either.
            twin.stream_shard = copy.copy(twin.stream_shard)
            twin.stream_shard.items = list(twin.stream_shard.items)
        return twin

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
