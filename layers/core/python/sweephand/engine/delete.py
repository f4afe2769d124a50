"""Delete a job: nothing fires after it, and its history stays."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.ids import JobKey
from sweephand.domain.job import CatchupPolicy, Change, Head, JobEvent, JobStatus, JobVersion
from sweephand.engine.change import Switch, switch
from sweephand.errors import NotFound, StaleVersion
from sweephand.ports import World


def delete(world: World, key: JobKey, *, actor: str, expected: int | None = None) -> Head:
    """Put a tombstone version in force. Active runs finish; what has not started is skipped with the reason.

    Deleting a deleted job is refused as absent, and changes nothing.
    """

    def work_out(head: Head | None, at: datetime) -> Switch:
        if head is None or head.status is JobStatus.DELETED:
            raise NotFound(f"There is no job {key}.")
        if expected is not None and head.version != expected:
            raise StaleVersion(str(key), expected, head.version)
        number = head.version + 1
        was_paused = head.status is JobStatus.PAUSED
        after = head.changed(
            JobEvent.DELETED,
            at=at,
            nonce=world.dice.nonce(),
            version=number,
            in_force_since=at,
            paused_since=None,
            # What a pause held is given up, which planning carries out once the tombstone is in force.
            plan_at=at if was_paused else None,
            catchup=CatchupPolicy.NONE if was_paused else None,
            catchup_upto=at if was_paused else None,
        )
        tombstone = JobVersion(key, number, at, actor, None, None)
        change = Change(key, at, JobEvent.DELETED, number, actor)
        return Switch(after, change, tombstone, settles=not was_paused)

    head = switch(world, key, work_out)
    if head is None:
        raise NotFound(f"There is no job {key}.")
    return head
