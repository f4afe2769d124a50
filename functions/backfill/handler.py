"""Go on with a backfill: it was just asked for or resumed, or nobody has looked at it for minutes."""

from __future__ import annotations

from typing import Final

from sweephand.domain.backfill import BackfillKey
from sweephand.engine.backfill import Looked, look
from sweephand.entrypoint import Context, Event, deployed, entrypoint

world: Final = deployed()


@entrypoint
def handler(event: Event, _context: Context) -> Looked:
    key = BackfillKey.of(event["backfill"])
    return look(world, key, generation=event["generation"], looks=event["came"]["looks"])
