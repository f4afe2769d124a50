"""Every task of a run is over: so is the run."""

from __future__ import annotations

from typing import Any, Final

from sweephand.domain.ids import RunKey
from sweephand.engine.tend import settle
from sweephand.entrypoint import Context, Event, deployed, entrypoint

world: Final = deployed()


@entrypoint
def handler(event: Event, _context: Context) -> dict[str, Any]:
    run = world.runs.get(RunKey.of(event["run"]))
    return {"run": event["run"], "state": settle(world, run).state if run else None}
