"""When an attempt fails, or its worker is lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.limits import LOST_MAX, SIDES_BLUR
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.complete import complete
from sweephand.engine.trigger import trigger
from tests.engine.faults import Fault, failing_at
from tests.engine.world import PERMANENT, TRANSIENT, Town, code_of, dies, job


def run_of(town: Town, *answers: Any, **more: Any) -> Run:
    """A triggered run whose attempts come to these answers, as it is after its first."""
    town.target.answers("job", *answers)
    town.put(schedule=None, **more)
    key = trigger(town.world, job()).key
    town.drive()
    return town.run(key)


def gaps(town: Town) -> list[float]:
    """Seconds between the attempts."""
    moments: list[datetime] = [call.at for call in town.calls()]
    return [(later - earlier).total_seconds() for earlier, later in pairwise(moments)]


@pytest.mark.parametrize(
    ("retry", "waits"),
    [
        ({"attempts": 3, "backoff": "fixed", "delay": "40s"}, [40, 40]),
        (
            {"attempts": 4, "backoff": "exponential", "delay": "20s", "maxDelay": "60s"},
            [10, 20, 30],
        ),  # half, by the dice
        ({"attempts": 4, "backoff": "list", "delays": ["5s", "50s"]}, [5, 50, 50]),
        ({"attempts": 1}, []),
    ],
)
def test_a_transient_failure_is_tried_again_after_its_wait_and_no_oftener(
    town: Town, retry: dict[str, Any], waits: list[float]
) -> None:
    run = run_of(town, *[TRANSIENT] * 9, retry=retry)
    town.advance(minutes=30)
    assert gaps(town) == waits
    assert town.run(run.key).state is RunState.FAILED
    assert len({call.key for call in town.calls()}) == 1
    assert [call.epoch for call in town.calls()] == list(range(1, len(waits) + 2))


def test_a_permanent_failure_is_never_tried_again(town: Town) -> None:
    run = run_of(town, PERMANENT, retry={"attempts": 5})
    town.advance(minutes=30)
    assert (town.run(run.key).state, len(town.calls())) == (RunState.FAILED, 1)
    assert code_of(town.run(run.key)) is ReasonCode.ERROR


def test_a_wait_longer_than_a_message_can_be_delayed_ends_on_time(either: Town) -> None:
    either.ticks_every = timedelta(minutes=3)
    run = run_of(either, TRANSIENT, retry={"attempts": 2, "backoff": "fixed", "delay": "20m"})
    assert run.wake_at is not None
    assert either.next_visible() is None  # no message waits for it: a due entry does
    either.advance(minutes=19)
    assert len(either.calls()) == 1
    either.advance(minutes=4)
    assert either.run(run.key).state is RunState.SUCCEEDED


def test_no_attempt_begins_after_the_runs_time_is_up(town: Town) -> None:
    run = run_of(town, *[TRANSIENT] * 9, runTimeout="100s", retry={"attempts": 9, "backoff": "fixed", "delay": "40s"})
    town.advance(minutes=30)
    assert gaps(town) == [40, 40]
    assert town.run(run.key).state is RunState.FAILED


def test_an_attempt_gets_no_more_time_than_the_run_has_left(town: Town) -> None:
    left: list[timedelta] = []

    def fails(call: Call) -> Outcome:
        left.append(call.timeout)
        return TRANSIENT

    run_of(town, fails, fails, runTimeout="100s", retry={"attempts": 2, "backoff": "fixed", "delay": "40s"})
    town.advance(minutes=5)
    assert left == [timedelta(seconds=100), timedelta(seconds=60)]


def test_a_lost_workers_run_starts_again_when_its_lease_ends_and_is_no_failure_of_the_job(either: Town) -> None:
    run = run_of(either, dies, timeout=60)
    either.advance(seconds=89)
    assert len(either.calls()) == 1
    either.advance(seconds=3)
    ended = either.run(run.key)
    assert (ended.state, ended.lost, ended.failures, ended.epoch) == (RunState.SUCCEEDED, 1, 1, 2)


def test_a_payload_that_kills_every_worker_ends(town: Town) -> None:
    run = run_of(town, *[dies] * 20, timeout=60)
    town.advance(minutes=30)
    ended = town.run(run.key)
    assert (ended.state, code_of(ended), len(town.calls())) == (RunState.FAILED, ReasonCode.LOST, LOST_MAX + 1)


def test_at_most_once_ends_as_lost_with_its_worker(town: Town) -> None:
    run = run_of(town, dies, timeout=60, guarantee="at-most-once", retry={"attempts": 5})
    town.advance(minutes=10)
    ended = town.run(run.key)
    assert (ended.state, code_of(ended), len(town.calls())) == (RunState.FAILED, ReasonCode.LOST, 1)


def test_at_most_once_is_not_tried_again_after_a_failure_either(town: Town) -> None:
    run = run_of(town, TRANSIENT, guarantee="at-most-once", retry={"attempts": 5})
    town.advance(minutes=30)
    assert (town.run(run.key).state, len(town.calls())) == (RunState.FAILED, 1)


def test_effectively_once_waits_until_no_clock_can_think_that_the_lease_lives(town: Town) -> None:
    run = run_of(town, dies, timeout=60, guarantee="effectively-once")
    assert run.lease_until is not None
    town.advance(to=run.lease_until + SIDES_BLUR - timedelta(seconds=1))
    assert len(town.calls()) == 1
    town.advance(seconds=3)
    assert town.run(run.key).state is RunState.SUCCEEDED


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNHEARD])
@pytest.mark.parametrize("guarantee", ["at-most-once", "at-least-once"])
def test_a_message_that_cannot_be_kept_back_costs_no_attempt(town: Town, guarantee: str, fault: Fault) -> None:
    town.put(schedule=None, guarantee=guarantee)
    key = trigger(town.world, job()).key
    town.drive(failing_at(town.world, "inbox.keep", fault))
    town.advance(minutes=10)
    assert town.run(key).state is RunState.SUCCEEDED


def test_a_late_worker_cannot_complete_after_its_lease_was_taken_over(town: Town) -> None:
    def outlives(call: Call) -> Outcome:
        town.clock.at += timedelta(seconds=91)
        town.drive(town.another("next"))
        return Succeeded("late")

    run = run_of(town, outlives, Succeeded("in time"), timeout=60)
    assert (town.run(run.key).output, run.owner) == ("in time", "next")


def test_retries_in_a_row_of_one_run_are_fenced_from_each_other(town: Town) -> None:
    run = run_of(town, TRANSIENT, dies, timeout=60, retry={"attempts": 3, "backoff": "fixed", "delay": "10s"})
    town.advance(seconds=11)
    assert town.run(run.key).epoch == 2
    ended = complete(town.world, run.key, epoch=2, outcome=Succeeded())
    assert (ended.state, ended.failure) == (RunState.SUCCEEDED, None)
    town.advance(minutes=10)
    assert len(town.calls()) == 2
