"""What follows from changes of runs: the status view, the jobs that come after or wait, datasets, the tasks that wait
for them, and the backfills that they are of."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.run import Run, RunState
from sweephand.engine.backfill import follow_backfills
from sweephand.engine.hear import hear
from sweephand.engine.needs import wake_needers
from sweephand.engine.project import project
from sweephand.engine.publish import publish_success
from sweephand.engine.release import release
from sweephand.engine.subrun import tell_parent
from sweephand.engine.wire import wired_to
from sweephand.ports import World


def follow(world: World, batch: str, runs: Sequence[Run]) -> int:
    """Deal with a batch of changed runs; how many new runs came of it. A replayed batch changes nothing.

    Of tasks, only the end matters: whoever advances their run hears of it here, should nobody have said so.
    """
    hear(world, [run for run in runs if run.key.task and run.is_terminal])
    project(world, batch, runs)
    whole = [run for run in runs if not run.key.task]
    for run in whole:
        tell_parent(world, run)
    follow_backfills(world, whole)
    succeeded = [run for run in whole if run.state is RunState.SUCCEEDED]
    wired = {key: wired_to(world, key) for key in {run.key.job for run in succeeded}}
    released = sum(release(world, wired[run.key.job].dependents, run) for run in succeeded)
    for run in succeeded:
        wake_needers(world, wired[run.key.job].needers, run)
    return released + sum(publish_success(world, run) for run in runs if run.state is RunState.SUCCEEDED)
