"""Plan what is due in some shards."""

from __future__ import annotations

from typing import Any, Final

from sweephand.engine.sweep import sweep
from sweephand.entrypoint import Context, Event, deal_with, deployed, entrypoint, measure
from sweephand.messages import SweepShards, decode_as
from sweephand.ports import Delivery

world: Final = deployed()


@entrypoint
def handler(event: Event, _context: Context) -> dict[str, Any]:
    return deal_with(world, event, swept)


def swept(delivery: Delivery) -> bool:
    """Sweep the shards that the message names; a lag is measured even where nothing was due."""
    did = sweep(world, decode_as(SweepShards, delivery.body).shards)
    measure("SweepLag", did.lag.total_seconds(), "Seconds")
    return True
