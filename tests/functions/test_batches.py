"""Short tasks that are delivered together run in one invocation, where a deployment says so, each with its own end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.domain.ids import DEFAULT
from sweephand.domain.run import Run, RunState
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud.account import AwsCall, Perform, refusal
from sweephand.local.cloud.deployment import Deployment
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from tests.functions.test_execute import LONG, ROOT, SHORT, START
from tests.moto_world import timed_out

GOOD = ["sh", "-c", 'echo "{}" > $SWEEPHAND_OUTPUT']
BAD = ["sh", "-c", "exit 3"]


class Place:
    """A deployment that hands short tasks out together, or not."""

    def __init__(self, tmp: Path, seconds: int) -> None:
        self.clock = VirtualClock(START)
        self.orders: list[int] = []
        """How many orders each invocation of `execute` had."""
        self.fault: Exception | None = None
        self.is_lost = False
        settings = Settings(shards=1, batch_seconds=seconds)
        self.deployment = Deployment(
            ROOT, tmp=tmp, clock=self.clock, dice=SeededDice(1), settings=settings, around=self._around
        )

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        if (call.function, call.operation) != ("attempt", "Invoke"):
            return perform(call.params)
        self.orders.append(str(call.params["Payload"]).count('"timeoutSeconds"'))
        if self.fault is not None:
            raise self.fault
        answer = perform(call.params)
        if self.is_lost:
            raise timed_out().error
        return answer

    def begin(self, *commands: list[str], timeout: str = SHORT, **more: Any) -> list[Run]:
        """A run of each command, all delivered at once."""
        runs = []
        for number, command in enumerate(commands):
            document = {"name": f"job-{number}", "run": {"command": command}, "timeout": timeout, **more}
            head = put(self.deployment.world, DEFAULT, document, actor="test", expected=None)
            runs.append(trigger(self.deployment.world, head.key))
        self.deployment.step()
        return self.look(runs)

    def look(self, runs: list[Run]) -> list[Run]:
        found = [self.deployment.world.runs.get(run.key) for run in runs]
        assert None not in found
        return [run for run in found if run is not None]

    def pass_time(self, **parts: float) -> None:
        end = self.clock.now() + timedelta(**parts)
        while (following := self.deployment.step()) is not None and following <= end:
            self.clock.move(following)
        self.clock.move(end)
        self.deployment.step()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path, 1)
    with place.deployment:
        yield place


def test_each_has_an_outcome_of_its_own(place: Place) -> None:
    runs = place.begin(GOOD, BAD, ["no-such-program"], GOOD)
    assert sum(place.orders) == 4
    assert len(place.orders) < 4
    assert [run.state for run in runs] == [
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.FAILED,
        RunState.SUCCEEDED,
    ]
    assert [run.failure and run.failure.error for run in runs] == [None, "ExitCode3", "NotFound", None]


def test_without_the_setting_each_goes_by_itself(tmp_path: Path) -> None:
    place = Place(tmp_path, 0)
    with place.deployment:
        runs = place.begin(GOOD, GOOD, GOOD)
        assert place.orders == [1, 1, 1]
        assert {run.state for run in runs} == {RunState.SUCCEEDED}


def test_what_may_take_long_goes_by_itself(place: Place) -> None:
    place.begin(GOOD, GOOD, timeout=LONG)
    assert place.orders == []  # a machine waits for each


def test_where_there_is_no_room_none_of_them_has_begun(place: Place) -> None:
    place.fault = refusal("TooManyRequestsException", "Invoke", status=429)
    runs = place.begin(GOOD, GOOD)
    assert [(run.state, run.attempt) for run in runs] == [(RunState.RETRYING, 0)] * 2
    place.fault = None
    place.pass_time(minutes=2)
    assert {run.state for run in place.look(runs)} == {RunState.SUCCEEDED}


def test_a_lost_answer_loses_each_under_its_own_epoch(place: Place) -> None:
    place.is_lost = True
    runs = place.begin(GOOD, GOOD)
    assert [(run.state, run.epoch) for run in runs] == [(RunState.RUNNING, 1)] * 2
    place.is_lost = False
    place.pass_time(minutes=5)
    after = place.look(runs)
    assert [(run.state, run.epoch, run.lost) for run in after] == [(RunState.SUCCEEDED, 2, 1)] * 2
