"""What runs cost on AWS beyond the tasks themselves: an estimate, by list prices and by what was measured."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from sweephand.domain import prices

_RUN_WRITES: Final = 8.0
"""Of a run that makes up for a fire: its item three times, its hint, its generation, its place in the backfill, and the
view twice. Measured: 7.95 where they come one by one, 7.0 of four at once."""
_RUN_READS: Final = 24.0
_RUN_REQUESTS: Final = 4.0
_RUN_REST: Final = 4.88 / prices.MILLION
"""Lambda beyond the task itself, logs, the item and its archive: a lone run's, as `docs/costs.md` has it."""
_TASK_WRITES: Final = 9.0
_TASK_TRANSITIONS: Final = 2.4
"""Of each task of a run of several: in a chain, which is the dearest way to need each other."""
_BACKFILL_TRANSITIONS: Final = 10.0
"""Of the machine of a backfill of a quarter of an hour."""


class Cost(Struct, frozen=True):
    """What so many runs come to: DynamoDB's write units, Step Functions' transitions, and dollars in all."""

    write_units: float
    transitions: float
    dollars: float


def backfill_cost(runs: int, *, tasks: int = 1) -> Cost:
    """What a backfill of so many runs costs, each of so many tasks; nothing where there is nothing to run."""
    if not runs:
        return Cost(0, 0, 0)
    is_dag = tasks > 1
    writes = runs * (_RUN_WRITES + _TASK_WRITES * tasks * is_dag)
    transitions = _BACKFILL_TRANSITIONS + runs * _TASK_TRANSITIONS * tasks * is_dag
    deliveries = runs * (1 + tasks * is_dag)
    dollars = (
        writes * prices.DYNAMODB_WRITE_UNIT
        + runs * _RUN_READS * prices.DYNAMODB_READ_UNIT
        + deliveries * _RUN_REQUESTS * prices.SQS_FAIR_REQUEST
        + deliveries * _RUN_REST
        + transitions * prices.STEP_FUNCTIONS_TRANSITION
    )
    return Cost(writes, transitions, dollars)
