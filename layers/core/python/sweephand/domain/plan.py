"""Which fires become runs now, which are dropped and why, and when to look again. Pure: the engine carries it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct

from sweephand.domain.ids import JobKey, spread
from sweephand.domain.job import A_MOMENT, Catchup, CatchupPolicy
from sweephand.domain.ledger import Dropped
from sweephand.domain.limits import FIRES_PER_PASS_MAX, OVERDUE_GRACE
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.timeline import Segment


class Plan(Struct, frozen=True):
    """Fires to become runs, stretches to be recorded as dropped, and how far all fires are then accounted for."""

    fires: tuple[datetime, ...]
    dropped: tuple[Dropped, ...]
    planned_upto: datetime
    next_fire: datetime | None


class Resumption(Struct, frozen=True):
    """A resume's pending decision: fires before `upto` were held by the pause."""

    policy: CatchupPolicy
    upto: datetime


def plan(
    segments: Sequence[Segment],
    planned_upto: datetime,
    *,
    now: datetime,
    horizon: datetime,
    resumption: Resumption | None = None,
) -> Plan:
    """Account for every fire in (planned_upto, horizon].

    Held fires are decided by the resume's policy, missed ones by the catch-up policy of the version in force now;
    those to come simply become runs. A pass is bounded: `planned_upto` of the answer says how far it came.
    """
    fires: list[datetime] = []
    dropped: list[Dropped] = []
    low = planned_upto
    catchup = segments[-1].catchup if segments else Catchup()

    if resumption is not None and low < resumption.upto - A_MOMENT:
        high = resumption.upto - A_MOMENT
        most = _most(Catchup(resumption.policy, catchup.max))
        kept, left = _newest(segments, low, high, most, Reason(ReasonCode.PAUSED, "its fire time fell in the pause"))
        fires += kept
        dropped += left
        low = high

    late_upto = min(now, horizon)
    oldest = next(_fires(segments, low, late_upto), None) if low < late_upto else None
    if oldest is not None and oldest < now - OVERDUE_GRACE:
        kept, left = _catch_up(segments, low, late_upto, now, catchup)
        fires += kept
        dropped += left
        low = late_upto
    if low < horizon:
        fires += islice(_fires(segments, low, horizon), FIRES_PER_PASS_MAX + 1)

    upto = max(planned_upto, horizon)
    if len(fires) > FIRES_PER_PASS_MAX:
        fires = fires[:FIRES_PER_PASS_MAX]
        upto = fires[-1]
        dropped = [stretch for stretch in dropped if stretch.last <= upto]
    return Plan(tuple(fires), tuple(dropped), upto, _next_fire(segments, upto))


def next_plan_at(
    next_fire: datetime | None,
    *,
    job: JobKey,
    now: datetime,
    lookahead: timedelta,
    step: timedelta,
    spread_over: timedelta,
) -> datetime | None:
    """When to plan next: before the fire enters the look-ahead's end, spread by hash, and not at once again."""
    if next_fire is None:
        return None
    seconds = int(spread_over.total_seconds())
    offset = timedelta(seconds=spread(str(job), seconds)) if seconds else timedelta(0)
    return max(next_fire - lookahead + offset, now + step)


def _catch_up(
    segments: Sequence[Segment], low: datetime, high: datetime, now: datetime, catchup: Catchup
) -> tuple[list[datetime], list[Dropped]]:
    """Missed fires under the policy. Where none are made up for, those that are only just late still run."""
    reason = Reason(ReasonCode.CATCHUP, f"missed, and the catch-up policy is '{catchup.policy}'")
    if catchup.policy is CatchupPolicy.NONE:
        edge = max(low, min(high, now - OVERDUE_GRACE - A_MOMENT))
        _, left = _newest(segments, low, edge, 0, reason)
        return list(islice(_fires(segments, edge, high), FIRES_PER_PASS_MAX + 1)), left
    edge = max(low, min(high, now - catchup.window - A_MOMENT))
    _, too_old = _newest(
        segments, low, edge, 0, Reason(ReasonCode.CATCHUP, "missed longer ago than the catch-up window")
    )
    kept, left = _newest(segments, edge, high, _most(catchup), reason)
    return kept, too_old + left


def _most(catchup: Catchup) -> int:
    return {CatchupPolicy.NONE: 0, CatchupPolicy.LATEST: 1, CatchupPolicy.ALL: catchup.max}[catchup.policy]


def _newest(
    segments: Sequence[Segment], low: datetime, high: datetime, most: int, reason: Reason
) -> tuple[list[datetime], list[Dropped]]:
    """The newest fires in (low, high], at most so many, and the rest before them as one stretch."""
    kept: list[datetime] = []
    for segment in reversed(segments):
        bounds = segment.clip(low, high)
        if len(kept) >= most or segment.schedule is None or bounds is None:
            continue
        kept = segment.schedule.last(*bounds, most - len(kept)) + kept
    edge = kept[0] - A_MOMENT if kept else high
    count = sum(
        segment.schedule.count(*bounds)
        for segment in segments
        if segment.schedule is not None and (bounds := segment.clip(low, edge)) is not None
    )
    if not count:
        return kept, []
    first = next(_fires(segments, low, edge))
    last = _last(segments, low, edge)
    return kept, [Dropped(first, last, count, reason)]


def _last(segments: Sequence[Segment], low: datetime, high: datetime) -> datetime:
    found = [
        segment.schedule.last(*bounds, 1)
        for segment in segments
        if segment.schedule is not None and (bounds := segment.clip(low, high)) is not None
    ]
    return max(fire for fires in found for fire in fires)


def _fires(segments: Sequence[Segment], low: datetime, high: datetime) -> Iterator[datetime]:
    for segment in segments:
        yield from segment.fires(low, high)


def _next_fire(segments: Sequence[Segment], after: datetime) -> datetime | None:
    """The first fire still to plan; only the stretch in force now has a future."""
    if not segments or segments[-1].until is not None or segments[-1].schedule is None:
        return None
    return segments[-1].schedule.next_after(max(after, segments[-1].since - A_MOMENT))
