"""Lifecycles: every pair of state and event, the page that is made from the tables, and the moves of runs and heads."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.backfill import BACKFILL_LIFECYCLE
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import A_MOMENT, JOB_LIFECYCLE, CatchupPolicy, Head, JobEvent, JobStatus
from sweephand.domain.lifecycle import Lifecycle
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import ACTIVE, RUN_LIFECYCLE, TERMINAL, UNSTARTED, Run, RunEvent, RunState, Trigger
from sweephand.domain.task import TASK_LIFECYCLE, TaskState
from sweephand.errors import IllegalTransition

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
LIFECYCLES: tuple[Lifecycle[Any, Any], ...] = (JOB_LIFECYCLE, RUN_LIFECYCLE, TASK_LIFECYCLE, BACKFILL_LIFECYCLE)
PAIRS = [
    (lifecycle, state, event) for lifecycle in LIFECYCLES for state in lifecycle.states for event in lifecycle.events
]

NOW = datetime(2026, 11, 15, 6, tzinfo=UTC)
LATER = NOW + timedelta(seconds=30)
JOB = JobKey(Namespace("default"), JobName("report"))
RUN = Run(RunKey(JOB, RunId("20261115T060000Z")), NOW, NOW, created_at=NOW, changed_at=NOW)
FAILURE = Failure("Timeout", "no answer")
REASON = Reason(ReasonCode.ERROR, "because")


# The tables.


def _members(enum: type[StrEnum]) -> list[StrEnum]:
    return list(enum)


@pytest.mark.parametrize(("lifecycle", "state", "event"), PAIRS, ids=str)
def test_every_pair_of_state_and_event_has_one_target_or_is_refused(
    lifecycle: Lifecycle[Any, Any], state: StrEnum, event: StrEnum
) -> None:
    if (state, event) in lifecycle.arrows:
        assert lifecycle.allows(state, event)
        assert lifecycle.after(state, event, what="It") is lifecycle.arrows[state, event]
        return
    assert not lifecycle.allows(state, event)
    with pytest.raises(IllegalTransition, match=f"It is {state}: '{event}' is not possible"):
        lifecycle.after(state, event, what="It")


def test_nothing_leaves_a_terminal_state_and_something_leaves_every_other() -> None:
    assert JOB_LIFECYCLE.terminal == set()
    assert RUN_LIFECYCLE.terminal == {
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.CANCELLED,
        RunState.SKIPPED,
        RunState.VOID,
    }
    assert TASK_LIFECYCLE.terminal == {
        TaskState.SUCCEEDED,
        TaskState.FAILED,
        TaskState.CANCELLED,
        TaskState.SKIPPED,
        TaskState.UPSTREAM_FAILED,
    }
    assert frozenset(RunState) == TERMINAL | ACTIVE | UNSTARTED


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda one: one.name)
def test_every_event_happens_somewhere_and_every_open_state_says_who_rescues_it(
    lifecycle: Lifecycle[Any, Any],
) -> None:
    assert {event for _, event in lifecycle.arrows} == {*_members(lifecycle.events)}
    assert lifecycle.stuck.keys() == {*_members(lifecycle.states)} - lifecycle.terminal


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda one: one.name)
def test_every_state_can_be_reached_from_the_first(lifecycle: Lifecycle[Any, Any]) -> None:
    reached = {_members(lifecycle.states)[0]}
    for _ in lifecycle.states:
        reached |= {target for (state, _), target in lifecycle.arrows.items() if state in reached}
    assert reached == {*_members(lifecycle.states)}


def test_a_table_cannot_be_changed() -> None:
    arrows: Any = RUN_LIFECYCLE.arrows
    with pytest.raises(TypeError):
        arrows[RunState.FAILED, RunEvent.CLAIMED] = RunState.RUNNING


def test_the_page_says_what_the_tables_say() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "sweephand.domain.lifecycle"], capture_output=True, check=True, encoding="utf-8"
    )
    assert PAGE.read_text(encoding="utf-8") == printed.stdout, "run `make docs`"


# A run's moves.


def run_in(state: RunState) -> Run:
    claimed = RUN.claimed(now=NOW, nonce="c", owner="w", lease=timedelta(minutes=1), version=1)
    return {
        RunState.PLANNED: RUN,
        RunState.QUEUED: RUN.parked(REASON, now=NOW, nonce="q", wake_at=LATER),
        RunState.RUNNING: claimed,
        RunState.RETRYING: claimed.retried(FAILURE, REASON, now=NOW, nonce="r", wake_at=LATER),
        RunState.SUCCEEDED: claimed.succeeded(now=NOW, nonce="s", output=None),
        RunState.FAILED: claimed.failed(FAILURE, REASON, now=NOW, nonce="f"),
        RunState.CANCELLED: claimed.cancelled(REASON, now=NOW, nonce="x"),
        RunState.SKIPPED: RUN.skipped(REASON, now=NOW, nonce="k"),
        RunState.VOID: RUN.voided(REASON, now=NOW, nonce="v"),
    }[state]


MOVES: dict[RunEvent, Any] = {
    RunEvent.PARKED: lambda run: run.parked(REASON, now=LATER, nonce="n", wake_at=LATER),
    RunEvent.FENCED: lambda run: run.fenced(now=LATER, nonce="n"),
    RunEvent.CLAIMED: lambda run: run.claimed(now=LATER, nonce="n", owner="x", lease=timedelta(minutes=5), version=2),
    RunEvent.HEARTBEAT: lambda run: run.beaten(now=LATER, nonce="n", lease=timedelta(minutes=5), progress=None),
    RunEvent.SUCCEEDED: lambda run: run.succeeded(now=LATER, nonce="n", output=1),
    RunEvent.RETRIED: lambda run: run.retried(FAILURE, REASON, now=LATER, nonce="n", wake_at=LATER),
    RunEvent.FAILED: lambda run: run.failed(FAILURE, REASON, now=LATER, nonce="n"),
    RunEvent.CANCELLED: lambda run: run.cancelled(REASON, now=LATER, nonce="n"),
    RunEvent.SKIPPED: lambda run: run.skipped(REASON, now=LATER, nonce="n"),
    RunEvent.VOIDED: lambda run: run.voided(REASON, now=LATER, nonce="n"),
}


def test_every_event_of_a_run_has_a_move_and_a_claim_of_a_running_run_is_a_reclaim() -> None:
    assert MOVES.keys() == set(RunEvent) - {RunEvent.RECLAIMED}


@pytest.mark.parametrize("event", MOVES)
@pytest.mark.parametrize("state", RunState)
def test_a_move_makes_a_new_revision_with_the_tables_state_or_is_refused(state: RunState, event: RunEvent) -> None:
    before = run_in(state)
    assert before.state is state
    meant = RunEvent.RECLAIMED if (state, event) == (RunState.RUNNING, RunEvent.CLAIMED) else event
    if not RUN_LIFECYCLE.allows(state, meant):
        with pytest.raises(IllegalTransition, match="default/report/20261115T060000Z"):
            MOVES[event](before)
        return
    after: Run = MOVES[event](before)
    assert after.state is RUN_LIFECYCLE.arrows[state, meant]
    assert (after.rev, after.nonce, after.changed_at) == (before.rev + 1, "n", LATER)
    for identity in (
        "key",
        "fire_at",
        "start_at",
        "trigger",
        "created_at",
        "params",
        "rerun_of",
        "rerun_from",
        "marks",
        "parent",
        "note",
    ):
        assert getattr(after, identity) == getattr(before, identity)
    assert (after.ended_at is not None) == after.is_terminal
    assert (after.lease_until is not None) == (after.state is RunState.RUNNING)
    if after.is_terminal:
        assert after.wake_at is None


def test_a_claim_takes_a_new_epoch_and_counts_the_attempt() -> None:
    first = RUN.claimed(now=NOW, nonce="a", owner="w1", lease=timedelta(minutes=1), version=4)
    assert (first.epoch, first.attempt, first.lost, first.failures) == (1, 1, 0, 1)
    assert (first.owner, first.version, first.started_at) == ("w1", 4, NOW)
    assert first.lease_is_live(NOW)
    assert not first.lease_is_live(NOW + timedelta(minutes=1))
    retrying = first.retried(FAILURE, REASON, now=NOW, nonce="b", wake_at=LATER)
    assert (retrying.wake_at, retrying.failure, retrying.reason) == (LATER, FAILURE, REASON)
    assert not retrying.lease_is_live(NOW)
    again = retrying.claimed(now=LATER, nonce="c", owner="w2", lease=timedelta(minutes=1), version=5)
    assert (again.epoch, again.attempt, again.lost, again.failures) == (2, 2, 0, 2)
    assert (again.started_at, again.version, again.wake_at, again.reason) == (NOW, 5, None, None)


def test_taking_over_a_dead_lease_counts_the_loss_which_is_no_failure_of_the_job() -> None:
    first = RUN.claimed(now=NOW, nonce="a", owner="w1", lease=timedelta(minutes=1), version=1)
    second = first.claimed(now=LATER, nonce="b", owner="w2", lease=timedelta(minutes=1), version=1)
    assert (second.epoch, second.attempt, second.lost, second.failures) == (2, 2, 1, 1)


def test_a_heartbeat_moves_the_lease_and_keeps_progress_that_it_does_not_report() -> None:
    run = run_in(RunState.RUNNING).beaten(now=LATER, nonce="h", lease=timedelta(minutes=2), progress=40)
    silent = run.beaten(now=LATER, nonce="i", lease=timedelta(minutes=3), progress=None)
    assert (run.lease_until, run.progress) == (LATER + timedelta(minutes=2), 40)
    assert (silent.lease_until, silent.progress) == (LATER + timedelta(minutes=3), 40)
    assert silent.epoch == run.epoch == 1


def test_a_success_keeps_its_output_and_is_complete() -> None:
    done = run_in(RunState.RUNNING).succeeded(now=LATER, nonce="s", output={"rows": 3})
    assert (done.output, done.progress, done.ended_at, done.reason) == ({"rows": 3}, 100, LATER, None)


def test_only_a_scheduled_run_is_owed_by_the_schedule() -> None:
    assert [replace(RUN, trigger=trigger).is_scheduled for trigger in Trigger] == [
        trigger is Trigger.SCHEDULE for trigger in Trigger
    ]


def test_every_attempt_of_a_task_has_the_same_idempotency_key() -> None:
    keys = {run_in(state).idempotency_key("main") for state in RunState}
    assert len(keys) == 1
    assert keys != {RUN.idempotency_key("other")}


# A job's head.

HEAD = Head(JOB, JobStatus.ACTIVE, 1, created_at=NOW, in_force_since=NOW, changed_at=NOW, planned_upto=NOW, plan_at=NOW)


@pytest.mark.parametrize("event", JobEvent)
@pytest.mark.parametrize("status", JobStatus)
def test_a_change_of_a_job_follows_the_table(status: JobStatus, event: JobEvent) -> None:
    head = replace(HEAD, status=status)
    if not JOB_LIFECYCLE.allows(status, event):
        with pytest.raises(IllegalTransition, match="default/report"):
            head.changed(event, at=LATER, nonce="n")
        return
    after = head.changed(event, at=LATER, nonce="n", version=2)
    assert after.status is JOB_LIFECYCLE.arrows[status, event]
    assert (after.rev, after.nonce, after.changed_at, after.version) == (1, "n", LATER, 2)


@given(st.timedeltas(timedelta(days=-2), timedelta(days=2)))
def test_changes_are_ordered_whatever_the_clock_says(shift: timedelta) -> None:
    at = HEAD.next_change_at(NOW + shift)
    assert at >= NOW + shift
    assert at - HEAD.changed_at >= A_MOMENT


def test_a_resumes_decision_is_kept_until_planning_is_past_the_pause() -> None:
    waiting = replace(HEAD, catchup=CatchupPolicy.ALL, catchup_upto=LATER)
    halfway = waiting.advanced(planned_upto=LATER - timedelta(seconds=1), plan_at=NOW, nonce="a")
    assert (halfway.catchup, halfway.catchup_upto) == (CatchupPolicy.ALL, LATER)
    done = halfway.advanced(planned_upto=LATER - A_MOMENT, plan_at=None, nonce="b")
    assert (done.catchup, done.catchup_upto, done.plan_at) == (None, None, None)
    assert (done.rev, done.nonce, done.changed_at) == (2, "b", NOW)
