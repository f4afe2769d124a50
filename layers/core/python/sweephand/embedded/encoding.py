"""How values become columns: times as whole microseconds since 1970, structures as JSON texts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

to_json: Final = json.JSONEncoder(separators=(",", ":")).encode
"""`json.dumps` would build an encoder for every call."""
from_json: Final = json.loads


def micros(at: datetime) -> int:
    """An aware instant as a column."""
    return (at - _EPOCH) // _MICROSECOND


def micros_or_none(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def span(length: timedelta) -> int:
    """A duration as the difference of two columns."""
    return length // _MICROSECOND


def instant(column: int) -> datetime:
    """The instant that `micros` stored."""
    return _EPOCH + timedelta(microseconds=column)


def instant_or_none(column: int | None) -> datetime | None:
    return None if column is None else _EPOCH + timedelta(microseconds=column)


def json_or_none(value: Any) -> str | None:
    """JSON, or NULL for what most rows have: nothing."""
    return None if value is None else to_json(value)


def value_or_none(column: str | None) -> Any:
    return None if column is None else from_json(column)
