"""A compiled cron expression, and the walk over the instants that it names.

The walk goes by whole local days. On most days one UTC offset holds and instants are plain arithmetic;
the few days around a clock change are read wall time by wall time, under the job's policy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from sweephand.domain.zones import Fold, Gap, Span, hour_offsets, instants, span_at

__all__ = ["EARLIEST", "FIRST_YEAR", "LATEST", "Cron", "bits"]

FIRST_YEAR: Final = 1970  # bit 0 of a year set
EARLIEST: Final = datetime(1900, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC)

_CYCLE_YEARS: Final = 400  # the calendar repeats after these: what has not come by then never comes
_CYCLE: Final = timedelta(days=146_097)
_ORIGIN: Final = datetime(1, 1, 1, tzinfo=UTC)  # day 1 of the ordinals
_LAST_DAY: Final = LATEST.toordinal()
_SECOND: Final = timedelta(seconds=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_FIRST_WINDOW: Final = timedelta(seconds=64)


@lru_cache(maxsize=4096)
def bits(mask: int) -> tuple[int, ...]:
    """The members of a bit set, ascending."""
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


class Cron(Struct, frozen=True):
    """The compiled form of an expression: one bit set per field; weekday 0 is Sunday."""

    seconds: int
    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    last_day: bool = False
    nth_weekdays: int = 0
    """Bit 5 × weekday + n - 1: the n-th such weekday of the month."""
    last_weekdays: int = 0
    nearest_days: int = 0
    """Days whose nearest Monday to Friday is meant; bit 0 is the last day of the month."""
    years: int | None = None
    """Counted from 1970; None means every year."""
    days_restricted: bool = False
    weekdays_restricted: bool = False
    """Both restricted mean either, as cron's manual has it."""
    follows_real_time: bool = False
    """The hour field begins with `*`: an instant fires if its wall time matches, whatever the policy."""

    def fires(self, after: datetime, tz: ZoneInfo, gap: Gap = Gap.SHIFT, fold: Fold = Fold.FIRST) -> Iterator[datetime]:
        """The instants strictly after `after`, ascending, each once."""
        clock = self._clock()
        for day, span in self._walk(after, tz):
            if not span.is_steady:
                yield from self._block_fires(span, after, tz, *self._policy(gap, fold))
                continue
            midnight = _midnight(day, span)
            for hour in clock.hour_deltas:
                opening = midnight + hour
                if opening > after:
                    for tick in clock.ticks:
                        yield opening + tick
                elif opening + clock.ticks[-1] > after:
                    for tick in clock.ticks[bisect_right(clock.ticks, after - opening) :]:
                        yield opening + tick

    def count(
        self,
        after: datetime,
        upto: datetime,
        tz: ZoneInfo,
        gap: Gap = Gap.SHIFT,
        fold: Fold = Fold.FIRST,
    ) -> int:
        """How many fires lie in (after, upto]; an ordinary day costs the same however often it fires."""
        clock = self._clock()
        total = 0
        for day, span in self._walk(after, tz):
            midnight = _midnight(day, span)
            if midnight > upto:
                break
            if span.is_steady:
                total += clock.rank(upto - midnight) - clock.rank(after - midnight)
                continue
            block = self._block_fires(span, after, tz, *self._policy(gap, fold))
            total += sum(1 for _ in takewhile(upto.__ge__, block))
        return total

    def last(
        self,
        after: datetime,
        upto: datetime,
        n: int,
        tz: ZoneInfo,
        gap: Gap = Gap.SHIFT,
        fold: Fold = Fold.FIRST,
    ) -> list[datetime]:
        """The newest n fires in (after, upto], ascending, found in ever longer windows that end at `upto`."""
        upto = min(upto, LATEST)
        if n <= 0 or upto < EARLIEST:
            return []
        floor = max(after, EARLIEST - _SECOND, upto - _CYCLE)
        start, width = upto, _FIRST_WINDOW
        while start > floor and self.count(start, upto, tz, gap, fold) < n:
            start = max(floor, upto - width)
            width *= 8
        return list(takewhile(upto.__ge__, self.fires(start, tz, gap, fold)))[-n:]

    def previous(
        self, before: datetime, tz: ZoneInfo, gap: Gap = Gap.SHIFT, fold: Fold = Fold.FIRST
    ) -> datetime | None:
        """The latest fire strictly before an instant."""
        found = self.last(EARLIEST - _SECOND, before - timedelta.resolution, 1, tz, gap, fold)
        return found[0] if found else None

    def matches(self, wall: datetime) -> bool:
        """Whether the expression names this naive wall time, if clocks show it or not."""
        return bool(
            self.seconds >> wall.second & 1
            and self.minutes >> wall.minute & 1
            and self.hours >> wall.hour & 1
            and self._matches_day(wall)
        )

    def ever_fires(self) -> bool:
        """Whether any day of the calendar's 400-year cycle matches."""
        if self.years is None:
            # Every month comes in all of its lengths beginning on every weekday.
            shapes = {(month, length) for month in bits(self.months) for length in _lengths(month)}
            return any(_month_days(self, weekday, length) for _, length in shapes for weekday in range(7))
        return next(self._matching_days(date(FIRST_YEAR, 1, 1).toordinal()), None) is not None

    def encode(self) -> str:
        """A compact text that `decode` reads without a parser of expressions."""
        flags = (self.last_day, self.days_restricted, self.weekdays_restricted, self.follows_real_time)
        fields = (
            self.seconds,
            self.minutes,
            self.hours,
            self.days,
            self.months,
            self.weekdays,
            sum(flag << bit for bit, flag in enumerate(flags)),
            self.nth_weekdays,
            self.last_weekdays,
            self.nearest_days,
        )
        years = [] if self.years is None else [f"{self.years:x}"]
        return ".".join([f"{field:x}" for field in fields] + years)

    @classmethod
    def decode(cls, stored: str) -> Cron:
        """The inverse of `encode`."""
        fields = [int(field, 16) for field in stored.split(".")]
        flags, nth_weekdays, last_weekdays, nearest_days = fields[6:10]
        seconds, minutes, hours, days, months, weekdays = fields[:6]
        return cls(
            seconds,
            minutes,
            hours,
            days,
            months,
            weekdays,
            last_day=bool(flags & 1),
            nth_weekdays=nth_weekdays,
            last_weekdays=last_weekdays,
            nearest_days=nearest_days,
            years=fields[10] if len(fields) > 10 else None,
            days_restricted=bool(flags & 2),
            weekdays_restricted=bool(flags & 4),
            follows_real_time=bool(flags & 8),
        )

    def _policy(self, gap: Gap, fold: Fold) -> tuple[Gap, Fold]:
        return (Gap.SKIP, Fold.BOTH) if self.follows_real_time else (gap, fold)

    def _walk(self, after: datetime, tz: ZoneInfo) -> Iterator[tuple[int, Span]]:
        """Matching days from that of `after` on, each with its span; a block around a change comes once."""
        today = max(after, EARLIEST).astimezone(tz).toordinal() if after < LATEST else _LAST_DAY + 1
        if today > _LAST_DAY:
            return
        span, done = span_at(tz, today), 0
        # A fire of a block's first day may have moved past `after`.
        for day in self._matching_days(today if span.is_steady else span.first):
            if day <= done:
                continue
            if day > span.last:
                span = span_at(tz, day)
            if not span.is_steady:
                done = span.last
            yield (day if span.is_steady else span.first), span

    def _matching_days(self, start: int) -> Iterator[int]:
        begin = date.fromordinal(start)
        months = bits(self.months)
        for year in range(begin.year, min(begin.year + _CYCLE_YEARS, LATEST.year) + 1):
            if not self._matches_year(year):
                continue
            for month in months:
                if year == begin.year and month < begin.month:
                    continue
                before_first = date(year, month, 1).toordinal() - 1
                for day in _month_days(self, *_shape(year, month)):
                    if before_first + day >= start:
                        yield before_first + day

    def _matches_year(self, year: int) -> bool:
        return self.years is None or (year >= FIRST_YEAR and bool(self.years >> (year - FIRST_YEAR) & 1))

    def _matches_day(self, day: date) -> bool:
        return (
            self._matches_year(day.year)
            and bool(self.months >> day.month & 1)
            and day.day in _month_days(self, *_shape(day.year, day.month))
        )

    def _block_fires(self, span: Span, after: datetime, tz: ZoneInfo, gap: Gap, fold: Fold) -> Iterator[datetime]:
        """The fires of all days around a clock change: sorted, since a moved one may pass another.

        Two that meet at one instant are one fire. Wall hours come in order, and none can yield anything
        before its opening read with the highest offset, so whatever is earlier can go.
        """
        pending: list[datetime] = []
        for day in range(span.first, span.last + 1):
            if not self._matches_day(date.fromordinal(day)):
                continue
            offsets = hour_offsets(tz, day)
            for hour in bits(self.hours):
                opening = _ORIGIN + timedelta(days=day - 1, hours=hour)
                settled = bisect_left(pending, opening - span.highest)
                yield from pending[:settled]
                del pending[:settled]
                if opening + _HOUR - span.lowest > after:
                    found = self._hour_fires(opening, offsets[hour], tz, gap, fold)
                    pending = _merged(pending, found[bisect_right(found, after) :])
        yield from pending

    def _hour_fires(
        self, opening: datetime, offset: timedelta | None, tz: ZoneInfo, gap: Gap, fold: Fold
    ) -> list[datetime]:
        """The fires of one wall hour, which is written as if it were UTC."""
        ticks = self._clock().ticks
        if offset is not None:
            opened = opening - offset
            return [opened + tick for tick in ticks]
        wall = opening.replace(tzinfo=None)
        return sorted({fire for tick in ticks for fire in instants(wall + tick, tz, gap, fold)})

    def _clock(self) -> _Clock:
        return _clock(self.seconds, self.minutes, self.hours)


class _Clock(Struct, frozen=True):
    """The times of day: each of some ticks of the hour, in each of some hours."""

    hours: int
    hour_deltas: tuple[timedelta, ...]
    ticks: tuple[timedelta, ...]

    def rank(self, since_midnight: timedelta) -> int:
        """How many times of day are not later than this; all or none of them outside the day."""
        if since_midnight < timedelta(0):
            return 0
        if since_midnight >= _DAY:
            return len(self.hour_deltas) * len(self.ticks)
        hour, into_hour = divmod(since_midnight, _HOUR)
        earlier = (self.hours & ((1 << hour) - 1)).bit_count() * len(self.ticks)
        return earlier + (bisect_right(self.ticks, into_hour) if self.hours >> hour & 1 else 0)


@lru_cache(maxsize=256)
def _clock(seconds: int, minutes: int, hours: int) -> _Clock:
    return _Clock(
        hours=hours,
        hour_deltas=tuple(timedelta(hours=hour) for hour in bits(hours)),
        ticks=tuple(timedelta(minutes=minute, seconds=second) for minute in bits(minutes) for second in bits(seconds)),
    )


def _midnight(day: int, span: Span) -> datetime:
    """The earliest instant that a day can begin at."""
    return _ORIGIN + timedelta(days=day - 1) - span.highest


@lru_cache(maxsize=4096)
def _shape(year: int, month: int) -> tuple[int, int]:
    """The weekday of a month's first day, and its length."""
    first_weekday, length = monthrange(year, month)
    return (first_weekday + 1) % 7, length


def _merged(earlier: list[datetime], later: list[datetime]) -> list[datetime]:
    """Two ascending lists as one, each instant once."""
    if not earlier or not later or earlier[-1] < later[0]:
        return earlier + later
    return sorted({*earlier, *later})


def _lengths(month: int) -> tuple[int, ...]:
    return (28, 29) if month == 2 else (monthrange(2001, month)[1],)


@lru_cache(maxsize=8192)
def _month_days(cron: Cron, first_weekday: int, length: int) -> tuple[int, ...]:
    """The days that match in a month of this shape: there are only 28 shapes."""
    by_day, by_weekday = 0, 0
    for day in range(1, length + 1):
        weekday = (first_weekday + day - 1) % 7
        nth, is_last = (day - 1) // 7, day + 7 > length
        if cron.days >> day & 1 or (cron.last_day and day == length):
            by_day |= 1 << day
        if cron.weekdays >> weekday & 1 or cron.nth_weekdays >> (5 * weekday + nth) & 1:
            by_weekday |= 1 << day
        if is_last and cron.last_weekdays >> weekday & 1:
            by_weekday |= 1 << day
    for wanted in bits(cron.nearest_days):
        if wanted <= length:
            by_day |= 1 << _nearest_weekday(wanted or length, first_weekday, length)
    either = cron.days_restricted and cron.weekdays_restricted
    return bits(by_day | by_weekday if either else by_day & by_weekday)


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The Monday to Friday nearest to a day, never in another month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day
