"""A metered AWS account with the real engine in it, driven minute by minute as AWS would drive what is deployed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from heapq import heappop, heappush
from math import ceil
from typing import Any, Final, cast

from msgspec.structs import replace

from bench.meter import Meter
from sweephand import aws
from sweephand.api.authorize import Gate
from sweephand.api.live import Live
from sweephand.aws.items import run_item
from sweephand.aws.live import Connections
from sweephand.aws.table import Table
from sweephand.aws.target import is_short
from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import Namespace, spread
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run
from sweephand.engine.attempt import Attempted, Fate, begin, finish, report
from sweephand.engine.follow import follow
from sweephand.engine.rounds import ROUND_EVERY, go_on
from sweephand.engine.sweep import sweep
from sweephand.engine.tick import tick
from sweephand.engine.watch import watch
from sweephand.local.cloud.account import CONFIG, next_visible_at
from sweephand.local.cloud.events import matches
from sweephand.messages import AttemptRun, Elsewhere, SweepShards, decode_as
from sweephand.ports import Due, DueEntry, Lane, Runs, Stores, World
from sweephand.testing.virtual import SeededDice, VirtualClock
from sweephand.topology import (
    ARCHIVE,
    ATTEMPT,
    AUDIT,
    EXECUTE_MAX,
    LIVE,
    PROJECT,
    QUEUES,
    SWEEP,
    TICK,
    VIEWS,
    WATCH,
    Changes,
    Every,
    Function,
    Messages,
)
from tests.moto_world import NAMES

A_MINUTE: Final = timedelta(minutes=1)
AN_HOUR: Final = timedelta(hours=1)
TASK: Final = timedelta(milliseconds=100)
"""How long a task takes: everybody's, here and in the comparison."""
TICK_AT: Final = timedelta(seconds=2, milliseconds=500)
"""When in its minute the tick comes: not at a full second, since delays are whole seconds and must be rounded."""
AUDIT_AT: Final = 2 * A_MINUTE
"""When in its period the audit comes: after the fires of a full hour, as most come."""
STREAM_SHARDS: Final = 4
"""A new on-demand table has four partitions, its stream as many shards, and each makes batches of its own."""

NAMESPACE: Final = Namespace("bench")
_LANES: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HIDDEN: Final = {Lane(queue.name): queue.visibility for queue in QUEUES}
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
    ROUND = "the audit's position"
    CHANGE = "changes by people"


FIXED: Final = frozenset({For.SWEEP, For.ROUND, For.CHANGE})
"""What does not grow with runs."""
PLANNING: Final = frozenset({For.PUT, For.CURSOR, For.HINT})
_POSITION: Final = "position#audit"
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
            return For.SWEEP if pk.startswith("shard") else For.ROUND if sk == _POSITION else For.SLOT
        case "views":
            return For.VIEWS
        case _:
            return For.CURSOR if operation == "UpdateItem" else For.CHANGE


def is_fixed(actor: str, operation: str, params: Mapping[str, Any]) -> bool:
    """Whether a call is made however few runs and jobs there are: every minute a tick, leases, a bucket of the due."""
    if actor in {"tick", "watch"}:
        return True
    if operation == "Query":
        partition = params["ExpressionAttributeValues"][":pk"]["S"]
        return str(params["TableName"]).endswith("-due") or partition == "namespaces"
    key = params.get("Key") or params.get("Item") or {}
    return bool(key) and (key["pk"]["S"].startswith("shard#") or key["sk"]["S"] == _POSITION)


def _tables(params: Mapping[str, Any]) -> set[str]:
    return {params["TableName"]} if "TableName" in params else set(params.get("RequestItems", ()))


@dataclass
class Work:
    """What a function did: its invocations, the calls in them, those of them that it waited for one after the other,
    and the invocations in which it waited for tasks."""

    invocations: int = 0
    calls: int = 0
    waits: int = 0
    tasks: int = 0

    def add(self, calls: int, *, side_by_side: int = 1, tasks: int = 0) -> None:
        """One invocation more, that dealt with so many messages at once."""
        self.invocations += 1
        self.calls += calls
        self.waits += ceil(calls / side_by_side)
        self.tasks += bool(tasks)


@dataclass
class Bill(Meter):
    """The meter, by purpose; `actor` is the function at work, or nobody."""

    actor: str = ""
    units: Counter[For] = field(default_factory=Counter)
    read_by: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    asked: Counter[tuple[bool, str]] = field(default_factory=Counter)
    """SQS requests, by whether they are a sweep's, and operation."""
    made: Counter[str] = field(default_factory=Counter)
    """Calls of each function, of any service."""
    fixed: Counter[str] = field(default_factory=Counter)
    """Those of them that it makes however few runs there are."""
    opened: set[tuple[str, str]] = field(default_factory=set)
    """Functions, and the tables that they use."""

    def clear(self) -> None:
        super().clear()
        for counter in (self.units, self.read_by, self.asked, self.made, self.fixed, self.opened):
            counter.clear()

    def after(self, service: str, operation: str, params: Mapping[str, Any], answer: Mapping[str, Any] | None) -> None:
        written, read, requested = self.write_units, self.read_units, self.requests.total()
        super().after(service, operation, params, answer)
        fixed = is_fixed(self.actor, operation, params)
        self.made[self.actor] += 1
        self.fixed[self.actor] += fixed
        self.opened.update((self.actor, table) for table in _tables(params))
        if units := self.write_units - written:
            self.units[purpose(operation, params)] += units
        if read_units := self.read_units - read:
            self.read_by["fixed" if fixed else self.actor] += read_units
        if (requests := self.requests.total() - requested) and "QueueUrl" in params:
            self.asked[params["QueueUrl"].endswith(f"-{Lane.SWEEP}"), operation] += requests

    @contextmanager
    def at_work(self, function: str) -> Iterator[None]:
        before, self.actor = self.actor, function
        yield
        self.actor = before


class Feed:
    """What a function hears of a table's changes: a batch for each shard of the stream and window of time.

    A window begins with the first record in it. Where there is none, a batch is what changed in one moment.
    """

    def __init__(self, function: Function) -> None:
        (self.changes,) = (trigger for trigger in function.triggers if isinstance(trigger, Changes))
        self._waiting: defaultdict[int, list[tuple[datetime, Run]]] = defaultdict(list)

    def add(self, run: Run, event: str, at: datetime) -> None:
        image = {"eventName": event, "dynamodb": {"NewImage": run_item(run, keep=aws.KEEP_RUNS)}}
        if any(matches(pattern, image) for pattern in self.changes.patterns):
            self._waiting[spread(str(run.key.job), STREAM_SHARDS)].append((at, run))

    def batches(self, now: datetime) -> Iterator[list[Run]]:
        """Those whose window is over."""
        for shard in sorted(self._waiting):
            while (waiting := self._waiting[shard]) and (over := waiting[0][0] + self.changes.window) < now:
                taken = sum(at <= over for at, _ in waiting[: self.changes.batch])
                self._waiting[shard] = waiting[taken:]
                yield [run for _, run in waiting[:taken]]


@dataclass
class StreamedRuns:
    """The runs, and what their stream says of them: one record per change, in the shard of its partition."""

    runs: Runs
    clock: VirtualClock
    feeds: Sequence[Feed]
    created: int = 0

    def create(self, runs: Sequence[Run]) -> list[bool]:
        created = self.runs.create(runs)
        for run, is_new in zip(runs, created, strict=True):
            self._record(run, "INSERT", is_new)
        self.created += sum(created)
        return created

    def move(self, before: Run, after: Run) -> bool:
        return self._record(after, "MODIFY", self.runs.move(before, after))

    def _record(self, run: Run, event: str, changed: bool) -> bool:
        if changed:
            for feed in self.feeds:
                feed.add(run, event, self.clock.now())
        return changed

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
class Firehose:
    """Takes every record and shows it to the meter."""

    bill: Bill

    def put_record_batch(self, **params: Any) -> dict[str, Any]:
        self.bill.after("firehose", "PutRecordBatch", params, None)
        return {"RequestResponses": [{"RecordId": "1"} for _ in params["Records"]]}


@dataclass(frozen=True)
class Target:
    """Does nothing; fails the first so many attempts of every run."""

    failing: int = 0
    is_slow: bool = False
    """Whether it takes so long that a machine waits for it, whenever it is asked."""

    def execute(self, call: Call) -> Outcome:
        if call.run.attempt <= self.failing:
            return Failure("Hiccup", "came back empty", FailureClass.TRANSIENT)
        return Succeeded()


class Rig:
    """A world and what AWS does to it, minute by minute."""

    def __init__(
        self, stores: Stores, clock: VirtualClock, bill: Bill, target: Target, tick_at: timedelta = TICK_AT
    ) -> None:
        self.clock, self.bill, self.target, self.tick_at = clock, bill, target, tick_at
        self.projected, self.told = Feed(PROJECT), Feed(LIVE)
        self.runs = StreamedRuns(stores.runs, clock, (self.projected, self.told))
        self.due = WatchedDue(stores.due)
        self.work: defaultdict[str, Work] = defaultdict(Work)
        self.deliveries = self.executions = self.machines = self._waited_for = self._batches = 0
        self._elsewhere: list[tuple[Call, Outcome]] = []
        self.world = World.over(
            replace(stores, runs=cast(Runs, self.runs), due=cast(Due, self.due)),
            clock=clock,
            dice=SeededDice(0),
            target=target,
            pace=replace(aws.PACE, attempt_max=EXECUTE_MAX),
            owner="7f3a9c1e0b524d57",
        )
        self._archive = aws.Archive(cast(Any, Firehose(bill)), NAMES.of(ARCHIVE))
        nobody = Connections(Table(_dynamodb(), NAMES.table(VIEWS)), cast(Any, None), clock=clock)
        self._live = Live(Gate(self.world, []), nobody, clock, "https://console.test")

    def pass_time(self, until: datetime, *, idle_too: bool = False) -> None:
        """Minute by minute; what finds nothing to do is left out, unless idle times are wanted too: the minutes and
        shards in which nothing is due, and the calls of `audit` and `watch` between two rounds."""
        minute = self.clock.now()
        while minute < until:
            self._deliver(minute + self.tick_at)
            self._wait(minute + self.tick_at)
            shards = self.due.shards(self.clock.now())
            if shards or idle_too:
                self._tick(None if idle_too else shards)
            self._deliver(minute + A_MINUTE)
            self._wait(minute + A_MINUTE)
            self._feed()
            if (minute - _EPOCH) % (_period(AUDIT) if idle_too else ROUND_EVERY) == AUDIT_AT:
                with self._invocation(AUDIT):
                    go_on(self.world, until=self.clock.now() + AUDIT.timeout)
            if idle_too and (minute - _EPOCH) % _period(WATCH) == AUDIT_AT:
                with self._invocation(WATCH):
                    for letter in self.world.inbox.dead(most=1):
                        watch(self.world, letter)
            minute += A_MINUTE

    def _wait(self, moment: datetime) -> None:
        """A batch that began before it may have ended after it."""
        self.clock.move(max(moment, self.clock.now()))

    def start_counting(self) -> None:
        self.bill.clear()
        self.work.clear()
        self.deliveries = self.executions = self.machines = self.runs.created = 0

    @contextmanager
    def _invocation(self, function: Function, *, side_by_side: int = 1) -> Iterator[None]:
        made, waited, started = self.bill.made[function.name], self._waited_for, self.machines
        with self.bill.at_work(function.name):
            yield
        tasks = self._waited_for - waited
        calls = self.bill.made[function.name] - made + tasks + self.machines - started  # Invoke, StartExecution
        self.work[function.name].add(calls, side_by_side=side_by_side, tasks=tasks)

    def _feed(self) -> None:
        """What the stream delivers until now."""
        for batch in self.projected.batches(self.clock.now()):
            self._batches += 1
            with self._invocation(PROJECT):
                follow(self.world, f"{self._batches:012d}", batch)
                self._archive.keep(batch)
        for batch in self.told.batches(self.clock.now()):
            with self._invocation(LIVE):
                self._live.tell(batch)

    def _tick(self, shards: Sequence[int] | None) -> None:
        with self._invocation(TICK):
            tick(self.world)
        (delivery,) = self.world.inbox.receive(Lane.SWEEP, most=1, hold=_HIDDEN[Lane.SWEEP])
        wanted = decode_as(SweepShards, delivery.body).shards
        with self._invocation(SWEEP):
            sweep(self.world, wanted if shards is None else shards)
        self.world.inbox.delete([delivery])

    def _deliver(self, until: datetime) -> None:
        """Every message that shows itself before a moment, in the batches that Lambda makes of them."""
        while (lane_at := _next_visible()) is not None and lane_at[0] < until:
            at, lane = lane_at
            self._wait(at)
            self._attempt(lane)

    def _attempt(self, lane: Lane) -> None:
        """A batch, side by side: every claim, then a task's time, then every outcome."""
        received = self.world.inbox.receive(lane, most=_BATCH[lane], hold=_HIDDEN[lane])
        deliveries = [replace(delivery, hold=timedelta(0)) for delivery in received]
        self.deliveries += len(deliveries)
        dealt_with = []
        with self._invocation(ATTEMPT, side_by_side=len(deliveries)):
            begun = [begin(self.world, decode_as(AttemptRun, one.body), one) for one in deliveries]
            if any(isinstance(one, Call) for one in begun):
                self.clock.move(self.clock.now() + TASK)
            for delivery, one in zip(deliveries, begun, strict=True):
                did = one if isinstance(one, Attempted) else self._execute(one)
                if did.fate is Fate.KEEP:
                    self.world.inbox.keep(delivery, did.hold)
                elif did.fate is Fate.DELETE:
                    dealt_with.append(delivery)
        self.world.inbox.delete(dealt_with)
        for call, outcome in self._elsewhere:
            with self._invocation(ATTEMPT):
                report(self.world, call.run.key, epoch=call.run.epoch, outcome=outcome)
        self._elsewhere.clear()

    def _execute(self, call: Call) -> Attempted:
        """A short task is waited for; of a long one, the machine reports the outcome."""
        self.executions += 1
        outcome = self.target.execute(call)
        if is_short(self.world.runs, call) and not self.target.is_slow:
            self._waited_for += 1
            return finish(self.world, call, outcome)
        self.machines += 1
        self._elsewhere.append((call, outcome))
        return finish(self.world, call, Elsewhere())


_BATCH: Final = {Lane(feed.queue): feed.batch for feed in ATTEMPT.triggers if isinstance(feed, Messages)}


def _period(function: Function) -> timedelta:
    """How often a schedule calls it."""
    (every,) = (trigger for trigger in function.triggers if isinstance(trigger, Every))
    return every.period


@cache
def _dynamodb() -> Any:
    return aws.clients(CONFIG)[0]


def _next_visible() -> tuple[datetime, Lane] | None:
    """When the next message shows itself and where, by moto's own books: asking the queue would be metered."""
    found = ((next_visible_at(NAMES.queue(lane)), lane) for lane in _LANES)
    return min(((at, lane) for at, lane in found if at is not None), default=None)
