"""The fires to come, of all jobs together."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import JobName, Namespace
from sweephand.domain.schedule import Schedule
from sweephand.engine.lookup import job_of, read_versions
from sweephand.ports import World

PER_JOB_MAX: Final = 3
"""Fires of one job that are shown: one that fires each second must not be all there is."""
EVALUATED_MAX: Final = 1_000
"""Jobs whose schedules are evaluated for one answer, besides one for each fire that it shows."""
_BATCH: Final = 100

Place = tuple[datetime, JobName]


class Coming(Struct, frozen=True):
    """A nominal fire to come."""

    fire_at: datetime
    job: JobName
    schedule: Schedule

    @property
    def place(self) -> Place:
        return self.fire_at, self.job


class Upcoming(Struct, frozen=True):
    """Fires to come, soonest first."""

    fires: list[Coming]
    is_more: bool
    """Whether there are more of them that were found."""
    is_truncated: bool
    """Whether jobs were left out that may fire before the last of these."""


def upcoming(
    world: World, namespace: Namespace, *, since: datetime, upto: datetime, after: Place | None = None, limit: int
) -> Upcoming:
    """The nominal fires of active jobs in (since, upto], up to three of each, beginning after a place. Reads only.

    Jobs are evaluated by when their cursors say that they may fire, and no more of them than it takes. On AWS it costs
    a query and a read of up to a hundred for each hundred jobs of the namespace, of which the first thousand by name
    are looked at, and one read of a hundred for each hundred jobs that are evaluated.
    """
    evaluated_max = EVALUATED_MAX + limit
    soonest = world.jobs.soonest(namespace, now=since, upto=upto, limit=evaluated_max + 1)
    found: list[Coming] = []
    is_certain = soonest.is_whole
    for first in range(0, len(soonest.heads), _BATCH):
        batch = soonest.heads[first : first + _BATCH]
        begin = batch[0].may_fire_from(since)
        if begin is not None and sum(one.fire_at < begin for one in _behind(found, after)) > limit:
            break
        if first + len(batch) > evaluated_max:
            is_certain = False
            break
        read_versions(world, batch)
        for head in batch:
            job = job_of(world, head)
            if job is not None and job.schedule is not None:
                fires = islice(job.schedule.fires(since, upto), PER_JOB_MAX)
                found += [Coming(fire_at, head.key.name, job.schedule) for fire_at in fires]
    rest = sorted(_behind(found, after), key=lambda one: one.place)
    return Upcoming(rest[:limit], len(rest) > limit, not is_certain)


def _behind(found: list[Coming], after: Place | None) -> list[Coming]:
    return [one for one in found if after is None or one.place > after]
