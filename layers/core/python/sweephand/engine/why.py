"""Why is it not running? The answer comes from the guards that decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.dag import ENDED, FAILED, state_of
from sweephand.domain.guard import Skip, Start, Void, Wait, admit, guard
from sweephand.domain.ids import JobKey, JobName, RunKey, run_id_of_fire
from sweephand.domain.job import Head, Job, JobEvent, JobStatus
from sweephand.domain.occasions import Quantity, Window
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState
from sweephand.domain.task import TaskState
from sweephand.engine.holding import needs_of
from sweephand.engine.lease import worker_of
from sweephand.engine.lookup import job_of, present_head
from sweephand.engine.overview import Overview, overview_of
from sweephand.engine.scene import scene_of
from sweephand.errors import NotFound
from sweephand.ports import World


class Blocker(Struct, frozen=True):
    """One thing that stands in the way, with its evidence, and what would remove it."""

    code: str
    detail: str
    remedy: str


class Explained(Struct, frozen=True):
    """What state something is in, in a sentence, and what blocks it."""

    status: str
    summary: str
    blockers: tuple[Blocker, ...] = ()
    next_fire_at: datetime | None = None


_REMEDIES: Final[Mapping[ReasonCode, str]] = MappingProxyType(
    {
        ReasonCode.NOT_YET: "Wait, or trigger the job to run it now.",
        ReasonCode.PAUSED: "Resume the job, with a catch-up policy if the fires held back should run.",
        ReasonCode.RESUMING: "Wait a moment: the resume is being carried out.",
        ReasonCode.DELETED: "Create the job again.",
        ReasonCode.NOT_IN_FORCE: "The schedule was edited; look at the job's versions.",
        ReasonCode.CALENDAR: "Change the calendar, or trigger the job by hand.",
        ReasonCode.BLACKOUT: "Wait for the blackout's end, or trigger the job by hand.",
        ReasonCode.START_DEADLINE: "Rerun it, or allow more with startDeadline.",
        ReasonCode.OVERLAP: "Wait for the active run or cancel it; overlap: allow lets runs go on side by side.",
        ReasonCode.REPLACED: "A later fire took its place; rerun it if it is still wanted.",
        ReasonCode.CONCURRENCY: "Wait for an active run or cancel one, or raise concurrency.runs.",
        ReasonCode.POOL: "Wait for a holder to end or cancel one, or enlarge the pool.",
        ReasonCode.CATCHUP: "Rerun or backfill what is missing; catchup: all makes up for every fire.",
        ReasonCode.WORKER: "Start a worker for this queue.",
        ReasonCode.WAITING: "Wait: it looks again by itself. Cancel the run, or give it a runTimeout, if it need not.",
        ReasonCode.ROOM: "Wait: it is begun again within a minute. If it happens often, raise the quota it names.",
        ReasonCode.RETRY: "Wait for the next attempt, or mend the cause of the last failure.",
        ReasonCode.RETRY_BUDGET: "Wait, or mend the cause: its namespace retries more than a fifth of what it starts.",
        ReasonCode.TIMEOUT: "Raise timeout, or make the task faster.",
        ReasonCode.LOST: "Look at the worker's machine; a rerun is safe if the task is idempotent.",
        ReasonCode.POISON: "Look at the logs for why it could not be dealt with, then rerun it.",
        ReasonCode.ERROR: "Read the error, mend its cause, and rerun it.",
        ReasonCode.CACHED: "Nothing: it succeeded with another run's output. A rerun is always run.",
        ReasonCode.PARTIAL: "Nothing, unless what failed is wanted: then mend it, and rerun with from: failed.",
        ReasonCode.APPROVAL: "Approve or reject it: `sweephand run approve JOB RUN`, or reject.",
        ReasonCode.TASK: "Nothing: its own task found that there was nothing to do.",
        ReasonCode.UPSTREAM: "Wait for what it needs; what failed is mended and rerun with from: failed, or marked.",
        ReasonCode.NEEDS: "Mend and rerun what it waits for, or mark that as done; trigger the job to run without.",
        ReasonCode.CONDITION: "Nothing, unless its `if` is wrong: then change it, and rerun from this task.",
        ReasonCode.BRANCH: "Nothing, unless the branch chose wrongly: then rerun from the branch.",
        ReasonCode.MAP: "Look at the list that it is mapped over, or raise map.max, and rerun from this task.",
        ReasonCode.STOPPED: "Mend what failed, then rerun with from: failed; onFailure: finish lets the others go on.",
        ReasonCode.MARKED: "Rerun from this task if it is to be done after all.",
        ReasonCode.CANCELLED: "Rerun it if it is still wanted.",
    }
)


_LOOKED_AT: Final = 50
_EXPLAINED_MAX: Final = 10


def why_job(world: World, key: JobKey) -> Explained:
    """Why the job does not run now. Reads only."""
    head = present_head(world, key)
    job = job_of(world, head)
    now = world.clock.now()
    next_fire_at = job.schedule.next_after(now) if job and job.schedule else None
    if head.status is JobStatus.PAUSED:
        return Explained("paused", "It is paused.", (_paused(world, head),))
    if job is None:
        raise NotFound(f"There is no job {key}.")
    waiting = _waiting_runs(world, key, now)
    blockers = tuple(blocker for run in waiting for blocker in why_run(world, run.key).blockers)
    if blockers:
        return Explained("waiting", f"Of its runs, {len(waiting)} cannot go on.", blockers, next_fire_at)
    if next_fire_at is not None:
        return Explained(
            "active", f"Nothing stands in the way; it fires next at {_text(next_fire_at)}.", (), next_fire_at
        )
    return Explained("active", _idle_summary(world, job, key), ())


def why_run(world: World, key: RunKey) -> Explained:
    """Why the run does not go on, or why it ended as it did. Reads only."""
    run = world.runs.get(key)
    if run is None or run.state is RunState.VOID:
        raise NotFound(f"There is no run {key}.")
    now = world.clock.now()
    match run.state:
        case RunState.RUNNING:
            return _advancing(world, run) or running(run, now)
        case RunState.PLANNED | RunState.QUEUED:
            return _unstarted(world, run, now)
        case _:
            return told(run)


def told(run: Run) -> Explained:
    """Of a run that ended, or waits for its next attempt: its own reason."""
    if run.state is RunState.SUCCEEDED and run.reason is None:
        return Explained(run.state, f"It succeeded at {_text(run.ended_at)}.")
    reason = run.reason or Reason(ReasonCode.ERROR)
    when = f" at {_text(run.ended_at)}" if run.ended_at else f" until {_text(run.wake_at)}"
    blockers = () if run.state is RunState.SUCCEEDED else (blocker(reason),)
    return Explained(run.state, f"It is {run.state}{when}: {reason}.", blockers)


def _advancing(world: World, run: Run) -> Explained | None:
    """How far a run of several tasks is, which failed, and what the open ones wait for; None for any other run."""
    seen = overview_of(world, run)
    if not seen.is_dag:
        return None
    counts = Counter(map(state_of, seen.states))
    over = sum(byte in ENDED for byte in seen.states)
    failed = [task.id for task, byte in zip(seen.graph.tasks, seen.states, strict=True) if byte & FAILED]
    names = ", ".join(failed[:_EXPLAINED_MAX])
    failure = [Reason(ReasonCode.UPSTREAM, f"failed: {names}")] if failed else []
    blockers = tuple(map(blocker, [*failure, *_open_reasons(seen)]))
    waiting = f", {counts[TaskState.WAITING]} wait for others" if counts[TaskState.WAITING] else ""
    return Explained(run.state, f"{over} of its {len(seen.states)} tasks are over{waiting}.", blockers)


def _open_reasons(seen: Overview) -> list[Reason]:
    """What the first tasks that were released and are not over wait for, an approval or a place in a pool."""
    names = [task.id for task, byte in zip(seen.graph.tasks, seen.states, strict=True) if byte and byte not in ENDED]
    tasks = seen.seen(names[:_EXPLAINED_MAX])
    return [
        replace(task.reason, detail=f"task {task.name}: {task.reason.detail}")
        for task in tasks
        if task.reason is not None and task.is_open
    ]


def running(run: Run, now: datetime) -> Explained:
    """Who works on the run."""
    if run.lease_until is not None and run.lease_until < now:
        silent = round((now - run.lease_until).total_seconds())
        lost = Reason(ReasonCode.LOST, f"its worker's lease ended {silent} s ago; it is about to be taken over")
        return Explained(run.state, "Its worker is silent.", (blocker(lost),))
    return Explained(
        run.state, f"Attempt {run.attempt} runs on {worker_of(run)}, leased until {_text(run.lease_until)}."
    )


def _unstarted(world: World, run: Run, now: datetime) -> Explained:
    head = world.jobs.head(run.key.job)
    if head is None:
        raise NotFound(f"There is no job {run.key.job}.")
    job = job_of(world, head)
    decision = guard(scene_of(world, run, head, job, now=now), now=now)
    if isinstance(decision, Start) and job is not None:
        found = full_slot(world, run, job, now)
        if found is None and run.reason is not None and run.reason.code is ReasonCode.WORKER:
            found = run.reason
        if found is None:
            return Explained(run.state, "Nothing stands in the way: it starts as soon as a worker is free.")
        return Explained(run.state, f"It waits: {found}.", (blocker(found),))
    match decision:
        case Wait(Reason(ReasonCode.PAUSED)):
            return Explained(run.state, "Its job is paused.", (_paused(world, head),))
        case Wait(reason) | Skip(reason) | Void(reason):
            return Explained(run.state, f"It waits: {reason}.", (blocker(reason),))
        case _:
            return Explained(run.state, "Nothing stands in the way.")


def full_slot(world: World, run: Run, job: Job, now: datetime) -> Reason | None:
    """What the run would wait for if it were to start now."""
    for need in needs_of(world, job, run):
        answer = admit(run, job, need, world.slots.get(need.name), now=now, poll=world.pace.slot_poll)
        if not isinstance(answer, Start):
            return answer.reason
    return None


def _waiting_runs(world: World, key: JobKey, now: datetime) -> list[Run]:
    """Of those whose time has come, the newest that have not started, and those between two attempts."""
    until = run_id_of_fire(now + timedelta(seconds=1))
    unstarted = [run for run in world.runs.of_job(key, until=until, limit=_LOOKED_AT) if run.state in UNSTARTED]
    retrying = [run for run in world.runs.active(key, until=until) if run.state is RunState.RETRYING]
    return unstarted[:_EXPLAINED_MAX] + retrying[:_EXPLAINED_MAX]


def _paused(world: World, head: Head) -> Blocker:
    changes = [one for one in world.jobs.timeline(head.key, since=head.paused_since) if one.event is JobEvent.PAUSED]
    who = f" by {changes[-1].actor}" if changes else ""
    note = f" ({changes[-1].note})" if changes and changes[-1].note else ""
    detail = f"paused{who} on {_text(head.paused_since)}{note}"
    return Blocker(ReasonCode.PAUSED, detail, _REMEDIES[ReasonCode.PAUSED])


def _idle_summary(world: World, job: Job, key: JobKey) -> str:
    if job.after:
        absent = [name for name in job.after if world.jobs.head(JobKey(key.namespace, JobName(name))) is None]
        missing = f" There is no job {', '.join(absent)}." if absent else ""
        return f"It runs {_after_in_words(job)}.{missing}"
    if job.datasets:
        any_of = "any of " if job.datasets_quantity is Quantity.ANY else ""
        return f"It runs when {any_of}the datasets {', '.join(job.datasets)} are updated."
    if job.events:
        return f"It runs when an event of {', '.join(sorted({rule.source for rule in job.events}))} comes."
    if job.schedule is not None:
        return "Its schedule has no fire to come."
    return "It has no schedule: it runs when somebody triggers it."


def _after_in_words(job: Job) -> str:
    rule, names = job.after_rule, ", ".join(job.after)
    every = "once a day, when" if rule.window is Window.SAME_DAY else "when"
    how = f"any of {names} succeeds" if rule.quantity is Quantity.ANY else f"{names} succeed"
    day = f" for the same day in {rule.timezone}" if rule.window is Window.SAME_DAY else ""
    return f"{every} {how}{day}"


def blocker(reason: Reason) -> Blocker:
    """What stands in the way, and what would remove it."""
    return Blocker(reason.code, reason.detail or str(reason.code), _REMEDIES.get(reason.code, "Look at the run."))


def _text(instant: datetime | None) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z") if instant else "an unknown time"
