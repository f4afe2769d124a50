"""Counts what AWS would charge for the calls of a moto world, by DynamoDB's and SQS's rules, not by moto's flat 1.0.

Writes: the larger of the item before and after, by the started KB; a write whose condition fails pays for what is
there; twice in a transaction; nothing for what TTL deletes. Reads: by the started 4 KB, half if not strongly
consistent. SQS: a request per started 64 KB. Firehose: each record by the started 5 KB.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from sweephand.topology import FUNCTIONS, MACHINES, Names

_WRITE_BYTES: Final = 1_024
_READ_BYTES: Final = 4_096
_REQUEST_BYTES: Final = 65_536
_RECORD_BYTES: Final = 5_120

Item = Mapping[str, Any]
Target = tuple[str, Mapping[str, Any]]
"""A table's name and an item's key."""


@dataclass
class Meter:
    """Units so far, by table and by SQS operation; `tests.moto_world.moto_world(clock, meter=…)` feeds it."""

    region: str = "us-east-1"
    writes: Counter[str] = field(default_factory=Counter)
    index_writes: Counter[str] = field(default_factory=Counter)
    reads: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    requests: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    archived: list[int] = field(default_factory=list)
    """The sizes of what Firehose took, in bytes."""
    _before: list[Item | None] = field(default_factory=list)

    @property
    def write_units(self) -> int:
        """Write units of all tables and their indexes."""
        return self.writes.total() + self.index_writes.total()

    @property
    def read_units(self) -> float:
        return sum(self.reads.values())

    @property
    def ingested_bytes(self) -> int:
        """What Firehose charges for."""
        return sum(ceil(size / _RECORD_BYTES) * _RECORD_BYTES for size in self.archived)

    def clear(self) -> None:
        """Begin to count again."""
        for counter in (self.writes, self.index_writes, self.reads, self.requests, self.calls, self.archived):
            counter.clear()

    def before(self, service: str, operation: str, params: Mapping[str, Any]) -> None:
        self.calls[operation] += 1
        if service == "dynamodb":
            self._before = [self._stored(target) for target in _written(operation, params)]

    def after(self, service: str, operation: str, params: Mapping[str, Any], answer: Mapping[str, Any] | None) -> None:
        if service == "sqs":
            self.requests[operation] += _requests(params, answer or {})
        elif service == "firehose":
            self.archived += [len(record["Data"]) for record in params["Records"]]
        elif targets := list(_written(operation, params)):
            times = 2 if operation == "TransactWriteItems" else 1
            for target, was in zip(targets, self._before, strict=True):
                self._count_write(target, was, times)
        else:
            for table, units in _read_units(operation, params, answer or {}):
                self.reads[table] += units

    def _count_write(self, target: Target, was: Item | None, times: int) -> None:
        table, _ = target
        now = self._stored(target)
        size = max(size_of(was or {}), size_of(now or {}))
        self.writes[table] += times * max(1, ceil(size / _WRITE_BYTES))
        for index in self._table(table).global_indexes:
            keys = [key["AttributeName"] for key in index.schema]
            keys_only = index.projection.get("ProjectionType") == "KEYS_ONLY"
            self.index_writes[f"{table}/{index.name}"] += _index_writes(was or {}, now or {}, keys, keys_only)

    def _stored(self, target: Target) -> Item | None:
        table, key = target
        found = self._backend().get_item(table, dict(key))
        return None if found is None else found.to_json()["Attributes"]

    def _table(self, name: str) -> Any:
        return self._backend().get_table(name)

    def _backend(self) -> Any:
        return dynamodb_backends[DEFAULT_ACCOUNT_ID][self.region]


def size_of(item: Item) -> int:
    """The size of an item as DynamoDB counts it: names and values, in bytes."""
    return sum(len(name.encode()) + _size_of_value(value) for name, value in item.items())


def _size_of_value(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(str(content).encode())
        case "N":
            digits = str(content).lstrip("-").replace(".", "").strip("0")
            return ceil(len(digits) / 2) + 1 + str(content).startswith("-")
        case "B":
            return len(content) if isinstance(content, bytes) else len(content) * 3 // 4  # moto keeps base64
        case "M":
            return 3 + sum(len(name.encode()) + _size_of_value(one) + 1 for name, one in content.items())
        case "L":
            return 3 + sum(_size_of_value(one) + 1 for one in content)
        case "SS":
            return sum(len(one.encode()) for one in content)
        case _:
            return 1  # BOOL and NULL


def _written(operation: str, params: Mapping[str, Any]) -> Iterator[Target]:
    """The items that a call may write."""
    match operation:
        case "PutItem":
            yield params["TableName"], _key_of(params["Item"])
        case "UpdateItem" | "DeleteItem":
            yield params["TableName"], params["Key"]
        case "BatchWriteItem":
            for table, requests in params["RequestItems"].items():
                for request in requests:
                    put = request.get("PutRequest")
                    yield table, _key_of(put["Item"]) if put else request["DeleteRequest"]["Key"]
        case "TransactWriteItems":
            for write in params["TransactItems"]:
                ((_, one),) = write.items()
                yield one["TableName"], one["Key"] if "Key" in one else _key_of(one["Item"])
        case _:
            pass  # a read


def _key_of(item: Item) -> Item:
    return {"pk": item["pk"], "sk": item["sk"]}


def _index_writes(was: Item, now: Item, keys: Sequence[str], keys_only: bool) -> int:
    """Entries that an index puts and deletes for one write; an item without the keys is not in it."""
    old = [was.get(key) for key in keys] if all(key in was for key in keys) else None
    new = [now.get(key) for key in keys] if all(key in now for key in keys) else None
    if old == new:
        return 0 if new is None or keys_only or was == now else 1
    return (old is not None) + (new is not None)


def _read_units(operation: str, params: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    match operation:
        case "GetItem":
            yield params["TableName"], _read(size_of(answer.get("Item", {})), params)
        case "Query":
            yield params["TableName"], _read(sum(map(size_of, answer.get("Items", []))), params)
        case "BatchGetItem":
            for table, wanted in params["RequestItems"].items():
                found = answer.get("Responses", {}).get(table, [])
                absent = len(wanted["Keys"]) - len(found)
                yield table, sum(_read(size_of(item), wanted) for item in found) + absent * _read(0, wanted)
        case _:
            pass  # administration, which is free


def _read(size: int, params: Mapping[str, Any]) -> float:
    return max(1, ceil(size / _READ_BYTES)) * (1 if params.get("ConsistentRead") else 0.5)


def _requests(params: Mapping[str, Any], answer: Mapping[str, Any]) -> int:
    sent = sum(len(entry.get("MessageBody", "").encode()) for entry in params.get("Entries", []))
    received = sum(len(message["Body"].encode()) for message in answer.get("Messages", []))
    return max(1, ceil(max(sent, received) / _REQUEST_BYTES))


def watchers() -> tuple[int, int]:
    """How many metrics the alarms and the dashboard of `infra/` have, with the default options.

    What they watch is only named here, so that no code has to be packed for it.
    """
    from infra.node import environment

    os.environ.update(environment())  # before anything of the CDK is imported: it starts node at once
    from aws_cdk import App, Stack
    from aws_cdk import aws_cloudwatch as cloudwatch
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_stepfunctions as sfn

    from infra.alarms import Alarms
    from infra.dashboard import Dashboard
    from infra.data import DataStack
    from infra.options import Options
    from infra.rest import RestApi

    with tempfile.TemporaryDirectory() as folder:
        app, options, names = App(outdir=folder), Options(), Names()
        data, stack = DataStack(app, "Data", options=options), Stack(app, "App")
        functions: Any = {
            one.name: lambda_.Function.from_function_name(stack, f"{one.name}Function", names.function(one))
            for one in FUNCTIONS
        }
        machines: Any = {
            one.name: sfn.StateMachine.from_state_machine_name(stack, f"{one.name}Machine", names.machine(one))
            for one in MACHINES
        }
        api = RestApi(stack, "Rest", names=names, key=data.key, options=options)
        watched: Any = {"names": names, "data": data, "functions": functions, "api": api}
        Alarms(stack, "Alarms", machines=machines, options=options, **watched)
        Dashboard(stack, "Dashboard", **watched)
        found = stack.node.find_all()
        alarms = sum(_metrics_of(one) for one in found if isinstance(one, cloudwatch.CfnAlarm))
        (dashboard,) = (one for one in found if isinstance(one, cloudwatch.CfnDashboard))
        widgets = json.loads(_text(stack.resolve(dashboard.dashboard_body)))["widgets"]
    return alarms, sum(len(widget["properties"]["metrics"]) for widget in widgets)


def _metrics_of(alarm: Any) -> int:
    """An alarm on an expression is charged for each metric in it."""
    return sum(one.metric_stat is not None for one in alarm.metrics) if alarm.metrics else 1


def _text(body: Any) -> str:
    """A resolved text, with anything in place of what only AWS knows."""
    return body if isinstance(body, str) else "".join(p if isinstance(p, str) else "-" for p in body["Fn::Join"][1])
