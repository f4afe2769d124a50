"""Every few minutes: go on with the audit of everything."""

from __future__ import annotations

from typing import Final

from sweephand.engine.audit import Audited
from sweephand.engine.rounds import go_on
from sweephand.entrypoint import Context, Event, deployed, entrypoint, measure, time_is_up_at

world: Final = deployed()


@entrypoint
def handler(_event: Event, context: Context) -> Audited:
    audited = go_on(world, until=time_is_up_at(context))
    if audited.missing or audited.extra:
        measure("LedgerHoles", audited.missing + audited.extra)
    return audited
