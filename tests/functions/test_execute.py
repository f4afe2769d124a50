"""Tasks in the function that holds users' code: waited for, or handed to the machine that waits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.domain.ids import DEFAULT, JobKey, JobName
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud.account import AwsCall, Perform, refusal
from sweephand.local.cloud.deployment import Deployment
from sweephand.testing.virtual import SeededDice, VirtualClock

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 16, 6, 0, 30, tzinfo=UTC)
SHORT, LONG = "30s", "10m"


class Place:
    """A deployment with its own `execute`, where calls can be refused."""

    def __init__(self, tmp: Path) -> None:
        self.clock = VirtualClock(START)
        self.calls: list[str] = []
        self.refused: dict[str, str] = {}
        """Operations that are refused, and with which code."""
        self.deployment = Deployment(ROOT, tmp=tmp, clock=self.clock, dice=SeededDice(1), around=self._around)

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        if call.operation in {"Invoke", "StartExecution"}:
            self.calls.append(call.operation)
        if call.operation in self.refused:
            raise refusal(self.refused[call.operation], call.operation)
        return perform(call.params)

    def begin(self, command: list[str], **more: Any) -> Run:
        document = {"name": "job", "run": {"command": command}, "timeout": SHORT, **more}
        put(self.deployment.world, DEFAULT, document, actor="test", expected=None)
        run = trigger(self.deployment.world, JobKey(DEFAULT, JobName("job")), params={"who": "you"})
        self.deployment.step()
        return self.look(run)

    def look(self, run: Run) -> Run:
        found = self.deployment.world.runs.get(run.key)
        assert found is not None
        return found

    def pass_time(self, **parts: float) -> None:
        end = self.clock.now() + timedelta(**parts)
        while (following := self.deployment.step()) is not None and following <= end:
            self.clock.move(following)
        self.clock.move(end)
        self.deployment.step()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with place.deployment:
        yield place


@pytest.mark.parametrize(("timeout", "way"), [(SHORT, ["Invoke"]), (LONG, ["StartExecution"])])
def test_a_command_runs_and_its_output_is_the_runs(place: Place, timeout: str, way: list[str]) -> None:
    line = 'printf "{\\"for\\": \\"%s\\"}" "$0" > "$SWEEPHAND_OUTPUT"'
    run = place.begin(["sh", "-c", line, "${params.who}"], timeout=timeout)
    assert (run.state, run.output) == (RunState.SUCCEEDED, {"for": "you"})
    assert place.calls == way


@pytest.mark.parametrize("timeout", [SHORT, LONG])
def test_a_command_that_fails_fails_its_run_with_its_own_words(place: Place, timeout: str) -> None:
    run = place.begin(["sh", "-c", "echo no such table >&2; exit 3"], timeout=timeout)
    assert run.state is RunState.FAILED
    assert run.failure is not None
    assert "3" in run.failure.message


def test_a_command_sees_no_credentials_and_no_settings_of_its_function(place: Place) -> None:
    line = 'env | grep -c -e ^AWS_ -e ^SWEEPHAND_NAME= -e ^SWEEPHAND_MACHINE > "$SWEEPHAND_OUTPUT" || true'
    assert place.begin(["sh", "-c", line]).output == 0


@pytest.mark.parametrize(
    ("timeout", "operation", "code"),
    [
        (SHORT, "Invoke", "TooManyRequestsException"),
        (LONG, "StartExecution", "ThrottlingException"),
        (LONG, "StartExecution", "ExecutionLimitExceeded"),
    ],
)
def test_without_room_it_waits_and_no_attempt_is_counted(place: Place, timeout: str, operation: str, code: str) -> None:
    place.refused[operation] = code
    run = place.begin(["true"], timeout=timeout)
    assert (run.state, run.attempt) == (RunState.RETRYING, 0)
    assert run.reason is not None
    assert run.reason.code is ReasonCode.ROOM
    place.pass_time(minutes=5)
    place.refused.clear()
    place.pass_time(minutes=2)
    after = place.look(run)
    assert (after.state, after.attempt, after.lost) == (RunState.SUCCEEDED, 1, 0)


def test_a_run_that_was_cancelled_while_there_was_no_room_tells_the_next_nothing(place: Place) -> None:
    place.refused["StartExecution"] = "ThrottlingException"
    run = place.begin(["true"], timeout=LONG)
    assert run.started_at is None
    cancel(place.deployment.world, run.key, actor="test")
    place.refused.clear()
    place.pass_time(minutes=1)
    following = trigger(place.deployment.world, JobKey(DEFAULT, JobName("job")))
    place.deployment.step()
    assert place.look(following).state is RunState.SUCCEEDED


def test_where_the_machine_could_not_be_asked_the_lease_ends_and_the_next_attempt_begins(place: Place) -> None:
    place.refused["StartExecution"] = "InternalServerError"
    run = place.begin(["true"], timeout="2m")
    assert run.state is RunState.RUNNING
    place.refused.clear()
    place.pass_time(minutes=3)
    after = place.look(run)
    assert (after.state, after.attempt, after.lost) == (RunState.SUCCEEDED, 2, 1)
