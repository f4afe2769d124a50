"""Stop a job's schedule: fires from now on wait for a resume's decision."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.ids import JobKey
from sweephand.domain.job import A_MOMENT, Change, Head, JobEvent, JobStatus
from sweephand.engine.change import Switch, switch
from sweephand.engine.lookup import present_head
from sweephand.errors import NotFound
from sweephand.ports import World


def pause(world: World, key: JobKey, *, actor: str, note: str = "") -> Head:
    """Pause the job. Nothing is decided about fires to come: runs planned for them wait, and resume decides.

    Pausing a paused job changes nothing.
    """

    def work_out(head: Head | None, at: datetime) -> Switch | None:
        if head is None or head.status is JobStatus.DELETED:
            raise NotFound(f"There is no job {key}.")
        if head.status is JobStatus.PAUSED:
            return None
        after = head.changed(
            JobEvent.PAUSED,
            at=at,
            nonce=world.dice.nonce(),
            paused_since=at,
            planned_upto=at - A_MOMENT,
            plan_at=None,
            catchup=None,
            catchup_upto=None,
        )
        return Switch(after, Change(key, at, JobEvent.PAUSED, head.version, actor, note=note))

    return switch(world, key, work_out) or present_head(world, key)
