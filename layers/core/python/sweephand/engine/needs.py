"""What a fire waits for of other jobs, and waking it when they have succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from sweephand.domain.duration import format_duration
from sweephand.domain.fates import Fate
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, run_id_of_fire
from sweephand.domain.job import Head, Job, JobStatus
from sweephand.domain.occasions import Needs, NeedsWindow, beginning_of, local_day
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState
from sweephand.engine.fates import last_that_counts
from sweephand.engine.lookup import job_of, lane_of, present_job
from sweephand.messages import AttemptRun
from sweephand.ports import Letter, World

_TOLD_MAX: Final = 3
_DETAIL_CHARS: Final = 200
_PAGE: Final = 100
_LOOKED_AT_MAX: Final = 1_000
"""Runs of one day that are looked at for a success, the newest first."""
_WOKEN_MAX: Final = 50
"""Fires that one success wakes; more have their own timers."""
_A_DAY: Final = timedelta(days=1)
_A_SECOND: Final = timedelta(seconds=1)

_COME: Final = frozenset({Fate.SUCCEEDED, Fate.EXPIRED})
_WORDS: Final = {
    Fate.MISSING: "has no run yet",
    Fate.FAILED: "failed",
    Fate.CANCELLED: "was cancelled",
    Fate.ACTIVE: "has not ended yet",
    Fate.HELD: "is held by a pause",
}


def unmet(world: World, run: Run, job: Job | None) -> Reason | None:
    """What a fire still waits for, with the evidence; None where nothing, or where nobody said that it waits.

    What is looked at only grows: what has succeeded once has for good. So an answer that is late is never wrong, and
    one that says that nothing is left to wait for is right whenever it was found. Reads only.
    """
    if job is None or job.needs is None:
        return None
    found = [
        words
        for name in job.needs.jobs
        if (words := _missing(world, job.needs, JobKey(run.key.job.namespace, JobName(name)), run.fire_at)) is not None
    ]
    if not found:
        return None
    more = f"; and {len(found) - _TOLD_MAX} more" if len(found) > _TOLD_MAX else ""
    return Reason(ReasonCode.NEEDS, ("; ".join(found[:_TOLD_MAX]) + more)[:_DETAIL_CHARS])


def _missing(world: World, needs: Needs, key: JobKey, fire_at: datetime) -> str | None:
    """What is missing of one job, in words."""
    head = world.jobs.head(key)
    if head is None or head.status is JobStatus.DELETED:
        return f"there is no job {key.name}"
    if needs.window is NeedsWindow.SAME_DAY:
        return _missing_of_the_day(world, key, fire_at, needs.timezone)
    return _missing_before(world, head, fire_at)


def _missing_before(world: World, head: Head, fire_at: datetime) -> str | None:
    """Of its last fire up to this one's time: by its schedule, since a run of it may be late to come."""
    name = head.key.name
    last = last_that_counts(world, head, fire_at)
    if last is not None:
        return None if last.fate in _COME else f"{name} of {_text(last.fire_at)} {_WORDS[last.fate]}"
    job = job_of(world, head)
    if job is not None and job.schedule is None:
        return f"{name} has no schedule of its own: only window sameDay can wait for it"
    return f"{name} had no fire up to {_text(fire_at)}"


def _missing_of_the_day(world: World, key: JobKey, fire_at: datetime, timezone: str) -> str | None:
    day = local_day(fire_at, timezone)
    since, until = (run_id_of_fire(beginning_of(one, timezone)) for one in (day, day + _A_DAY))
    looked_at, newest = 0, ""
    while looked_at < _LOOKED_AT_MAX and (page := _newest_of(world, key, since, until)):
        if any(run.state is RunState.SUCCEEDED for run in page):
            return None
        newest = newest or str(page[0].state)
        looked_at, until = looked_at + len(page), page[-1].key.run_id
    return f"{key.name} has not succeeded on {day}" + (f", its last run {_is_or(newest)}" if newest else "")


def _newest_of(world: World, key: JobKey, since: RunId, until: RunId) -> list[Run]:
    return world.runs.of_job(key, since=since, until=until, limit=_PAGE)


def _is_or(state: str) -> str:
    """A state as the end of a sentence."""
    return state if state in (RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED) else f"is {state}"


def foreseen(world: World, namespace: Namespace, needs: Needs) -> list[str]:
    """What waiting will mean, and what of it would be in vain, in sentences. Reads only."""
    daily = f"a run of the same day in {needs.timezone}"
    which = "the run of its last fire up to then" if needs.window is NeedsWindow.LATEST_BEFORE else daily
    names, within = ", ".join(needs.jobs), format_duration(needs.timeout)
    absent = [name for name in needs.jobs if present_job(world, JobKey(namespace, JobName(name))) is None]
    return [
        f"Each fire waits for a success of {names}, {which}, for {within} at the most; then it is skipped.",
        *(f"There is no job {name}: fires wait for it in vain." for name in absent),
    ]


def wake_needers(world: World, names: Iterable[str], upstream: Run) -> int:
    """Have those fires of these jobs looked at that wait, now that this run succeeded; how many those were.

    It may be told twice, or never: each has a timer of its own, which stays.
    """
    return sum(_wake(world, JobKey(upstream.key.job.namespace, JobName(name)), upstream) for name in names)


def _wake(world: World, key: JobKey, upstream: Run) -> int:
    job = present_job(world, key)
    if job is None or job.needs is None or upstream.key.job.name not in job.needs.jobs:
        return 0
    needs = job.needs
    is_daily = needs.window is NeedsWindow.SAME_DAY
    zone = needs.timezone
    since = beginning_of(local_day(upstream.fire_at, zone), zone) if is_daily else upstream.fire_at
    until = world.clock.now() + _A_SECOND
    ids = run_id_of_fire(since), run_id_of_fire(until.replace(microsecond=0))
    runs = world.runs.of_job(key, since=ids[0], until=ids[1], newest_first=False, limit=_WOKEN_MAX)
    waiting = [run for run in runs if run.state in UNSTARTED and run.reason and run.reason.code is ReasonCode.NEEDS]
    world.queue.send([Letter(AttemptRun(run.key), lane=lane_of(run, job), group=key.namespace) for run in waiting])
    return len(waiting)


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")
