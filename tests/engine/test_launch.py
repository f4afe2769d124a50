"""Runs for which an agent is launched: claimed at once, heard of later, renewed and reported by REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Succeeded
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.checkpoint import read_checkpoint, save_checkpoint
from sweephand.engine.lease import beat, report
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import NotFound, StaleEpoch
from sweephand.messages import Elsewhere, Unstarted
from tests.engine.world import NS, TRANSIENT, Town, code_of, job

MINUTE = timedelta(minutes=1)
IMAGE = {"run": {"container": {"image": "reports:1"}}, "timeout": "6h"}


class Launched:
    """What was launched, in order; an agent is heard of only if a test speaks for it."""

    def __init__(self, town: Town) -> None:
        self.town = town
        self.calls: list[Call] = []
        self.refuses: list[Any] = []

    def execute(self, call: Call) -> Any:
        self.calls.append(call)
        return self.refuses.pop(0) if self.refuses else Elsewhere()

    @property
    def last(self) -> Call:
        return self.calls[-1]

    def lease(self, call: Call) -> str:
        assert call.lease is not None
        return call.lease

    def beat(self, call: Call, progress: int | None = None) -> Run:
        return beat(self.town.world, self.lease(call), NS, epoch=call.run.epoch, progress=progress)

    def report(self, call: Call, outcome: Any) -> Run:
        return report(self.town.world, self.lease(call), NS, epoch=call.run.epoch, outcome=outcome)


@pytest.fixture
def launched(either: Town) -> Launched:
    place = Launched(either)
    pace = replace(either.world.pace, launches=True, attempt_max=14 * MINUTE)
    either.world = replace(either.world, target=place, pace=pace)
    return place


def begun(place: Launched, **more: Any) -> Run:
    town = place.town
    put(town.world, NS, {"name": "job", **IMAGE, **more}, actor="ann", expected=None)
    key = trigger(town.world, job()).key
    town.drive()
    return town.run(key)


def test_a_long_task_is_kept_alive_by_its_agent_and_ends_with_its_report(launched: Launched) -> None:
    run = begun(launched)
    call = launched.last
    assert (run.state, run.epoch, call.timeout) == (RunState.RUNNING, 1, timedelta(hours=6))
    launched.town.advance(minutes=3)
    for progress in range(60):
        launched.beat(call, progress)
        launched.town.advance(seconds=30)
    assert launched.town.run(run.key).progress == 59
    assert launched.report(call, Succeeded({"rows": 3})).state is RunState.SUCCEEDED
    launched.town.advance(hours=1)
    assert (len(launched.calls), launched.town.run(run.key).attempt) == (1, 1)


def test_an_agent_that_is_never_heard_of_is_launched_again_under_the_next_epoch(launched: Launched) -> None:
    run = begun(launched)
    launched.town.advance(minutes=9)
    assert len(launched.calls) == 1
    launched.town.advance(minutes=3)
    first, second = launched.calls
    assert (first.run.epoch, second.run.epoch) == (1, 2)
    assert launched.lease(first) != launched.lease(second)
    with pytest.raises(StaleEpoch):
        launched.report(first, Succeeded())
    assert launched.report(second, Succeeded()).state is RunState.SUCCEEDED
    assert (launched.town.run(run.key).attempt, launched.town.run(run.key).lost) == (2, 1)


def test_a_task_of_half_an_hour_whose_agent_is_killed_goes_on_from_its_checkpoint(launched: Launched) -> None:
    run = begun(launched)
    killed, town = launched.last, launched.town
    for minute in range(15):
        save_checkpoint(town.world, launched.beat(killed, minute * 3), {"minute": minute})
        town.advance(seconds=50)
    town.advance(minutes=3)
    assert len(launched.calls) == 2
    second = launched.last
    assert read_checkpoint(town.world, run.key) == {"minute": 14}

    # The killed one, thawed, can neither renew, nor save, nor complete.
    with pytest.raises(StaleEpoch):
        launched.beat(killed)
    with pytest.raises(StaleEpoch):
        launched.report(killed, Succeeded("stale"))
    save_checkpoint(town.world, killed.run, {"minute": 99})
    save_checkpoint(town.world, launched.beat(second, 50), {"minute": 15})
    save_checkpoint(town.world, killed.run, {"minute": 99})
    assert read_checkpoint(town.world, run.key) == {"minute": 15}
    assert launched.report(second, Succeeded("fresh")).output == "fresh"
    assert read_checkpoint(town.world, run.key) is None


def test_what_fails_is_launched_again_as_its_policy_says(launched: Launched) -> None:
    run = begun(launched, retry={"attempts": 2, "backoff": "fixed", "delay": "1m"})
    launched.report(launched.last, TRANSIENT)
    launched.town.advance(minutes=2)
    assert launched.report(launched.last, TRANSIENT).state is RunState.FAILED
    assert (len(launched.calls), launched.town.run(run.key).attempt) == (2, 2)


def test_where_it_cannot_be_launched_that_is_its_outcome(launched: Launched) -> None:
    launched.refuses = [Unstarted("no capacity"), Failure("ImagePull", "there is no such image")]
    run = begun(launched, retry={"attempts": 2, "delay": "1s", "backoff": "fixed"})
    assert (run.attempt, code_of(run)) == (0, ReasonCode.ROOM)
    launched.town.advance(minutes=3)
    assert len(launched.calls) == 3
    assert launched.report(launched.last, Succeeded()).attempt == 2


def test_an_agent_learns_from_its_heartbeat_that_the_run_was_cancelled(launched: Launched) -> None:
    run = begun(launched)
    cancel(launched.town.world, run.key, actor="ann")
    with pytest.raises(StaleEpoch):
        launched.beat(launched.last)
    launched.town.advance(minutes=30)
    assert len(launched.calls) == 1


def test_a_task_that_takes_too_long_is_ended_although_its_agent_lives(launched: Launched) -> None:
    run = begun(launched, timeout="20m")
    for _ in range(40):
        launched.beat(launched.last)
        launched.town.advance(seconds=30)
    with pytest.raises(StaleEpoch):
        launched.beat(launched.last)
    after = launched.town.run(run.key)
    assert (after.state, code_of(after)) == (RunState.FAILED, ReasonCode.TIMEOUT)


@pytest.mark.parametrize(("timeout", "is_launched"), [("14m", False), ("15m", True), ("61m", True)])
def test_a_program_that_may_take_longer_than_it_can_here_is_launched(
    launched: Launched, timeout: str, is_launched: bool
) -> None:
    begun(launched, run={"command": ["sleep", "1"]}, timeout=timeout)
    assert (launched.last.lease is not None) == is_launched
    assert launched.last.timeout == timedelta(minutes=int(timeout[:-1]))


def test_a_program_of_which_nobody_says_how_long_it_takes_is_not_launched(launched: Launched) -> None:
    put(launched.town.world, NS, {"name": "job", "run": {"command": ["x"]}}, actor="ann", expected=None)
    trigger(launched.town.world, job())
    launched.town.drive()
    assert (launched.last.lease, launched.last.timeout) == (None, 14 * MINUTE)


def test_at_most_once_is_not_launched_twice(launched: Launched) -> None:
    run = begun(launched, guarantee="at-most-once")
    launched.town.advance(minutes=12)
    assert (len(launched.calls), launched.town.run(run.key).state) == (1, RunState.FAILED)


@pytest.mark.parametrize("wrong", ["", "AAAA", "ä", "=" * 9])
def test_a_lease_that_is_none_is_absent(launched: Launched, wrong: str) -> None:
    begun(launched)
    with pytest.raises(NotFound):
        beat(launched.town.world, wrong, NS, epoch=1, progress=None)


class Stopping(Launched):
    """Also hears what is to be stopped."""

    def __init__(self, town: Town) -> None:
        super().__init__(town)
        self.stopped: list[int] = []

    def abandon(self, call: Call) -> None:
        self.stopped.append(call.run.epoch)


@pytest.fixture
def stopping(either: Town) -> Stopping:
    place = Stopping(either)
    pace = replace(either.world.pace, launches=True, attempt_max=14 * MINUTE)
    either.world = replace(either.world, target=place, pace=pace)
    return place


def test_what_was_launched_for_a_cancelled_run_is_stopped_at_once_although_it_never_said_a_word(
    stopping: Stopping,
) -> None:
    run = begun(stopping)
    cancel(stopping.town.world, run.key, actor="ann")
    stopping.town.advance(seconds=5)
    assert set(stopping.stopped) == {1}


def test_what_was_lost_is_stopped_before_the_next_is_launched(stopping: Stopping) -> None:
    begun(stopping)
    stopping.town.advance(minutes=12)
    assert (stopping.stopped, [call.run.epoch for call in stopping.calls]) == ([1], [1, 2])


def test_what_took_too_long_is_stopped(stopping: Stopping) -> None:
    run = begun(stopping, timeout="20m")
    for _ in range(39):
        stopping.beat(stopping.last)
        stopping.town.advance(seconds=30)
    stopping.town.advance(minutes=2)
    assert (stopping.town.run(run.key).state, stopping.stopped) == (RunState.FAILED, [1])
