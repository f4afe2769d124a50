"""Plan what is due in some shards (004-O2, 004-O3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from sweephand.domain.ids import JobKey, RunKey, instant_of
from sweephand.domain.limits import AUDITED_BACK
from sweephand.engine.lookup import job_of
from sweephand.engine.planning import carrying_entry, letter_for, plan_jobs
from sweephand.messages import SweepShards
from sweephand.ports import DueEntry, DueKind, Lane, Letter, World

PAGE: Final = 500
HAND_ON_AFTER: Final = 4 * PAGE
"""Entries after which a sweep hands its remaining shards to others: it is under load."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did."""

    shards: int = 0
    entries: int = 0
    jobs: int = 0
    created: int = 0
    dropped: int = 0
    lost_races: int = 0
    woken: int = 0
    handed_on: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Swept)))


def sweep(world: World, shards: Sequence[int]) -> Swept:
    """Deal with everything due up to now, shard by shard, from each one's watermark.

    Two sweeps of one shard do the same work twice and harm nothing: every write is conditional. One that stops half
    way leaves the watermark where it was, and the next begins there.
    """
    swept = Swept()
    for position, shard in enumerate(shards):
        rest = shards[position:]
        if swept.entries > HAND_ON_AFTER:
            world.queue.send([Letter(SweepShards((one,)), lane=Lane.SWEEP) for one in rest])
            return swept + Swept(handed_on=len(rest))
        swept += _sweep_shard(world, shard)
    return swept


def _sweep_shard(world: World, shard: int) -> Swept:
    now = world.clock.now()
    lease = world.shards.take(shard, owner=world.owner, now=now, until=now + world.pace.sweep_lease)
    if lease is None:
        return Swept()
    swept = Swept(shards=1)
    for entries in _pages(world, shard, lease.watermark, now):
        swept += _deal_with(world, entries, now)
        world.due.done(entries)
    world.shards.release(lease, watermark=max(now, lease.watermark or now))
    return swept


def _pages(world: World, shard: int, watermark: datetime | None, now: datetime) -> Iterator[list[DueEntry]]:
    last: DueEntry | None = None
    while page := world.due.read(shard, after=watermark, upto=now, limit=PAGE, beyond=last):
        yield page
        last = page[-1]


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
