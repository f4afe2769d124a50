"""The virtual scheduler that users get: its page's examples, and every policy over virtual months."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.calls import Call
from sweephand.domain.run import RunState
from sweephand.errors import InvalidInput, NotFound
from sweephand.testing import Permanent, VirtualScheduler

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def job(name: str = "job", **fields: Any) -> dict[str, Any]:
    return {"name": name, "run": {"command": ["work"]}, **fields}


def hours(world: VirtualScheduler, name: str = "job", state: str | None = "succeeded") -> list[int]:
    return [run.fire_at.hour for run in world.runs(name, state=state)]


@pytest.fixture
def world() -> VirtualScheduler:
    return VirtualScheduler(start="2026-01-01T00:30:00Z")


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_page_runs(example: str) -> None:
    exec(compile(example, "docs/testing.md", "exec"), {})


@pytest.mark.parametrize(("cron", "gap_fires_at"), [("30 2 * * *", "01:30"), ("15 6 * * *", "04:15")])
def test_a_year_of_a_daily_job_in_berlin_has_365_fires(cron: str, gap_fires_at: str) -> None:
    with VirtualScheduler("2025-12-31T23:00:00Z") as world:
        world.apply(job(schedule={"cron": cron, "timezone": "Europe/Berlin"}))
        world.advance(days=365)
        runs = world.runs("job")
        assert len(runs) == 365
        assert {run.state for run in runs} == {RunState.SUCCEEDED}
        assert len({run.fire_at.date() for run in runs}) == 365
        spring = next(run for run in runs if run.fire_at.date() == datetime(2026, 3, 29, tzinfo=UTC).date())
        assert spring.fire_at.strftime("%H:%M") == gap_fires_at
        assert all(row.skew_ms == 0 for row in world.ledger("job"))
        world.assert_complete("job")


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[object]:
        with VirtualScheduler(seed=seed) as world:
            world.apply(job(schedule="0 * * * *", retry={"attempts": 3}))
            world.on("job", _fails(2))
            world.advance(days=1)
            return [(run.key, run.nonce, run.ended_at) for run in world.runs("job")]

    assert history(1) == history(1)
    assert history(1) != history(2)


# Pause and outage.


@pytest.mark.parametrize(("catchup", "run"), [("none", [1, 5]), ("latest", [1, 4, 5]), ("all", [1, 2, 3, 4, 5])])
def test_a_resume_decides_about_what_the_pause_held(world: VirtualScheduler, catchup: str, run: list[int]) -> None:
    world.apply(job(schedule="0 * * * *"))
    world.advance(hours=1)
    world.pause("job")
    world.advance(hours=3)
    assert [row.status for row in world.ledger("job")] == ["fired", "pending", "pending", "pending"]
    world.resume("job", catchup=catchup)
    world.advance(hours=1)
    assert hours(world) == run
    world.assert_complete("job")


def test_catching_up_all_is_bounded(world: VirtualScheduler) -> None:
    world.apply(job(schedule="* * * * *", catchup={"policy": "all", "max": 10}))
    world.outage(hours=2)
    world.advance(seconds=59)
    assert len(world.runs("job", state="succeeded")) == 1 + 10  # the first was planned before the outage
    assert len([row for row in world.ledger("job") if row.status == "skipped"]) == 110
    world.assert_complete("job")


def test_what_ran_when_the_machine_went_down_runs_again(world: VirtualScheduler) -> None:
    calls: list[tuple[int, str]] = []
    world.apply(job(schedule={"at": "2026-01-01T01:00:00Z"}, timeout="30m"))
    world.on("job", lambda call: calls.append((call.run.attempt, call.idempotency_key)), takes="20m")
    world.advance(minutes=40)
    world.outage(minutes=5)
    world.advance(hours=2)
    (run,) = world.runs("job")
    assert (run.state, run.lost) == (RunState.SUCCEEDED, 1)
    assert [attempt for attempt, _ in calls] == [1, 2]
    assert len({key for _, key in calls}) == 1


def test_at_most_once_is_not_run_again_after_a_loss(world: VirtualScheduler) -> None:
    calls: list[Call] = []
    world.apply(job(schedule={"at": "2026-01-01T01:00:00Z"}, guarantee="at-most-once", retries=3))
    world.on("job", calls.append, takes="20m")
    world.advance(minutes=40)
    world.outage(minutes=5)
    world.advance(hours=3)
    (run,) = world.runs("job")
    assert (run.state, len(calls)) == (RunState.FAILED, 1)
    assert str(run.reason).startswith("lost")


# Tasks that fail or take long.


def _fails(times: int) -> Any:
    def function(call: Call) -> str:
        if call.run.attempt <= times:
            raise OSError(f"attempt {call.run.attempt}")
        return "done"

    return function


def test_a_task_is_tried_again_with_the_listed_delays(world: VirtualScheduler) -> None:
    delays = {"attempts": 4, "backoff": "list", "delays": ["1m", "10m", "1h"]}
    world.apply(job(schedule={"at": "2026-01-01T01:00:00Z"}, retry=delays))
    world.on("job", _fails(3))
    world.advance(minutes=31)
    assert [run.state for run in world.runs("job")] == [RunState.RETRYING]
    world.advance(hours=2)
    (run,) = world.runs("job")
    assert (run.state, run.attempt, run.output) == (RunState.SUCCEEDED, 4, "done")
    assert run.ended_at == datetime(2026, 1, 1, 2, 11, tzinfo=UTC)


def test_out_of_attempts_it_fails(world: VirtualScheduler) -> None:
    world.apply(job(schedule={"at": "2026-01-01T01:00:00Z"}, retries=1))
    world.on("job", _fails(9))
    world.advance(hours=1)
    (run,) = world.runs("job")
    assert (run.state, run.attempt) == (RunState.FAILED, 2)
    assert run.failure is not None
    assert (run.failure.error, run.failure.message) == ("OSError", "attempt 2")


def test_a_permanent_failure_is_not_tried_again(world: VirtualScheduler) -> None:
    class Broken(Permanent):
        pass

    def function(_call: Call) -> None:
        raise Broken("for good")

    world.apply(job(schedule={"at": "2026-01-01T01:00:00Z"}, retries=5))
    world.on("job", function)
    world.advance(hours=1)
    (run,) = world.runs("job")
    assert (run.state, run.attempt) == (RunState.FAILED, 1)


def test_a_job_that_keeps_failing_is_paused(world: VirtualScheduler) -> None:
    world.apply(job(schedule="0 * * * *", pauseAfterFailures=2))
    world.on("job", _fails(1))
    world.advance(hours=5)
    assert len(world.runs("job", state="failed")) == 2
    assert world.job("job").status == "paused"


def test_what_takes_longer_than_its_timeout_times_out(world: VirtualScheduler) -> None:
    world.apply(job(schedule={"at": "2026-01-01T01:00:00Z"}, timeout="10m"))
    world.on("job", takes=timedelta(hours=5))
    world.advance(hours=1)
    (run,) = world.runs("job")
    assert run.ended_at == datetime(2026, 1, 1, 1, 10, tzinfo=UTC)
    assert str(run.reason).startswith("timeout")


# Overlap, concurrency, pools.


def test_overlap_queue_runs_one_after_the_other(world: VirtualScheduler) -> None:
    world.apply(job(schedule="0 1-3 * * *", overlap="queue", timeout="3h"))
    world.on("job", takes="90m")
    world.advance(hours=5, minutes=30)
    assert [run.started_at.strftime("%H:%M") for run in world.runs("job") if run.started_at] == [
        "01:00",
        "02:30",
        "04:00",
    ]
    world.assert_complete("job")


def test_overlap_replace_cancels_the_older_run(world: VirtualScheduler) -> None:
    world.apply(job(schedule="0 1-3 * * *", overlap="replace", timeout="3h"))
    world.on("job", takes="90m")
    world.advance(hours=5)
    assert hours(world, state="cancelled") == [1, 2]
    assert hours(world) == [3]
    world.assert_complete("job")


def test_overlap_skip_says_which_run_was_active(world: VirtualScheduler) -> None:
    world.apply(job(schedule="0 1-3 * * *", overlap="skip", timeout="3h"))
    world.on("job", takes="90m")
    world.advance(hours=5)
    assert hours(world) == [1, 3]
    assert [str(run.reason) for run in world.runs("job", state="skipped")] == [
        "overlap: run 20260101T010000Z was active"
    ]


def test_concurrency_bounds_the_runs_of_a_job(world: VirtualScheduler) -> None:
    world.apply(job(concurrency={"runs": 2}))
    world.on("job", takes="10m")
    for _ in range(5):
        world.trigger("job")
    world.advance()
    assert len(world.runs("job", state="running")) == 2
    world.advance(minutes=29)
    assert len(world.runs("job", state="running")) == 1
    world.advance(minutes=1)
    assert len(world.runs("job", state="succeeded")) == 5


def test_a_pool_bounds_the_runs_of_many_jobs(world: VirtualScheduler) -> None:
    world.pool("warehouse", 3)
    for number in range(6):
        world.apply(
            job(f"job{number}", schedule={"at": "2026-01-01T01:00:00Z"}, concurrency={"pool": "warehouse", "slots": 1})
        )
        world.on(f"job{number}", takes="10m")

    def running() -> int:
        return sum(len(world.runs(f"job{number}", state="running")) for number in range(6))

    world.advance(minutes=30)
    assert running() == 3
    world.advance(minutes=10)
    assert running() == 3
    world.advance(minutes=11)
    assert running() == 0
    assert all(hours(world, f"job{number}") == [1] for number in range(6))


def test_a_calendar_says_why_a_day_is_left_out(world: VirtualScheduler) -> None:
    world.calendar("holidays", {"closed": ["2026-01-02"]})
    world.apply(job(schedule={"cron": "0 6 * * *", "calendar": "holidays"}))
    world.advance(days=3)
    assert [row.status for row in world.ledger("job")] == ["fired", "skipped", "skipped"]  # the third is a Saturday
    assert {str(run.reason).partition(":")[0] for run in world.runs("job", state="skipped")} == {"calendar"}


# People.


def test_a_trigger_with_a_known_key_is_the_same_run(world: VirtualScheduler) -> None:
    world.apply(job(params={"region": "eu", "size": 1}))
    seen: list[dict[str, Any]] = []
    world.on("job", lambda call: seen.append(dict(call.params)))
    first = world.trigger("job", {"size": 2}, idempotency_key="k")
    assert world.trigger("job", {"size": 2}, idempotency_key="k").key == first.key
    world.advance()
    assert seen == [{"region": "eu", "size": 2}]
    again = world.rerun(world.run(first))
    world.advance()
    assert world.run(again).state is RunState.SUCCEEDED


def test_a_cancelled_run_stays_cancelled(world: VirtualScheduler) -> None:
    world.apply(job())
    world.on("job", lambda call: "too late", takes="10m")
    run = world.trigger("job")
    world.advance(minutes=5)
    world.cancel(run)
    world.advance(hours=2)
    assert (world.run(run).state, world.run(run).output) == (RunState.CANCELLED, None)


def test_a_deleted_job_fires_no_more_and_keeps_its_history(world: VirtualScheduler) -> None:
    world.apply(job(schedule="0 * * * *"))
    world.advance(hours=2)
    world.delete("job")
    world.advance(hours=2)
    assert hours(world) == [1, 2]
    with pytest.raises(NotFound):
        world.job("job")
    world.apply(job(schedule="0 * * * *"))
    assert world.job("job").version == 3


def test_an_edit_takes_effect_at_once(world: VirtualScheduler) -> None:
    world.apply(job(schedule="0 * * * *"))
    world.advance(hours=2)
    world.apply(job(schedule="45 * * * *"))
    world.advance(hours=1)
    assert [run.fire_at.strftime("%H:%M") for run in world.runs("job")] == ["01:00", "02:00", "02:45"]
    world.assert_complete("job")


def test_thousands_of_jobs_at_one_instant_are_all_swept() -> None:
    with VirtualScheduler() as world:
        for number in range(2_500):
            world.apply(job(f"job{number}", schedule={"at": "2026-01-01T01:00:00Z"}))
        world.advance(hours=2)
        assert all(len(world.runs(f"job{number}")) == 1 for number in range(2_500))


# Refusals.


def test_a_hole_in_the_ledger_is_told(world: VirtualScheduler) -> None:
    world.apply(job(schedule="0 * * * *"))
    world._clock.move(world.now + timedelta(hours=2))  # nothing swept: what an engine's defect would look like
    with pytest.raises(AssertionError, match=r"2 holes or extras:\n  2026-01-01T01:00:00\+00:00: missing"):
        world.assert_complete("job")


def test_what_is_wrong_is_refused(world: VirtualScheduler) -> None:
    with pytest.raises(InvalidInput, match="shedule"):
        world.apply(job(shedule="0 * * * *"))
    with pytest.raises(InvalidInput):
        world.apply({"run": {"command": ["work"]}})
    with pytest.raises(NotFound):
        world.pause("absent")
    world.apply(job())
    with pytest.raises(InvalidInput, match="none, latest, all"):
        world.resume("job", catchup="some")
    with pytest.raises(InvalidInput, match="is over"):
        world.advance_to("2025-01-01T00:00:00Z")
    with pytest.raises(InvalidInput, match="zone"):
        VirtualScheduler(datetime(2026, 1, 1))  # noqa: DTZ001
