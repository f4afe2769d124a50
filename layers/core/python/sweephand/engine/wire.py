"""Note down which jobs come after which, which publish, subscribe and listen for what, so that nobody has to search.

The notes only grow, and say too much rather than too little: whoever follows one looks at the job's present version.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import Job
from sweephand.engine.edit import Document, edit
from sweephand.engine.lookup import present_job
from sweephand.errors import InvalidInput
from sweephand.ports import World

DATASET: Final = "dataset"
DEPENDENTS_MAX: Final = 1_000
"""Jobs that may come after one job, publish or subscribe to one dataset, or listen to one source."""
_PUBLISHERS: Final = "publishers"
_SUBSCRIBERS: Final = "subscribers"
_DEPENDENTS: Final = "dependents"
_NEEDERS: Final = "needers"
_JOBS: Final = "jobs"
_CHAIN_MAX: Final = 1_000


def wire(world: World, key: JobKey, job: Job) -> None:
    """Note down what makes this job run; before its version is in force, so that nothing is missed. Safe to repeat."""
    cycle = cycle_of(world, key, job)
    if cycle is not None:
        raise InvalidInput(f"These jobs come after each other: {cycle}.", f"schedule.{_path_of(job)}")
    for upstream in job.after:
        _note(world, key, _DEPENDENTS, upstream, "schedule.after")
    for upstream in job.needs.jobs if job.needs else ():
        _note(world, key, _DEPENDENTS, upstream, "schedule.needs", _NEEDERS)
    for dataset in published_by(job):
        _note(world, key, DATASET, dataset, "publishes", _PUBLISHERS)
    for dataset in job.datasets:
        _note(world, key, DATASET, dataset, "schedule.datasets", _SUBSCRIBERS)
    for source in {rule.source for rule in job.events}:
        _note(world, key, "listeners", _source_name(source), "schedule.events")


class Wired(Struct, frozen=True):
    """Who has to do with a job's successes, by their names."""

    dependents: tuple[str, ...] = ()
    """Those that may come after it."""
    needers: tuple[str, ...] = ()
    """Those whose fires may wait for it."""


def wired_to(world: World, key: JobKey) -> Wired:
    """Who may have to do with this job's successes, in one read."""
    stored = world.shared.get(key.namespace, _DEPENDENTS, key.name)
    return Wired(tuple(stored[1]["jobs"]), tuple(stored[1].get(_NEEDERS, ()))) if stored else Wired()


def dependents_of(world: World, key: JobKey) -> list[str]:
    """Names of jobs that may come after this one."""
    return list(wired_to(world, key).dependents)


def listeners_of(world: World, namespace: Namespace, source: str) -> list[str]:
    """Names of jobs that may listen to this source."""
    return _noted(world, namespace, "listeners", _source_name(source))


def published_by(job: Job) -> list[str]:
    """Every dataset that a run of this job, or one of its tasks, updates."""
    return sorted({*job.publishes, *(name for task in job.tasks for name in task.publishes)})


def publishers_in(document: Document | None) -> list[str]:
    """Names of jobs that may publish the dataset of this document."""
    return list((document or {}).get(_PUBLISHERS, ()))


def subscribers_in(document: Document | None) -> list[str]:
    """Names of jobs that may subscribe to the dataset of this document."""
    return list((document or {}).get(_SUBSCRIBERS, ()))


def _noted(world: World, namespace: Namespace, kind: str, name: str) -> list[str]:
    stored = world.shared.get(namespace, kind, name)
    return list(stored[1][_JOBS]) if stored else []


def _note(world: World, key: JobKey, kind: str, name: str, path: str, part: str = _JOBS) -> None:
    def noted(document: Document | None) -> Document | None:
        jobs = list((document or {}).get(part, ()))
        if key.name in jobs:
            return None
        if len(jobs) >= DEPENDENTS_MAX:
            jobs = [job for job in jobs if present_job(world, JobKey(key.namespace, JobName(job)))]
        if len(jobs) >= DEPENDENTS_MAX:
            raise InvalidInput(f"{DEPENDENTS_MAX} jobs wait for the same thing already: that is the most.", path)
        return {_JOBS: [], **(document or {}), part: sorted([*jobs, str(key.name)])}

    edit(world, key.namespace, kind, name, noted)


def _source_name(source: str) -> str:
    """A source is any text; a document's name is not."""
    return blake2b(source.encode("utf-8", "replace"), digest_size=16).hexdigest()


def cycle_of(world: World, key: JobKey, job: Job) -> str | None:
    """The way on which a job would come after itself, drawn; it would run for ever."""
    came_by: dict[str, str] = {}
    waiting = [(str(key.name), job)]
    while waiting:
        name, of_name = waiting.pop()
        for upstream in _upstreams(world, key, job, of_name):
            if upstream == key.name:
                return _drawn({**came_by, upstream: name}, upstream)
            if upstream in came_by:
                continue
            came_by[upstream] = name
            further = present_job(world, JobKey(key.namespace, JobName(upstream)))
            if further is not None:
                waiting.append((upstream, further))
        if len(came_by) > _CHAIN_MAX:
            raise InvalidInput(f"More than {_CHAIN_MAX} jobs come before it: that is the most.", "schedule.after")
    return None


def _upstreams(world: World, key: JobKey, new: Job, job: Job) -> list[str]:
    """The jobs that a job comes after, or that publish what it subscribes to; `new` is what `key` is about to be."""
    found = [*job.after, *(job.needs.jobs if job.needs else ())]
    for dataset in job.datasets:
        stored = world.shared.get(key.namespace, DATASET, dataset)
        for name in dict.fromkeys([*publishers_in(stored[1] if stored else None), str(key.name)]):
            other = new if name == key.name else present_job(world, JobKey(key.namespace, JobName(name)))
            if other is not None and dataset in published_by(other):
                found.append(name)
    return found


def _path_of(job: Job) -> str:
    """Where a job says what it comes after."""
    return "after" if job.after else "datasets" if job.datasets else "needs"


def _drawn(came_by: dict[str, str], name: str) -> str:
    path, at = [name], came_by[name]
    while at != name:
        path.append(at)
        at = came_by[at]
    return " → ".join([*path, name])
