"""Two engines, the same verbs in any order: SQLite and DynamoDB with SQS must give the same answers.

Where the ports leave room, so do the comparisons: dead letters have other ids and moments; entries that were dealt
with stay on AWS until they expire; messages have no order.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from msgspec.structs import replace

from sweephand.domain.ids import JobKey, Namespace, RunId, RunKey, run_id_of_fire
from sweephand.domain.job import CatchupPolicy, Head, JobEvent, JobStatus, JobVersion
from sweephand.domain.ledger import Dropped, FireStatus, LedgerPage
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run
from sweephand.domain.slots import Slot
from sweephand.domain.status import listed
from sweephand.messages import AttemptRun
from sweephand.ports import Delivery, DueEntry, DueKind, Lane, Letter, ShardLease
from tests.contract.both import BothEngines
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    TICK,
    Window,
    change_of,
    deed_at,
    head_of,
    key_of,
    moved,
    run_at,
    version_of,
)

KEYS: Final = (key_of("a"), key_of("a.b"), key_of("a-b"), key_of("a", "other"))
FIRES: Final = tuple(NOW + n * MINUTE for n in range(4))
OTHER: Final = Namespace("other")

keys: Final = st.sampled_from(KEYS)
namespaces: Final = st.sampled_from((DEFAULT, OTHER))
fires: Final = st.sampled_from(FIRES)
nonces: Final = st.sampled_from(("x", "y"))
limits: Final = st.integers(1, 5)
moments: Final = st.builds(
    lambda minutes, tick: NOW + minutes * MINUTE + tick * TICK, st.integers(-5, 30), st.integers(-1, 1)
)
ids: Final = st.none() | st.builds(run_id_of_fire, fires)
_STATUS: Final = {
    JobEvent.PUT: JobStatus.ACTIVE,
    JobEvent.PAUSED: JobStatus.PAUSED,
    JobEvent.RESUMED: JobStatus.ACTIVE,
    JobEvent.DELETED: JobStatus.DELETED,
}
freshness: Final = st.integers(0, 1)
"""How many revisions behind: 0 is what is there, 1 is stale."""


class Engines(BothEngines):
    """Whatever happens, both say the same."""

    def begin(self) -> None:
        self.heads: dict[JobKey, list[Head]] = {}
        self.runs: dict[RunKey, list[Run]] = {}
        self.slots: dict[str, list[Slot]] = {}
        self.leases: list[tuple[ShardLease, ShardLease]] = []
        self.in_hand: list[tuple[Delivery, Delivery]] = []
        self.dealt_with: set[DueEntry] = set()

    def _nonce(self) -> str:
        return f"n{next(self.numbers)}"

    # Jobs.

    @rule(key=keys, event=st.sampled_from(JobEvent), stale=freshness, armed=st.booleans())
    def change(self, key: JobKey, event: JobEvent, stale: int, armed: bool) -> None:
        known = self.heads.get(key, [])
        before = known[-1 - stale] if len(known) > stale else None
        after, version = self._changed(before, key, event)
        entry = DueEntry(after.changed_at + MINUTE, DueKind.JOB, str(key), 1) if armed else None
        change = change_of(after, event, note="" if armed else "why", catchup=after.catchup)
        if self.both(lambda stores: stores.jobs.change(before, after, change, version, entry)):
            self.heads.setdefault(key, []).append(after)
            assert self.both(lambda stores: stores.jobs.change(before, after, change, version, entry))

    def _changed(self, before: Head | None, key: JobKey, event: JobEvent) -> tuple[Head, JobVersion | None]:
        at = NOW + next(self.numbers) * 40 * MINUTE * 24  # months go by, for the audit log
        if before is None:
            return head_of(key, changed_at=at, nonce=self._nonce()), version_of(key)
        number = before.version + (event is JobEvent.PUT)
        after = replace(
            before,
            version=number,
            status=_STATUS[event],
            changed_at=at,
            paused_since=at if event is JobEvent.PAUSED else None,
            catchup=CatchupPolicy.ALL if event is JobEvent.RESUMED else None,
            rev=before.rev + 1,
            nonce=self._nonce(),
        )
        return after, version_of(key, number) if event is JobEvent.PUT else None

    @rule(which=st.lists(st.tuples(keys, freshness), max_size=3, unique_by=lambda one: one[0]), at=moments)
    def advance(self, which: list[tuple[JobKey, int]], at: datetime) -> None:
        moves = []
        for key, stale in which:
            if len(known := self.heads.get(key, [])) > stale:
                before = known[-1 - stale]
                moves.append((before, before.advanced(planned_upto=at, plan_at=None, nonce=self._nonce())))
        answers = self.both(lambda stores: stores.jobs.advance(moves))
        for (_, after), won in zip(moves, answers, strict=True):
            if won:
                self.heads[after.key].append(after)

    @rule(key=keys, since=st.none() | st.integers(0, 30), before=st.none() | st.integers(0, 5), limit=limits)
    def read_jobs(self, key: JobKey, since: int | None, before: int | None, limit: int) -> None:
        at = None if since is None else NOW + since * 40 * MINUTE * 24
        self.both(lambda stores: stores.jobs.timeline(key, since=at))
        mark = None if at is None else deed_at(at, "job-a.")
        self.both(lambda stores: stores.trail.deeds(key.namespace, before=mark, limit=limit))
        self.both(lambda stores: stores.jobs.versions(key, before=before, limit=limit))
        self.both(lambda stores: stores.jobs.version(key, before or 1))
        self.both(lambda stores: stores.jobs.heads(key.namespace, after=key.name, limit=limit))
        self.both(lambda stores: stores.jobs.heads(key.namespace, limit=limit))
        self.both(lambda stores: stores.jobs.count(key.namespace))
        self.both(lambda stores: sorted(stores.jobs.heads_of(sorted({key, KEYS[0]})), key=lambda head: head.key))

    @rule(key=keys, words=st.sampled_from(("a", "naïve", "-", "version 3")), limit=limits, most=limits)
    def search(self, key: JobKey, words: str, limit: int, most: int) -> None:
        self.both(lambda stores: stores.jobs.sought(key.namespace, words, limit=limit, looked_at_max=most))
        self.both(lambda stores: stores.jobs.sought(key.namespace, words, after=key.name, limit=limit))
        now, upto = self.clock.now(), self.clock.now() + most * MINUTE
        self.both(lambda stores: stores.jobs.soonest(key.namespace, now=now, upto=upto, limit=limit))

    # Runs.

    @rule(until=fires, limit=limits)
    def read_recent(self, until: datetime, limit: int) -> None:
        self.both(lambda stores: stores.runs.recent(KEYS, until=run_id_of_fire(until), limit=limit))

    @rule(job=keys, planned=st.lists(st.tuples(fires, nonces), max_size=4))
    def create(self, job: JobKey, planned: list[tuple[datetime, str]]) -> None:
        runs = [run_at(fire_at, job, nonce=nonce) for fire_at, nonce in planned]
        answers = self.both(lambda stores: stores.runs.create(runs))
        for run, won in zip(runs, answers, strict=True):
            if won and run.key not in self.runs:
                self.runs[run.key] = [run]

    @rule(data=st.data(), stale=freshness)
    def move(self, data: st.DataObject, stale: int) -> None:
        known = [runs for runs in self.runs.values() if len(runs) > stale]
        if not known:
            return
        before = data.draw(st.sampled_from(known))[-1 - stale]
        after = data.draw(moved(before))
        if self.both(lambda stores: stores.runs.move(before, after)):
            stored = self.both(lambda stores: stores.runs.get(after.key))
            assert stored is not None
            self.runs[after.key].append(stored)
            assert self.both(lambda stores: stores.runs.move(before, after))

    @rule(job=keys, since=ids, until=ids, newest_first=st.booleans(), limit=limits)
    def list_runs(self, job: JobKey, since: RunId | None, until: RunId | None, newest_first: bool, limit: int) -> None:
        self.both(
            lambda stores: stores.runs.of_job(job, since=since, until=until, newest_first=newest_first, limit=limit)
        )
        self.both(lambda stores: stores.runs.active(job, until=until or run_id_of_fire(NOW + HOUR)))

    @rule(job=keys, first=moments, last=moments, since=moments, until=moments)
    def drop(self, job: JobKey, first: datetime, last: datetime, since: datetime, until: datetime) -> None:
        dropped = Dropped(first, max(first, last), 3, Reason(ReasonCode.CATCHUP, "late: much"))
        self.both(lambda stores: stores.runs.drop(job, dropped))
        self.both(lambda stores: stores.runs.dropped(job, since=since, until=until))

    @rule(
        job=keys,
        days=st.integers(-2, 2),
        missing=st.lists(moments, max_size=2),
        since=moments,
        hours=st.integers(0, 60),
    )
    def judge(self, job: JobKey, days: int, missing: list[datetime], since: datetime, hours: int) -> None:
        day = (NOW + timedelta(days=days)).date()
        counts = {FireStatus.FIRED: 3} if missing else {}
        page = LedgerPage(job, day, self.clock.now(), "2026a", counts, tuple(missing), (RunId("r"),) * days)
        self.both(lambda stores: stores.runs.write_page(page))
        self.both(lambda stores: stores.runs.pages(job, since=since - 24 * HOUR, until=since + hours * HOUR))

    @rule(namespace=namespaces, key=st.sampled_from(("k", "K", "ключ")), value=nonces, minutes=st.integers(0, 9))
    def remember(self, namespace: Namespace, key: str, value: str, minutes: int) -> None:
        until = self.clock.now() + minutes * MINUTE
        self.both(lambda stores: stores.runs.remember(namespace, key, value, until=until))

    # Due entries and shards.

    @rule(ats=st.lists(moments, min_size=1, max_size=9), kind=st.sampled_from(DueKind), key=keys)
    def arm(self, ats: list[datetime], kind: DueKind, key: JobKey) -> None:
        text = str(key) if kind is DueKind.JOB else f"{key}/20261115T060000Z"
        entries = [DueEntry(at, kind, text, shard) for at in ats for shard in (0, 1)]
        self.both(lambda stores: stores.due.arm(entries))
        self.dealt_with -= set(entries)

    @rule(after=moments, upto=moments, done=st.integers(0, 3))
    def sweep(self, after: datetime, upto: datetime, done: int) -> None:
        """Shard 0: entries are dealt with, which AWS forgets only by and by."""
        after, upto = min(after, upto), max(after, upto)
        found = self._left_in_shard_0(after, upto)
        self.both(lambda stores: stores.due.done(found[:done]))
        self.dealt_with |= set(found[:done])
        self._left_in_shard_0(after, upto)

    def _left_in_shard_0(self, after: datetime | None, upto: datetime) -> list[DueEntry]:
        return self.both(
            lambda stores: [
                entry
                for entry in stores.due.read(0, after=after, upto=upto, limit=1_000)
                if entry not in self.dealt_with
            ]
        )

    @rule(after=st.none() | moments, upto=moments, limit=limits)
    def read_pages(self, after: datetime | None, upto: datetime, limit: int) -> None:
        """Shard 1: entries are read page by page."""
        last: list[DueEntry | None] = [None]
        while page := self.both(
            lambda stores: stores.due.read(1, after=after, upto=upto, limit=limit, beyond=last[-1])
        ):
            last.append(page[-1])

    @rule(shard=st.integers(0, 2), owner=nonces, seconds=st.integers(0, 60))
    def take(self, shard: int, owner: str, seconds: int) -> None:
        now = self.clock.now()
        taken: list[ShardLease | None] = []
        self.both(
            lambda stores: taken.append(stores.shards.take(shard, owner=owner, now=now, until=now + seconds * SECOND))
        )
        ours, theirs = taken
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert replace(ours, rev=0, watermark=None) == replace(theirs, rev=0, watermark=None)
            if theirs.watermark is None or ours.watermark is None:
                assert ours.watermark is theirs.watermark
            else:  # SQLite's is never beyond an entry that still waits
                assert ours.watermark <= theirs.watermark
            self.leases.append((ours, theirs))

    @rule(data=st.data(), mark=moments)
    def release(self, data: st.DataObject, mark: datetime) -> None:
        if self.leases:
            ours, theirs = data.draw(st.sampled_from(self.leases))
            answer = self.sqlite.shards.release(ours, watermark=mark)
            assert answer == self.moto.shards.release(theirs, watermark=mark)

    @rule(count=st.integers(9, 40))
    def grow(self, count: int) -> None:
        self.both(lambda stores: stores.shards.grow(count))
        self.both(lambda stores: stores.shards.grow(10))
        self.both(lambda stores: stores.shards.count())

    # Slots.

    @rule(name=st.sampled_from(("job/default/a", "pool/default/p")), job=keys, stale=freshness, back=st.booleans())
    def swap(self, name: str, job: JobKey, stale: int, back: bool) -> None:
        known = self.slots.setdefault(name, [Slot(name)])
        before = known[-1 - min(stale, len(known) - 1)]
        run, nonce = run_at(job=job), self._nonce()
        taken = before.taken(run, weight=2, now=self.clock.now(), nonce=nonce)
        after = before.given_back(run.key, nonce=nonce) if back else taken
        if self.both(lambda stores: stores.slots.swap(before, after)):
            known.append(after)
        self.both(lambda stores: stores.slots.get(name))

    # Messages.

    @rule(lane=st.sampled_from(Lane), delays=st.lists(st.integers(-1, 90), max_size=12))
    def send(self, lane: Lane, delays: list[int]) -> None:
        letters = [
            Letter(AttemptRun(RunKey(KEYS[0], RunId(f"m{next(self.numbers)}"))), delay * SECOND, lane)
            for delay in delays
        ]
        self.both(lambda stores: stores.queue.send(letters))

    @rule(lane=st.sampled_from(Lane), seconds=st.integers(0, 60))
    def receive(self, lane: Lane, seconds: int) -> None:
        received: list[list[Delivery]] = []
        self.both(
            lambda stores: received.append(
                sorted(stores.inbox.receive(lane, most=1_000, hold=seconds * SECOND), key=lambda one: one.body)
            )
        )
        ours, theirs = received
        assert [replace(one, receipt="") for one in ours] == [replace(one, receipt="") for one in theirs]
        gone = {one.body for one in ours}
        self.in_hand = [pair for pair in self.in_hand if pair[0].body not in gone]  # their receipts are stale now
        self.in_hand += zip(ours, theirs, strict=True)

    @rule(data=st.data(), seconds=st.integers(0, 60))
    def keep(self, data: st.DataObject, seconds: int) -> None:
        if self.in_hand:
            ours, theirs = data.draw(st.sampled_from(self.in_hand))
            self.sqlite.inbox.keep(ours, seconds * SECOND)
            self.moto.inbox.keep(theirs, seconds * SECOND)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.in_hand:
            chosen: list[Any] = data.draw(st.lists(st.sampled_from(self.in_hand), max_size=12))
            self.sqlite.inbox.delete([ours for ours, _ in chosen])
            self.moto.inbox.delete([theirs for _, theirs in chosen])

    # The view.

    @rule(
        namespace=namespaces,
        minutes=st.lists(st.integers(-90, 90), max_size=3),
        rev=limits,
    )
    def append(self, namespace: Namespace, minutes: list[int], rev: int) -> None:
        batch = f"{minutes}-{rev}"  # the same name is the same batch, come again
        runs = [run_at(NOW + n * MINUTE, key_of("a", namespace), changed_at=NOW, rev=rev) for n in minutes]
        skipped = [run.skipped(Reason(ReasonCode.OVERLAP), now=NOW, nonce="s") for run in runs]
        rows = [row for run in skipped if (row := listed(run)) is not None]
        self.both(lambda stores: stores.views.append(namespace, batch, rows))
        self.both(lambda stores: stores.views.rows(namespace, since=NOW - HOUR, until=NOW + HOUR))

    @rule(namespace=namespaces, since=moments, hours=st.integers(0, 3), mark=fires, limit=st.none() | limits)
    def read_view(self, namespace: Namespace, since: datetime, hours: int, mark: datetime, limit: int | None) -> None:
        window = Window(since=since - HOUR, until=since + hours * HOUR)
        for before in (None, run_at(mark, key_of("a")).key, run_at(mark, key_of("b")).key):
            self._compare_view(namespace, window, before, limit)

    def _compare_view(self, namespace: Namespace, window: Window, before: RunKey | None, limit: int | None) -> None:
        self.both(lambda stores: stores.views.rows(namespace, **window, before=before, limit=limit))
        hours = Window(since=NOW - 2 * HOUR, until=NOW + 2 * HOUR)
        self.both(lambda stores: stores.views.standing(namespace, **hours, late_before=window["until"]))

    @rule(namespace=namespaces)
    def clear(self, namespace: Namespace) -> None:
        self.both(lambda stores: stores.views.clear(namespace))

    # What always holds.

    @invariant()
    def the_same_runs_are_there(self) -> None:
        for runs in self.runs.values():
            assert self._stored(runs[0].key) == runs[-1]

    def _stored(self, key: RunKey) -> Run | None:
        return self.both(lambda stores: stores.runs.get(key))

    def compare_everything(self) -> None:
        for key in KEYS:
            self._compare_job(key)
        assert self.both(lambda stores: stores.jobs.namespaces()) == sorted({key.namespace for key in self.heads})
        for namespace in (DEFAULT, OTHER):
            self._compare_namespace(namespace)
        self._left_in_shard_0(None, NOW + HOUR)
        self.both(lambda stores: stores.due.read(1, after=None, upto=NOW + HOUR, limit=1_000))
        self.both(lambda stores: sorted((one.lane, one.body) for one in stores.inbox.dead(most=1_000)))

    def _compare_job(self, key: JobKey) -> None:
        self.both(lambda stores: stores.jobs.head(key))
        self.both(lambda stores: stores.jobs.timeline(key))
        self.both(lambda stores: stores.jobs.versions(key, limit=100))
        self.both(lambda stores: stores.runs.of_job(key, limit=100))
        self.both(lambda stores: stores.runs.dropped(key, since=NOW - HOUR, until=NOW + HOUR))
        self.both(lambda stores: stores.runs.pages(key, since=NOW - 99 * HOUR, until=NOW + 99 * HOUR))

    def _compare_namespace(self, namespace: Namespace) -> None:
        heads = self.both(lambda stores: stores.jobs.heads(namespace, limit=100))
        present = sum(head.status is not JobStatus.DELETED for head in heads)
        assert self.both(lambda stores: stores.jobs.count(namespace)) == present
        self.both(lambda stores: stores.trail.deeds(namespace, limit=100))
        self.both(lambda stores: stores.views.rows(namespace, since=NOW - 9 * HOUR, until=NOW + 9 * HOUR))


TestEngines = Engines.TestCase
TestEngines.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
