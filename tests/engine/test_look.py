"""Tasks that wait: for a moment, for another job's run, for what a target looks for. Nobody works between two looks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.look import Looking
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_run
from sweephand.errors import Unavailable
from sweephand.messages import Again
from tests.engine.world import NS, PERMANENT, TRANSIENT, Town, at, code_of, dies, job

MINUTE = timedelta(minutes=1)


@pytest.fixture
def waiting(either: Town) -> Town:
    either.world = replace(either.world, target=Looking(either.target, either.world))
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


FILE = {"sensor": {"http": {"url": "https://example.org/file"}, "every": "2m", "timeout": "20m"}}
NOT_YET = Again(timedelta(0), "the file is not there")


def test_what_is_outside_is_looked_at_by_the_target_until_it_comes(waiting: Town) -> None:
    waiting.target.answers("job", NOT_YET, TRANSIENT, Succeeded({"status": 200}))
    run = begun(waiting, FILE)
    assert (run.state, run.attempt, run.owner is None or run.lease_until is None) == (RunState.RETRYING, 0, True)
    assert run.reason == Reason(ReasonCode.WAITING, "the file is not there")
    waiting.advance(minutes=3)
    (blocker,) = why_run(waiting.world, run.key).blockers
    assert blocker.detail == "the last look failed: Hiccup: came back empty"
    waiting.advance(minutes=2)
    after = waiting.run(run.key)
    assert (after.state, after.attempt, after.output) == (RunState.SUCCEEDED, 1, {"status": 200})
    assert len(waiting.calls()) == 3


def test_a_look_without_an_answer_is_made_again(waiting: Town) -> None:
    def unheard(_call: Call) -> Outcome:
        raise Unavailable("nobody answered")

    waiting.target.answers("job", unheard)
    run = begun(waiting, FILE)
    assert (run.state, run.lost) == (RunState.RETRYING, 0)
    assert run.reason is not None
    assert "nobody answered" in run.reason.detail
    waiting.advance(minutes=3)
    assert waiting.run(run.key).state is RunState.SUCCEEDED


def test_a_look_that_cannot_be_mended_fails_at_once(waiting: Town) -> None:
    waiting.target.answers("job", PERMANENT)
    run = begun(waiting, FILE, retry={"attempts": 3})
    assert (run.state, run.attempt, run.failure) == (RunState.FAILED, 1, PERMANENT)


def test_looks_end_in_time_with_what_was_seen_last(waiting: Town) -> None:
    waiting.target.rules["job"] = lambda _call: TRANSIENT
    run = begun(waiting, FILE, retry={"attempts": 3})
    waiting.advance(minutes=19)
    assert waiting.run(run.key).state is RunState.RETRYING
    waiting.advance(minutes=2)
    after = waiting.run(run.key)
    assert (after.state, code_of(after), after.attempt) == (RunState.FAILED, ReasonCode.TIMEOUT, 1)
    assert after.failure is not None
    assert "within 20m: the last look failed: Hiccup" in after.failure.message


def test_no_look_is_made_of_what_was_cancelled(waiting: Town) -> None:
    waiting.target.rules["job"] = lambda _call: NOT_YET
    run = begun(waiting, FILE)
    cancel(waiting.world, run.key, actor="ann")
    waiting.advance(hours=1)
    assert waiting.run(run.key).state is RunState.CANCELLED
    assert len(waiting.calls()) == 1


def test_a_look_is_short_however_long_the_task_may_take(waiting: Town) -> None:
    given: list[timedelta] = []

    def note(call: Call) -> Outcome:
        given.append(call.timeout)
        return Succeeded()

    waiting.target.answers("job", note)
    begun(waiting, FILE, timeout="6h")
    assert given == [timedelta(seconds=30)]


def test_a_worker_that_is_lost_in_a_look_is_soon_replaced(waiting: Town) -> None:
    waiting.target.answers("job", dies)
    run = begun(waiting, FILE, timeout="6h")
    assert run.state is RunState.RUNNING
    waiting.advance(minutes=4)
    after = waiting.run(run.key)
    assert (after.state, after.lost) == (RunState.SUCCEEDED, 1)
