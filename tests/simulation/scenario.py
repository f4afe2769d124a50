"""One seed: a world with its jobs, its weather and its people, run to the end and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from sweephand import aws
from sweephand.domain.job import CatchupPolicy, JobStatus
from sweephand.engine.put import put
from sweephand.engine.resume import resume
from sweephand.engine.share import put_pool
from sweephand.ports import Lane
from tests.simulation.cast import NAMESPACE, RUN_LANES, Stage, auditor, consumer, stream, ticker, watcher
from tests.simulation.checker import Checker
from tests.simulation.clockwork import A_SECOND, Actor, Clockwork
from tests.simulation.engines import ground
from tests.simulation.faults import CALM, Odds, Weather
from tests.simulation.machines import Executions, trouble
from tests.simulation.people import People, job_document, with_tasks
from tests.simulation.record import Record

STARTS: Final = (
    datetime(2027, 3, 14, 4, 58, tzinfo=UTC),  # New York springs forward at 07:00
    datetime(2027, 11, 7, 3, 58, tzinfo=UTC),  # and falls back at 06:00
    datetime(2027, 3, 27, 23, 30, tzinfo=UTC),  # Berlin at 01:00
    datetime(2026, 12, 31, 21, 45, tzinfo=UTC),  # a year's end
    datetime(2028, 2, 28, 22, 10, tzinfo=UTC),  # a leap day
    datetime(2027, 6, 15, 12, 0, tzinfo=UTC),
)
POOL_SLOTS: Final = 3


@dataclass
class Result:
    """What a seed came to."""

    seed: int
    engine: str
    kind: str
    violations: list[str]
    jobs: int = 0
    fires: int = 0
    faults: int = 0
    crashes: int = 0
    story: list[str] = field(default_factory=list, repr=False)


def simulate(seed: int, engine: str = "sqlite", *, dags: bool = False, machines: bool = False) -> Result:
    """Run a seed; with `dags`, in a world where half of the jobs have several tasks; with `machines`, such a world
    where executions of a machine advance their runs.

    Even seeds have no auditor and lose no message: the protocols alone must bring everything home.

    Odd seeds lose messages, freeze actors for long, and stop everything for hours; there the auditor is the last net.
    """
    rng = Random(f"{engine}-{seed}{'-machines' if machines else '-dags' if dags else ''}")
    wild = seed % 2 == 1
    start = rng.choice(STARTS) + A_SECOND * rng.randrange(3600)
    active = timedelta(minutes=rng.uniform(100, 150) if engine == "sqlite" else 50)
    work = Clockwork(rng, start)
    odds = Odds(lost=0.01, freeze_s=240, late_s=600) if wild else Odds()
    weather = Weather(work, CALM)
    with ground(engine, work, weather) as found:
        # Where nothing gets lost, nobody need look after runs: each end of a task wakes whoever sleeps.
        pace = aws.PACE if wild else replace(aws.PACE, looked_after=timedelta(days=1))
        names = [f"job{number:02d}" for number in range(rng.randint(10, 13))]
        ends_at, dense = start + active, engine == "moto"
        documents = {name: job_document(rng, name, start=start, end=ends_at, dense=dense) for name in names}
        several = names[::2] if dags or machines else []
        scripts = {name: with_tasks(rng, documents[name]) for name in several}
        stage = Stage(work, weather, found, Record(work), pace, scripts)
        if machines:
            stage.machines = Executions(stage, wild=wild)
            trouble(stage, stage.machines, wild=wild, until=ends_at)
        documents |= {name: script.document for name, script in scripts.items()}
        people = People(stage, start, ends_at, documents, dense=dense)
        _set_up(stage, documents, start)
        _enter(stage, people, rng, wild)
        weather.odds = odds
        if wild:
            _plan_outage(stage, rng, start, active)
        work.run(start + active)
        weather.odds, people.active, stage.ticking = CALM, False, True
        _resume_most(stage, rng)
        work.run(start + active + timedelta(minutes=90 if engine == "sqlite" else 50))
        checker = Checker(
            found.stores, stage.record, stage.effects, people.triggered, POOL_SLOTS, work.now, scripts, wild
        )
        violations = checker.violations() + stage.problems
        work.end()
    return Result(
        seed,
        engine,
        "wild" if wild else "strict",
        violations,
        len(people.documents),
        checker.fires,
        weather.faults,
        weather.happened["crash"],
        work.story,
    )


def _set_up(stage: Stage, documents: Mapping[str, dict[str, Any]], start: datetime) -> None:
    """The jobs, before anything goes wrong."""
    clerk = Actor("clerk", timedelta(0), lambda _: None)

    def life(actor: Actor) -> None:
        world = stage.world_of(actor)
        put_pool(world, NAMESPACE, "shared", POOL_SLOTS, expected=0)
        put_pool(world, NAMESPACE, "tasks", POOL_SLOTS, expected=0)
        for document in documents.values():
            put(world, NAMESPACE, document, actor="clerk", expected=None)
        stage.work.sleep(timedelta(days=365))

    clerk.life = life
    stage.work.start(clerk, start)
    stage.work.run(start + timedelta(seconds=30))


def _enter(stage: Stage, people: People, rng: Random, wild: bool) -> None:
    """Everybody comes on stage, each with a clock of its own."""
    lives: list[tuple[str, Any]] = [
        ("ticker", ticker(stage)),
        *((f"sweeper{n}", consumer(stage, (Lane.SWEEP,))) for n in range(2)),
        *((f"worker{n}", consumer(stage, RUN_LANES)) for n in range(3)),
        *((f"person{n}", people.life) for n in range(2)),
        ("watcher", watcher(stage)),
    ]
    if stage.scripts:
        # No message comes back for what a person said and was not heard to the end: there the stream is the net.
        lives += [("boss", people.answers), ("stream", stream(stage, only=() if wild else ("person", "boss")))]
    if wild:
        lives.append(("auditor", auditor(stage)))
    for name, life in lives:
        stage.work.start(Actor(name, stage.skew(), life), stage.work.now)


def _plan_outage(stage: Stage, rng: Random, start: datetime, active: timedelta) -> None:
    """For a while, no tick comes, or no call is answered at all."""
    begin = start + active * rng.uniform(0.2, 0.5)
    length = timedelta(minutes=rng.choice((10, 25, 50)))
    total = rng.random() < 0.5

    def stop() -> None:
        stage.work.tell("world", f"outage of {length}: {'every call fails' if total else 'no ticks'}")
        stage.ticking = False
        if total:
            stage.weather.odds = Odds(refused=1.0, crash=0)
            stage.weather.happened["refused"] -= 1

    def go_on() -> None:
        stage.work.tell("world", "the outage is over")
        stage.ticking = True
        stage.weather.odds = usual if stage.work.now < start + active else CALM

    usual = stage.weather.odds
    stage.work.at(begin, stop)
    stage.work.at(begin + length, go_on)


def _resume_most(stage: Stage, rng: Random) -> None:
    """When the faults stop, most paused jobs are resumed; one that stays paused goes on holding its runs."""
    tidy = Actor("tidy", timedelta(0), lambda _: None)

    def life(actor: Actor) -> None:
        world = stage.world_of(actor)
        for head in world.jobs.heads(NAMESPACE, limit=1000):
            if head.status is JobStatus.PAUSED and rng.random() < 0.8:
                policy = rng.choice(list(CatchupPolicy))
                resume(world, head.key, catchup=policy, actor="tidy")
                stage.work.tell(actor, f"resumes {head.key.name} with {policy}")
        stage.work.sleep(timedelta(days=365))

    tidy.life = life
    stage.work.start(tidy, stage.work.now)
