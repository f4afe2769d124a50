"""Every few minutes: see to messages that were delivered too often."""

from __future__ import annotations

from collections import Counter
from typing import Final

from sweephand.engine.watch import Watched, watch
from sweephand.entrypoint import Context, Event, deployed, entrypoint

world: Final = deployed()
LETTERS_MAX: Final = 500


@entrypoint
def handler(_event: Event, _context: Context) -> Counter[Watched]:
    return Counter(watch(world, letter) for letter in world.inbox.dead(most=LETTERS_MAX))
