"""Runs of several tasks when AWS fails: wakes that are lost, advances that die, executions that die (rows 44 to 51)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from sweephand.aws import PACE
from sweephand.domain.ids import RunKey
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import RunState
from sweephand.engine.advance import WAVES_MAX, advance
from sweephand.local.cloud.account import AwsCall
from tests.faults.place import HOUR, MINUTE, SECOND, Place, Trap, opened
from tests.functions.dags import SOURCES, begun, executions, has_advanced, order, states, stop, task
from tests.moto_world import Fault, throttled, timed_out

DIAMOND: Final = (task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c"))
NAMES: Final = ["a", "b", "c", "d"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened(tmp_path) as found:
        found.only(*SOURCES)
        yield found


def assert_done(place: Place, key: RunKey) -> None:
    """Every task has run once, as it should, and nothing is left over."""
    assert place.look(key).state is RunState.SUCCEEDED
    assert set(states(place, key).values()) == {"succeeded"}
    assert sorted(order(place)) == NAMES
    assert (order(place)[0], order(place)[-1]) == ("a", "d")
    assert {effect.epoch for effect in place.target.effects} == {1}
    assert [one.status for one in executions(place)][-1] == "SUCCEEDED"
    place.pass_time(2 * HOUR)  # what a dead function held in hand comes back
    assert place.waiting() == 0
    assert place.dead() == []


@pytest.mark.parametrize("function", ["attempt", "advance"])
@pytest.mark.parametrize("fault", [throttled("SendTaskSuccess"), timed_out()])
def test_a_wake_that_fails_is_made_again_within_seconds(place: Place, function: str, fault: Fault) -> None:
    """It was not heard, or it was and nobody knows."""
    coming = [fault]

    def strike(call: AwsCall) -> Fault | None:
        return coming.pop() if coming and (call.function, call.operation) == (function, "SendTaskSuccess") else None

    place.faults = strike
    key = begun(place, *DIAMOND)
    place.pass_time(10 * SECOND)
    assert not coming
    assert_done(place, key)


@pytest.mark.parametrize("after", [False, True])
def test_one_who_dies_waking_is_made_up_for_when_the_stream_brings_the_end(place: Place, after: bool) -> None:
    place.only(*SOURCES, "project")
    fits = place._fitting("attempt", "SendTaskSuccess", None)
    place.traps.append(Trap(fits, after=after))
    key = begun(place, *DIAMOND)
    place.silent.add("project")
    place.pass_time(5 * SECOND)
    assert not place.traps[0].times
    place.silent.discard("project")
    place.pass_time(5 * SECOND)
    assert place.look(key).state is RunState.SUCCEEDED
    assert_done(place, key)


def test_an_end_that_nobody_noted_is_heard_of_from_the_stream(place: Place) -> None:
    """Row 51: whoever ended the task died before saying so."""
    place.only(*SOURCES, "project")

    def is_note(call: AwsCall) -> bool:
        moves = call.function == "attempt" and call.operation == "UpdateItem"
        return moves and call.params["Key"]["sk"]["S"] == "progress"

    place.traps.append(Trap(is_note, after=False))
    key = begun(place, *DIAMOND)
    place.pass_time(5 * SECOND)
    assert not place.traps[0].times
    assert_done(place, key)


def test_without_the_stream_such_an_end_is_found_when_the_execution_looks(place: Place) -> None:
    key = begun(place, *DIAMOND)
    reason = Reason(ReasonCode.CANCELLED, "")
    place.only("normal")
    place.step()
    place.only("machines")
    place.step()
    waiting = place.look(key.of_task("a"))
    assert place.world.runs.move(waiting, waiting.cancelled(reason, now=place.now, nonce="unheard"))
    place.pass_time(6 * MINUTE)
    assert place.look(key).state is RunState.FAILED
    assert states(place, key)["d"] == "upstream_failed"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("function", ["advance", "settle"])
def test_one_who_dies_between_any_two_calls_is_made_up_for(tmp_path: Path, function: str, after: bool) -> None:
    """Row 51, for every call that the function makes in the whole story."""
    with opened(tmp_path) as place:
        place.only(*SOURCES)
        key = begun(place, *DIAMOND)
        place.pass_time(MINUTE)
        count = sum(call.function == function for call in place.calls)
    assert count > (20 if function == "advance" else 3)
    for at in range(count):
        with opened(tmp_path) as place:
            place.only(*SOURCES)
            place.traps.append(Trap(Nth(function, at).fits, after=after))
            key = begun(place, *DIAMOND)
            place.pass_time(MINUTE)
            assert not place.traps[0].times, f"call {at} was never made"
            assert_done(place, key)


@dataclass
class Nth:
    """The n-th call of a function, of all its invocations."""

    function: str
    at: int
    seen: int = 0

    def fits(self, call: AwsCall) -> bool:
        if call.function != self.function:
            return False
        self.seen += 1
        return self.seen == self.at + 1


@pytest.mark.parametrize("function", ["advance", "settle", "attempt"])
def test_of_what_happens_twice_at_once_nothing_is_done_twice(place: Place, function: str) -> None:
    place.twice.add(function)
    key = begun(place, *DIAMOND)
    place.pass_time(MINUTE)
    assert_done(place, key)


def test_of_two_who_advance_at_the_same_moment_one_moves_the_run(place: Place) -> None:
    """The whole of another advance, under another token, before every write of the first."""
    other = place.rival()

    def rival(call: AwsCall) -> Fault | None:
        if call.function == "advance" and call.operation == "UpdateItem":
            advance(other, RunKey.of(call.params["Key"]["pk"]["S"]), token="of-nobody", generation=0)
        return None

    place.faults = rival
    key = begun(place, *DIAMOND)
    place.pass_time(20 * MINUTE)
    assert_done(place, key)


def test_an_execution_that_could_not_be_started_is_started_once_there_is_room(place: Place) -> None:
    """Row 46."""
    place.faults = lambda call: throttled(call.operation) if call.operation == "StartExecution" else None
    key = begun(place, *DIAMOND)
    place.pass_time(2 * MINUTE)
    assert order(place) == []
    assert place.look(key).state is RunState.RUNNING
    place.faults = lambda _call: None
    place.pass_time(5 * MINUTE)
    assert_done(place, key)
    assert len(executions(place)) == 1


@pytest.mark.parametrize("after", [False, True])
def test_an_execution_whose_starter_died_is_started_once(place: Place, after: bool) -> None:
    """Row 44."""
    place.traps.append(Trap(place._fitting("attempt", "StartExecution", None), after=after))
    key = begun(place, *DIAMOND)
    place.pass_time(20 * MINUTE)
    assert_done(place, key)


@pytest.mark.parametrize("after", [False, True])
def test_a_run_is_handed_on_although_whoever_does_it_dies(place: Place, after: bool) -> None:
    """Row 49: the history is nearly full, and the next execution is announced and not started."""
    place.traps.append(Trap(place._fitting("advance", "StartExecution", None), after=after))
    key = begun(place, *DIAMOND)
    for source in ("normal", "machines"):
        place.only(source)
        place.step()
    has_advanced(place, key, WAVES_MAX - 1)
    place.only(*SOURCES)
    place.pass_time(MINUTE)
    assert not place.traps[0].times
    assert_done(place, key)
    assert [one.status for one in executions(place)] == ["SUCCEEDED", "SUCCEEDED"]


@pytest.mark.parametrize("again", [False, True])
def test_the_tasks_of_a_run_that_is_ended_after_its_execution_died_end_with_it(place: Place, again: bool) -> None:
    """Nobody sleeps over it, and the message of a task is lost: somebody must see to them, and `again` if that dies."""
    key = begun(place, *DIAMOND)
    for source in ("normal", "machines"):
        place.only(source)
        place.step()
    stop(place, executions(place)[0])
    place.lost.add("attempt")
    place.only("normal")
    place.step()
    place.lost.clear()
    place.only(*SOURCES)
    status, _ = place.api("POST", f"/v1/jobs/job/runs/{key.run_id}/cancel", {})
    assert status == 200
    if again:
        place.traps.append(Trap(place._fitting("attempt", "StartExecution", None), after=False))
    place.pass_time((10 if again else 2) * MINUTE)
    assert not any(trap.times for trap in place.traps)
    assert place.look(key.of_task("a")).state is RunState.CANCELLED
    assert set(states(place, key).values()) == {"cancelled"}
    place.pass_time(2 * HOUR)
    assert place.waiting() == 0


def test_where_every_call_of_the_machine_fails_for_a_while_the_run_goes_on_afterwards(place: Place) -> None:
    place.throttled.add("advance")
    key = begun(place, *DIAMOND)
    place.pass_time(5 * MINUTE)
    place.throttled.clear()
    place.pass_time(2 * MINUTE)
    assert_done(place, key)
    assert len(executions(place)) == 1


def test_an_execution_that_gives_up_is_followed_by_the_next(place: Place) -> None:
    """Nothing works for an hour: the retries of the execution are used up."""
    place.throttled.add("advance")
    key = begun(place, *DIAMOND)
    place.pass_time(60 * MINUTE)
    assert executions(place)[0].status == "FAILED"
    place.throttled.clear()
    place.pass_time(2 * PACE.looked_after)
    assert place.look(key).state is RunState.SUCCEEDED
    assert sorted(order(place)) == NAMES
