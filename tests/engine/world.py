"""A small town: one job store, a clock that a test moves, a target that answers as it was told."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from sweephand import aws, embedded
from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import CatchupPolicy, Head
from sweephand.domain.ledger import FireStatus, LedgerRow
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run
from sweephand.engine.attempt import Attempted, Fate, attempt
from sweephand.engine.audit import Audited, audit
from sweephand.engine.follow import follow
from sweephand.engine.lease import Leased, lease, report
from sweephand.engine.ledger import ledger
from sweephand.engine.pause import pause
from sweephand.engine.put import put
from sweephand.engine.resume import Resumed, resume
from sweephand.engine.sweep import Swept, sweep
from sweephand.engine.tick import tick
from sweephand.engine.watch import watch
from sweephand.errors import StaleEpoch, Unavailable
from sweephand.messages import Elsewhere, SweepShards, decode
from sweephand.ports import Delivery, Lane, Pace, World

NS: Final = Namespace("shop")
START: Final = datetime(2027, 6, 15, 12, 0, 30, tzinfo=UTC)
RUN_LANES: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
HOLD: Final = timedelta(seconds=90)
A_MINUTE: Final = timedelta(minutes=1)
TRANSIENT: Final = Failure("Hiccup", "came back empty", FailureClass.TRANSIENT)
PERMANENT: Final = Failure("InvalidInput", "cannot ever work", FailureClass.PERMANENT)

Answer = Outcome | Elsewhere | Callable[[Call], Outcome]


class Crash(BaseException):
    """The process dies here."""


def dies(_call: Call) -> Outcome:
    """A target that takes its worker with it."""
    raise Crash


@dataclass
class Clock:
    """Time that passes only when a test says so; `skew` is how far this one is off."""

    at: datetime = START
    skew: timedelta = timedelta(0)

    def now(self) -> datetime:
        return self.at + self.skew


@dataclass(frozen=True)
class Skewed:
    """Another node's clock."""

    true: Clock
    skew: timedelta

    def now(self) -> datetime:
        return self.true.at + self.skew


class Dice:
    """Chance from a seed; `chance` is fixed, so that delays can be foretold."""

    def __init__(self, seed: int = 1, chance: float = 0.5) -> None:
        self._random = Random(seed)
        self._chance = chance

    def nonce(self) -> str:
        return f"{self._random.getrandbits(64):016x}"

    def secret(self) -> str:
        return urlsafe_b64encode(self._random.randbytes(32)).decode().rstrip("=")

    def chance(self) -> float:
        return self._chance


@dataclass(frozen=True)
class Executed:
    """One call of the target, as the target saw it."""

    run: RunKey
    epoch: int
    key: str
    at: datetime
    params: dict[str, Any]


@dataclass
class Target:
    """Answers each call with the next outcome scripted for its job, and succeeds where none is."""

    clock: Clock
    calls: list[Executed] = field(default_factory=list)
    script: dict[str, deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    rules: dict[str, Callable[[Call], Outcome]] = field(default_factory=dict)
    """Where a job has a rule instead of a script, its answer depends on the attempt alone."""

    def answers(self, job: str, *outcomes: Answer) -> None:
        self.script[job].extend(outcomes)

    def execute(self, call: Call) -> Outcome | Elsewhere:
        run = call.run
        self.calls.append(Executed(run.key, run.epoch, call.idempotency_key, self.clock.at, dict(call.params)))
        return self.answer(call)

    def answer(self, call: Call) -> Outcome | Elsewhere:
        """What the job's script or rule says."""
        run = call.run
        answers, rule = self.script[run.key.job.name], self.rules.get(run.key.job.name)
        answer = answers.popleft() if answers else rule or Succeeded()
        return answer(call) if callable(answer) else answer


@dataclass
class Town:
    """Everything that happens in a test."""

    clock: Clock
    stores: Any
    target: Target
    world: World
    next_visible: Callable[[], datetime | None]
    ticked_at: datetime = START
    ticks_every: timedelta = A_MINUTE
    dealt: int = 0
    """Messages delivered so far."""

    # People.

    def put(
        self, name: str = "job", schedule: Any = "*/5 * * * *", *, expected: int | None = None, **more: Any
    ) -> Head:
        document = {"name": name, "command": "true", **more} | ({"schedule": schedule} if schedule else {})
        return put(self.world, NS, document, actor="ann", expected=expected)

    def put_external(self, name: str = "job", schedule: Any = "5 12 * * *", **more: Any) -> Head:
        """A job that external workers come for."""
        queue, expected = more.pop("queue", "default"), more.pop("expected", None)
        document = {"name": name, "run": {"external": {"queue": queue}}, **more}
        return put(
            self.world, NS, document | ({"schedule": schedule} if schedule else {}), actor="ann", expected=expected
        )

    def pause(self, name: str = "job") -> Head:
        return pause(self.world, job(name), actor="ann")

    def resume(self, name: str = "job", catchup: str = "none", *, dry_run: bool = False) -> Resumed:
        return resume(self.world, job(name), catchup=CatchupPolicy(catchup), actor="ann", dry_run=dry_run)

    # External workers, and those who follow changes.

    def lease(self, world: World | None = None, *, worker: str = "wanda", most: int = 10) -> list[Leased]:
        """What a worker of the default queue gets."""
        return lease(world or self.world, NS, worker, ["default"], most=most)

    def work(self, world: World | None = None, outcome: Outcome | None = None) -> list[Run]:
        """A worker does all that is on offer."""
        world, ended = world or self.world, []
        for leased in self.lease(world):
            run = leased.lease.run
            done = Executed(run.key, run.epoch, leased.call.idempotency_key, self.clock.at, dict(leased.call.params))
            self.target.calls.append(done)
            came = outcome or self.target.answer(leased.call)
            assert not isinstance(came, Elsewhere)
            with suppress(StaleEpoch):  # it was cancelled, or the worker overslept
                ended.append(report(world, leased.lease.id, NS, epoch=run.epoch, outcome=came))
        return ended

    def follow(self, *names: str, world: World | None = None) -> int:
        """Somebody is told of every run of these jobs."""
        runs = [run for name in names for run in self.runs(name)]
        return follow(world or self.world, f"batch-{self.clock.at.isoformat()}", runs)

    # Time.

    def drive(self, world: World | None = None, *, lanes: Sequence[Lane] = (Lane.SWEEP, *RUN_LANES)) -> list[str]:
        """Deliver every message that is visible now, and what follows from it; what happened, in words."""
        events: list[str] = []
        world = world or self.world
        while batch := [one for lane in lanes for one in self.stores.inbox.receive(lane, most=10, hold=HOLD)]:
            events += [self.deliver(world, delivery) for delivery in batch]
        return events

    def deliver(self, world: World, delivery: Delivery) -> str:
        """What the shell of a handler does: whatever is not dealt with comes back by itself."""
        self.dealt += 1
        try:
            return _deal_with(world, delivery)
        except (Unavailable, Crash) as error:
            return type(error).__name__.lower()

    def advance(self, *, to: datetime | None = None, ticking: bool = True, **span: float) -> list[str]:
        """Let time pass, a tick a minute, each message delivered when it becomes visible."""
        end = to or self.clock.at + timedelta(**span)
        events = self.drive()
        while True:
            ticks_at = self.ticked_at + self.ticks_every if ticking else end
            visible_at = self.next_visible() or end
            moment = min(ticks_at, max(visible_at, self.clock.at), end)
            if moment >= end and not (ticking and ticks_at <= end):
                break
            self.clock.at = max(moment, self.clock.at)
            if ticking and moment >= ticks_at:
                self.ticked_at = self.clock.at
                tick(self.world)
            events += self.drive() + self.watch()
        self.clock.at = end
        if not ticking:
            self.ticked_at = max(self.ticked_at, end)
        return events + self.drive()

    def watch(self) -> list[str]:
        """See to the dead letters."""
        return [str(watch(self.world, letter)) for letter in self.stores.inbox.dead(most=100)]

    def sleep_through(self, **span: float) -> None:
        """Time passes and nobody acts: an outage."""
        self.clock.at += timedelta(**span)
        self.ticked_at = self.clock.at

    def sweep(self, world: World | None = None) -> Swept:
        world = world or self.world
        return sweep(world, range(world.shards.count()))

    def audit(self) -> Audited:
        return audit(self.world, NS)

    # Looking.

    def head(self, name: str = "job") -> Head:
        head = self.stores.jobs.head(job(name))
        assert isinstance(head, Head)
        return head

    def runs(self, name: str = "job") -> list[Run]:
        """Oldest first."""
        return list(self.stores.runs.of_job(job(name), newest_first=False, limit=10_000))

    def tasks(self, key: RunKey) -> list[Run]:
        """Those of a run that were released or decided about."""
        return list(self.stores.runs.tasks(key, limit=10_000))

    def run(self, key: RunKey | datetime, name: str = "job") -> Run:
        run = self.stores.runs.get(run_key(key, name) if isinstance(key, datetime) else key)
        assert isinstance(run, Run)
        return run

    def states(self, name: str = "job") -> dict[str, str]:
        """Hour and minute of the fire, and the run's state."""
        return {f"{run.fire_at:%H:%M}": str(run.state) for run in self.runs(name)}

    def ledger(self, name: str = "job", *, since: datetime = START, until: datetime | None = None) -> list[LedgerRow]:
        return ledger(self.world, job(name), since=since, until=until or self.clock.at)

    def fates(self, name: str = "job", **bounds: datetime) -> dict[str, str]:
        """Hour and minute of every fire owed, and the ledger's word on it."""
        return {f"{row.fire_at:%H:%M}": str(row.status) for row in self.ledger(name, **bounds)}

    def holes(self, name: str = "job") -> list[LedgerRow]:
        """What the auditor would raise an alarm about."""
        return [row for row in self.ledger(name) if row.status in (FireStatus.MISSING, FireStatus.EXTRA)]

    def calls(self, name: str = "job") -> list[Executed]:
        return [call for call in self.target.calls if call.run.job.name == name]

    # Others.

    def another(self, owner: str = "other", *, skew: timedelta = timedelta(0), **ports: Any) -> World:
        """The world as another process sees it."""
        return replace(self.world, owner=owner, clock=Skewed(self.clock, skew), versions={}, pulled=set(), **ports)


def job(name: str = "job") -> JobKey:
    return JobKey(NS, JobName(name))


def run_key(fire_at: datetime, name: str = "job") -> RunKey:
    return RunKey(job(name), RunId(f"{fire_at:%Y%m%dT%H%M%SZ}"))


def at(clock: str) -> datetime:
    """A moment of the day that tests begin on: hour, minute and perhaps second."""
    moment = time.fromisoformat(clock)
    return START.replace(hour=moment.hour, minute=moment.minute, second=moment.second)


def code_of(run: Run) -> ReasonCode | None:
    return run.reason.code if run.reason else None


def _deal_with(world: World, delivery: Delivery) -> str:
    message = decode(delivery.body)
    if isinstance(message, SweepShards):
        sweep(world, message.shards)
        world.inbox.delete([delivery])
        return "swept"
    attempted = attempt(world, message, delivery)
    settle(world, delivery, attempted)
    return attempted.event


def settle(world: World, delivery: Delivery, attempted: Attempted) -> None:
    """Do to the message what the attempt decided."""
    if attempted.fate is Fate.DELETE:
        world.inbox.delete([delivery])
    elif attempted.fate is Fate.KEEP:
        world.inbox.keep(delivery, attempted.hold)


@contextmanager
def town_of(engine: str = "sqlite", *, pace: Pace = aws.PACE, start: datetime = START) -> Iterator[Town]:
    """An empty town over the named engine."""
    clock = Clock(start)
    if engine == "moto":
        from tests.moto_world import moto_world
        from tests.simulation.on_moto import MotoGround

        with moto_world(clock) as stores:
            ground = MotoGround(stores)
            yield _town(clock, stores, pace, lambda: ground.next_visible(tuple(Lane)))
        return
    memory = embedded.open_stores(None, clock=clock)
    try:
        yield _town(clock, memory, pace, memory.bell.next_visible_at)
    finally:
        memory.close()


def _town(clock: Clock, stores: Any, pace: Pace, next_visible: Callable[[], datetime | None]) -> Town:
    target = Target(clock)
    world = World.over(
        stores,
        clock=clock,
        dice=Dice(),
        target=target,
        pace=pace,
        owner="worker",
    )
    return Town(clock, stores, target, world, next_visible, ticked_at=clock.at)
