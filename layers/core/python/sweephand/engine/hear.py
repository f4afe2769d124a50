"""Tasks have ended: whoever advances their runs must know, and one who ends a task may die before saying so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sweephand.domain.dag import ENDED
from sweephand.domain.ids import RunKey
from sweephand.domain.mapping import parts_of
from sweephand.domain.progress import Progress
from sweephand.domain.run import Run
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.wake import rouse
from sweephand.ports import World


def hear(world: World, ended: Iterable[Run]) -> int:
    """Note the ends that their runs' progress does not know of, and wake who sleeps over them; how many those were.

    One read for each run, and mostly nothing else. Repeating it finds nothing more.
    """
    by_run: defaultdict[RunKey, dict[str, Run]] = defaultdict(dict)
    for run in ended:
        by_run[run.key.whole][run.key.task] = run
    return sum(_hear_of(world, key, tasks) for key, tasks in by_run.items())


def _hear_of(world: World, key: RunKey, tasks: dict[str, Run]) -> int:
    progress = world.dags.get(key)
    if progress is None:
        return 0
    unknown = [
        name for name, run in tasks.items() if name not in progress.changed and not _is_known(world, progress, run)
    ]
    if unknown:
        progress = world.dags.note(key, unknown)
    if progress is not None and (unknown or progress.changed):
        rouse(world, progress, again=True)  # also where it was noted, and whoever was to wake the sleeper died
    return len(unknown)


def _is_known(world: World, progress: Progress, run: Run) -> bool:
    version = run.version or 0
    job = version_of(world, run.key.job, version).job
    if job is None:
        return True
    task, index = parts_of(run.key.task)
    place = graph_of(world, run.key.job, version, job).named(task)
    if index is None:
        return progress.states[place] in ENDED
    instances = progress.instances.get(place, b"")
    return index < len(instances) and instances[index] in ENDED
