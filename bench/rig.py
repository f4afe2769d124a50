"""A metered AWS account with the real engine in it, driven minute by minute as AWS would."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from heapq import heappop, heappush
from typing import Any, Final, cast

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sqs.models import sqs_backends

from bench.meter import Meter
from sweephand import aws
from sweephand.domain.ids import Namespace, spread
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.engine.attempt import Fate, attempt
from sweephand.engine.audit import audit
from sweephand.engine.project import project
from sweephand.engine.sweep import sweep
from sweephand.engine.tick import tick
from sweephand.messages import AttemptRun, SweepShards, decode
from sweephand.ports import Call, Delivery, Due, DueEntry, Lane, Outcome, Runs, Stores, Succeeded, World
from sweephand.testing.virtual import SeededDice, VirtualClock
from tests.moto_world import NAMES, REGION

A_MINUTE: Final = timedelta(minutes=1)
AN_HOUR: Final = timedelta(hours=1)
TICK_AT: Final = timedelta(seconds=2, milliseconds=500)
"""When in its minute the tick comes: not at a full second, since delays are whole seconds and must be rounded."""
AUDIT_AT: Final = timedelta(minutes=15)
STREAM_SHARDS: Final = 4
"""A new on-demand table has four partitions, its stream as many shards, and each makes batches of its own."""
STREAM_BATCH: Final = 100
MESSAGE_BATCH: Final = 10

NAMESPACE: Final = Namespace("bench")
_LANES: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOLD: Final = timedelta(minutes=90)
EVE: Final = datetime(2026, 3, 2, 23, tzinfo=UTC)


class For(StrEnum):
    """What a write is for."""

    PUT = "put run"
    CLAIM = "claim"
    COMPLETE = "complete"
    CURSOR = "cursor"
    HINT = "due hint"
    VIEWS = "views (project)"
    PAGE = "ledger pages"
    SLOT = "slot"
    RETRY = "retry"
    PARK = "park"
    TIMER = "long timer"
    SWEEP = "shard leases"
    CHANGE = "changes by people"


FIXED: Final = frozenset({For.SWEEP, For.CHANGE})
"""What does not grow with runs."""
PLANNING: Final = frozenset({For.PUT, For.CURSOR, For.HINT})
_BY_STATE: Final = {"running": For.CLAIM, "retrying": For.RETRY, "queued": For.PARK}


def purpose(operation: str, params: Mapping[str, Any]) -> For:
    """What a writing call is for, by what it writes; every call of ours writes one kind of thing."""
    match operation:
        case "PutItem":
            table, written = params["TableName"], params["Item"]
        case "UpdateItem":
            table, written = params["TableName"], params["Key"]
        case "BatchWriteItem":
            ((table, (first, *_)),) = params["RequestItems"].items()
            written = first["PutRequest"]["Item"]
        case _:
            return For.CHANGE
    pk, sk = written["pk"]["S"], written["sk"]["S"]
    match table.removeprefix(f"{NAMES.prefix}-"):
        case "runs" if operation == "UpdateItem":
            return _BY_STATE.get(params["ExpressionAttributeValues"][":st"]["S"], For.COMPLETE)
        case "runs":
            return For.PUT if sk.startswith("r#") else For.PAGE
        case "due":
            return For.HINT if "#job#" in sk else For.TIMER
        case "control":
            return For.SWEEP if pk.startswith("shard") else For.SLOT
        case "views":
            return For.VIEWS
        case _:
            return For.CURSOR if operation == "UpdateItem" else For.CHANGE


def _is_sweeping(operation: str, params: Mapping[str, Any]) -> bool:
    """Whether a read is one that every sweep makes: a shard's lease, or a bucket of due entries."""
    if operation == "Query":
        return str(params["TableName"]).endswith("-due")
    return operation == "GetItem" and params["Key"]["pk"]["S"].startswith("shard#")


@dataclass
class Bill(Meter):
    """The meter, by purpose; `actor` is the verb at work."""

    actor: str = "put"
    units: Counter[For] = field(default_factory=Counter)
    read_by: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    asked: Counter[tuple[bool, str]] = field(default_factory=Counter)
    """SQS requests, by whether they are a sweep's, and operation."""

    def clear(self) -> None:
        super().clear()
        for counter in (self.units, self.read_by, self.asked):
            counter.clear()

    def after(self, service: str, operation: str, params: Mapping[str, Any], answer: Mapping[str, Any] | None) -> None:
        written, read, requested = self.write_units, self.read_units, self.requests.total()
        super().after(service, operation, params, answer)
        if units := self.write_units - written:
            self.units[purpose(operation, params)] += units
        if read_units := self.read_units - read:
            fixed = self.actor == "tick" or _is_sweeping(operation, params)
            self.read_by["fixed" if fixed else self.actor] += read_units
        if (requests := self.requests.total() - requested) and "QueueUrl" in params:
            self.asked[params["QueueUrl"].endswith(f"-{Lane.SWEEP}"), operation] += requests

    @contextmanager
    def at_work(self, actor: str) -> Iterator[None]:
        before, self.actor = self.actor, actor
        yield
        self.actor = before


@dataclass
class StreamedRuns:
    """The runs, and what their stream would say of them: one record per change, in the shard of its partition."""

    runs: Runs
    records: defaultdict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))
    created: int = 0

    def create(self, runs: Sequence[Run]) -> list[bool]:
        created = self.runs.create(runs)
        for run, is_new in zip(runs, created, strict=True):
            self._record(run, is_new)
        self.created += sum(created)
        return created

    def move(self, before: Run, after: Run) -> bool:
        return self._record(after, self.runs.move(before, after))

    def _record(self, run: Run, changed: bool) -> bool:
        if changed:
            self.records[spread(str(run.key.job), STREAM_SHARDS)].append(run)
        return changed

    def batches(self) -> Iterator[list[Run]]:
        """What the window that ends now delivers."""
        for shard in sorted(self.records):
            records = self.records.pop(shard)
            yield from (records[n : n + STREAM_BATCH] for n in range(0, len(records), STREAM_BATCH))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runs, name)


@dataclass
class WatchedDue:
    """The due entries, and which shards they are in."""

    due: Due
    armed: list[tuple[datetime, int]] = field(default_factory=list)

    def arm(self, entries: Sequence[DueEntry]) -> None:
        self.due.arm(entries)
        for entry in entries:
            heappush(self.armed, (entry.at, entry.shard))

    def shards(self, now: datetime) -> list[int]:
        """The shards in which something became due since this was asked last."""
        found = set()
        while self.armed and self.armed[0][0] <= now:
            found.add(heappop(self.armed)[1])
        return sorted(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.due, name)


@dataclass(frozen=True)
class Target:
    """Does nothing; fails the first so many attempts of every run."""

    failing: int = 0

    def execute(self, call: Call) -> Outcome:
        if call.run.attempt <= self.failing:
            return Failure("Hiccup", "came back empty", FailureClass.TRANSIENT)
        return Succeeded()


class Rig:
    """A world and what AWS does to it, minute by minute."""

    def __init__(
        self, stores: Stores, clock: VirtualClock, bill: Bill, target: Target, tick_at: timedelta = TICK_AT
    ) -> None:
        self.clock, self.bill, self.tick_at = clock, bill, tick_at
        self.runs, self.due = StreamedRuns(stores.runs), WatchedDue(stores.due)
        self.deliveries = self.attempts = self.batches = 0
        self.world = World.over(
            replace(stores, runs=cast(Runs, self.runs), due=cast(Due, self.due)),
            clock=clock,
            dice=SeededDice(0),
            target=target,
            pace=aws.PACE,
            owner="lambda/7f3a9c1e-0b52-4d57",
        )

    def pass_time(self, until: datetime, *, idle_too: bool = False) -> None:
        """Minute by minute; only the shards in which something is due are swept, unless idle ones are wanted too."""
        while self.clock.now() < until:
            minute = self.clock.now()
            self._deliver(minute + self.tick_at)
            self.clock.move(minute + self.tick_at)
            shards = self.due.shards(self.clock.now())
            if shards or idle_too:
                self._tick(None if idle_too else shards)
            self._deliver(minute + A_MINUTE)
            if (minute - _EPOCH) % AN_HOUR == AUDIT_AT:
                with self.bill.at_work("audit"):
                    audit(self.world, NAMESPACE)
            self._project()
            self.clock.move(minute + A_MINUTE)

    def _project(self) -> None:
        """What the stream delivers at the end of its window."""
        with self.bill.at_work("project"):
            for batch in self.runs.batches():
                self.batches += 1
                project(self.world, f"{self.batches:012d}", batch)

    def start_counting(self) -> None:
        self.bill.clear()
        self.deliveries = self.attempts = self.batches = self.runs.created = 0

    def _tick(self, shards: Sequence[int] | None) -> None:
        with self.bill.at_work("tick"):
            tick(self.world)
        (delivery,) = self.world.inbox.receive(Lane.SWEEP, most=1, hold=_HOLD)
        message = decode(delivery.body)
        assert isinstance(message, SweepShards)
        with self.bill.at_work("sweep"):
            sweep(self.world, message.shards if shards is None else shards)
        self.world.inbox.delete([delivery])

    def _deliver(self, until: datetime) -> None:
        """Every message that shows itself before a moment, in the batches that Lambda makes of them."""
        while (lane_at := _next_visible()) is not None and lane_at[0] < until:
            at, lane = lane_at
            self.clock.move(max(at, self.clock.now()))
            deliveries = self.world.inbox.receive(lane, most=MESSAGE_BATCH, hold=_HOLD)
            with self.bill.at_work("attempt"):
                dealt_with = [delivery for delivery in deliveries if self._attempt(delivery)]
            self.world.inbox.delete(dealt_with)

    def _attempt(self, delivery: Delivery) -> bool:
        message = decode(delivery.body)
        assert isinstance(message, AttemptRun)
        self.deliveries += 1
        attempted = attempt(self.world, message, delivery)
        if attempted.fate is Fate.KEEP:
            self.world.inbox.keep(delivery, attempted.hold)
            return False
        self.attempts += attempted.event in {RunState.SUCCEEDED, RunState.FAILED, RunState.RETRYING}
        return attempted.fate is Fate.DELETE


def _next_visible() -> tuple[datetime, Lane] | None:
    """When the next message shows itself and where, by moto's own books: asking the queue would be metered."""
    queues = sqs_backends[DEFAULT_ACCOUNT_ID][REGION].queues
    moments = [
        (max(message.visible_at, message.delayed_until), lane)
        for lane in _LANES
        for message in queues[NAMES.queue(lane)]._messages
    ]
    if not moments:
        return None
    at_ms, lane = min(moments)
    return _EPOCH + timedelta(milliseconds=at_ms), lane
