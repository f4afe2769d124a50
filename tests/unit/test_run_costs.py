"""What a run costs: as the benchmark measures it, more for more, and by what became of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bench import costs, writes
from sweephand.domain.cost import FUNCTION_GB, FUNCTION_MAX_S, Spent, month_cost, passes_of, run_cost
from sweephand.domain.definition import parse
from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey, run_id_of_fire
from sweephand.domain.job import Job
from sweephand.domain.run import Run, Trigger
from sweephand.engine.spending import cost_per_month, runs_per_day
from sweephand.topology import EXECUTE, EXECUTE_MAX

NOW = datetime(2026, 11, 15, 6, tzinfo=UTC)
COMMAND = Spent("command")
kinds = st.sampled_from(["command", "python", "http", "container", "external", "wait", "lambda"])
spent = st.builds(Spent, kinds, st.integers(1, 5), st.none() | st.floats(0, 50_000))
triggers = st.sampled_from(Trigger)


def job(schedule: object, **fields: object) -> Job:
    document = {"name": "a", "command": "x", "schedule": schedule} | fields
    return parse(document, namespace="default", now=NOW)


def test_a_lone_run_costs_what_the_benchmark_measures() -> None:
    plain, special = writes.dearer(hours=1)
    alone = run_cost([COMMAND], trigger=Trigger.SCHEDULE)
    in_a_million = alone.dollars * 1e6
    assert in_a_million == pytest.approx(sum(costs.dollars(plain).values()), rel=0.15)
    assert alone.write_units == pytest.approx(plain.writes, rel=0.2)
    tried_again = run_cost([Spent("command", attempts=2)], trigger=Trigger.SCHEDULE).dollars * 1e6 - in_a_million
    measured = sum(costs.dollars(special["a retry"]).values()) - sum(costs.dollars(plain).values())
    assert tried_again == pytest.approx(measured, rel=0.15)
    long = run_cost([Spent("command", seconds=11)], trigger=Trigger.SCHEDULE)
    assert long.transitions == costs.MACHINE_TRANSITIONS == 3


def test_the_time_of_a_task_costs_what_its_function_does() -> None:
    assert EXECUTE.memory_mb / 1024 == FUNCTION_GB
    assert EXECUTE_MAX.total_seconds() == FUNCTION_MAX_S
    short, none = (run_cost([Spent("command", seconds=s)], trigger=Trigger.MANUAL).dollars for s in (10, 0))
    assert short - none == pytest.approx(costs.lambda_time(EXECUTE.memory_mb, 10))
    hour = Spent("container", seconds=3600, size=(1024, 2048))
    assert run_cost([hour], trigger=Trigger.MANUAL).dollars == pytest.approx(0.03238 + 2 * 0.00356, rel=0.001)
    brief = replace(hour, seconds=1.0)
    assert run_cost([brief], trigger=Trigger.MANUAL) == run_cost([replace(hour, seconds=59.0)], trigger=Trigger.MANUAL)


def test_what_nothing_of_ours_is_busy_with_costs_no_time() -> None:
    for kind in ("external", "wait", "sensor", "approval", "job"):
        long, short = (run_cost([Spent(kind, seconds=s)], trigger=Trigger.MANUAL) for s in (50_000.0, 0.0))
        assert long == short


@given(tasks=st.lists(spent, min_size=1, max_size=5), trigger=triggers, is_dag=st.booleans())
def test_more_tasks_attempts_and_time_never_cost_less(tasks: list[Spent], trigger: Trigger, is_dag: bool) -> None:
    cost = run_cost(tasks, trigger=trigger, is_dag=is_dag)
    assert cost.dollars > 0
    for n, one in enumerate(tasks):
        more = [*tasks[:n], replace(one, attempts=one.attempts + 1), *tasks[n + 1 :]]
        assert run_cost(more, trigger=trigger, is_dag=is_dag).dollars > cost.dollars
    assert run_cost([*tasks, COMMAND], trigger=trigger, is_dag=True).dollars > cost.dollars
    assert run_cost(tasks, trigger=trigger, is_dag=is_dag, scale=2.0).dollars > cost.dollars * 0.99
    nothing = run_cost([replace(one, attempts=0) for one in tasks], trigger=trigger, is_dag=is_dag)
    assert 0 < nothing.dollars <= cost.dollars
    assert nothing.transitions == 0


def test_who_fires_often_shares_a_pass_of_planning() -> None:
    assert passes_of(24) == passes_of(0) == 1
    assert passes_of(1440) == pytest.approx(1 / 7)
    often, seldom = (month_cost([COMMAND], runs_per_day=n) for n in (1440.0, 24.0))
    assert often.write_units / 60 < seldom.write_units
    assert often.dollars == pytest.approx(1440 * 30 * 11.1e-6, rel=0.05)


def test_a_month_is_thirty_days_of_the_schedule() -> None:
    assert runs_per_day(job("0 * * * *").schedule, NOW) == pytest.approx(24)  # type: ignore[arg-type]
    hourly, daily, once = (
        cost_per_month(job(schedule), now=NOW)
        for schedule in ("0 * * * *", "0 0 * * *", {"at": "2026-12-01T00:00:00Z"})
    )
    assert hourly is not None
    assert daily is not None
    assert once is not None
    assert hourly.dollars == pytest.approx(24 * daily.dollars)
    assert hourly.write_units == pytest.approx(24 * 30 * 6)
    assert 0 < once.dollars < daily.dollars / 300
    assert cost_per_month(job(None), now=NOW) is None
    over = job({"cron": "0 * * * *", "endAt": "2026-11-15T00:00:00Z"})
    assert cost_per_month(over, now=NOW) == month_cost([COMMAND], runs_per_day=0)


def ended(hour: int, seconds: float, attempts: int = 1) -> Run:
    at = NOW - timedelta(hours=hour)
    run = Run(RunKey(JobKey(Namespace("default"), JobName("a")), run_id_of_fire(at)), at, at, at, at)
    for _ in range(attempts):
        run = run.claimed(now=at, nonce="c", owner="o", lease=timedelta(hours=1), version=1)
    return run.succeeded(now=at + timedelta(seconds=seconds), nonce="d", output=None)


def test_a_task_is_taken_to_last_as_long_as_it_lately_did() -> None:
    hourly = job("0 * * * *")

    def month(*recent: Run) -> float:
        found = cost_per_month(hourly, now=NOW, recent=recent)
        assert found is not None
        return found.dollars

    assert month(ended(1, 2), ended(2, 4)) == month_cost([Spent("command", seconds=3)], runs_per_day=24).dollars
    assert month(ended(1, 2), ended(2, 4_000, attempts=2)) == month(ended(1, 2))
    assert month() == month(ended(1, 5, attempts=3)) < month(ended(1, 0.1))
