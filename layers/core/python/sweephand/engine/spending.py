"""What runs have cost, and what a schedule will: told from what was done, and from what is defined. Reads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sweephand.domain.cost import Cost, Spent, month_cost, passes_of, run_cost
from sweephand.domain.dag import state_of
from sweephand.domain.images import size_of
from sweephand.domain.job import Job, Task
from sweephand.domain.run import Run, RunState
from sweephand.domain.schedule import Schedule
from sweephand.domain.task import TaskState
from sweephand.engine.overview import Overview, TaskSeen

A_YEAR: Final = timedelta(days=366)
_A_DAY: Final = timedelta(days=1)
_BEGUN: Final = frozenset({TaskState.RUNNING, TaskState.RETRYING, TaskState.SUCCEEDED, TaskState.FAILED})


def cost_of_run(seen: Overview, tasks: Sequence[TaskSeen], *, is_all: bool) -> Cost:
    """What a run has cost so far; where these are not all of its tasks, the others are taken to be like them."""
    spent = [_spent(one) for one in tasks]
    begun = sum(one.attempts > 0 for one in spent)
    scale = max(_begun(seen) / begun, 1.0) if begun and not is_all else 1.0
    schedule, fire_at = seen.job.schedule, seen.run.fire_at
    of_a_day = schedule.count(fire_at - _A_DAY, fire_at) if schedule is not None else 1
    return run_cost(spent, trigger=seen.run.trigger, passes=passes_of(float(of_a_day)), is_dag=seen.is_dag, scale=scale)


def cost_per_month(job: Job, *, now: datetime, recent: Sequence[Run] = ()) -> Cost | None:
    """What a month of a job's schedule will cost, its task taking as long as it lately did; None without a schedule."""
    if job.schedule is None:
        return None
    seconds = None if job.is_dag else _usual_seconds(recent)
    tasks = [_expected(task, seconds) for task in job.tasks]
    return month_cost(tasks, runs_per_day=runs_per_day(job.schedule, now), is_dag=job.is_dag)


def runs_per_day(schedule: Schedule, now: datetime) -> float:
    """How often it fires, over a year."""
    return schedule.count(now, now + A_YEAR) / A_YEAR.days


def _usual_seconds(recent: Sequence[Run]) -> float | None:
    known = [seconds for run in recent if run.state is RunState.SUCCEEDED and (seconds := _seconds(run)) is not None]
    return sum(known) / len(known) if known else None


def _seconds(run: Run) -> float | None:
    """How long its one attempt took."""
    if run.attempt != 1 or run.started_at is None or run.ended_at is None:
        return None
    return (run.ended_at - run.started_at).total_seconds()


def _spent(seen: TaskSeen) -> Spent:
    run = seen.run
    is_carried = run is not None and run.key.task != "" and run.rerun_of is not None
    if run is None or is_carried:
        return Spent(seen.definition.kind, attempts=0)
    return Spent(seen.definition.kind, run.attempt, _seconds(run), _size(seen.definition))


def _expected(task: Task, seconds: float | None) -> Spent:
    return Spent(task.kind, 1, seconds, _size(task))


def _size(task: Task) -> tuple[int, int]:
    return size_of(task.spec if task.kind == "container" else {})


def _begun(seen: Overview) -> int:
    """Tasks that have been begun, instances of mapped ones each by themselves."""
    vectors = [bytes(byte for place, byte in enumerate(seen.states) if place not in seen.instances)]
    vectors += seen.instances.values()
    return sum(state_of(byte) in _BEGUN for states in vectors for byte in states)
