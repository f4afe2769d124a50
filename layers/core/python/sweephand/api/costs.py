"""What runs cost, as the API shows it: on AWS by list prices, on one machine nothing."""

from __future__ import annotations

from typing import Any, Final

from sweephand.domain.cost import Cost
from sweephand.ports import World

BACKFILL: Final = (
    "An estimate, by list prices of AWS in us-east-1, beyond the tasks themselves; on one machine, nothing."
)
RUN: Final = (
    "An estimate, by list prices of AWS in us-east-1, as if the run shared nothing with others; the time of tasks is in"
    " it where they were tried once."
)
HERE: Final = "Nothing: it runs on one machine, which nobody charges by the run."
MONTH: Final = (
    "An estimate for 30 days, by list prices of AWS in us-east-1, as if the runs shared nothing with others and none"
    " was tried again; the time of a single task is in it as its last runs took it. On one machine, nothing."
)


def cost_shape(world: World, cost: Cost, basis: str) -> dict[str, Any]:
    """A cost; whether this place is charged for it is said beside it."""
    return {
        "dollars": round(cost.dollars, 9),
        "writeUnits": round(cost.write_units),
        "transitions": round(cost.transitions),
        "basis": basis,
        "charged": is_charged(world),
    }


def spent_shape(world: World, cost: Cost) -> dict[str, Any]:
    """What a run has cost here."""
    return cost_shape(world, cost, RUN) if is_charged(world) else cost_shape(world, Cost(0, 0, 0), HERE)


def month_shape(world: World, cost: Cost | None) -> dict[str, Any] | None:
    """What a schedule will cost on AWS; None where there is no schedule."""
    return None if cost is None else cost_shape(world, cost, MONTH)


def is_charged(world: World) -> bool:
    """Whether somebody sends a bill: only on AWS do machines wait for what takes long."""
    return world.machines is not None
