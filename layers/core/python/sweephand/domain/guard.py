"""May this run start now? One pure answer with its reason, for the engine, the ledger and `why` alike.

Nothing is decided about a fire before its instant; what is decided here is decided for good.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain.calendars import CalendarHistory
from sweephand.domain.ids import RunKey
from sweephand.domain.job import CatchupPolicy, Head, Job, JobStatus, Overlap
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, Trigger
from sweephand.domain.schedule import Blackout, HoldPolicy, Schedule
from sweephand.domain.slots import Need, Slot
from sweephand.domain.timeline import Segment

_DETAIL_CHARS: Final = 200
_AUTOMATIC: Final = frozenset({Trigger.EVENT, Trigger.DEPENDENCY})
"""Runs that nobody asked for in person: a pause stops them too."""
_LOOKED_AT_EVERY: Final = timedelta(minutes=1)
"""Whoever follows a success wakes those that wait for it; this is for when that gets lost, or it is no success."""
_SHORTLY: Final = timedelta(seconds=30)
"""Longer than a resume takes, and so long that one that stopped half way is repaired before deliveries run out."""


class Start(Struct, frozen=True):
    """Nothing stands in the way."""


class Wait(Struct, frozen=True):
    """Not yet; `until` None means until somebody wakes it."""

    reason: Reason
    until: datetime | None


class Skip(Struct, frozen=True):
    """Never, and the ledger shows why."""

    reason: Reason


class Void(Struct, frozen=True):
    """It was planned under a schedule that no longer named it when its instant came: as if it had never been."""

    reason: Reason


class Replace(Struct, frozen=True):
    """After these older runs of the job were cancelled."""

    runs: tuple[RunKey, ...]
    reason: Reason


Decision = Start | Wait | Skip | Void


class Scene(Struct, frozen=True):
    """What the guard looks at. `at_fire` is what was in force at the nominal fire time; `dropped` is the recorded
    reason of a stretch that already accounts for this fire; `unmet` says what it still waits for of other jobs."""

    run: Run
    head: Head
    job: Job | None
    at_fire: Segment | None = None
    calendar: CalendarHistory | None = None
    dropped: Reason | None = None
    unmet: Reason | None = None


def guard(scene: Scene, *, now: datetime) -> Decision:
    """Whether time, schedule and people let the run start."""
    run, head = scene.run, scene.head
    if now < run.start_at:
        return Wait(Reason(ReasonCode.NOT_YET, f"due at {run.start_at.isoformat()}"), run.start_at)
    if not run.is_scheduled:
        if scene.job is None:
            return Skip(_deleted(head))
        if run.trigger in _AUTOMATIC and head.status is JobStatus.PAUSED:
            return Skip(Reason(ReasonCode.PAUSED, "the job was paused when this came: rerun it if it is still wanted"))
        return Start()
    if scene.at_fire is None or scene.at_fire.schedule is None or not scene.at_fire.schedule.names(run.fire_at):
        return Void(
            Reason(
                ReasonCode.NOT_IN_FORCE,
                f"the schedule in force at {run.fire_at.isoformat()} does not name it",
            )
        )
    if scene.job is None:
        return Skip(_deleted(head))
    if head.status is JobStatus.PAUSED and head.paused_since is not None and run.start_at >= head.paused_since:
        return Wait(Reason(ReasonCode.PAUSED, f"paused since {head.paused_since.isoformat()}; resume decides"), None)
    if head.catchup_upto is not None and head.planned_upto < run.fire_at < head.catchup_upto:
        return Wait(Reason(ReasonCode.RESUMING, "the resume's catch-up is being decided"), now + _SHORTLY)
    if scene.dropped is not None:
        return Skip(scene.dropped)
    return _by_the_calendar(scene, scene.job, scene.at_fire.schedule, now)


def _deleted(head: Head) -> Reason:
    return Reason(ReasonCode.DELETED, f"the job was deleted at {head.changed_at.isoformat()}")


def _by_the_calendar(scene: Scene, job: Job, schedule: Schedule, now: datetime) -> Decision:
    run = scene.run
    calendar = scene.calendar.at(run.fire_at) if scene.calendar else None
    closed = calendar.refuses(run.fire_at) if calendar else None
    if closed:
        return Skip(Reason(ReasonCode.CALENDAR, closed))
    blackout = schedule.blackout_at(run.start_at)
    if blackout is not None and (now < blackout.to or blackout.policy is HoldPolicy.SKIP):
        return _in_blackout(run, job, schedule, blackout)
    due_at = run.start_at if blackout is None else max(run.start_at, blackout.to)
    if job.start_deadline is not None and now > due_at + job.start_deadline:
        late = round((now - due_at).total_seconds())
        waited = f"; it waited: {scene.unmet.detail}" if scene.unmet else ""
        detail = f"{late} s late, more than {job.start_deadline} allows{waited}"
        return Skip(Reason(ReasonCode.START_DEADLINE, detail[:_DETAIL_CHARS]))
    if scene.unmet is not None and job.needs is not None:
        return _waiting(scene.unmet, due_at + job.needs.timeout, now)
    return Start()


def _waiting(unmet: Reason, until: datetime, now: datetime) -> Wait | Skip:
    """For what other jobs are to do first: looked at now and then, and not for ever."""
    if now < until:
        return Wait(unmet, min(now + _LOOKED_AT_EVERY, until))
    return Skip(Reason(ReasonCode.NEEDS, f"it did not come in time: {unmet.detail}"[:_DETAIL_CHARS]))


def _in_blackout(run: Run, job: Job, schedule: Schedule, blackout: Blackout) -> Wait | Skip:
    """Only what will run at the blackout's end is held: the rest would wait for nothing."""
    end = blackout.to.isoformat()
    if blackout.policy is HoldPolicy.SKIP:
        return Skip(Reason(ReasonCode.BLACKOUT, f"its time lies in a blackout until {end}"))
    later = schedule.count(run.fire_at, blackout.to - timedelta(microseconds=1))
    most = {CatchupPolicy.NONE: 0, CatchupPolicy.LATEST: 1, CatchupPolicy.ALL: job.catchup.max}[job.catchup.policy]
    if later >= most:
        return Skip(
            Reason(ReasonCode.BLACKOUT, f"held until {end}, where catch-up '{job.catchup.policy}' leaves it out")
        )
    return Wait(Reason(ReasonCode.BLACKOUT, f"held until {end}"), blackout.to)


def admit(
    run: Run, job: Job, need: Need, slot: Slot, *, now: datetime, poll: timedelta
) -> Start | Wait | Skip | Replace:
    """Whether there is room, and what a scheduled fire does where there is none."""
    if slot.holds(run.key) or slot.has_room(need.limit, need.weight):
        return Start()
    held_by = ", ".join(str(holder.run.run_id) for holder in slot.holders[:4])
    if not need.is_of_job:
        reason = Reason(ReasonCode.POOL, f"{need.name} is full: {slot.used} of {need.limit} held by {held_by}")
        return Wait(reason, now + poll)
    decides = run.is_scheduled and run.state in UNSTARTED  # a run between two attempts is active itself: it waits
    if decides and job.overlap is Overlap.SKIP:
        return Skip(Reason(ReasonCode.OVERLAP, f"run {held_by} was active"))
    if decides and job.overlap is Overlap.REPLACE:
        if any(holder.fire_at > run.fire_at for holder in slot.holders):
            return Skip(Reason(ReasonCode.OVERLAP, f"run {held_by} of a later fire was active"))
        older = tuple(holder.run for holder in slot.holders)
        return Replace(older, Reason(ReasonCode.REPLACED, f"replaced by run {run.key.run_id}"))
    code = ReasonCode.CONCURRENCY if job.overlap is Overlap.ALLOW else ReasonCode.OVERLAP
    return Wait(Reason(code, f"{slot.used} of {need.limit} runs are active: {held_by}"), now + poll)
