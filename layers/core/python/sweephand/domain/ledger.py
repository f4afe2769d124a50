"""The ledger: every nominal fire against what became of it, re-derived from what was in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from sweephand.domain.ids import JobKey, RunId, run_id_of_fire
from sweephand.domain.job import Change
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState
from sweephand.domain.timeline import Segment, near_a_change

SETTLING: Final = timedelta(minutes=10)
"""A fire younger than this without a record is pending: a late tick and a repeated sweep may still bring it."""


_TICK: Final = timedelta(microseconds=1)


class FireStatus(StrEnum):
    """What became of a nominal fire."""

    FIRED = "fired"
    SKIPPED = "skipped"
    PENDING = "pending"
    MISSING = "missing"
    EXTRA = "extra"
    EXPIRED = "expired"


class Dropped(Struct, frozen=True):
    """A stretch of fires, first and last inclusive, that became no runs, and why."""

    first: datetime
    last: datetime
    count: int
    reason: Reason


class LedgerRow(Struct, frozen=True):
    """One nominal fire and its fate; `skew_ms` is the start minus the time it was due."""

    fire_at: datetime
    status: FireStatus
    run_id: RunId | None = None
    skew_ms: int | None = None
    reason: str | None = None


class LedgerPage(Struct, frozen=True):
    """The auditor's verdict on one job and one UTC day."""

    job: JobKey
    day: date
    judged_at: datetime
    tzdata: str
    counts: Mapping[FireStatus, int] = field(default_factory=dict)
    missing: tuple[datetime, ...] = ()
    extra: tuple[RunId, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.missing and not self.extra


class Expected(Struct, frozen=True):
    """A fire that a stretch in force named; `held` by a pause that nobody has ended yet."""

    fire_at: datetime
    version: int
    held: bool = False


def expected(stretches: Sequence[Segment], since: datetime, until: datetime) -> Iterator[Expected]:
    """Every fire with since <= F < until that the schedule in force at F named, in order."""
    decided = max((n for n, segment in enumerate(stretches) if not segment.paused), default=-1)
    return (
        Expected(fire_at, segment.version, held=segment.paused and n > decided)
        for n, segment in enumerate(stretches)
        for fire_at in segment.fires(since - _TICK, until - _TICK)
    )


def judge(
    owed: Iterable[Expected],
    runs: Iterable[Run],
    dropped: Sequence[Dropped],
    changes: Sequence[Change],
    *,
    now: datetime,
) -> list[LedgerRow]:
    """A row for each fire owed, and one for each scheduled run that nothing owed."""
    known = {run.key.run_id: run for run in runs if run.is_scheduled}
    rows = []
    for fire in owed:
        run = known.pop(run_id_of_fire(fire.fire_at), None)
        if run is not None and run.state is RunState.VOID and not near_a_change(changes, fire.fire_at):
            run = None  # voided although the schedule in force named it: a defect that must show as missing
        rows.append(_row_of_run(run) if run else _row_without_run(fire, dropped, now))
    rows += [
        LedgerRow(run.fire_at, FireStatus.EXTRA, run.key.run_id, reason="no schedule in force named it")
        for run in known.values()
        if run.state not in _HARMLESS and not near_a_change(changes, run.fire_at)
    ]
    return sorted(rows, key=lambda row: row.fire_at)


def page_of(job: JobKey, day: date, rows: Iterable[LedgerRow], *, judged_at: datetime, tzdata: str) -> LedgerPage:
    """The verdict on one day, from its rows."""
    rows = [row for row in rows if row.fire_at.astimezone(UTC).date() == day]
    counts: dict[FireStatus, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    missing = tuple(row.fire_at for row in rows if row.status is FireStatus.MISSING)
    extra = tuple(row.run_id for row in rows if row.status is FireStatus.EXTRA and row.run_id)
    return LedgerPage(job, day, judged_at, tzdata, counts, missing, extra)


_HARMLESS: Final = frozenset({RunState.PLANNED, RunState.VOID, RunState.SKIPPED})


def _row_of_run(run: Run) -> LedgerRow:
    reason = str(run.reason) if run.reason else None
    if run.state in (RunState.SKIPPED, RunState.VOID):
        return LedgerRow(run.fire_at, FireStatus.SKIPPED, run.key.run_id, reason=reason)
    if run.state in UNSTARTED:
        return LedgerRow(run.fire_at, FireStatus.PENDING, run.key.run_id, reason=reason)
    skew = run.started_at - run.start_at if run.started_at else None
    skew_ms = round(skew / timedelta(milliseconds=1)) if skew is not None else None
    return LedgerRow(run.fire_at, FireStatus.FIRED, run.key.run_id, skew_ms, reason)


def _row_without_run(fire: Expected, dropped: Sequence[Dropped], now: datetime) -> LedgerRow:
    for stretch in dropped:
        if stretch.first <= fire.fire_at <= stretch.last:
            return LedgerRow(fire.fire_at, FireStatus.SKIPPED, reason=str(stretch.reason))
    if fire.held:
        return LedgerRow(
            fire.fire_at, FireStatus.PENDING, reason=str(Reason(ReasonCode.PAUSED, "resume decides about it"))
        )
    status = FireStatus.PENDING if fire.fire_at > now - SETTLING else FireStatus.MISSING
    return LedgerRow(fire.fire_at, status)
