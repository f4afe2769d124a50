"""What became of the fires of a window, for whoever makes up for them: also of those from before the job was there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.backfill import Order
from sweephand.domain.calendars import CalendarHistory
from sweephand.domain.fates import Fate, FireFate, fate_of
from sweephand.domain.ids import run_id_of_fire
from sweephand.domain.job import Change, Head
from sweephand.domain.ledger import Expected, FireStatus, LedgerRow, expected, standing_for
from sweephand.domain.run import Run
from sweephand.domain.schedule import HoldPolicy, Schedule
from sweephand.domain.timeline import Segment
from sweephand.engine.ledger import rows_of, runs_between, stretches_of
from sweephand.engine.lookup import calendar_of, job_of
from sweephand.ports import World

PAGE: Final = 200
"""Fires that are looked at together."""
_LOOKS_BACK: Final = (timedelta(days=1), timedelta(days=8), timedelta(days=400))
"""How far back a job's last fire is looked for: what was in force is read for as long as it takes, and no longer."""
_LOOKED_AT_MAX: Final = 1_000
_TICK: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)


class Window(Struct, frozen=True):
    """What was in force in a window, read once: its fires can then be counted, and looked at page by page."""

    head: Head
    changes: Sequence[Change]
    stretches: Sequence[Segment]
    since: datetime
    until: datetime
    born_at: datetime | None = None
    """When the job came to be, where that is after the window's beginning."""

    @property
    def count(self) -> int:
        """How many fires it has, without walking through them."""
        return sum(
            one.schedule.count(*bounds)
            for one in self.stretches
            if one.schedule is not None and (bounds := one.clip(self.since - _TICK, self.until - _TICK)) is not None
        )

    def fires(self, order: Order, limit: int) -> list[Expected]:
        """The first fires in this order, at most so many; oldest first either way."""
        if order is Order.OLDEST:
            return list(islice(expected(self.stretches, self.since, self.until), limit))
        low, left = self.until, limit
        for stretch in reversed(self.stretches):
            bounds = stretch.clip(self.since - _TICK, self.until - _TICK)
            if left < 1 or stretch.schedule is None or bounds is None:
                continue
            newest = stretch.schedule.last(*bounds, left)
            low, left = newest[0] if newest else low, left - len(newest)
        return list(expected(self.stretches, low, self.until))

    def settled(self, row: LedgerRow) -> LedgerRow:
        """The row; nothing is still to come of a fire from before the job was there."""
        is_over = self.born_at is not None and row.fire_at < self.born_at and row.run_id is None
        return replace(row, status=FireStatus.MISSING) if is_over and row.status is FireStatus.PENDING else row

    def schedule_at(self, fire_at: datetime) -> Schedule | None:
        """The schedule that named a fire."""
        for one in self.stretches:
            if one.since <= fire_at and (one.until is None or fire_at < one.until):
                return one.schedule
        return None


def window_of(world: World, head: Head, *, since: datetime, until: datetime) -> Window:
    """What was in force then. Before the job was there at all, what is in force now stands for it: who makes up for
    that time wants the fires that the job would have had."""
    changes = world.jobs.timeline(head.key, since=since)
    stretches = stretches_of(world, head.key, changes)
    job = job_of(world, head)
    born_at = changes[0].at if changes and changes[0].at > since else None
    if job is not None and born_at is not None:
        stretches.insert(0, Segment(since, born_at, head.version, job.schedule, job.catchup))
    return Window(head, changes, stretches, since, until, born_at)


def fates(world: World, window: Window, *, order: Order = Order.OLDEST, limit: int = PAGE) -> list[FireFate]:
    """What became of the window's first fires in this order, at most so many; in this order. Reads only."""
    owed = window.fires(order, limit)
    if not owed:
        return []
    key, low, high = window.head.key, owed[0].fire_at, owed[-1].fire_at + _SECOND
    runs = list(runs_between(world, key, low, high))
    rows = rows_of(world, key, owed, runs, window.changes, since=low, until=high)
    named = {fire.fire_at for fire in owed}
    by_fire = _by_fire(runs)
    judged = []
    for row in rows:
        if row.fire_at in named:
            own = by_fire.get(run_id_of_fire(row.fire_at), [])
            became = fate_of(window.settled(row), [*own, *standing_for(row.fire_at, runs)])
            given_up = row.status is FireStatus.SKIPPED
            judged.append(FireFate(row.fire_at, became, _next_generation(own), given_up))
    found = list(_unless_closed(world, window, judged))
    return found if order is Order.OLDEST else found[::-1]


def all_fates(world: World, window: Window) -> Iterator[FireFate]:
    """What became of every fire of the window, oldest first. Reads only."""
    while page := fates(world, window):
        yield from page
        window = replace(window, since=page[-1].fire_at + _TICK)


def last_that_counts(world: World, head: Head, upto: datetime) -> FireFate | None:
    """What became of the job's last fire up to a moment that was not skipped; None where there is none in sight.

    By what was in force then, and not by the runs that are there: whoever plans the job may be late. Reads only.
    """
    until, looked_at, limit = upto + _TICK, 0, 1
    for back in _LOOKS_BACK:
        since = max(upto - back, head.created_at)
        if since >= until:
            return None
        window = window_of(world, head, since=since, until=until)
        while looked_at < _LOOKED_AT_MAX and (page := fates(world, window, order=Order.NEWEST, limit=limit)):
            found = next((one for one in page if one.counts), None)
            if found is not None:
                return found
            looked_at, limit = looked_at + len(page), PAGE
            window = replace(window, until=page[-1].fire_at)
        until = since
    return None


def _by_fire(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """A fire's own run, and those that repeat it, by the id of its own; what was triggered is of no fire."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.key.run_id.partition(".")[0], []).append(run)
    return found


def _next_generation(runs: Sequence[Run]) -> int:
    taken = [run.key.run_id.partition(".")[2] for run in runs]
    return 1 + max((int(one) for one in taken if one.isdecimal()), default=0)


def _unless_closed(world: World, window: Window, judged: Sequence[FireFate]) -> Iterator[FireFate]:
    """What the calendar or a blackout would not have let run, had it come in its time, is not missing."""
    job = job_of(world, window.head)
    calendar = calendar_of(world, window.head, job) if job else None
    for one in judged:
        if one.fate in (Fate.MISSING, Fate.EXPIRED) and _is_closed(window, calendar, one.fire_at):
            yield replace(one, fate=Fate.CLOSED)
        else:
            yield one


def _is_closed(window: Window, history: CalendarHistory | None, fire_at: datetime) -> bool:
    schedule = window.schedule_at(fire_at)
    blackout = schedule.blackout_at(fire_at) if schedule else None
    if blackout is not None and blackout.policy is HoldPolicy.SKIP:
        return True
    if history is None or schedule is None or schedule.calendar is None:
        return False
    # Before the calendar was there, its first version stands for it, as the job's does.
    calendar = history.at(fire_at) or (history.versions[0][1] if history.versions else None)
    return calendar is not None and calendar.refuses(fire_at) is not None
