"""Tasks that wait: for a moment, for another job's run, for what a target looks for. Nobody works between two looks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.domain.reasons import ReasonCode
from sweephand.domain.retry import FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.look import Looking
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from tests.engine.world import NS, TRANSIENT, Town, at, code_of, job

MINUTE = timedelta(minutes=1)


@pytest.fixture
def waiting(either: Town) -> Town:
    either.world = replace(either.world, target=Looking(either.target, either.stores.runs, either.clock))
    return either


def begun(town: Town, run: dict[str, Any], *, params: dict[str, Any] | None = None, **more: Any) -> Run:
    put(town.world, NS, {"name": "job", "run": run, **more}, actor="ann", expected=None)
    key = trigger(town.world, job(), params=params).key
    town.drive()
    return town.run(key)


@pytest.mark.parametrize(
    ("wait", "minutes"),
    [
        ({"for": "20m"}, 20),
        ({"for": 90}, 1.5),
        ({"for": "${params.long}"}, 3),
        ({"until": "2027-06-15T12:17:00Z"}, 17),
        ({"until": "${params.until}"}, 40),
    ],
)
def test_it_ends_at_its_moment_and_nobody_works(waiting: Town, wait: dict[str, Any], minutes: float) -> None:
    waiting.clock.at = at("12:00")
    run = begun(waiting, {"wait": wait}, params={"long": "3m", "until": "2027-06-15T12:40:00Z"})
    assert (run.state, code_of(run)) == (RunState.RETRYING, ReasonCode.WAITING)
    waiting.advance(minutes=60)
    after = waiting.run(run.key)
    assert (after.state, after.attempt) == (RunState.SUCCEEDED, 1)
    assert after.ended_at is not None
    assert timedelta(0) <= after.ended_at - (at("12:00") + minutes * MINUTE) < timedelta(seconds=2)
    assert waiting.calls() == []


def test_a_moment_that_has_passed_is_no_wait(waiting: Town) -> None:
    assert begun(waiting, {"wait": {"until": "2020-01-01T00:00:00Z"}}).state is RunState.SUCCEEDED


@pytest.mark.parametrize("given", ["soon", [1], None])
def test_a_wrong_value_in_a_template_fails_for_good(waiting: Town, given: Any) -> None:
    run = begun(waiting, {"wait": {"for": "${params.long}"}}, params={"long": given}, retry={"attempts": 5})
    assert (run.state, run.attempt) == (RunState.FAILED, 1)
    assert run.failure is not None
    assert run.failure.kind is FailureClass.PERMANENT
    assert "wait.for" in run.failure.message


def test_a_wait_can_be_cancelled(waiting: Town) -> None:
    run = begun(waiting, {"wait": {"for": "1h"}})
    cancel(waiting.world, run.key, actor="ann")
    waiting.advance(hours=2)
    assert waiting.run(run.key).state is RunState.CANCELLED


def test_a_job_waits_for_another_jobs_success(waiting: Town) -> None:
    waiting.put("ingest", None)
    run = begun(waiting, {"sensor": {"job": "ingest", "every": "2m"}})
    assert run.reason is not None
    assert "ingest" in run.reason.detail
    waiting.target.answers("ingest", TRANSIENT)
    trigger(waiting.world, job("ingest"))  # one that fails does not count
    waiting.advance(minutes=5)
    assert waiting.run(run.key).state is RunState.RETRYING
    found = trigger(waiting.world, job("ingest"))
    waiting.advance(minutes=3)
    after = waiting.run(run.key)
    assert after.state is RunState.SUCCEEDED
    assert after.output == {"runId": found.key.run_id, "state": "succeeded", "output": None}


@pytest.mark.parametrize(("state", "comes"), [("failed", True), ("ended", True), ("succeeded", False)])
def test_it_can_wait_for_a_failure_or_any_end(waiting: Town, state: str, comes: bool) -> None:
    waiting.put("ingest", None)
    waiting.target.answers("ingest", TRANSIENT)
    trigger(waiting.world, job("ingest"))
    waiting.drive()
    run = begun(waiting, {"sensor": {"job": "ingest", "state": state}})
    assert (run.state is RunState.SUCCEEDED) == comes


@pytest.mark.parametrize(("within", "state"), [("2h", RunState.RETRYING), ("4h", RunState.SUCCEEDED)])
def test_a_run_from_before_the_window_does_not_count(waiting: Town, within: str, state: RunState) -> None:
    waiting.put("ingest", None)
    trigger(waiting.world, job("ingest"))
    waiting.advance(hours=3)
    assert begun(waiting, {"sensor": {"job": "ingest", "within": within}}).state is state


def test_looking_ends_when_the_sensor_has_looked_long_enough(waiting: Town) -> None:
    run = begun(waiting, {"sensor": {"job": "ingest", "timeout": "10m", "every": "4m"}}, retry={"attempts": 3})
    waiting.advance(minutes=9)
    assert waiting.run(run.key).state is RunState.RETRYING
    waiting.advance(minutes=2)
    after = waiting.run(run.key)
    assert (after.state, code_of(after), after.attempt) == (RunState.FAILED, ReasonCode.TIMEOUT, 1)


def test_what_is_null_has_its_default(waiting: Town) -> None:
    waiting.put("ingest", None)
    trigger(waiting.world, job("ingest"))
    waiting.drive()
    nothing = dict.fromkeys(("state", "within", "every", "timeout"))
    assert begun(waiting, {"sensor": {"job": "ingest", **nothing}}).state is RunState.SUCCEEDED
