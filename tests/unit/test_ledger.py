"""The ledger: what was owed, what became of it, and what shows as missing or extra."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey, run_id_of_fire, run_id_of_rerun
from sweephand.domain.job import Catchup, Change, JobEvent
from sweephand.domain.ledger import (
    SETTLING,
    Dropped,
    Expected,
    FireStatus,
    LedgerRow,
    expected,
    judge,
    page_of,
)
from sweephand.domain.limits import SIDES_BLUR
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.domain.schedule import Every, Schedule
from sweephand.domain.timeline import Segment

KEY = JobKey(Namespace("default"), JobName("report"))
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MUCH_LATER = NOON + timedelta(days=1)

MINUTELY, HOURLY = Schedule(Every(MINUTE)), Schedule(Every(timedelta(hours=1)))


def at(minute: float) -> datetime:
    return NOON + minute * MINUTE


def segment(
    since: float, until: float | None, version: int = 1, *, schedule: Schedule = MINUTELY, paused: bool = False
) -> Segment:
    return Segment(at(since), None if until is None else at(until), version, schedule, Catchup(), paused)


def owed(stretches: Sequence[Segment], since: float, until: float) -> list[tuple[float, int, bool]]:
    found = expected(stretches, at(since), at(until))
    return [((one.fire_at - NOON) / MINUTE, one.version, one.held) for one in found]


# What is expected.


def test_a_window_holds_its_beginning_and_not_its_end() -> None:
    assert owed([segment(-60, None)], 0, 3) == [(0, 1, False), (1, 1, False), (2, 1, False)]


def test_each_fire_is_owed_by_the_version_in_force_at_its_instant() -> None:
    stretches = [segment(-60, 2), segment(2, 4, 2), segment(4, None, 3, schedule=HOURLY)]
    assert owed(stretches, 0, 61) == [(0, 1, False), (1, 1, False), (2, 2, False), (3, 2, False), (60, 3, False)]


def test_nothing_is_owed_while_the_job_is_deleted() -> None:
    assert owed([segment(0, 2), segment(4, None, 3)], 0, 6) == [
        (0, 1, False),
        (1, 1, False),
        (4, 3, False),
        (5, 3, False),
    ]


def test_fires_of_a_pause_that_nobody_ended_are_held() -> None:
    paused = [segment(0, 1), segment(1, 2, paused=True), segment(2, None, 2, paused=True)]
    assert owed(paused, 0, 4) == [(0, 1, False), (1, 1, True), (2, 2, True), (3, 2, True)]


def test_fires_of_a_pause_that_ended_are_decided() -> None:
    resumed = [segment(0, 1), segment(1, 2, paused=True), segment(2, None)]
    assert owed(resumed, 0, 4) == [(0, 1, False), (1, 1, False), (2, 1, False), (3, 1, False)]


def test_without_anything_in_force_nothing_is_owed() -> None:
    assert owed([], 0, 100) == []


# What became of it.


def run_at(minute: float, trigger: Trigger = Trigger.SCHEDULE) -> Run:
    key = RunKey(KEY, run_id_of_fire(at(minute)))
    return Run(key, at(minute), at(minute), trigger=trigger, created_at=at(minute), changed_at=at(minute))


def started(run: Run, late: timedelta = timedelta(0)) -> Run:
    return run.claimed(now=run.start_at + late, nonce="c", owner="w", lease=timedelta(minutes=5), version=1)


def in_state(state: RunState, minute: float = 0) -> Run:
    run, reason = run_at(minute), Reason(ReasonCode.ERROR, "because")
    running = started(run, timedelta(milliseconds=1500))
    now = running.changed_at
    return {
        RunState.PLANNED: run,
        RunState.QUEUED: run.parked(reason, now=now, nonce="q", wake_at=None),
        RunState.RUNNING: running,
        RunState.RETRYING: running.retried(Failure("E", "m"), reason, now=now, nonce="r", wake_at=now),
        RunState.SUCCEEDED: running.succeeded(now=now, nonce="s", output=None),
        RunState.FAILED: running.failed(Failure("E", "m"), reason, now=now, nonce="f"),
        RunState.CANCELLED: running.cancelled(reason, now=now, nonce="x"),
        RunState.SKIPPED: run.skipped(reason, now=now, nonce="k"),
        RunState.VOID: run.voided(reason, now=now, nonce="v"),
    }[state]


def judged(
    fires: Sequence[float],
    runs: Sequence[Run] = (),
    dropped: Sequence[Dropped] = (),
    changes: Sequence[Change] = (),
    now: datetime = MUCH_LATER,
    *,
    held: bool = False,
) -> list[LedgerRow]:
    return judge([Expected(at(fire), 1, held) for fire in fires], runs, dropped, changes, now=now)


FATES = {
    RunState.PLANNED: FireStatus.PENDING,
    RunState.QUEUED: FireStatus.PENDING,
    RunState.RUNNING: FireStatus.FIRED,
    RunState.RETRYING: FireStatus.FIRED,
    RunState.SUCCEEDED: FireStatus.FIRED,
    RunState.FAILED: FireStatus.FIRED,
    RunState.CANCELLED: FireStatus.FIRED,
    RunState.SKIPPED: FireStatus.SKIPPED,
    RunState.VOID: FireStatus.MISSING,
}


@pytest.mark.parametrize("state", RunState)
def test_a_fire_with_a_run_has_the_fate_of_the_run(state: RunState) -> None:
    (row,) = judged([0], [in_state(state)])
    assert (row.fire_at, row.status) == (NOON, FATES[state])
    assert row.skew_ms == (1500 if row.status is FireStatus.FIRED else None)
    if row.status is not FireStatus.MISSING:
        assert row.run_id == "20261115T120000Z"
    if state in (RunState.SKIPPED, RunState.QUEUED):
        assert row.reason == "error: because"


def test_skew_is_counted_from_the_time_that_jitter_gave() -> None:
    jittered = replace(run_at(0), start_at=at(0) + timedelta(seconds=20))
    (row,) = judged([0], [started(jittered, timedelta(milliseconds=-7))])
    assert row.skew_ms == -7


def test_a_fire_without_a_record_is_pending_while_it_may_still_come_and_then_missing() -> None:
    for age, status in ((SETTLING - MINUTE, FireStatus.PENDING), (SETTLING, FireStatus.MISSING)):
        assert judged([0], now=NOON + age) == [LedgerRow(NOON, status)]


def test_a_dropped_stretch_accounts_for_the_fires_from_its_first_to_its_last() -> None:
    stretch = Dropped(at(1), at(3), 3, Reason(ReasonCode.CATCHUP, "missed"))
    statuses = {(row.fire_at - NOON) / MINUTE: row.status for row in judged(range(5), dropped=[stretch])}
    assert statuses == {
        0: FireStatus.MISSING,
        1: FireStatus.SKIPPED,
        2: FireStatus.SKIPPED,
        3: FireStatus.SKIPPED,
        4: FireStatus.MISSING,
    }
    assert judged([2], dropped=[stretch])[0].reason == "catchup: missed"


def test_a_run_wins_over_a_dropped_stretch() -> None:
    stretch = Dropped(at(0), at(9), 10, Reason(ReasonCode.CATCHUP, "missed"))
    (row,) = judged([5], [started(run_at(5))], [stretch])
    assert row.status is FireStatus.FIRED


def test_a_held_fire_is_pending_however_old() -> None:
    (row,) = judged([0], held=True)
    assert (row.status, row.reason) == (FireStatus.PENDING, "paused: resume decides about it")
    assert judged([0], [in_state(RunState.SUCCEEDED)], held=True)[0].status is FireStatus.FIRED


CHANGE = Change(KEY, NOON, JobEvent.PUT, 2, "ada")


@pytest.mark.parametrize("state", RunState)
def test_a_run_that_no_schedule_named_is_extra_unless_it_never_started(state: RunState) -> None:
    harmless = {RunState.PLANNED, RunState.VOID, RunState.SKIPPED}
    rows = judged([], [in_state(state)])
    assert [row.status for row in rows] == ([] if state in harmless else [FireStatus.EXTRA])


@pytest.mark.parametrize("side", [1, -1])
def test_near_a_change_a_fire_may_fall_on_either_side(side: int) -> None:
    blur, beyond = SIDES_BLUR / MINUTE, SIDES_BLUR / MINUTE + 1 / 60
    near, far = side * blur, side * beyond
    ran = RunState.SUCCEEDED
    assert judged([], [in_state(ran, near)], changes=[CHANGE]) == []
    assert [row.status for row in judged([], [in_state(ran, far)], changes=[CHANGE])] == [FireStatus.EXTRA]
    void = RunState.VOID
    assert judged([near], [in_state(void, near)], changes=[CHANGE])[0].status is FireStatus.SKIPPED
    assert judged([far], [in_state(void, far)], changes=[CHANGE])[0].status is FireStatus.MISSING


def test_a_fire_near_a_change_that_left_no_trace_at_all_is_missing_all_the_same() -> None:
    assert judged([1], changes=[CHANGE])[0].status is FireStatus.MISSING


@pytest.mark.parametrize("trigger", sorted(set(Trigger) - {Trigger.SCHEDULE}))
def test_a_run_that_somebody_else_made_is_neither_a_fire_nor_extra(trigger: Trigger) -> None:
    run = started(run_at(0, trigger))
    assert judged([], [run]) == []
    assert judged([0], [run])[0].status is FireStatus.MISSING


def test_a_rerun_of_a_fire_does_not_stand_in_for_it() -> None:
    again = run_at(0, Trigger.RERUN)
    again = replace(again, key=RunKey(KEY, run_id_of_rerun(again.key.run_id, 1)))
    assert judged([0], [started(again)])[0].status is FireStatus.MISSING


@given(
    st.sets(st.integers(0, 30)),
    st.dictionaries(st.integers(0, 30), st.sampled_from(RunState)),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=3),
)
def test_every_fire_owed_has_one_row_and_every_extra_is_a_run_that_was_not_owed(
    fires: set[int], runs: dict[int, RunState], stretches: list[list[int]]
) -> None:
    reason = Reason(ReasonCode.CATCHUP, "missed")
    dropped = [Dropped(at(low), at(high), high - low + 1, reason) for low, high in stretches]
    rows = judged(sorted(fires), [in_state(state, minute) for minute, state in runs.items()], dropped)
    assert [row.fire_at for row in rows] == sorted(row.fire_at for row in rows)
    extra = {round((row.fire_at - NOON) / MINUTE) for row in rows if row.status is FireStatus.EXTRA}
    others = [round((row.fire_at - NOON) / MINUTE) for row in rows if row.status is not FireStatus.EXTRA]
    assert others == sorted(fires)
    assert extra <= runs.keys() - fires
    for row in rows:
        minute = round((row.fire_at - NOON) / MINUTE)
        covered = any(low <= minute <= high for low, high in stretches)
        has_run = runs.get(minute) not in (None, RunState.VOID)
        assert (row.status is FireStatus.MISSING) == (minute in fires and not covered and not has_run)


# The page.


def test_a_page_counts_the_rows_of_its_day_and_names_what_is_wrong() -> None:
    day = date(2026, 11, 15)
    extra_id = RunId("20261115T130000Z")
    rows = [
        LedgerRow(datetime(2026, 11, 14, 23, 59, tzinfo=UTC), FireStatus.MISSING),
        LedgerRow(datetime(2026, 11, 15, tzinfo=UTC), FireStatus.MISSING),
        LedgerRow(NOON, FireStatus.FIRED),
        LedgerRow(at(1), FireStatus.FIRED),
        LedgerRow(at(60), FireStatus.EXTRA, extra_id),
        LedgerRow(datetime(2026, 11, 16, tzinfo=UTC), FireStatus.FIRED),
    ]
    page = page_of(KEY, day, rows, judged_at=MUCH_LATER, tzdata="2026f")
    assert (page.job, page.day, page.judged_at, page.tzdata) == (KEY, day, MUCH_LATER, "2026f")
    assert page.counts == {FireStatus.MISSING: 1, FireStatus.FIRED: 2, FireStatus.EXTRA: 1}
    assert page.missing == (datetime(2026, 11, 15, tzinfo=UTC),)
    assert page.extra == (extra_id,)
    assert not page.is_clean


def test_a_page_without_holes_or_extras_is_clean() -> None:
    rows = judged([0, 1], [in_state(RunState.FAILED), in_state(RunState.SKIPPED, 1)])
    page = page_of(KEY, NOON.date(), rows, judged_at=MUCH_LATER, tzdata="2026f")
    assert page.is_clean
    assert page.counts == {FireStatus.FIRED: 1, FireStatus.SKIPPED: 1}
