"""When a job fires: a recurrence, its time zone and policies, and the bounds around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, Protocol, assert_never
from zoneinfo import ZoneInfo

from msgspec import Struct

from sweephand.domain.cron import EARLIEST, LATEST, Cron
from sweephand.domain.zones import Fold, Gap, reading, zone
from sweephand.errors import InvalidInput

__all__ = ["EPOCH", "At", "Blackout", "Every", "Fold", "Gap", "HoldPolicy", "Schedule"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
PERIOD_MAX: Final = timedelta(days=366)
JITTER_MAX: Final = timedelta(days=1)
BLACKOUTS_MAX: Final = 100

_SECOND: Final = timedelta(seconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_INSTANT: Final = timedelta.resolution


class HoldPolicy(StrEnum):
    """What a blackout does to the fires inside it."""

    SKIP = "skip"
    """They do not run, and the ledger says why."""
    HOLD = "hold"
    """They wait for its end, where the catch-up policy decides."""


class _Series(Protocol):
    """Instants in whole seconds, ascending."""

    def fires(self, after: datetime) -> Iterator[datetime]: ...

    def count(self, after: datetime, upto: datetime) -> int: ...

    def last(self, after: datetime, upto: datetime, n: int) -> list[datetime]: ...


class Every(Struct, frozen=True):
    """A fixed period, counted both ways from an anchor."""

    period: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        if self.period % _SECOND or not _SECOND <= self.period <= PERIOD_MAX:
            raise InvalidInput(
                f"An interval is whole seconds, from 1 second to {PERIOD_MAX.days} days.",
                path="schedule.every",
            )
        _check_instant(self.anchor, "schedule.startAt")
        if self.anchor.microsecond:
            raise InvalidInput("An interval begins at a whole second.", path="schedule.startAt")

    def fires(self, after: datetime) -> Iterator[datetime]:
        """The instants strictly after `after`."""
        first = (after - self.anchor) // self.period + 1
        # In numbers first, since the instant itself may lie beyond what a datetime holds.
        for n in range(first, (LATEST - self.anchor) // self.period + 1):
            yield self.anchor + n * self.period

    def count(self, after: datetime, upto: datetime) -> int:
        """How many instants lie in (after, upto]."""
        upto = min(upto, LATEST)
        return max(0, (upto - self.anchor) // self.period - (after - self.anchor) // self.period)

    def last(self, after: datetime, upto: datetime, n: int) -> list[datetime]:
        """The newest n instants in (after, upto], ascending."""
        newest = (min(upto, LATEST) - self.anchor) // self.period
        oldest = max((after - self.anchor) // self.period + 1, newest - n + 1)
        return [self.anchor + index * self.period for index in range(oldest, newest + 1)]


class At(Struct, frozen=True):
    """One instant, once."""

    instant: datetime

    def __post_init__(self) -> None:
        _check_instant(self.instant, "schedule.at")
        if self.instant.microsecond:
            raise InvalidInput("A one-shot fires at a whole second.", path="schedule.at")

    def fires(self, after: datetime) -> Iterator[datetime]:
        """The instant, if it is strictly after `after`."""
        if self.instant > after:
            yield self.instant

    def count(self, after: datetime, upto: datetime) -> int:
        """1 if the instant lies in (after, upto]."""
        return int(after < self.instant <= upto)

    def last(self, after: datetime, upto: datetime, n: int) -> list[datetime]:
        """The instant, if it lies in (after, upto]."""
        return [self.instant] * min(n, self.count(after, upto))


class _LocalCron(Struct, frozen=True):
    """A cron expression bound to a zone and to what happens at its clock changes."""

    cron: Cron
    tz: ZoneInfo
    gap: Gap
    fold: Fold

    def fires(self, after: datetime) -> Iterator[datetime]:
        return self.cron.fires(after, self.tz, self.gap, self.fold)

    def count(self, after: datetime, upto: datetime) -> int:
        return self.cron.count(after, upto, self.tz, self.gap, self.fold)

    def last(self, after: datetime, upto: datetime, n: int) -> list[datetime]:
        return self.cron.last(after, upto, n, self.tz, self.gap, self.fold)


class Blackout(Struct, frozen=True):
    """A stretch in which nothing should run: from its beginning up to, not including, its end."""

    from_: datetime
    to: datetime
    policy: HoldPolicy = HoldPolicy.SKIP

    def __post_init__(self) -> None:
        _check_instant(self.from_, "schedule.blackouts.from")
        _check_instant(self.to, "schedule.blackouts.to")
        if self.from_ >= self.to:
            raise InvalidInput("A blackout ends after it begins.", path="schedule.blackouts.to")


class Schedule(Struct, frozen=True):
    """The nominal fires of a job: those of the recurrence with start_at <= fire < end_at.

    Calendars and blackouts are judged per fire, elsewhere, so that a skipped fire leaves its reason.
    """

    recurrence: Cron | Every | At
    timezone: str = "UTC"
    gap: Gap = Gap.SHIFT
    fold: Fold = Fold.FIRST
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: timedelta = timedelta(0)
    calendar: str | None = None
    blackouts: tuple[Blackout, ...] = ()

    def __post_init__(self) -> None:
        zone(self.timezone)
        for instant, path in ((self.start_at, "schedule.startAt"), (self.end_at, "schedule.endAt")):
            if instant is not None:
                _check_instant(instant, path)
        if self.start_at is not None and self.end_at is not None and self.start_at >= self.end_at:
            raise InvalidInput("endAt must be later than startAt.", path="schedule.endAt")
        if self.jitter % _MILLISECOND or not timedelta(0) <= self.jitter <= JITTER_MAX:
            raise InvalidInput("Jitter is whole milliseconds, at most one day.", path="schedule.jitter")
        if len(self.blackouts) > BLACKOUTS_MAX:
            raise InvalidInput(f"At most {BLACKOUTS_MAX} blackouts.", path="schedule.blackouts")

    def fires(self, after: datetime, upto: datetime | None = None) -> Iterator[datetime]:
        """The nominal fires in (after, upto], ascending; endless without a bound."""
        after, upto = self._bounded(after, upto or LATEST)
        for fire in self._series().fires(after):
            if fire > upto:
                return
            yield fire

    def next_after(self, instant: datetime) -> datetime | None:
        """The first fire strictly after an instant."""
        return next(self.fires(instant), None)

    def previous_before(self, instant: datetime) -> datetime | None:
        """The latest fire strictly before an instant."""
        found = self.last(EARLIEST - _SECOND, instant - _INSTANT, 1)
        return found[0] if found else None

    def names(self, instant: datetime) -> bool:
        """Whether the schedule fires at exactly this instant."""
        return self.count(instant - _INSTANT, instant) == 1

    def count(self, after: datetime, upto: datetime) -> int:
        """How many fires lie in (after, upto], without walking through them."""
        return self._series().count(*self._bounded(after, upto))

    def last(self, after: datetime, upto: datetime, n: int) -> list[datetime]:
        """The newest n fires in (after, upto], ascending."""
        return self._series().last(*self._bounded(after, upto), n)

    def delay_of(self, job: str, fire_at: datetime) -> timedelta:
        """How long after its nominal time a fire starts: whole milliseconds up to the jitter, by hash."""
        seed = blake2b(f"{job}@{_text(fire_at)}".encode(), digest_size=8).digest()
        return int.from_bytes(seed) % (self.jitter // _MILLISECOND + 1) * _MILLISECOND

    def blackout_at(self, instant: datetime) -> Blackout | None:
        """The blackout that covers an instant; of several, the one that ends last."""
        covering = [blackout for blackout in self.blackouts if blackout.from_ <= instant < blackout.to]
        return max(covering, key=lambda blackout: blackout.to, default=None)

    def local(self, fire_at: datetime) -> datetime:
        """An instant as clocks in the schedule's zone show it."""
        return fire_at.astimezone(zone(self.timezone))

    def note_of(self, fire_at: datetime) -> str:
        """What a clock change did to this fire, in words; empty on an ordinary day."""
        if not isinstance(self.recurrence, Cron):
            return ""  # intervals and one-shots name instants, which clock changes do not touch
        local = self.local(fire_at)
        read = reading(local.replace(tzinfo=None), zone(self.timezone))
        where = f"{local:%Y-%m-%d} in {self.timezone}"
        if read.is_fold:
            side = "first" if fire_at == read.before else "second"
            return f"{_clock_text(local)} comes twice on {where}: {side} of the two"
        missing = self._missing_wall(self.recurrence, fire_at)
        if missing is None:
            return ""
        moved = "joined with" if self.recurrence.matches(local.replace(tzinfo=None)) else "moved to"
        missed = f"{_clock_text(missing)} does not exist on {missing:%Y-%m-%d} in {self.timezone}"
        day = "" if missing.date() == local.date() else f"{local:%Y-%m-%d} "
        return f"{missed}: {moved} {day}{_clock_text(local)}"

    def encode(self) -> dict[str, Any]:
        """What is stored with a job's version: short keys, defaults left out."""
        stored: dict[str, Any] = _encode_recurrence(self.recurrence)
        stored |= {"z": self.timezone, "g": str(self.gap), "f": str(self.fold), "k": self.calendar}
        stored |= {"s": self.start_at and _text(self.start_at), "u": self.end_at and _text(self.end_at)}
        stored["j"] = self.jitter // _MILLISECOND
        stored["b"] = [[_text(out.from_), _text(out.to), str(out.policy)] for out in self.blackouts]
        return {key: value for key, value in stored.items() if value != _DEFAULTS.get(key)}

    @classmethod
    def decode(cls, stored: Mapping[str, Any]) -> Schedule:
        """The inverse of `encode`; needs no parser of expressions."""
        full = {**_DEFAULTS, **stored}
        return cls(
            recurrence=_decode_recurrence(full),
            timezone=full["z"],
            gap=Gap(full["g"]),
            fold=Fold(full["f"]),
            start_at=full["s"] and datetime.fromisoformat(full["s"]),
            end_at=full["u"] and datetime.fromisoformat(full["u"]),
            jitter=int(full["j"]) * _MILLISECOND,
            calendar=full["k"],
            blackouts=tuple(
                Blackout(datetime.fromisoformat(from_), datetime.fromisoformat(to), HoldPolicy(policy))
                for from_, to, policy in full["b"]
            ),
        )

    def _series(self) -> _Series:
        if isinstance(self.recurrence, Cron):
            return _LocalCron(self.recurrence, zone(self.timezone), self.gap, self.fold)
        return self.recurrence

    def _bounded(self, after: datetime, upto: datetime) -> tuple[datetime, datetime]:
        if self.start_at is not None:
            after = max(after, self.start_at - _INSTANT)
        if self.end_at is not None:
            upto = min(upto, self.end_at - _INSTANT)
        return after, max(after, upto)

    def _missing_wall(self, cron: Cron, fire_at: datetime) -> datetime | None:
        """The wall time inside a gap that was moved to this instant, if one was."""
        if self.gap is Gap.SKIP or cron.follows_real_time:
            return None
        # The widest gap on record is a whole day: Apia, 2011.
        before = self.local(fire_at - timedelta(hours=24, seconds=1)).utcoffset()
        assert before is not None
        wall = fire_at.replace(tzinfo=None) + before
        read = reading(wall, zone(self.timezone))
        return wall if read.is_gap and read.before == fire_at and cron.matches(wall) else None


_DEFAULTS: Final[Mapping[str, Any]] = {
    "z": "UTC",
    "g": str(Gap.SHIFT),
    "f": str(Fold.FIRST),
    "s": None,
    "u": None,
    "j": 0,
    "k": None,
    "b": [],
}


def _encode_recurrence(recurrence: Cron | Every | At) -> dict[str, Any]:
    match recurrence:
        case Cron():
            return {"c": recurrence.encode()}
        case Every():
            return {"e": [recurrence.period // _SECOND, _text(recurrence.anchor)]}
        case At():
            return {"a": _text(recurrence.instant)}
        case _:
            assert_never(recurrence)


def _decode_recurrence(stored: Mapping[str, Any]) -> Cron | Every | At:
    if "c" in stored:
        return Cron.decode(stored["c"])
    if "e" in stored:
        seconds, anchor = stored["e"]
        return Every(int(seconds) * _SECOND, datetime.fromisoformat(anchor))
    return At(datetime.fromisoformat(stored["a"]))


def _check_instant(instant: datetime, path: str) -> None:
    if instant.utcoffset() != timedelta(0):
        raise InvalidInput("An instant is UTC: write it with a Z at its end.", path=path)
    if not EARLIEST <= instant <= LATEST:
        raise InvalidInput(f"An instant lies between {EARLIEST.year} and {LATEST.year}.", path=path)


def _text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def _clock_text(wall: datetime) -> str:
    return f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"
