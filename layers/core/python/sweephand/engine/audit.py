"""Re-derive what was owed, compare, and put right what got stuck. From the base tables, not from messages or hints."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import JobKey, JobName, Namespace, instant_of
from sweephand.domain.job import Head, JobStatus
from sweephand.domain.ledger import SETTLING, FireStatus, page_of
from sweephand.domain.limits import AUDITED_BACK
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.domain.zones import TZDATA_VERSION
from sweephand.engine.ledger import ledger, runs_between
from sweephand.engine.lookup import definition_of, job_of
from sweephand.engine.planning import carrying_entry, letter_for, plan_jobs
from sweephand.engine.publish import publish_success, publishing_tasks
from sweephand.engine.release import release
from sweephand.engine.wire import dependents_of
from sweephand.errors import Defect, Unavailable
from sweephand.ports import World

logger: Final = logging.getLogger("sweephand.engine")

OVERDUE: Final = timedelta(minutes=5)
"""An open run or a cursor this late has lost its message or hint."""

RECENT: Final = AUDITED_BACK + timedelta(hours=2)
"""How far back open runs are looked for; those about to leave it get a due entry of their own."""

JUDGED_BACK: Final = timedelta(days=8)
"""How long a day may wait for its last fire's fate, such as a resume's decision, before nobody judges it any more."""

FOLLOWED_BACK: Final = timedelta(hours=2)
"""How far back successes are followed again; longer than the pause between two audits."""

_PAGE: Final = 200


class Audited(Struct, frozen=True):
    """What an audit found and did."""

    jobs: int = 0
    rearmed: int = 0
    resent: int = 0
    released: int = 0
    judged: int = 0
    missing: int = 0
    extra: int = 0
    failed: int = 0
    """Jobs that could not be audited."""

    def __add__(self, other: Audited) -> Audited:
        return Audited(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


def audit(world: World, namespace: Namespace, *, recent: timedelta = RECENT) -> Audited:
    """Reconcile and judge every job of a namespace. Repeating it re-sends nothing that moved on meanwhile."""
    audited = Audited()
    after: JobName | None = None
    while heads := world.jobs.heads(namespace, after=after, limit=_PAGE):
        for head in heads:
            audited += audit_apart(world, head, recent=recent)
        after = heads[-1].key.name
    if audited.failed:
        raise Unavailable(f"{audited.failed} of {audited.jobs} jobs could not be audited.")
    return audited


def audit_apart(world: World, head: Head, *, recent: timedelta = RECENT) -> Audited:
    """Audit a job; one that cannot be keeps no other from it."""
    try:
        return audit_job(world, head, recent=recent)
    except (Unavailable, Defect) as error:
        logger.warning("Job %s could not be audited: %s", head.key, error)
        return Audited(jobs=1, failed=1)


def audit_job(world: World, head: Head, *, recent: timedelta = RECENT) -> Audited:
    """Re-arm an overdue cursor, send overdue open runs again, and judge the days that have closed.

    One that does not look back over a whole day is for what got stuck, and leaves the days to one that does.
    """
    now = world.clock.now()
    rearmed = 0
    if head.plan_at is not None and head.plan_at < now - OVERDUE:
        rearmed = plan_jobs(world, [head], now=now).jobs
    runs = list(runs_between(world, head.key, now - recent, now + timedelta(seconds=1)))
    resent = _resend(world, head, runs, now)
    released = _release(world, head, runs, now)
    judged = _judge(world, head, now) if recent >= RECENT else Audited()
    return Audited(jobs=1, rearmed=rearmed, resent=resent, released=released) + judged


def _release(world: World, head: Head, runs: Iterable[Run], now: datetime) -> int:
    """Let dependents and subscribers go on after recent successes, in case nobody followed those."""
    recent = [run for run in runs if run.changed_at > now - FOLLOWED_BACK or not run.is_terminal]
    succeeded = [run for run in recent if run.state is RunState.SUCCEEDED]
    dependents = dependents_of(world, head.key) if succeeded else []
    released = sum(release(world, dependents, run) for run in succeeded) if dependents else 0
    tasks = [run.key.of_task(task) for run in recent for task in publishing_tasks(definition_of(world, run))]
    return released + sum(publish_success(world, run) for run in (*succeeded, *world.runs.several(tasks)))


def _resend(world: World, head: Head, runs: Iterable[Run], now: datetime) -> int:
    job = job_of(world, head)
    letters, entries, reminders = [], [], 0
    for run in runs:
        if is_stuck(run, head, now):
            letters.append(letter_for(run, job, now=now))
            # That no worker came for it yet is nothing wrong: it is offered again in case its offer was lost.
            reminders += run.reason is not None and run.reason.code is ReasonCode.WORKER
        if not run.is_terminal and instant_of(run.key.run_id) < now - AUDITED_BACK:
            entries.append(carrying_entry(world, run.key, now=now))
    world.due.arm(entries)
    world.queue.send(letters)
    return len(letters) - reminders


def is_stuck(run: Run, head: Head, now: datetime) -> bool:
    """Whether an open run's timer, message or owner must have been lost."""
    if run.is_terminal:
        return False
    held = run.reason is not None and run.reason.code is ReasonCode.PAUSED and run.wake_at is None
    if held and head.status is JobStatus.PAUSED:
        return False
    moments = [run.start_at, run.wake_at, run.lease_until if run.state is RunState.RUNNING else None]
    return max(moment for moment in moments if moment is not None) < now - OVERDUE


def _judge(world: World, head: Head, now: datetime) -> Audited:
    """Judge each closed day once, soon after it closed; its page outlives the runs."""
    today = (now - SETTLING).astimezone(UTC).date()
    first = max(today - JUDGED_BACK, head.created_at.astimezone(UTC).date())
    pages = world.runs.pages(head.key, since=_bounds(first)[0], until=_bounds(today)[0])
    judged = {page.day for page in pages}
    audited = Audited()
    for number in range((today - first).days):
        day = first + timedelta(days=number)
        if day not in judged and not _was_gone(head, day):
            audited += judge_day(world, head.key, day, now)
    return audited


def judge_day(world: World, key: JobKey, day: date, now: datetime) -> Audited:
    """Write the page of one job and day, unless some fire of it still waits for its fate."""
    since, until = _bounds(day)
    rows = ledger(world, key, since=since, until=until)
    page = page_of(key, day, rows, judged_at=now, tzdata=TZDATA_VERSION)
    found = Audited(missing=len(page.missing), extra=len(page.extra))
    if page.counts.get(FireStatus.PENDING, 0):
        return found
    world.runs.write_page(page)
    return found + Audited(judged=1)


def _was_gone(head: Head, day: date) -> bool:
    return head.status is JobStatus.DELETED and head.changed_at < _bounds(day)[0]


def _bounds(day: date) -> tuple[datetime, datetime]:
    since = datetime.combine(day, time(), UTC)
    return since, since + timedelta(days=1)
