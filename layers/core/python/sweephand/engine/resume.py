"""Let a paused job's schedule go on, and decide about the fires that the pause held."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.ids import JobKey
from sweephand.domain.job import A_MOMENT, CatchupPolicy, Change, Head, JobEvent, JobStatus
from sweephand.domain.ledger import Dropped
from sweephand.engine.change import Switch, switch
from sweephand.engine.lookup import present_head
from sweephand.engine.planning import preview
from sweephand.errors import NotFound
from sweephand.ports import World


class Resumed(Struct, frozen=True):
    """What a resume runs of what the pause held, and what it gives up."""

    head: Head
    fires: tuple[datetime, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def resume(world: World, key: JobKey, *, catchup: CatchupPolicy, actor: str, dry_run: bool = False) -> Resumed:
    """Resume the job under a catch-up policy; with `dry_run`, only say what that would do.

    The decision is stored with the switch and carried out by planning, so a crash in between is repaired by the next
    sweep. Resuming an active job changes nothing.
    """
    before = present_head(world, key)
    if before.status is JobStatus.ACTIVE:
        return Resumed(before)
    now = world.clock.now()
    foreseen = preview(world, _resumed(before, catchup, before.next_change_at(now), nonce=""), now=now)
    fires = tuple(fire for fire in foreseen.fires if fire <= now) if foreseen else ()
    dropped = foreseen.dropped if foreseen else ()
    if dry_run:
        return Resumed(before, fires, dropped)

    def work_out(head: Head | None, at: datetime) -> Switch | None:
        if head is None or head.status is JobStatus.DELETED:
            raise NotFound(f"There is no job {key}.")
        if head.status is JobStatus.ACTIVE:
            return None
        change = Change(key, at, JobEvent.RESUMED, head.version, actor, catchup)
        return Switch(_resumed(head, catchup, at, world.dice.nonce()), change, settles=False)

    after = switch(world, key, work_out) or present_head(world, key)
    return Resumed(after, fires, dropped)


def _resumed(head: Head, catchup: CatchupPolicy, at: datetime, nonce: str) -> Head:
    after = head.changed(
        JobEvent.RESUMED, at=at, nonce=nonce, paused_since=None, plan_at=at, catchup=catchup, catchup_upto=at
    )
    return replace(after, planned_upto=min(after.planned_upto, at - A_MOMENT))
