"""Note down which jobs come after which, and which listen for what, so that nobody has to search for them.

The notes only grow, and say too much rather than too little: whoever follows one looks at the job's present version.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import Job
from sweephand.engine.edit import Document, edit
from sweephand.engine.lookup import present_job
from sweephand.errors import InvalidInput
from sweephand.ports import World

DEPENDENTS_MAX: Final = 1_000
"""Jobs that may come after one job, or listen to one source."""
_CHAIN_MAX: Final = 1_000


def wire(world: World, key: JobKey, job: Job) -> None:
    """Note down what makes this job run; before its version is in force, so that nothing is missed. Safe to repeat."""
    cycle = cycle_of(world, key, job)
    if cycle is not None:
        raise InvalidInput(f"These jobs come after each other: {cycle}.", "schedule.after")
    for upstream in job.after:
        _note(world, key, "dependents", upstream, "schedule.after")
    for source in {rule.source for rule in job.events}:
        _note(world, key, "listeners", _source_name(source), "schedule.events")


def dependents_of(world: World, key: JobKey) -> list[str]:
    """Names of jobs that may come after this one."""
    return _noted(world, key.namespace, "dependents", key.name)


def listeners_of(world: World, namespace: Namespace, source: str) -> list[str]:
    """Names of jobs that may listen to this source."""
    return _noted(world, namespace, "listeners", _source_name(source))


def _noted(world: World, namespace: Namespace, kind: str, name: str) -> list[str]:
    stored = world.shared.get(namespace, kind, name)
    return list(stored[1]["jobs"]) if stored else []


def _note(world: World, key: JobKey, kind: str, name: str, path: str) -> None:
    def noted(document: Document | None) -> Document | None:
        jobs = list(document["jobs"]) if document else []
        if key.name in jobs:
            return None
        if len(jobs) >= DEPENDENTS_MAX:
            jobs = [job for job in jobs if present_job(world, JobKey(key.namespace, JobName(job)))]
        if len(jobs) >= DEPENDENTS_MAX:
            raise InvalidInput(f"{DEPENDENTS_MAX} jobs wait for the same thing already: that is the most.", path)
        return {"jobs": sorted([*jobs, str(key.name)])}

    edit(world, key.namespace, kind, name, noted)


def _source_name(source: str) -> str:
    """A source is any text; a document's name is not."""
    return blake2b(source.encode("utf-8", "replace"), digest_size=16).hexdigest()


def cycle_of(world: World, key: JobKey, job: Job) -> str | None:
    """The way on which a job would come after itself, drawn; it would run for ever."""
    came_by: dict[str, str] = {name: str(key.name) for name in job.after}
    waiting = list(job.after)
    while waiting:
        name = waiting.pop()
        if name == key.name:
            return _drawn(came_by, name)
        upstream = present_job(world, JobKey(key.namespace, JobName(name)))
        for further in upstream.after if upstream else ():
            if further not in came_by:
                came_by[further] = name
                waiting.append(further)
        if len(came_by) > _CHAIN_MAX:
            raise InvalidInput(f"More than {_CHAIN_MAX} jobs come before it: that is the most.", "schedule.after")
    return None


def _drawn(came_by: dict[str, str], name: str) -> str:
    path, at = [name], came_by[name]
    while at != name:
        path.append(at)
        at = came_by[at]
    return " → ".join([*path, name])
