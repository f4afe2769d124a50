"""A minute passed: have the due index swept."""

from __future__ import annotations

from msgspec import Struct

from sweephand.messages import SweepShards
from sweephand.ports import Lane, Letter, World


class Ticked(Struct, frozen=True):
    """How many shards were handed out."""

    shards: int


def tick(world: World) -> Ticked:
    """Ask for one sweep over all shards; it hands shards on to others where one alone would take long.

    A tick may come twice, late or never: a sweep works from its watermark, not from the tick's time.
    """
    count = world.shards.count()
    world.queue.send([Letter(SweepShards(tuple(range(count))), lane=Lane.SWEEP)])
    return Ticked(count)
