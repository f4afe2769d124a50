"""Every minute: have the due index swept."""

from __future__ import annotations

from typing import Final

from sweephand.engine.tick import Ticked, tick
from sweephand.entrypoint import Context, Event, deployed, entrypoint

world: Final = deployed()


@entrypoint
def handler(_event: Event, _context: Context) -> Ticked:
    return tick(world)
