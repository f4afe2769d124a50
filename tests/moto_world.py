"""The stores over AWS in this process, metered, and failing on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from msgspec.structs import replace

from sweephand import aws
from sweephand.local.cloud.account import (
    CONFIG,
    Around,
    AwsCall,
    Perform,
    account,
    artifacts_bucket,
    build,
    build_key,
    refusal,
)
from sweephand.ports import Clock, Stores
from sweephand.topology import Names

NAMES: Final = Names("test")


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
    return Fault(refusal("ProvisionedThroughputExceededException", operation))


def broken(operation: str) -> Fault:
    return Fault(refusal("InternalServerError", operation, status=500))


def refused(operation: str, code: str) -> Fault:
    """The service's answer is this error code."""
    return Fault(refusal(code, operation))


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
    hurt = False  # building the account is no part of what is tested

    def around(call: AwsCall, perform: Perform) -> Any:
        return struck(call, perform) if hurt else perform(call.params)

    struck = failing(faults, metered(meter))
    with account(clock, around=around):
        clients = aws.clients(CONFIG)
        build(NAMES, *clients)
        build_key(NAMES)
        hurt = True
        bucket = artifacts_bucket(NAMES)
        yield aws.connect(
            NAMES, *clients, clock=clock, abreast=abreast, shards=shards, config=CONFIG, artifacts_bucket=bucket
        )


def failing(faults: Faults | None, around: Around) -> Around:
    """Fails where the faults say so, and otherwise does as told."""

    def strike(call: AwsCall, perform: Perform) -> Any:
        fault = faults(call.service, call.operation, call.params) if faults else None
        if isinstance(fault, Fault) and not fault.applied:
            raise fault.error
        if isinstance(fault, Partial):
            params, left_over = _divided(call.operation, dict(call.params), fault.taken)
            return around(replace(call, params=params), perform) | left_over if fault.taken else left_over
        answer = around(call, perform)
        if isinstance(fault, Fault):
            raise fault.error
        return answer

    return strike


def metered(meter: Meter | None) -> Around:
    """Shows every call to a meter."""

    def measure(call: AwsCall, perform: Perform) -> Any:
        if meter is None:
            return perform(call.params)
        meter.before(call.service, call.operation, call.params)
        answer = None
        try:
            answer = perform(call.params)
        finally:
            meter.after(call.service, call.operation, call.params, answer)
        return answer

    return measure


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
