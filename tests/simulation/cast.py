"""Who acts in the simulated world: the ticker, sweepers, workers, the auditor, and people."""

from __future__ import annotations

import traceback
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import Namespace, RunKey
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run
from sweephand.engine.attempt import Fate, attempt
from sweephand.engine.audit import audit
from sweephand.engine.hear import hear
from sweephand.engine.look import Looking
from sweephand.engine.sweep import sweep
from sweephand.engine.tick import tick
from sweephand.engine.watch import watch
from sweephand.errors import Unavailable
from sweephand.messages import AttemptRun, SweepShards, decode
from sweephand.ports import Delivery, Lane, Pace, Stores, World
from tests.dags.scripts import Script, after, output_of
from tests.simulation.clockwork import A_SECOND, Actor, Clockwork, Crash
from tests.simulation.engines import Ground
from tests.simulation.faults import FaultyPort, FaultyQueue, Weather
from tests.simulation.record import Record, RecordedJobs, RecordedRuns

NAMESPACE: Final = Namespace("sim")
RUN_LANES: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
A_MINUTE: Final = timedelta(minutes=1)
SKEW: Final = timedelta(seconds=90)
PORTS: Final = Stores.__struct_fields__


@dataclass(frozen=True)
class Effect:
    """A side effect, as the target itself saw it."""

    run: RunKey
    epoch: int
    key: str
    began: datetime
    ended: datetime


@dataclass
class Stage:
    """What all actors share."""

    work: Clockwork
    weather: Weather
    ground: Ground
    record: Record
    pace: Pace
    scripts: Mapping[str, Script]
    """The jobs of several tasks, by their names."""
    machines: Any = None
    """What advances their runs; where there is none, whoever has a run's message does."""
    effects: list[Effect] = field(default_factory=list)
    ticking: bool = True
    problems: list[str] = field(default_factory=list)

    def seen(self, actor: Actor, name: str, port: Any) -> Any:
        """A port as one actor sees it."""
        return FaultyPort(name, port, actor, self.weather)

    def skew(self) -> timedelta:
        """How far the clock of somebody is off: mostly not at all."""
        return SKEW * self.work.rng.choice((-1, 0, 0, 1)) * self.work.rng.random()

    def world_of(self, actor: Actor) -> World:
        """The world as one actor sees it: through faulty ports, by its own clock."""
        stores = self.ground.stores
        recorded = {
            "jobs": RecordedJobs(stores.jobs, self.record),
            "runs": RecordedRuns(stores.runs, self.record, actor),
            "queue": FaultyQueue(stores.queue, self.weather),
        }
        ports = {name: self.seen(actor, name, recorded.get(name, getattr(stores, name))) for name in PORTS}
        world = World(
            clock=SkewedClock(self.work, actor.skew),
            dice=SeededDice(self.work.rng),
            target=SimTarget(self, actor),
            pace=self.pace,
            owner=str(actor),
            machines=self.seen(actor, "machines", self.machines) if self.machines is not None else None,
            **ports,
        )
        return replace(world, target=Looking(world.target, world))


@dataclass(frozen=True)
class SkewedClock:
    work: Clockwork
    skew: timedelta

    def now(self) -> datetime:
        return self.work.now + self.skew


@dataclass(frozen=True)
class SeededDice:
    rng: Random

    def nonce(self) -> str:
        return f"{self.rng.getrandbits(64):016x}"

    def secret(self) -> str:
        return urlsafe_b64encode(self.rng.randbytes(32)).decode().rstrip("=")

    def chance(self) -> float:
        return self.rng.random()


@dataclass(frozen=True)
class SimTarget:
    """Takes a while, has an effect in the middle, succeeds or not, and sometimes outlives its lease."""

    stage: Stage
    actor: Actor

    def execute(self, call: Call) -> Outcome:
        work, weather = self.stage.work, self.stage.weather
        rng = work.rng
        duration = A_SECOND * rng.choice((0.01, 0.2, 2, 10))
        if weather.strikes("hang", 4 * weather.odds.freeze):
            duration = call.timeout + A_SECOND * rng.uniform(20, 300)
        began = work.now
        if weather.strikes("crash", 2 * weather.odds.crash):
            work.tell(self.actor, f"crash before the effect of {call.run.key}")
            raise Crash
        work.sleep(duration)
        self.stage.effects.append(Effect(call.run.key, call.run.epoch, call.idempotency_key, began, work.now))
        if weather.strikes("crash", 2 * weather.odds.crash):
            work.tell(self.actor, f"crash after the effect of {call.run.key}")
            raise Crash
        dice = rng.random()
        if dice < 0.10:
            return Failure("Hiccup", "came back empty", FailureClass.TRANSIENT)
        if dice < 0.13:
            return Failure("InvalidInput", "cannot ever work", FailureClass.PERMANENT)
        return Succeeded(self._output(call))

    def _output(self, call: Call) -> Any:
        script = self.stage.scripts.get(call.run.key.job.name)
        if script is None or not call.run.key.task:
            return {"n": 1}
        branch = any(task["id"] == call.task.id and "branch" in task for task in script.document["tasks"])
        return output_of(self.stage.work.rng, after(script, call.task.id) if branch else None)


def ticker(stage: Stage) -> Callable[[Actor], None]:
    """A tick somewhere in each minute, sometimes two, sometimes none."""

    def life(actor: Actor) -> None:
        world, rng = stage.world_of(actor), stage.work.rng
        while True:
            stage.work.sleep(A_SECOND * rng.uniform(35, 85))
            if not stage.ticking or stage.weather.strikes("tick lost", 10 * stage.weather.odds.refused):
                continue
            for _ in range(1 + stage.weather.strikes("tick doubled", stage.weather.odds.doubled)):
                _try(stage, actor, lambda: tick(world))

    return life


def consumer(stage: Stage, lanes: Sequence[Lane]) -> Callable[[Actor], None]:
    """A worker: receives, deals with what it got, and sleeps until there is more."""

    def life(actor: Actor) -> None:
        world, work = stage.world_of(actor), stage.work
        while True:
            earliest = stage.ground.next_visible(lanes)
            if earliest is None or earliest > work.now:
                work.sleep(
                    min((earliest or work.now + A_MINUTE) - work.now, A_MINUTE) + A_SECOND * work.rng.uniform(0, 0.4)
                )
            for lane in lanes:
                visible = stage.ground.next_visible((lane,))
                if visible is None or visible > work.now:
                    continue  # an empty receive would show nothing new, and most are
                receive = partial(world.inbox.receive, lane, most=3, hold=timedelta(seconds=90))
                deliveries = _try(stage, actor, receive)
                if deliveries is None:
                    work.sleep(A_SECOND * work.rng.uniform(5, 20))
                for delivery in deliveries or ():
                    _try(stage, actor, partial(_deal_with, stage, world, actor, delivery))

    return life


def _deal_with(stage: Stage, world: World, actor: Actor, delivery: Delivery) -> None:
    message = decode(delivery.body)
    if isinstance(message, SweepShards):
        swept = sweep(world, message.shards)
        if swept.entries:
            stage.work.tell(actor, f"swept {swept.jobs} jobs, {swept.created} runs, {swept.dropped} dropped")
        world.inbox.delete([delivery])
        return
    assert isinstance(message, AttemptRun)
    attempted = attempt(world, message, delivery)
    stage.work.tell(actor, f"{str(message.run).partition(chr(47))[2]}: {attempted.event}")
    if attempted.fate is Fate.DELETE:
        world.inbox.delete([delivery])
    elif attempted.fate is Fate.KEEP:
        world.inbox.keep(delivery, attempted.hold)


def auditor(stage: Stage) -> Callable[[Actor], None]:
    """Audits every quarter of an hour."""

    def life(actor: Actor) -> None:
        world = stage.world_of(actor)
        while True:
            stage.work.sleep(15 * A_MINUTE)
            audited = _try(stage, actor, lambda: audit(world, NAMESPACE, recent=timedelta(hours=12)))
            if audited and (audited.resent or audited.rearmed):
                stage.work.tell(actor, f"audit: sent {audited.resent} again, re-armed {audited.rearmed}")

    return life


def watcher(stage: Stage) -> Callable[[Actor], None]:
    """Looks after dead letters."""

    def life(actor: Actor) -> None:
        world = stage.world_of(actor)
        while True:
            stage.work.sleep(10 * A_MINUTE)
            for letter in _try(stage, actor, lambda: world.inbox.dead(most=20)) or ():
                watched = _try(stage, actor, partial(watch, world, letter))
                stage.work.tell(actor, f"dead letter {letter.body}: {watched}")

    return life


def stream(stage: Stage, *, only: Sequence[str] = ()) -> Callable[[Actor], None]:
    """Tells of tasks that have ended, each until it is heard; `only` those whose ends such actors have written."""
    told = 0

    def life(actor: Actor) -> None:
        nonlocal told
        world, record = stage.world_of(actor), stage.record
        while True:
            stage.work.sleep(A_SECOND * stage.work.rng.uniform(2, 20))
            batch = record.ended[told : told + 20]
            ended = [step.run for step in batch if not only or step.by.startswith(tuple(only))]
            if not ended or carried_out(stage, actor, partial(_hear, world, ended)):
                told += len(batch)

    return life


def _hear(world: World, ended: Sequence[Run]) -> None:
    hear(world, ended)


def carried_out(stage: Stage, actor: Actor, act: Callable[[], None]) -> bool:
    """Whether it came to its end."""

    def told() -> bool:
        act()
        return True

    return _try(stage, actor, told) is True


def _try(stage: Stage, actor: Actor, act: Callable[[], Any]) -> Any:
    """What the shell around every handler does: an unavailable world is met again by redelivery."""
    try:
        return act()
    except Unavailable as error:
        stage.work.tell(actor, f"gives up: {error}")
        return None
    except Exception as error:  # noqa: BLE001  # any other error is a finding
        where = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{actor}: {type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        stage.problems.append(f"{stage.work.now:%d %H:%M:%S} {problem}")
        stage.work.tell(actor, f"DEFECT {problem}")
        return None
