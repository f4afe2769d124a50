"""What follows from changes of runs: the status view, and the jobs that come after."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.run import Run, RunState
from sweephand.engine.project import project
from sweephand.engine.release import release
from sweephand.engine.wire import dependents_of
from sweephand.ports import World


def follow(world: World, batch: str, runs: Sequence[Run]) -> int:
    """Deal with a batch of changed runs; how many dependents that released. A replayed batch changes nothing."""
    project(world, batch, runs)
    succeeded = [run for run in runs if run.state is RunState.SUCCEEDED]
    dependents = {key: dependents_of(world, key) for key in {run.key.job for run in succeeded}}
    return sum(release(world, dependents[run.key.job], run) for run in succeeded if dependents[run.key.job])
