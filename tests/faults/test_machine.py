"""The machine that waits for long tasks: asked without an answer, or with a report that does not arrive.

That StartExecution is throttled (row 46) is in tests/functions/test_execute.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.run import Run, RunState
from sweephand.local.cloud.account import AwsCall
from sweephand.local.cloud.functions import Later
from sweephand.orders import encode_outcome
from tests.faults.checker import assert_sound
from tests.faults.place import MINUTE, SECOND, Place
from tests.moto_world import timed_out

LEASE = 5 * MINUTE + 30 * SECOND


@pytest.fixture
def run(place: Place) -> Run:
    """Of a task that takes two minutes, and may take five."""
    place.only("normal", "machines")
    place.put("report", timeout="5m")
    place.target.does["report"] = lambda _effect: Later(encode_outcome(Succeeded()), 2 * MINUTE)
    return place.run("report")


def _assert_ended(place: Place, run: Run, *, attempts: int) -> None:
    after = place.look(run)
    assert (after.state, after.attempt) == (RunState.SUCCEEDED, attempts)
    assert [effect.epoch for effect in place.target.effects] == list(range(1, attempts + 1))
    assert len({effect.key for effect in place.target.effects}) == 1
    place.pass_time(LEASE)
    assert place.waiting() == 0
    assert_sound(place)


def test_an_execution_that_was_started_unheard_is_the_only_one(place: Place, run: Run) -> None:
    """Row 44: the answer of StartExecution is lost."""
    coming = [timed_out()]
    place.faults = lambda call: coming.pop() if coming and call.operation == "StartExecution" else None
    place.pass_time(3 * MINUTE)
    assert len([call for call in place.calls if call.operation == "StartExecution"]) == 1
    _assert_ended(place, run, attempts=1)


def test_an_execution_whose_starter_died_is_the_only_one(place: Place, run: Run) -> None:
    """Row 44: and so it is where nobody is left to hear the answer."""
    place.die_after("attempt", "StartExecution")
    place.pass_time(3 * MINUTE)
    _assert_ended(place, run, attempts=1)


def test_a_report_that_finds_no_room_is_brought_again(place: Place, run: Run) -> None:
    """Row 48."""
    place.pass_time(MINUTE)
    place.throttled.add("attempt")
    place.pass_time(2 * MINUTE)
    assert place.look(run).state is RunState.RUNNING
    place.throttled.clear()
    place.pass_time(MINUTE)
    _assert_ended(place, run, attempts=1)


def test_a_report_that_dies_with_its_worker_is_brought_again(place: Place, run: Run) -> None:
    """Row 48: after the completion was written; it is accepted once."""
    place.pass_time(MINUTE)
    place.die_after("attempt", "UpdateItem")
    place.pass_time(3 * MINUTE)
    assert not place.traps[0].times
    assert len([event for event in place.deliveries["attempt"] if "report" in event]) == 2
    assert place.answers["attempt"][-1]["event"] == "succeeded"
    _assert_ended(place, run, attempts=1)


def test_a_report_that_is_lost_for_good_costs_an_attempt_under_the_same_key(place: Place, run: Run) -> None:
    """Row 48: the lease is the last net."""
    place.pass_time(MINUTE)
    place.lost.add("attempt")
    place.pass_time(2 * MINUTE)
    place.lost.clear()
    assert place.look(run).state is RunState.RUNNING
    place.pass_time(LEASE)
    _assert_ended(place, run, attempts=2)


def test_a_report_that_comes_before_its_starter_has_heard_of_the_start_counts(place: Place, run: Run) -> None:
    """Row 48: it is as fast as can be."""
    (machines,) = [source for source in place.deployment.sources if source.name == "machines"]

    def let_it_finish(call: AwsCall, answer: Any) -> Any:
        while call.operation == "StartExecution" and machines.poll():
            continue
        return answer

    place.target.does.clear()
    place.garbles = let_it_finish
    place.step()
    _assert_ended(place, run, attempts=1)


def test_an_order_that_the_machine_could_not_carry_fails_at_once_and_says_why(place: Place) -> None:
    """Row 49: Step Functions would end such an execution without a report."""
    place.only("normal", "machines")
    place.put("large", timeout="5m", command=None, run={"command": ["echo", "\u00e9" * 40_000]})
    run = place.run("large")
    place.step()
    after = place.look(run)
    assert (after.state, after.attempt) == (RunState.FAILED, 1)
    assert after.failure is not None
    assert after.failure.error == "TooLarge"
    assert "240" in after.failure.message
    assert place.target.effects == []
    assert not [call for call in place.calls if call.operation == "StartExecution"]
