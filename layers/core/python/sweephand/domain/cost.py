"""What runs cost on AWS: an estimate, by list prices and by what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain import prices
from sweephand.domain.images import CPU_DEFAULT, MEMORY_DEFAULT
from sweephand.domain.run import Trigger

# A run that shares nothing with others, of a job of one task; measured, as `docs/costs.md` has it.
_RUN_WRITES: Final = 4.0
"""Its item three times, and the view."""
_RUN_READS: Final = 6.0
_RUN_REQUESTS: Final = 4.0
_RUN_REST: Final = 4.88 / prices.MILLION
"""Lambda beyond the task itself, logs, the item and its archive."""
_PASS_WRITES: Final = 2.0
"""The cursor and its hint, for each time that the job is planned."""
_PASS_READS: Final = 18.0
_PASS_REST: Final = 1.76 / prices.MILLION
_PASS_EVERY: Final = timedelta(minutes=7)
_RETRY_WRITES: Final = 3.0
_BACKFILL_WRITES: Final = 8.0
"""Of a run that makes up for a fire: its item three times, its hint, its generation, its place in the backfill, and the
view twice. Measured: 7.95 where they come one by one, 7.0 of four at once."""
_BACKFILL_READS: Final = 24.0
_TASK_WRITES: Final = 9.0
_TASK_TRANSITIONS: Final = 2.4
"""Of each task of a run of several: in a chain, which is the dearest way to need each other."""
_BACKFILL_TRANSITIONS: Final = 10.0
"""Of the machine of a backfill of a quarter of an hour."""
_LONG_TRANSITIONS: Final = 3.0
"""Of the machine that waits for an attempt of more than ten seconds."""
_LONG_S: Final = 10.0

# The task itself.
FUNCTION_GB: Final = 0.5
"""The memory of the function that runs commands and Python; those that call others have as much, or half of it."""
FUNCTION_MAX_S: Final = 840.0
"""What takes longer is on Fargate."""
_FARGATE_MIN_S: Final = 60.0
_GB: Final = 1_024
_WAITED_FOR: Final = frozenset({"external", "wait", "sensor", "approval", "job"})
"""Kinds that nothing of ours is busy with."""
MONTH_DAYS: Final = 30


class Spent(Struct, frozen=True):
    """What a task of a run has taken."""

    kind: str
    attempts: int = 1
    seconds: float | None = None
    """Of its one attempt; of several, nobody wrote down when each began."""
    size: tuple[int, int] = (CPU_DEFAULT, MEMORY_DEFAULT)
    """CPU units and MB of memory, where it is on Fargate."""


class Cost(Struct, frozen=True):
    """What runs come to: DynamoDB's write units, Step Functions' transitions, and dollars in all."""

    write_units: float
    transitions: float
    dollars: float


def backfill_cost(runs: int, *, tasks: int = 1) -> Cost:
    """What a backfill of so many runs costs, each of so many tasks; nothing where there is nothing to run."""
    if not runs:
        return Cost(0, 0, 0)
    is_dag = tasks > 1
    return _cost(
        writes=runs * (_BACKFILL_WRITES + _TASK_WRITES * tasks * is_dag),
        reads=runs * _BACKFILL_READS,
        deliveries=runs * (1 + tasks * is_dag),
        transitions=_BACKFILL_TRANSITIONS + runs * _TASK_TRANSITIONS * tasks * is_dag,
    )


def run_cost(
    tasks: Sequence[Spent], *, trigger: Trigger, passes: float = 1.0, is_dag: bool = False, scale: float = 1.0
) -> Cost:
    """What a run has cost, its tasks included, where it shared nothing with others.

    `passes` is its share of a pass of planning, and `scale` how many tasks there are for each of these.
    """
    begun = [one for one in tasks if one.attempts]
    retries = scale * sum(one.attempts - 1 for one in begun)
    in_dag = scale * len(begun) * is_dag
    passes = passes if trigger is Trigger.SCHEDULE else 0.0
    is_backfill = trigger is Trigger.BACKFILL
    writes = (_BACKFILL_WRITES if is_backfill else _RUN_WRITES) + passes * _PASS_WRITES
    reads = (_BACKFILL_READS if is_backfill else _RUN_READS) + passes * _PASS_READS
    return _cost(
        writes=writes + retries * _RETRY_WRITES + in_dag * _TASK_WRITES,
        reads=reads,
        deliveries=1 + retries + in_dag,
        transitions=in_dag * _TASK_TRANSITIONS + scale * sum(map(_transitions, begun)),
        rest=passes * _PASS_REST + scale * sum(map(_itself, begun)),
    )


def month_cost(tasks: Sequence[Spent], *, runs_per_day: float, is_dag: bool = False) -> Cost:
    """What thirty days of a schedule cost."""
    one = run_cost(tasks, trigger=Trigger.SCHEDULE, passes=passes_of(runs_per_day), is_dag=is_dag)
    runs = runs_per_day * MONTH_DAYS
    return Cost(one.write_units * runs, one.transitions * runs, one.dollars * runs)


def passes_of(runs_per_day: float) -> float:
    """A run's share of a pass of planning, which covers some minutes of fires."""
    most = timedelta(days=1) / _PASS_EVERY
    return min(1.0, most / runs_per_day) if runs_per_day else 1.0


def _cost(*, writes: float, reads: float, deliveries: float, transitions: float, rest: float = 0.0) -> Cost:
    dollars = (
        writes * prices.DYNAMODB_WRITE_UNIT
        + reads * prices.DYNAMODB_READ_UNIT
        + deliveries * (_RUN_REQUESTS * prices.SQS_FAIR_REQUEST + _RUN_REST)
        + transitions * prices.STEP_FUNCTIONS_TRANSITION
        + rest
    )
    return Cost(writes, transitions, dollars)


def _is_on_fargate(task: Spent) -> bool:
    return task.kind == "container" or (task.seconds or 0) > FUNCTION_MAX_S


def _transitions(task: Spent) -> float:
    is_waited_for = task.kind in _WAITED_FOR or _is_on_fargate(task) or (task.seconds or 0) <= _LONG_S
    return 0.0 if is_waited_for else _LONG_TRANSITIONS


def _itself(task: Spent) -> float:
    """What the task's own time costs, as far as it is known."""
    if task.kind in _WAITED_FOR:
        return 0.0
    if _is_on_fargate(task):
        cpu, memory = task.size
        a_second = cpu / _GB * prices.FARGATE_CPU_SECOND + memory / _GB * prices.FARGATE_GB_SECOND
        return max(task.seconds or 0.0, _FARGATE_MIN_S) * a_second
    return task.attempts * prices.LAMBDA_REQUEST + (task.seconds or 0.0) * FUNCTION_GB * prices.LAMBDA_GB_SECOND
