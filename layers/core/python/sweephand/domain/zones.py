"""Time zones from the pinned tzdata wheel, and what a wall time means in one of them."""

from __future__ import annotations

import difflib
import zoneinfo
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]
from msgspec import Struct

from sweephand.errors import InvalidInput

__all__ = [
    "TZDATA_VERSION",
    "Fold",
    "Gap",
    "Reading",
    "Span",
    "hour_offsets",
    "instants",
    "reading",
    "span_at",
    "zone",
]

# The wheel alone, never the machine's own files: every node must agree on when a fire is.
zoneinfo.reset_tzpath([])
# Zones that somebody loaded before this line may come from the machine's files.
ZoneInfo.clear_cache()

TZDATA_VERSION: Final[str] = tzdata.IANA_VERSION

_NAME_MAX: Final = 64
_DAY: Final = timedelta(days=1)
_ORIGIN: Final = datetime(1, 1, 1)  # noqa: DTZ001 - a wall time, day 1 of the ordinals
_NOON: Final = timedelta(hours=12)
_MARGIN: Final = 16  # days a year's table reaches into its neighbours, so that a block at New Year is whole


class Gap(StrEnum):
    """What happens to a wall time that a clock change leaps over."""

    SHIFT = "shift"
    """It fires later by the width of the gap: 02:30 fires at 03:30."""
    SKIP = "skip"
    """It does not fire on that day."""


class Fold(StrEnum):
    """What happens to a wall time that a clock change repeats."""

    FIRST = "first"
    """It fires once, at the earlier instant."""
    BOTH = "both"
    """It fires at both instants."""


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, or a refusal that suggests the nearest names."""
    if name not in _names():
        raise InvalidInput(_unknown(name), path="schedule.timezone")
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _unknown(name: str) -> str:
    shown = name if len(name) <= _NAME_MAX else name[:_NAME_MAX] + "…"
    by_lower = {known.lower(): known for known in sorted(_names())}
    near = difflib.get_close_matches(shown.lower(), by_lower, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(by_lower[name] for name in near)}?" if near else "use an IANA name."
    return f"There is no time zone '{shown}': {hint}"


class Reading(Struct, frozen=True):
    """A wall time as instants: by the offset before a clock change, and by the one after it.

    Both are equal on an ordinary day. In a gap the first comes later than the second, in a fold earlier.
    """

    before: datetime
    after: datetime

    @property
    def is_gap(self) -> bool:
        """True where no clock shows this wall time."""
        return self.before > self.after

    @property
    def is_fold(self) -> bool:
        """True where clocks show this wall time twice."""
        return self.before < self.after


def reading(wall: datetime, tz: ZoneInfo) -> Reading:
    """The instants of a naive wall time; PEP 495 gives one offset for each value of `fold`."""
    return Reading(
        before=wall.replace(tzinfo=tz, fold=0).astimezone(UTC),
        after=wall.replace(tzinfo=tz, fold=1).astimezone(UTC),
    )


def instants(wall: datetime, tz: ZoneInfo, gap: Gap, fold: Fold) -> tuple[datetime, ...]:
    """When a naive wall time fires: never, once or twice."""
    read = reading(wall, tz)
    if read.is_gap:
        return () if gap is Gap.SKIP else (read.before,)
    if read.is_fold and fold is Fold.BOTH:
        return (read.before, read.after)
    return (read.before,)


class Span(Struct, frozen=True):
    """Consecutive local days, by ordinal, that share one UTC offset or lie around a clock change.

    A block around a change holds every day whose wall times it moves and every day they move to, so
    the fires of a block never mix with those of its neighbours.
    """

    first: int
    last: int
    lowest: timedelta
    highest: timedelta

    @property
    def is_steady(self) -> bool:
        """True where one offset holds throughout, so that instants are plain arithmetic."""
        return self.lowest == self.highest


def span_at(tz: ZoneInfo, day: int) -> Span:
    """The span that holds a day."""
    spans = _spans(tz, date.fromordinal(day).year)
    return spans[bisect_right(spans, day, key=attrgetter("first")) - 1]


@lru_cache(maxsize=4096)
def _spans(tz: ZoneInfo, year: int) -> tuple[Span, ...]:
    """A year's days cut at its clock changes: a change shows as different offsets at two noons."""
    first = max(date(year, 1, 1).toordinal() - _MARGIN, 2)
    last = date(year, 12, 31).toordinal() + _MARGIN
    noons = {day: _noon_offset(tz, day) for day in range(first - 1, last + 2)}

    def steady_offset(day: int) -> timedelta | None:
        around = {noons[day - 1], noons[day], noons[day + 1]}
        return noons[day] if len(around) == 1 else None

    spans = []
    for _, group in groupby(range(first, last + 1), key=steady_offset):
        days = list(group)
        # The noons on either side belong to a block: without them one of its offsets may be missing.
        around = [noons[day] for day in range(days[0] - 1, days[-1] + 2)]
        spans.append(Span(days[0], days[-1], min(around), max(around)))
    return tuple(spans)


@lru_cache(maxsize=1024)
def hour_offsets(tz: ZoneInfo, day: int) -> tuple[timedelta | None, ...]:
    """The UTC offset of each wall hour of a day; None where a clock change gives it more than one."""
    midnight = _ORIGIN + (day - 1) * _DAY
    openings = [midnight + timedelta(hours=hour) for hour in range(24)]
    return tuple(_hour_offset(tz, opening) for opening in openings)


def _hour_offset(tz: ZoneInfo, opening: datetime) -> timedelta | None:
    walls = (opening, opening + timedelta(minutes=59, seconds=59))
    offsets = {wall.replace(tzinfo=tz, fold=fold).utcoffset() for wall in walls for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _noon_offset(tz: ZoneInfo, day: int) -> timedelta:
    noon = _ORIGIN + (day - 1) * _DAY + _NOON
    offset = tz.utcoffset(noon)
    assert offset is not None  # ZoneInfo knows the offset of every wall time
    return offset
