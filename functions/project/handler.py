"""Runs changed: bring the status view up to date, let dependents go on, archive what has ended.

Tasks of runs are neither listed nor archived: their ends are heard of, should nobody have said so.
"""

from __future__ import annotations

from typing import Any, Final

from sweephand.aws import changed_runs
from sweephand.engine.follow import follow
from sweephand.entrypoint import Context, Event, deployed, entrypoint, run_archive

world: Final = deployed()
archive: Final = run_archive()


@entrypoint
def handler(event: Event, _context: Context) -> dict[str, Any]:
    changed = changed_runs(event)
    follow(world, changed.batch, changed.runs)
    archive.keep([run for run in changed.runs if not run.key.task])
    return changed.answer
