"""Attempts that go on elsewhere, or for which there was no room, or that take longer than they can here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.attempt import Fate, report
from sweephand.engine.trigger import trigger
from sweephand.messages import Again, Elsewhere, Unstarted
from tests.engine.world import TRANSIENT, Answer, Town, code_of, job

MINUTE = timedelta(minutes=1)


def begun(town: Town, *answers: Answer, **more: Any) -> Run:
    """A triggered run after its first delivery."""
    town.target.answers("job", *answers)
    town.put(schedule=None, **more)
    key = trigger(town.world, job()).key
    town.drive()
    return town.run(key)


def test_what_goes_on_elsewhere_is_running_until_its_outcome_is_reported(either: Town) -> None:
    run = begun(either, Elsewhere(), timeout="10m")
    assert run.state is RunState.RUNNING
    either.advance(minutes=9)
    assert report(either.world, run.key, epoch=run.epoch, outcome=Succeeded({"rows": 1})).fate is Fate.DELETE
    assert either.run(run.key).output == {"rows": 1}

    # Its message was the lease's timer: it comes back, finds nothing to do, and goes.
    assert set(either.advance(minutes=5, ticking=False)) == {"ended"}
    assert either.advance(hours=1, ticking=False) == []
    assert len(either.calls()) == 1


def test_where_nobody_reports_the_next_attempt_begins_when_the_lease_ends(either: Town) -> None:
    run = begun(either, Elsewhere(), timeout="10m")
    either.advance(minutes=12, ticking=False)
    after = either.run(run.key)
    assert (after.state, after.attempt, after.lost) == (RunState.SUCCEEDED, 2, 1)

    # Whoever reports now is fenced, and changes nothing.
    assert report(either.world, run.key, epoch=run.epoch, outcome=TRANSIENT).event == "fenced"
    assert either.run(run.key) == after


def test_a_report_that_comes_twice_changes_nothing(either: Town) -> None:
    run = begun(either, Elsewhere())
    for _ in range(2):
        report(either.world, run.key, epoch=run.epoch, outcome=Succeeded())
    after = either.run(run.key)
    assert (after.state, after.rev) == (RunState.SUCCEEDED, run.rev + 1)


def test_without_room_it_is_begun_again_and_no_attempt_is_counted(either: Town) -> None:
    run = begun(either, *[Unstarted("too many calls")] * 6, retry={"attempts": 1})
    assert (run.state, run.attempt, code_of(run)) == (RunState.RETRYING, 0, ReasonCode.ROOM)
    either.advance(minutes=7)
    after = either.run(run.key)
    assert (after.state, after.attempt, after.lost) == (RunState.SUCCEEDED, 1, 0)
    assert len(either.calls()) == 7


def test_even_at_most_once_may_be_begun_again_where_nothing_was_begun(town: Town) -> None:
    run = begun(town, Unstarted("too many calls"), guarantee="at-most-once")
    town.advance(minutes=2)
    assert town.run(run.key).state is RunState.SUCCEEDED


def test_what_has_not_come_is_looked_for_again_and_nobody_works_meanwhile(either: Town) -> None:
    run = begun(either, Again(20 * MINUTE, "no file"), Again(MINUTE, "no file"), TRANSIENT, retry={"attempts": 2})
    assert (run.state, run.attempt, run.reason) == (RunState.RETRYING, 0, Reason(ReasonCode.WAITING, "no file"))
    assert run.wake_at == run.changed_at + 20 * MINUTE
    either.advance(minutes=25)
    after = either.run(run.key)
    assert (after.state, after.attempt, after.lost) == (RunState.SUCCEEDED, 2, 0)
    assert after.started_at == run.started_at
    assert len(either.calls()) == 4


def test_looking_ends_with_the_runs_time(either: Town) -> None:
    run = begun(either, *[Again(MINUTE, "no file")] * 60, runTimeout="10m")
    either.advance(minutes=15)
    after = either.run(run.key)
    assert (after.state, code_of(after)) == (RunState.FAILED, ReasonCode.TIMEOUT)
    assert len(either.calls()) == 10


def test_an_attempt_may_take_no_longer_than_it_can_here(town: Town) -> None:
    seen: list[timedelta] = []

    def notes(call: Call) -> Outcome:
        seen.append(call.timeout)
        return Succeeded()

    town.world = replace(town.world, pace=replace(town.world.pace, attempt_max=timedelta(minutes=14)))
    begun(town, notes, timeout="1h")
    assert seen == [timedelta(minutes=14)]

    # External workers have places of their own.
    town.put_external("pulled", schedule=None, timeout="1h")
    trigger(town.world, job("pulled"))
    town.drive()
    (leased,) = town.lease()
    assert leased.call.timeout == timedelta(hours=1)
