"""Every few minutes: see to messages that were delivered too often. And when a task of ECS stops: end its attempt."""

from __future__ import annotations

from collections import Counter
from typing import Final

from sweephand.aws import STOPPING, stopped_of
from sweephand.engine.attempt import Attempted, report
from sweephand.engine.watch import Watched, watch
from sweephand.entrypoint import Context, Event, deployed, entrypoint

world: Final = deployed()
LETTERS_MAX: Final = 500


@entrypoint
def handler(event: Event, _context: Context) -> Counter[Watched] | Attempted | None:
    if "detail-type" in event and event["detail-type"] == STOPPING:
        stopped = stopped_of(event)
        return report(world, stopped.run, epoch=stopped.epoch, outcome=stopped.outcome) if stopped else None
    return Counter(watch(world, letter) for letter in world.inbox.dead(most=LETTERS_MAX))
