"""Turning fires into runs: what sweep, put and resume share. The order of the writes is the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.ids import JobKey, RunId, RunKey, run_id_of_fire, spread
from sweephand.domain.job import A_MOMENT, Head, Job, JobStatus
from sweephand.domain.limits import MESSAGE_DELAY_MAX, SIDES_BLUR
from sweephand.domain.plan import Plan, Resumption, next_plan_at, plan
from sweephand.domain.reasons import Reason
from sweephand.domain.run import UNSTARTED, Run
from sweephand.domain.schedule import JITTER_MAX
from sweephand.domain.timeline import Segment
from sweephand.engine.insist import insist, move
from sweephand.engine.lookup import current_segment, lane_of, timeline_segments, version_of
from sweephand.messages import AttemptRun
from sweephand.ports import DueEntry, DueKind, Letter, World

A_SECOND: Final = timedelta(seconds=1)
DECIDED_IN: Final = timedelta(seconds=2)
"""What a resume sends comes a little later, when its cursor has moved: until then the guard would return it."""


class Planned(Struct, frozen=True):
    """What a planning pass did."""

    jobs: int = 0
    created: int = 0
    dropped: int = 0
    lost_races: int = 0


class _Draft(Struct, frozen=True):
    """A job's plan before it is carried out."""

    head: Head
    job: Job
    plan: Plan


def plan_jobs(world: World, heads: Sequence[Head], *, now: datetime) -> Planned:
    """Plan each job up to the look-ahead and move its cursor.

    Runs first, then messages, then the hint for the next pass, then the cursor: whatever stops half way is found
    again under the old cursor, where repeating it creates nothing twice.
    """
    horizon = now + world.pace.lookahead
    drafts = [draft for head in heads if (draft := _draft(world, head, now, horizon)) is not None]
    created = _carry_out(world, drafts, now)
    moves = [(draft.head, _moved(world, draft, now, horizon)) for draft in drafts]
    world.due.arm(due_entries(world, [after for _, after in moves], now))
    won = insist(lambda: world.jobs.advance(moves))
    dropped = sum(stretch.count for draft in drafts for stretch in draft.plan.dropped)
    return Planned(len(drafts), created, dropped, won.count(False))


def settle(world: World, head: Head, *, at: datetime, now: datetime) -> None:
    """Account for every fire before `at` under what was in force, since a change is about to end it.

    Moves no cursor: the change itself does, so a stop in between repeats this and creates nothing twice.
    """
    horizon = at - A_MOMENT
    while (draft := _draft(world, head, at, horizon)) is not None and head.planned_upto < horizon:
        _carry_out(world, [draft], now)
        head = replace(head, planned_upto=draft.plan.planned_upto)


def due_entries(world: World, heads: Sequence[Head], now: datetime) -> list[DueEntry]:
    """Hints to plan jobs, never so near that a sweeper whose clock is ahead has passed them."""
    shards, soonest = world.shards.count(), now + world.pace.margin
    return [
        DueEntry(max(head.plan_at, soonest), DueKind.JOB, str(head.key), spread(str(head.key), shards))
        for head in heads
        if head.plan_at is not None
    ]


def run_entry(world: World, key: RunKey, *, at: datetime, now: datetime) -> DueEntry:
    """A hint to look at a run, in its job's shard."""
    shard = spread(str(key.job), world.shards.count())
    return DueEntry(max(at, now + world.pace.margin), DueKind.RUN, str(key), shard)


def carrying_entry(world: World, key: RunKey, *, now: datetime) -> DueEntry:
    """The next hour's hint to look at a run that is too old for the auditor's window; the same for whoever asks."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    return run_entry(world, key, at=hour + timedelta(hours=1), now=hour)


def letter_for(run: Run, job: Job | None, *, now: datetime) -> Letter:
    """The message that makes a worker look at the run when it is due: at its wait's end, or at its instant."""
    return timer_for(run, job, run.wake_at, now=now)


def timer_for(run: Run, job: Job | None, timer: datetime | None, *, now: datetime) -> Letter:
    """The message for a wait's end, or as near to it as the queue's delay allows."""
    delay = min(max((timer or run.start_at) - now, timedelta(0)), MESSAGE_DELAY_MAX)
    return Letter(AttemptRun(run.key, timer), delay, lane_of(run, job), run.key.job.namespace)


def preview(world: World, head: Head, *, now: datetime) -> Plan | None:
    """What a planning pass would do to this head, without doing it."""
    draft = _draft(world, head, now, now + world.pace.lookahead)
    return draft.plan if draft else None


def _draft(world: World, head: Head, now: datetime, horizon: datetime) -> _Draft | None:
    # A deleted job has only its last pause left to account for, under the version before its tombstone.
    was = head.version - 1 if head.status is JobStatus.DELETED else head.version
    job = version_of(world, head.key, was).job
    if job is None:
        return None
    stretches = _stretches(world, head, job)
    resumption = None
    if head.catchup is not None and head.catchup_upto is not None:
        resumption = Resumption(head.catchup, head.catchup_upto)
    made = plan(stretches, head.planned_upto, now=now, horizon=horizon, resumption=resumption)
    return _Draft(head, job, made)


def _stretches(world: World, head: Head, job: Job) -> list[Segment]:
    """Usually the version in force; after edits during a pause, every version since."""
    if head.planned_upto < head.in_force_since - A_MOMENT:
        return timeline_segments(world, head.key, head.planned_upto)
    current = current_segment(head, job)
    return [current] if current else []


def _carry_out(world: World, drafts: Sequence[_Draft], now: datetime) -> int:
    """Put the runs, record the dropped stretches, end held runs that were not chosen, send the messages."""
    runs = [_new_run(world, draft, fire_at, now) for draft in drafts for fire_at in draft.plan.fires]
    jobs = {draft.head.key: draft.job for draft in drafts}
    created = insist(lambda: world.runs.create(runs))
    for draft in drafts:
        for stretch in draft.plan.dropped:
            world.runs.drop(draft.head.key, stretch)
        if draft.plan.dropped:
            _end_given_up(world, draft, now)
    unsent = [run for draft in drafts for run in _held(world, draft)]
    # Whoever put the run may have died before sending: a run that is there already is sent again.
    unsent += [run for run, is_new in zip(runs, created, strict=True) if is_new or _is_unstarted(world, run.key)]
    sent_at = world.clock.now()  # a delay begins when it is sent, and putting many runs takes a while
    deciding = {draft.head.key for draft in drafts if draft.head.catchup_upto is not None}
    letters = [(run.key.job in deciding, letter_for(run, jobs[run.key.job], now=sent_at)) for run in unsent]
    world.queue.send([replace(one, delay=max(one.delay, DECIDED_IN)) if waits else one for waits, one in letters])
    return created.count(True)


def _new_run(world: World, draft: _Draft, fire_at: datetime, now: datetime) -> Run:
    key = RunKey(draft.head.key, run_id_of_fire(fire_at))
    delay = draft.job.schedule.delay_of(str(draft.head.key), fire_at) if draft.job.schedule else timedelta(0)
    return Run(key, fire_at, fire_at + delay, created_at=now, changed_at=now, nonce=world.dice.nonce())


def _is_unstarted(world: World, key: RunKey) -> bool:
    run = world.runs.get(key)
    return run is not None and run.state in UNSTARTED


def _end_given_up(world: World, draft: _Draft, now: datetime) -> None:
    """Runs that were put for fires which are now given up end here, with the reason: nobody would send them again."""
    chosen = set(draft.plan.fires)
    for stretch in draft.plan.dropped:
        since, until = run_id_of_fire(stretch.first), run_id_of_fire(stretch.last + A_SECOND)
        for run in _pages_of_runs(world, draft.head.key, since, until):
            if run.is_scheduled and run.fire_at not in chosen:
                _skip_unstarted(world, run, stretch.reason, now)


def _held(world: World, draft: _Draft) -> list[Run]:
    """Runs that a pause parked without a timer and that are still open: whoever ends the pause sends them all.

    Among them are fires from before the pause whose jitter reached into it, and fires that an edit during the pause
    made moot: the guard decides about each.
    """
    head = draft.head
    if head.catchup_upto is None:
        return []
    stretches = timeline_segments(world, head.key, head.planned_upto - JITTER_MAX)
    jitter = max((one.schedule.jitter for one in stretches if one.schedule), default=timedelta(0))
    since = run_id_of_fire(head.planned_upto - jitter)
    upto = min(draft.plan.planned_upto, head.catchup_upto)
    until = run_id_of_fire(upto + SIDES_BLUR)  # a worker whose clock is ahead may have parked what is still to come
    return [run for run in _pages_of_runs(world, head.key, since, until) if run.state in UNSTARTED]


def _pages_of_runs(world: World, job: JobKey, since: str, until: str) -> Sequence[Run]:
    found: list[Run] = []
    while page := world.runs.of_job(job, since=RunId(since), until=RunId(until), newest_first=False, limit=500):
        found += page
        since = page[-1].key.run_id + "!"  # the least id after it: '!' sorts before every character of an id
    return found


def _skip_unstarted(world: World, run: Run, reason: Reason, now: datetime) -> None:
    current: Run | None = run
    while current is not None and current.state in UNSTARTED:
        skipped = current.skipped(reason, now=now, nonce=world.dice.nonce())
        if move(world, current, skipped):
            return
        current = world.runs.get(run.key)


def _moved(world: World, draft: _Draft, now: datetime, horizon: datetime) -> Head:
    pace, made = world.pace, draft.plan
    plan_at: datetime | None = now
    if made.planned_upto >= horizon:
        plan_at = next_plan_at(
            made.next_fire,
            job=draft.head.key,
            now=now,
            lookahead=pace.lookahead,
            step=pace.step,
            spread_over=pace.spread,
        )
    return draft.head.advanced(planned_upto=made.planned_upto, plan_at=plan_at, nonce=world.dice.nonce())
