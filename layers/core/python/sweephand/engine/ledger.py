"""What became of every fire of a job: the ledger of a stretch of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice

from sweephand.domain.ids import JobKey, RunId, RunKey, run_id_of_fire
from sweephand.domain.job import Change
from sweephand.domain.ledger import (
    Expected,
    FireStatus,
    LedgerPage,
    LedgerRow,
    collapsed_into,
    expected,
    judge,
    page_of,
    unless_expired,
)
from sweephand.domain.run import Run
from sweephand.domain.timeline import Segment, segments
from sweephand.domain.zones import TZDATA_VERSION
from sweephand.engine.lookup import version_of
from sweephand.ports import World

_PAGE = 500
_COUNTED_AT_ONCE = 3_000
_DAY = timedelta(days=1)


def ledger(world: World, key: JobKey, *, since: datetime, until: datetime) -> list[LedgerRow]:
    """A row for each nominal fire with since <= F < until, and for each run that nothing owed. Reads only."""
    return ledger_page(world, key, since=since, until=until, fires_max=None)[0]


def ledger_page(
    world: World, key: JobKey, *, since: datetime, until: datetime, fires_max: int | None
) -> tuple[list[LedgerRow], datetime]:
    """The rows of at most so many fires, and how far they reach: the page's end, from which the next begins.

    A stretch of any length costs no more than its fires up to there, and the runs beside them.
    """
    changes = world.jobs.timeline(key, since=since)
    ahead = expected(stretches_of(world, key, changes), since, until)
    owed = list(islice(ahead, fires_max))
    following = next(ahead, None)
    reached = following.fire_at if following is not None else until
    runs = list(runs_between(world, key, since, reached))
    return rows_of(world, key, owed, runs, changes, since=since, until=reached), reached


def days(world: World, key: JobKey, *, since: date, until: date) -> list[LedgerPage]:
    """The counts of each UTC day with since <= day < until that was judged, and of the last two as they stand.

    A day that has more fires than can be counted while somebody waits is left out until it is judged. Reads only.
    """
    now = world.clock.now()
    today = now.astimezone(UTC).date()
    found = {page.day: page for page in world.runs.pages(key, since=_midnight(since), until=_midnight(until))}
    for day in (today - _DAY, today):
        if not since <= day < until or day in found:
            continue
        end = min(_midnight(day + _DAY), now)
        rows, reached = ledger_page(world, key, since=_midnight(day), until=end, fires_max=_COUNTED_AT_ONCE)
        if rows and reached >= end:
            found[day] = page_of(key, day, rows, judged_at=now, tzdata=TZDATA_VERSION)
    return [found[day] for day in sorted(found)]


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def stretches_of(world: World, key: JobKey, changes: Sequence[Change]) -> list[Segment]:
    """What was in force when, by these changes."""
    return segments(
        changes, {number: version_of(world, key, number).job for number in {one.version for one in changes}}
    )


def rows_of(
    world: World,
    key: JobKey,
    owed: Sequence[Expected],
    runs: list[Run],
    changes: Sequence[Change],
    *,
    since: datetime,
    until: datetime,
) -> list[LedgerRow]:
    """The rows of these fires; `runs` are those between, to which those are added that stand for several of them."""
    dropped = world.runs.dropped(key, since=since, until=until)
    beyond = collapsed_into(dropped) - {run.key.run_id for run in runs}
    if beyond:
        runs += world.runs.several([RunKey(key, run_id) for run_id in sorted(beyond)])
    rows = judge(owed, runs, dropped, changes, now=world.clock.now())
    if not any(row.status is FireStatus.MISSING for row in rows):
        return rows
    return unless_expired(rows, world.runs.pages(key, since=since, until=until))


def runs_between(world: World, key: JobKey, since: datetime, until: datetime) -> Iterator[Run]:
    """The job's runs with since <= F < until, oldest first."""
    low: RunId = run_id_of_fire(since)
    end = run_id_of_fire(until + timedelta(seconds=1) if until.microsecond else until)
    while page := world.runs.of_job(key, since=low, until=end, newest_first=False, limit=_PAGE):
        yield from page
        low = RunId(page[-1].key.run_id + "!")
        if len(page) < _PAGE:
            break
