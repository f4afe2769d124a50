"""What put, pause, resume and delete share: settle the past, switch in one transaction, plan what is near."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import JobKey
from sweephand.domain.job import Change, Head, JobStatus, JobVersion
from sweephand.engine.insist import insist
from sweephand.engine.planning import due_entries, plan_jobs, settle
from sweephand.errors import Unavailable
from sweephand.ports import World

_TRIES: Final = 8
_STALE: Final = timedelta(seconds=10)


class Switch(Struct, frozen=True):
    """A change worked out: the head after it, its row in the timeline, and a new version if it makes one."""

    after: Head
    change: Change
    version: JobVersion | None = None
    settles: bool = True


def switch(world: World, key: JobKey, work_out: Callable[[Head | None, datetime], Switch | None]) -> Head | None:
    """Carry out a change; None where `work_out` finds nothing to do.

    Fires before the change belong to what was in force then, so they are settled first. A sweep that moves the cursor
    meanwhile makes the transaction lose, and everything is worked out again; the caller's own conditions (such as the
    expected version) are judged anew each time. Repeating it after a crash is safe: settling creates nothing twice.
    """
    for _ in range(_TRIES):
        now = world.clock.now()
        head = world.jobs.head(key)
        at = _whole_ms(now) if head is None else head.next_change_at(_whole_ms(now))
        worked_out = work_out(head, at)
        if worked_out is None:
            return None
        if _carried_out(world, head, worked_out, at, now):
            after = worked_out.after
            if after.plan_at is not None:
                plan_jobs(world, [after], now=now)
            return after
    raise Unavailable(f"Job {key} keeps changing: the change did not get through in {_TRIES} tries.")


def _carried_out(world: World, head: Head | None, worked_out: Switch, at: datetime, now: datetime) -> bool:
    if head is not None and worked_out.settles and _owes_something(head):
        settle(world, head, at=at, now=now)
    entries = due_entries(world, [worked_out.after], now)
    entry = entries[0] if entries else None
    if world.clock.now() - now > _STALE:
        return False  # the change would reach back over fires that have started meanwhile
    return insist(lambda: world.jobs.change(head, worked_out.after, worked_out.change, worked_out.version, entry))


def _owes_something(head: Head) -> bool:
    """A deleted job owes nothing but what its last pause held, until that is given up."""
    return head.status is not JobStatus.DELETED or head.catchup_upto is not None


def _whole_ms(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
