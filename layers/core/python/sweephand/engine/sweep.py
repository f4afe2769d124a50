"""Plan what is due in some shards (004-O2, 004-O3)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import JobKey, RunKey, instant_of
from sweephand.domain.job import A_MOMENT
from sweephand.domain.limits import AUDITED_BACK
from sweephand.engine.lookup import job_of
from sweephand.engine.planning import carrying_entry, letter_for, plan_jobs
from sweephand.errors import Defect, Unavailable
from sweephand.messages import SweepShards
from sweephand.ports import DueEntry, DueKind, Lane, Letter, World

logger: Final = logging.getLogger("sweephand.engine")

PAGE: Final = 500
HAND_ON_AFTER: Final = 4 * PAGE
"""Entries after which a sweep hands its remaining shards to others: it is under load."""
IN_A_ROW_MAX: Final = 5
"""Entries for which the store may not answer, one after the other, before it and not they are to blame."""


class Swept(Struct, frozen=True):
    """What a sweep did."""

    shards: int = 0
    entries: int = 0
    jobs: int = 0
    created: int = 0
    dropped: int = 0
    lost_races: int = 0
    woken: int = 0
    handed_on: int = 0
    left: int = 0
    """What could not be dealt with, and is met again by the next sweep."""
    lag: timedelta = timedelta(0)
    """How long ago the shard furthest behind had been swept."""

    def __add__(self, other: Swept) -> Swept:
        counts = {name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        return Swept(**counts | {"lag": max(self.lag, other.lag)})


def sweep(world: World, shards: Sequence[int]) -> Swept:
    """Deal with everything due up to now, shard by shard, from each one's watermark.

    Two sweeps of one shard do the same work twice and harm nothing: every write is conditional. One that stops half
    way leaves the watermark where it was, and the next begins there. A shard that cannot be swept now keeps no other
    from its turn; nor does a job that cannot be planned.
    """
    swept = Swept()
    trouble: Unavailable | Defect | None = None
    for position, shard in enumerate(shards):
        rest = shards[position:]
        if swept.entries > HAND_ON_AFTER:
            world.queue.send([Letter(SweepShards((one,)), lane=Lane.SWEEP) for one in rest])
            return swept + Swept(handed_on=len(rest))
        try:
            swept += _sweep_shard(world, shard)
        except (Unavailable, Defect) as error:
            trouble = error
    if trouble is not None:
        raise trouble
    return swept


def _sweep_shard(world: World, shard: int) -> Swept:
    now = world.clock.now()
    lease = world.shards.take(shard, owner=world.owner, now=now, until=now + world.pace.sweep_lease)
    if lease is None:
        return Swept()
    swept = Swept(shards=1, lag=max(now - (lease.watermark or now), timedelta(0)))
    watermark = max(now, lease.watermark or now)
    for entries in _pages(world, shard, lease.watermark, now):
        dealt_with, left = _deal_with_page(world, entries, now)
        swept += dealt_with
        world.due.done([entry for entry in entries if entry not in left])
        watermark = min([watermark, *(entry.at - A_MOMENT for entry in left)])  # those are met again
    world.shards.release(lease, watermark=watermark)
    return swept


def _pages(world: World, shard: int, watermark: datetime | None, now: datetime) -> Iterator[list[DueEntry]]:
    last: DueEntry | None = None
    while page := world.due.read(shard, after=watermark, upto=now, limit=PAGE, beyond=last):
        yield page
        last = page[-1]


def _deal_with_page(world: World, entries: Sequence[DueEntry], now: datetime) -> tuple[Swept, set[DueEntry]]:
    """All together; where that fails, one by one, so that the trouble of one stays its own. What is left is answered.

    Where the store does not answer for one after the other, it is not their trouble.
    """
    try:
        return _deal_with(world, entries, now), set()
    except (Unavailable, Defect):
        if len(entries) == 1:
            raise
    swept, left, in_a_row = Swept(), set(), 0
    for entry in entries:
        try:
            swept += _deal_with(world, [entry], now)
            in_a_row = 0
        except (Unavailable, Defect) as error:
            logger.warning("What was due of %s is left: %s", entry.key, error)
            left.add(entry)
            in_a_row += isinstance(error, Unavailable)
            if in_a_row >= IN_A_ROW_MAX:
                raise
    return swept + Swept(left=len(left)), left


def _deal_with(world: World, entries: Sequence[DueEntry], now: datetime) -> Swept:
    jobs = {JobKey.of(entry.key) for entry in entries if entry.kind is DueKind.JOB}
    heads = [head for head in world.jobs.heads_of(sorted(jobs)) if head.plan_at is not None and head.plan_at <= now]
    planned = plan_jobs(world, heads, now=now)
    woken = _wake(world, [RunKey.of(entry.key) for entry in entries if entry.kind is DueKind.RUN], now)
    return Swept(
        entries=len(entries),
        jobs=planned.jobs,
        created=planned.created,
        dropped=planned.dropped,
        lost_races=planned.lost_races,
        woken=woken,
    )


def _wake(world: World, keys: Sequence[RunKey], now: datetime) -> int:
    """Send the runs whose long wait is over; one that ended meanwhile needs nothing.

    The auditor looks back only so far: an open run from before is looked at every hour by its own due entry.
    """
    letters, entries = [], []
    for key in keys:
        run, head = world.runs.get(key), world.jobs.head(key.job)
        if run is None or run.is_terminal or head is None:
            continue
        letters.append(letter_for(run, job_of(world, head), now=now))
        if instant_of(key.run_id) < now - AUDITED_BACK:
            entries.append(carrying_entry(world, key, now=now))
    world.due.arm(entries)
    world.queue.send(letters)
    return len(letters)
