"""Something happened in AWS that the deployment listens for: run the jobs of a namespace that listen for it too."""

from __future__ import annotations

from typing import Any, Final

from sweephand.aws import happening_of
from sweephand.engine.occur import occur
from sweephand.entrypoint import Context, Event, deployed, entrypoint

world: Final = deployed()


@entrypoint
def handler(event: Event, _context: Context) -> dict[str, Any]:
    namespace, happened = happening_of(event)
    runs = occur(world, namespace, happened)
    return {"event": happened.id, "runs": [str(run.key) for run in runs]}
