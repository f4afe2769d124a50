"""When to sweep: whenever the next due entry is due. Looking costs a few reads, and no write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sweephand.engine.sweep import sweep
from sweephand.local.loop import AT_ONCE
from sweephand.ports import DueEntry, World

LOOK_EVERY: Final = timedelta(seconds=1)
"""Less than the look-ahead, so that what another process puts is seen in time."""
_SHORTLY: Final = timedelta(milliseconds=100)


class Sweeper:
    """Sweeps the shards in which something is due."""

    def __init__(self, world: World) -> None:
        self._world = world

    def step(self) -> timedelta:
        """Sweep what is due, and say when to look again."""
        now = self._world.clock.now()
        firsts = [entry for shard in range(self._world.shards.count()) for entry in self._first(shard, now)]
        due = [entry.shard for entry in firsts if entry.at <= now]
        # One at a time: this is the only sweeper here, so there is nobody to hand shards on to.
        swept = sum(sweep(self._world, [shard]).entries for shard in due)
        if swept:
            return AT_ONCE
        if due:
            return _SHORTLY  # another process has the shard
        return min((entry.at - now for entry in firsts), default=LOOK_EVERY)

    def _first(self, shard: int, now: datetime) -> Sequence[DueEntry]:
        return self._world.due.read(shard, after=None, upto=now + LOOK_EVERY, limit=1)
