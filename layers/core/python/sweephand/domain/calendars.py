"""Calendars: which local days are open, shared by schedules, changed in versions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from datetime import date, datetime
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.zones import zone
from sweephand.errors import InvalidInput

__all__ = ["DATES_MAX", "WEEKDAYS", "Calendar", "CalendarHistory"]

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DATES_MAX: Final = 5000

_BUSINESS_DAYS: Final = frozenset(WEEKDAYS[:5])
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KEYS: Final = ("id", "timezone", "weekdays", "closed", "opened")


class Calendar(Struct, frozen=True):
    """The open days of a place: some weekdays, less the closed dates, plus the opened ones."""

    id: str
    timezone: str = "UTC"
    weekdays: frozenset[str] = _BUSINESS_DAYS
    closed: frozenset[date] = frozenset()
    opened: frozenset[date] = frozenset()

    def refuses(self, fire_at: datetime) -> str | None:
        """Why a fire should not run, or None where its local day is open."""
        day = fire_at.astimezone(zone(self.timezone)).date()
        if day in self.opened:
            return None
        if day in self.closed:
            return f"{day} is closed in calendar {self.id}"
        weekday = WEEKDAYS[day.weekday()]
        if weekday not in self.weekdays:
            return f"{day} is a {day:%A}, which is closed in calendar {self.id}"
        return None

    def encode(self) -> dict[str, Any]:
        """The stored form, which is also what a user's document looks like."""
        return {
            "id": self.id,
            "timezone": self.timezone,
            "weekdays": [weekday for weekday in WEEKDAYS if weekday in self.weekdays],
            "closed": [day.isoformat() for day in sorted(self.closed)],
            "opened": [day.isoformat() for day in sorted(self.opened)],
        }

    @classmethod
    def decode(cls, stored: Mapping[str, Any]) -> Calendar:
        """The inverse of `encode`."""
        return cls(
            id=stored["id"],
            timezone=stored["timezone"],
            weekdays=frozenset(stored["weekdays"]),
            closed=frozenset(map(date.fromisoformat, stored["closed"])),
            opened=frozenset(map(date.fromisoformat, stored["opened"])),
        )

    @classmethod
    def parse(cls, document: object, *, id: str, path: str = "") -> Calendar:
        """A calendar from a user's document, or a refusal that names the field."""
        if not isinstance(document, Mapping):
            raise InvalidInput("A calendar is an object with weekdays, closed and opened.", path=path)
        prefix = f"{path}." if path else ""
        _check_keys(document, prefix)
        if document.get("id", id) != id:
            raise InvalidInput(f"The id must be {id}, as in the address.", path=f"{prefix}id")
        closed = _dates(document.get("closed", []), f"{prefix}closed")
        opened = _dates(document.get("opened", []), f"{prefix}opened")
        if len(closed) + len(opened) > DATES_MAX:
            raise InvalidInput(f"A calendar holds at most {DATES_MAX} dates.", path=f"{prefix}closed")
        if both := closed & opened:
            raise InvalidInput(f"{min(both)} is both closed and opened.", path=f"{prefix}opened")
        return cls(
            id=id,
            timezone=_timezone(document.get("timezone", "UTC"), f"{prefix}timezone"),
            weekdays=_weekdays(document.get("weekdays", WEEKDAYS[:5]), f"{prefix}weekdays"),
            closed=closed,
            opened=opened,
        )


class CalendarHistory(Struct, frozen=True):
    """The versions of one calendar, by the instant from which each holds."""

    versions: tuple[tuple[datetime, Calendar], ...] = ()

    def at(self, instant: datetime) -> Calendar | None:
        """The version in force at an instant; None before the first."""
        index = bisect_right(self.versions, instant, key=itemgetter(0))
        return self.versions[index - 1][1] if index else None

    def with_version(self, effective_at: datetime, calendar: Calendar) -> CalendarHistory:
        """A change: it holds from `effective_at` on, and replaces what was to begin then or later."""
        kept = tuple(version for version in self.versions if version[0] < effective_at)
        return CalendarHistory((*kept, (effective_at, calendar)))

    def encode(self) -> list[Any]:
        """The stored form."""
        return [[effective_at.isoformat(), calendar.encode()] for effective_at, calendar in self.versions]

    @classmethod
    def decode(cls, stored: list[Any]) -> CalendarHistory:
        """The inverse of `encode`."""
        return cls(tuple((datetime.fromisoformat(at), Calendar.decode(calendar)) for at, calendar in stored))


def _check_keys(document: Mapping[str, Any], prefix: str) -> None:
    for key in document:
        if key not in _KEYS:
            shown = str(key)[:64]
            raise InvalidInput(f"A calendar has no field '{shown}': use {', '.join(_KEYS)}.", path=f"{prefix}{shown}")


def _timezone(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput("A time zone is an IANA name, such as Europe/Berlin.", path=path)
    try:
        zone(value)
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=path) from None
    return value


def _weekdays(value: object, path: str) -> frozenset[str]:
    if not isinstance(value, list | tuple) or not all(weekday in WEEKDAYS for weekday in value):
        raise InvalidInput(f"The open weekdays are a list of {', '.join(WEEKDAYS)}.", path=path)
    return frozenset(value)


def _dates(value: object, path: str) -> frozenset[date]:
    if not isinstance(value, list | tuple):
        raise InvalidInput("The dates are a list, such as ['2026-12-25'].", path=path)
    if len(value) > DATES_MAX:
        raise InvalidInput(f"A calendar holds at most {DATES_MAX} dates.", path=path)
    return frozenset(_date(item, f"{path}[{index}]") for index, item in enumerate(value))


def _date(value: object, path: str) -> date:
    # A datetime is a date in Python; YAML yields dates for unquoted 2026-12-25.
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    # fromisoformat also knows 20261225 and 2026-W52-5, which people do not mean.
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass  # refused below, with all other mistakes
    raise InvalidInput(f"{str(value)[:32]!r} is not a date: write it as 2026-12-25.", path=path)
