"""What became of every fire of a job: the ledger of a stretch of time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from sweephand.domain.ids import JobKey, RunId, run_id_of_fire
from sweephand.domain.ledger import LedgerRow, expected, judge
from sweephand.domain.run import Run
from sweephand.domain.timeline import segments
from sweephand.engine.lookup import version_of
from sweephand.ports import World

_PAGE = 500


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
    jobs = {number: version_of(world, key, number).job for number in {change.version for change in changes}}
    ahead = expected(segments(changes, jobs), since, until)
    owed = list(islice(ahead, fires_max))
    following = next(ahead, None)
    reached = following.fire_at if following is not None else until
    dropped = world.runs.dropped(key, since=since, until=reached)
    rows = judge(owed, runs_between(world, key, since, reached), dropped, changes, now=world.clock.now())
    return rows, reached


def runs_between(world: World, key: JobKey, since: datetime, until: datetime) -> Iterator[Run]:
    """The job's runs with since <= F < until, oldest first."""
    low: RunId = run_id_of_fire(since)
    end = run_id_of_fire(until + timedelta(seconds=1) if until.microsecond else until)
    while page := world.runs.of_job(key, since=low, until=end, newest_first=False, limit=_PAGE):
        yield from page
        low = RunId(page[-1].key.run_id + "!")
        if len(page) < _PAGE:
            break
