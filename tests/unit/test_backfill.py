"""What became of a fire, whichever runs of it there are; what a backfill remembers; and what one costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.backfill import Backfill, BackfillEvent, BackfillKey, BackfillState, Only, Order, Wanted
from sweephand.domain.cost import backfill_cost
from sweephand.domain.fates import CHOSEN, Fate, FireFate, fate_of
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.ledger import FireStatus, LedgerRow
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import TERMINAL, Run, RunState, Trigger
from sweephand.errors import IllegalTransition

FIRE: Final = datetime(2026, 3, 1, 6, tzinfo=UTC)
JOB: Final = JobKey(Namespace("shop"), JobName("daily"))
DAY: Final = timedelta(days=1)


def run(state: RunState, trigger: Trigger = Trigger.SCHEDULE, **more: Any) -> Run:
    return Run(RunKey(JOB, RunId("20260301T060000Z")), FIRE, FIRE, FIRE, FIRE, trigger, state=state, **more)


def row(status: FireStatus = FireStatus.MISSING, code: ReasonCode | None = None) -> LedgerRow:
    return LedgerRow(FIRE, status, reason=str(Reason(code, "so")) if code else None)


def a_backfill(**more: Any) -> Backfill:
    wanted = Wanted(FIRE - 9 * DAY, FIRE, **more)
    return Backfill(BackfillKey(JOB, "b1"), wanted, wanted.since, wanted.until, FIRE, "ann", FIRE, 9)


@given(st.lists(st.sampled_from(sorted(RunState))))
def test_one_success_is_enough_unless_something_is_under_way(states: list[RunState]) -> None:
    became = fate_of(row(), [run(state, Trigger.BACKFILL) for state in states])
    if any(state not in TERMINAL for state in states):
        assert became is Fate.ACTIVE
    elif RunState.SUCCEEDED in states:
        assert became is Fate.SUCCEEDED
    elif RunState.FAILED in states:
        assert became is Fate.FAILED
    else:
        assert became is Fate.MISSING, "what was cancelled or skipped made up for nothing"


@pytest.mark.parametrize("code", list(ReasonCode))
def test_what_was_skipped_is_missing_unless_the_calendar_or_its_own_task_said_so(code: ReasonCode) -> None:
    expected = {
        ReasonCode.CALENDAR: Fate.CLOSED,
        ReasonCode.BLACKOUT: Fate.CLOSED,
        ReasonCode.TASK: Fate.SKIPPED,
        ReasonCode.CONDITION: Fate.SKIPPED,
        ReasonCode.BRANCH: Fate.SKIPPED,
    }
    assert fate_of(row(FireStatus.SKIPPED, code), []) is expected.get(code, Fate.MISSING)


def test_the_other_words_of_the_ledger() -> None:
    assert fate_of(row(FireStatus.PENDING), []) is Fate.ACTIVE
    assert fate_of(row(FireStatus.PENDING, ReasonCode.PAUSED), []) is Fate.HELD
    assert fate_of(row(FireStatus.EXPIRED), []) is Fate.EXPIRED
    assert fate_of(row(FireStatus.FIRED), [run(RunState.CANCELLED)]) is Fate.CANCELLED
    held = run(RunState.QUEUED, reason=Reason(ReasonCode.PAUSED))
    assert fate_of(row(FireStatus.PENDING), [held]) is Fate.HELD
    assert fate_of(row(FireStatus.PENDING), [held, run(RunState.RUNNING, Trigger.BACKFILL)]) is Fate.ACTIVE
    assert fate_of(row(), [run(RunState.VOID)]) is Fate.MISSING


def test_nothing_that_is_under_way_or_closed_is_ever_chosen() -> None:
    assert CHOSEN.keys() == set(Only)
    for chosen in CHOSEN.values():
        assert not chosen & {Fate.ACTIVE, Fate.CLOSED}
    assert FireFate(FIRE, Fate.FAILED, 3).next_id == "20260301T060000Z.3"


@pytest.mark.parametrize("order", list(Order))
def test_what_had_its_turn_is_left_behind(order: Order) -> None:
    before = a_backfill(order=order, max_active=1)
    middle = FIRE - 5 * DAY
    after = before.put(middle, RunId("r.1"))
    assert (after.made, after.active, after.room, before.room) == (1, ("r.1",), 0, 1)
    left = (after.since, after.until)
    assert left == ((middle + timedelta(microseconds=1), FIRE) if order is Order.OLDEST else (FIRE - 9 * DAY, middle))
    assert not after.is_exhausted
    assert after.exhausted().is_exhausted


def test_what_ended_is_counted_once_and_the_rest_stays() -> None:
    before = a_backfill().put(FIRE - DAY, RunId("20260301T060000Z")).put(FIRE, RunId("other"))
    after = before.met([run(RunState.FAILED)])
    assert (after.active, after.came_to(RunState.FAILED), after.percent) == (("other",), 1, 11)
    assert after.met([run(RunState.FAILED)]) == after
    assert after.renamed(RunId("other"), RunId("next")).active == ("next",)


def test_the_last_states_are_the_last() -> None:
    done = a_backfill().after(BackfillEvent.FINISHED, now=FIRE)
    assert (done.state, done.percent, done.is_open, done.is_over) == (BackfillState.DONE, 100, False, True)
    with pytest.raises(IllegalTransition, match="Backfill shop/daily/b1 is done"):
        done.after(BackfillEvent.CANCELLED, now=FIRE)
    assert a_backfill().after(BackfillEvent.PAUSED, now=FIRE).room == 0


@given(runs=st.integers(0, 20_000), tasks=st.integers(1, 50))
def test_more_runs_and_more_tasks_cost_more_and_nothing_costs_nothing(runs: int, tasks: int) -> None:
    cost = backfill_cost(runs, tasks=tasks)
    assert (cost.dollars == 0) == (runs == 0)
    assert backfill_cost(runs + 1, tasks=tasks).dollars > cost.dollars
    if runs:
        assert backfill_cost(runs, tasks=tasks + 1).dollars > cost.dollars


def test_a_thousand_runs_cost_about_as_much_as_a_thousand_lone_ones() -> None:
    assert 0.01 < backfill_cost(1_000).dollars < 0.02
    assert backfill_cost(1_000).write_units == 8_000
