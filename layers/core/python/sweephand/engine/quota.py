"""What one namespace may have of everything, so that it leaves room for the others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import Job
from sweephand.engine.edit import Document, edit
from sweephand.engine.grant import namespace_document
from sweephand.engine.issue import OWN
from sweephand.engine.lookup import present_job
from sweephand.errors import InvalidInput, TooMany
from sweephand.ports import World

_AN_HOUR: Final = timedelta(hours=1)
_OFTEN: Final = 60
"""A job that fires more often than this in an hour is a frequent one."""
_FREQUENT: Final = "frequent"


class Quota(Struct, frozen=True):
    """A namespace's limits."""

    jobs: int = 100_000
    frequent_jobs: int = 500
    """Jobs that fire more often than once a minute."""
    requests_per_second: int = 1_000
    """Of one server or function: each counts for itself."""
    backfills: int = 20
    """Backfills that are under way at once."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Quota:
        """The limits that a namespace's document sets; the rest are the defaults."""
        limits, default = document.get("limits", {}), cls()
        return cls(
            limits.get("jobs", default.jobs),
            limits.get("frequentJobs", default.frequent_jobs),
            limits.get("requestsPerSecond", default.requests_per_second),
            limits.get("backfills", default.backfills),
        )


def quota_of(world: World, namespace: Namespace) -> Quota:
    """The namespace's limits."""
    stored = namespace_document(world, namespace)
    return Quota.of(stored[1]) if stored else Quota()


def weight_of(world: World, namespace: Namespace) -> int:
    """How much of the workers the namespace gets beside others: twice the weight is twice the share."""
    stored = namespace_document(world, namespace)
    return int(stored[1].get("weight", 1)) if stored else 1


def check_quota(world: World, key: JobKey, job: Job, *, is_new: bool) -> None:
    """Refuse a job for which its namespace has no room. Two at once may both find room for the last one."""
    often = _is_frequent(world, job)
    if not is_new and not often:
        return
    quota = quota_of(world, key.namespace)
    if is_new and world.jobs.count(key.namespace) >= quota.jobs:
        raise TooMany(f"Namespace {key.namespace} has {quota.jobs} jobs: that is its limit.", 60)
    if often:
        _count_frequent(world, key, quota)


def _is_frequent(world: World, job: Job) -> bool:
    now = world.clock.now()
    return job.schedule is not None and job.schedule.count(now, now + _AN_HOUR) > _OFTEN


def _count_frequent(world: World, key: JobKey, quota: Quota) -> None:
    """Note the job down among the frequent ones; those that are no longer such make room when it is needed."""

    def counted(document: Document | None) -> Document | None:
        names = list(document["jobs"]) if document else []
        if key.name in names:
            return None
        if len(names) >= quota.frequent_jobs:
            names = [name for name in names if _still_frequent(world, JobKey(key.namespace, JobName(name)))]
        if len(names) >= quota.frequent_jobs:
            raise InvalidInput(
                f"Namespace {key.namespace} has {quota.frequent_jobs} jobs that fire more often than once a minute: "
                "that is its limit. Fire less often, or ask an admin to raise limits.frequentJobs.",
                "schedule",
            )
        return {"jobs": sorted([*names, str(key.name)])}

    edit(world, OWN, _FREQUENT, key.namespace, counted)


def _still_frequent(world: World, key: JobKey) -> bool:
    job = present_job(world, key)
    return job is not None and _is_frequent(world, job)
