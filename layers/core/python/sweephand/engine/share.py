"""Objects that jobs share: calendars and pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.domain.calendars import Calendar, CalendarHistory
from sweephand.domain.ids import Namespace, check_name
from sweephand.domain.limits import HOLDERS_MAX
from sweephand.engine.insist import insist
from sweephand.errors import InvalidInput, StaleVersion
from sweephand.ports import World


def put_calendar(world: World, namespace: Namespace, name: str, document: Mapping[str, Any], *, expected: int) -> int:
    """A new version of a calendar; it takes effect after the look-ahead, so that no planned fire changes its mind.

    Repeating it is refused as stale.
    """
    calendar = Calendar.parse(document, id=check_name(name, path="calendar"))
    stored = world.shared.get(namespace, "calendar", name)
    history = CalendarHistory.decode(stored[1]["versions"]) if stored else CalendarHistory()
    now = world.clock.now()
    effective_at = now + world.pace.lookahead if history.versions else now
    versions = history.with_version(effective_at, calendar).encode()
    return _put(world, namespace, "calendar", name, {"versions": versions}, expected)


def put_pool(world: World, namespace: Namespace, name: str, slots: int, *, expected: int) -> int:
    """A pool of so many slots; a smaller size lets those who hold more finish. Repeating it is refused as stale."""
    check_name(name, path="pool")
    if isinstance(slots, bool) or not 1 <= slots <= HOLDERS_MAX:
        raise InvalidInput(f"slots must be 1 to {HOLDERS_MAX}.", "slots")
    return _put(world, namespace, "pool", name, {"slots": slots}, expected)


def _put(world: World, namespace: Namespace, kind: str, name: str, document: Mapping[str, Any], expected: int) -> int:
    if not insist(lambda: world.shared.put(namespace, kind, name, document, expected=expected)):
        current = world.shared.get(namespace, kind, name)
        if current != (expected + 1, document):  # else the answer to our own write was lost
            raise StaleVersion(f"{kind} {name}", expected, current[0] if current else 0)
    return expected + 1
