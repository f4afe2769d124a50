"""Run a task of users' code once: the only rights here are to keep what it prints and leaves behind, and to open the
secrets of the order that came with it."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from sweephand.artifacts import Artifacts, Found
from sweephand.domain.ids import Namespace
from sweephand.domain.retry import Failure
from sweephand.logs import Log, LogKey, Logs
from sweephand.operators import Logging, Operators, Unpacked
from sweephand.orders import decode_call, encode_outcome
from sweephand.packs import Packs
from sweephand.secrets import Bound
from sweephand.surroundings import caller, clock, names, settings

OWN: Final = names(), caller(), settings().artifacts


@cache
def stores() -> tuple[Logs, Artifacts, Packs]:
    from sweephand import aws  # with the first line, beside the task: boto3 takes longer than many a task

    own_names, own_caller, bucket = OWN
    config = aws.config(own_caller)
    return aws.logs(own_names, config), aws.artifacts(bucket, config), aws.packs(bucket, config)


def opened(key: LogKey) -> Log:
    return stores()[0].open(key)


def keep(key: LogKey, files: list[Found]) -> None:
    stores()[1].keep(key, files)


def keep_output(key: LogKey, content: bytes) -> None:
    stores()[1].keep_output(key, content)


def fetch(namespace: Namespace, digest: str) -> bytes | None:
    return stores()[2].read(namespace, digest)


PLACE: Final = Path(tempfile.gettempdir())
CODE_BYTES_MAX: Final = 128 * 1024 * 1024
"""Beside what a task itself may put into the 512 MB that a function has there."""
logging: Final = Logging(opened, every=timedelta(seconds=1))
operators: Final = Operators(
    PLACE / "sweephand",
    http_may_reach=settings().reachable,
    logging=logging,
    keep=keep,
    keep_output=keep_output,
    clock=clock(),
    code=Unpacked(PLACE / "sweephand-code", fetch, bytes_max=CODE_BYTES_MAX),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    if "orders" not in event:
        return encode_outcome(operators.execute(decode_call(event, unseal=unseal)))
    with ThreadPoolExecutor(len(event["orders"])) as threads:
        return {"outcomes": list(threads.map(outcome, event["orders"]))}


def outcome(order: dict[str, Any]) -> dict[str, Any]:
    """One of several: what it raises is its own failure, and not its neighbours'."""
    try:
        return encode_outcome(operators.execute(decode_call(order, unseal=unseal)))
    except Exception as error:  # noqa: BLE001
        return encode_outcome(Failure(type(error).__name__, str(error)[:1_000]))


def unseal(sealed: str, bound_to: Bound) -> str | None:
    """Only a long task's secrets come sealed: no other call waits for boto3."""
    from sweephand.aws import unsealed_order

    return unsealed_order(sealed, bound_to)
