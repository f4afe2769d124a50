"""Put an earlier version's definition in force again."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.ids import JobKey
from sweephand.domain.job import Head, JobStatus
from sweephand.engine.change import Switch, switch
from sweephand.engine.lookup import present_head
from sweephand.engine.put import held_if_circular, new_version
from sweephand.engine.quota import check_quota
from sweephand.engine.share import check_references
from sweephand.engine.wire import wire
from sweephand.errors import NotFound, StaleVersion
from sweephand.ports import World


def rollback(world: World, key: JobKey, number: int, *, actor: str, expected: int | None = None) -> Head:
    """Version `number` comes back as a new version; history only grows.

    Repeating it makes another version with the same content, unless `expected` refuses it as stale.
    """
    present_head(world, key)
    old = world.jobs.version(key, number)
    if old is None or old.job is None or old.document is None:
        raise NotFound(f"Job {key} has no version {number} to go back to.")
    job, document = old.job, old.document
    check_references(world, key.namespace, job)
    check_quota(world, key, job, is_new=False)
    wire(world, key, job)

    def work_out(head: Head | None, at: datetime) -> Switch:
        if head is None or head.status is JobStatus.DELETED:
            raise NotFound(f"There is no job {key}.")
        if expected is not None and head.version != expected:
            raise StaleVersion(str(key), expected, head.version)
        return new_version(world, key, head, job, document, at=at, actor=actor, note=f"back to version {number}")

    return held_if_circular(world, switch(world, key, work_out) or present_head(world, key), job)
