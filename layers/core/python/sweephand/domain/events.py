"""Events that make jobs run: what a job listens for, and whether an event is that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from sweephand.domain.fields import json_bytes

DETAIL_BYTES_MAX: Final = 32_768


class EventRule(Struct, frozen=True):
    """What a job listens for: a source, perhaps a type, perhaps a pattern that the event's detail must match."""

    source: str
    type: str | None = None
    match: Mapping[str, Any] = field(default_factory=dict)

    def accepts(self, event: Event) -> bool:
        """Whether this is such an event."""
        return event.source == self.source and self.type in (None, event.type) and _matches(self.match, event.detail)


class Event(Struct, frozen=True):
    """Something that happened elsewhere; its `id` lets a repeated delivery be recognised."""

    source: str
    type: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None

    @property
    def as_params(self) -> dict[str, Any]:
        """What a run that it makes gets of it; a detail that is too large for a run's parameters is left out."""
        told: dict[str, Any] = {"source": self.source, "type": self.type, "id": self.id, "detail": dict(self.detail)}
        size = json_bytes(self.detail)
        return told if size <= DETAIL_BYTES_MAX else {**told, "detail": {}, "detailBytes": size}


def _matches(pattern: Any, value: Any) -> bool:
    """An object matches field by field, a list names the values allowed, anything else is the value itself."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(_matches(one, value.get(name)) for name, one in pattern.items())
    return any(_is(one, value) for one in pattern) if isinstance(pattern, list) else _is(pattern, value)


def _is(wanted: Any, value: Any) -> bool:
    """Equality as JSON has it, however deep: true is not 1."""
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return wanted.keys() == value.keys() and all(_is(one, value[name]) for name, one in wanted.items())
    if isinstance(wanted, list) and isinstance(value, list):
        return len(wanted) == len(value) and all(map(_is, wanted, value))
    return isinstance(wanted, bool) == isinstance(value, bool) and bool(wanted == value)
