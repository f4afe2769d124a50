"""The ledger: every nominal fire against what became of it, re-derived from what was in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.domain.ids import JobKey, RunId, run_id_of_fire
from sweephand.domain.job import Change
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState, Trigger
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
    """A row for each fire owed, and one for each scheduled run that nothing owed.

    A fire that became no run in its time, and was made up for since, has fired: its row keeps the reason why not then.
    """
    runs = list(runs)
    known = {run.key.run_id: run for run in runs if run.is_scheduled}
    stand_ins = _stand_ins(runs)
    given_up = [stretch for stretch in dropped if stretch.reason.code is not ReasonCode.COLLAPSED]
    rows = []
    for fire in owed:
        run = known.pop(run_id_of_fire(fire.fire_at), None)
        if run is not None and run.state is RunState.VOID and not near_a_change(changes, fire.fire_at):
            run = None  # voided although the schedule in force named it: a defect that must show as missing
        row = _row_of_run(run) if run else _row_without_run(fire, given_up, now)
        if row.status in (FireStatus.MISSING, FireStatus.SKIPPED):
            row = _made_up(row, [*stand_ins.get(run_id_of_fire(fire.fire_at), ()), *standing_for(fire.fire_at, runs)])
        rows.append(row)
    rows += [
        LedgerRow(run.fire_at, FireStatus.EXTRA, run.key.run_id, reason="no schedule in force named it")
        for run in known.values()
        if run.state not in _HARMLESS and not near_a_change(changes, run.fire_at)
    ]
    return sorted(rows, key=lambda row: row.fire_at)


def standing_for(fire_at: datetime, runs: Iterable[Run]) -> list[Run]:
    """Those of the runs that stand for several fires, this one among them."""
    return [run for run in runs if run.interval_start is not None and run.interval_start < fire_at <= run.fire_at]


def collapsed_into(dropped: Iterable[Dropped]) -> set[RunId]:
    """The runs that stand for these stretches of fires."""
    collapsed = [one.reason.detail for one in dropped if one.reason.code is ReasonCode.COLLAPSED]
    return {RunId(detail.rpartition(" ")[2]) for detail in collapsed}


def collapse(first: datetime, last: datetime, count: int, run_id: RunId) -> Dropped:
    """The record of fires that one run stands for; beside what was given up before, which may begin with the same."""
    return Dropped(first - _TICK, last, count, Reason(ReasonCode.COLLAPSED, f"in run {run_id}"))


def unless_expired(rows: Iterable[LedgerRow], pages: Iterable[LedgerPage]) -> list[LedgerRow]:
    """The rows; one without a record that its day's verdict did not miss has only outlived its run."""
    missed = {page.day: frozenset(page.missing) for page in pages}
    return [
        replace(row, status=FireStatus.EXPIRED)
        if row.status is FireStatus.MISSING
        and row.fire_at not in missed.get(row.fire_at.astimezone(UTC).date(), {row.fire_at})
        else row
        for row in rows
    ]


def page_of(job: JobKey, day: date, rows: Iterable[LedgerRow], *, judged_at: datetime, tzdata: str) -> LedgerPage:
    """The verdict on one day, from its rows."""
    rows = [row for row in rows if row.fire_at.astimezone(UTC).date() == day]
    counts: dict[FireStatus, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    missing = tuple(row.fire_at for row in rows if row.status is FireStatus.MISSING)
    extra = tuple(row.run_id for row in rows if row.status is FireStatus.EXTRA and row.run_id)
    return LedgerPage(job, day, judged_at, tzdata, counts, missing, extra)


_STARTED_WELL: Final = (RunState.SUCCEEDED, RunState.RUNNING, RunState.RETRYING, *UNSTARTED, RunState.FAILED)
"""What a run must have come to in order to make up for a fire, the best first."""


def _stand_ins(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs that make up for fires, by the id of the fire's own; a rerun only repeats what it is a rerun of."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        fire, _, generation = run.key.run_id.partition(".")
        if run.trigger is Trigger.BACKFILL and generation:
            found.setdefault(fire, []).append(run)
    return found


def _made_up(row: LedgerRow, stand_ins: Sequence[Run]) -> LedgerRow:
    able = [run for run in stand_ins if run.state in _STARTED_WELL]
    if not able:
        return row
    best = min(able, key=lambda run: _STARTED_WELL.index(run.state))
    status = FireStatus.PENDING if best.state in UNSTARTED else FireStatus.FIRED
    return LedgerRow(row.fire_at, status, best.key.run_id, reason=row.reason)


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
