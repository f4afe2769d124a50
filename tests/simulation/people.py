"""People in the simulated world: the jobs they write, and what they do to them at random moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from sweephand.domain.ids import JobKey, JobName, RunKey
from sweephand.domain.job import CatchupPolicy
from sweephand.engine.cancel import cancel
from sweephand.engine.delete import delete
from sweephand.engine.pause import pause
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.resume import resume
from sweephand.engine.rollback import rollback
from sweephand.engine.trigger import trigger
from sweephand.errors import SweephandError, Unavailable
from sweephand.ports import World
from tests.simulation.cast import NAMESPACE, Stage
from tests.simulation.clockwork import A_SECOND, Actor

SCHEDULES = (
    "*/3 * * * *",
    "*/4 * * * *",
    "*/5 * * * *",
    "*/10 * * * *",
    "3-59/6 * * * *",
    "7,22,37,52 * * * *",
    "20 */6 * * * *",
    "every 7m",
    "every 5m",
    "every 250s",
)
DENSE = ("*/2 * * * *", "*/3 * * * *", "every 100s", "15 */3 * * * *", "every 150s")
"""For worlds whose time is dear: as many fires in half the time."""

ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe")


def job_document(rng: Random, name: str, *, start: datetime, end: datetime, dense: bool) -> dict[str, Any]:
    """A job with a random mix of policies, whose fires end when the faults do."""
    schedule: dict[str, Any] = schedule_document(rng, start=start, end=end, dense=dense)
    document: dict[str, Any] = {
        "name": name,
        "schedule": schedule,
        "command": "true",
        "catchup": {
            "policy": rng.choice(("none", "latest", "all")),
            "max": rng.choice((2, 5, 100)),
            "window": rng.choice(("1h", "1d")),
        },
        "overlap": rng.choice(("allow", "allow", "allow", "skip", "queue", "replace")),
        "guarantee": rng.choice(("at-least-once", "at-least-once", "at-most-once", "effectively-once")),
        "retry": rng.choice(
            (
                {"attempts": 1},
                {"attempts": 3, "backoff": "fixed", "delay": "20s"},
                {"attempts": 4, "backoff": "exponential", "delay": "30s", "maxDelay": "20m"},
                {"attempts": 2, "backoff": "list", "delays": ["5s", "18m"]},
            )
        ),
        "timeout": rng.choice((20, 60, 120)),
        "priority": rng.choice(("high", "normal", "normal", "low")),
    }
    concurrency: dict[str, Any] = {}
    if document["overlap"] == "allow" and rng.random() < 0.4:
        concurrency["runs"] = rng.choice((1, 1, 2))
    if rng.random() < 0.25:
        concurrency |= {"pool": "shared", "slots": rng.choice((1, 1, 2))}
    if concurrency:
        document["concurrency"] = concurrency
    if rng.random() < 0.15:
        document["startDeadline"] = rng.choice(("10m", "1h"))
    if rng.random() < 0.15:
        document["pauseAfterFailures"] = 3
    return document


def with_tasks(rng: Random, document: dict[str, Any]) -> dict[str, Any]:
    """The same job with a handful of tasks that need each other."""
    tasks: list[dict[str, Any]] = []
    for n in range(rng.randint(2, 6)):
        task: dict[str, Any] = {"id": f"t{n}", "run": {"command": ["true"]}}
        if n:
            task["needs"] = [f"t{one}" for one in sorted(rng.sample(range(n), min(n, rng.randint(1, 2))))]
            task["when"] = rng.choice(("all_success", "all_success", "all_done", "one_success", "none_failed"))
        if rng.random() < 0.2:
            task["map"] = {"over": rng.choice(([1, 2], [1, 2, 3]))}
        if rng.random() < 0.15:
            task["pool"] = "tasks"
        tasks.append(task)
    rest = {name: value for name, value in document.items() if name != "command"}
    if rng.random() < 0.2:
        rest["runTimeout"] = rng.choice(("5m", "30m"))
    return {**rest, "tasks": tasks}


def schedule_document(rng: Random, *, start: datetime, end: datetime, dense: bool) -> dict[str, Any]:
    """A random schedule that ends with the faults."""
    text = rng.choice(DENSE if dense else SCHEDULES)
    schedule: dict[str, Any] = {"endAt": end.isoformat()}
    if text.startswith("every "):
        schedule["every"] = text.removeprefix("every ")
    else:
        schedule |= {"cron": text, "timezone": rng.choice(ZONES)}
    if rng.random() < 0.2:
        schedule["jitter"] = rng.choice(("20s", "3m"))
    if rng.random() < 0.2:
        begin = start + A_SECOND * rng.uniform(0, (end - start).total_seconds())
        schedule["blackouts"] = [
            {
                "from": begin.isoformat(),
                "to": (begin + timedelta(minutes=rng.choice((10, 40)))).isoformat(),
                "policy": rng.choice(("skip", "hold")),
            }
        ]
    return schedule


@dataclass
class People:
    """Everybody who changes jobs; each acts under its own clock."""

    stage: Stage
    start: datetime
    end: datetime
    documents: dict[str, dict[str, Any]]
    dense: bool
    triggered: dict[str, set[RunKey]] = field(default_factory=dict)
    active: bool = True

    def life(self, actor: Actor) -> None:
        """Now and then, do something to some job."""
        world, rng = self.stage.world_of(actor), self.stage.work.rng
        while True:
            self.stage.work.sleep(A_SECOND * rng.expovariate(1 / 300))
            if self.active:
                name = rng.choice(sorted(self.documents))
                act = rng.choices(*zip(*self._repertoire(), strict=True))[0]
                self.do(actor, act.__name__.strip("_"), name, partial(act, world, _key(name)))

    def do(self, actor: Actor, what: str, name: str, act: Callable[[], Any]) -> Any:
        """One change, refused or not; a person whose answer is lost looks again another time."""
        try:
            answer = act()
        except Unavailable as error:
            self.stage.work.tell(actor, f"{what} {name}: no answer ({error})")
            return None
        except SweephandError as error:
            self.stage.work.tell(actor, f"{what} {name}: {error}")
            return None
        self.stage.work.tell(actor, f"{what} {name}: done {answer if isinstance(answer, str) else ''}")
        return answer

    def _repertoire(self) -> list[tuple[Callable[[World, JobKey], Any], float]]:
        return [
            (self._edit, 4),
            (self._pause, 5),
            (self._resume, 5),
            (self._pause_briefly, 4),
            (self._delete, 1),
            (self._create, 2),
            (self._trigger, 4),
            (self._cancel, 2),
            (self._rerun, 1),
            (self._roll_back, 1),
        ]

    def _edit(self, world: World, key: JobKey) -> None:
        rng = self.stage.work.rng
        document = {**self.documents[key.name]}
        if rng.random() < 0.7:
            document["schedule"] = schedule_document(rng, start=self.start, end=self.end, dense=self.dense)
        head = world.jobs.head(key)
        put(world, NAMESPACE, document, actor="ann", expected=head.version if head else 0)
        self.documents[key.name] = document

    def _create(self, world: World, key: JobKey) -> None:
        put(world, NAMESPACE, self.documents[key.name], actor="ann", expected=None)

    def _pause(self, world: World, key: JobKey) -> None:
        pause(world, key, actor="bob")

    def _resume(self, world: World, key: JobKey) -> None:
        policy = self.stage.work.rng.choice(list(CatchupPolicy))
        resume(world, key, catchup=policy, actor="bob")

    def _pause_briefly(self, world: World, key: JobKey) -> None:
        """Pause and change one's mind within minutes: fires to come must not have been decided meanwhile."""
        pause(world, key, actor="eve")
        self.stage.work.sleep(A_SECOND * self.stage.work.rng.uniform(1, 200))
        self._resume(world, key)

    def _delete(self, world: World, key: JobKey) -> None:
        delete(world, key, actor="bob")

    def _trigger(self, world: World, key: JobKey) -> None:
        token = f"{self.stage.work.rng.getrandbits(32):x}"
        for _ in range(self.stage.work.rng.choice((1, 2))):
            run = trigger(world, key, idempotency_key=token, params={"by": "hand"})
            self.triggered.setdefault(token, set()).add(run.key)

    def _cancel(self, world: World, key: JobKey) -> None:
        runs = [run for run in world.runs.of_job(key, limit=6) if not run.is_terminal]
        if runs:
            cancel(world, self.stage.work.rng.choice(runs).key, actor="bob")

    def _rerun(self, world: World, key: JobKey) -> None:
        runs = [run for run in world.runs.of_job(key, limit=6) if run.is_terminal]
        if runs:
            rerun(world, self.stage.work.rng.choice(runs).key)

    def _roll_back(self, world: World, key: JobKey) -> None:
        rollback(world, key, 1, actor="ann")


def _key(name: str) -> JobKey:
    return JobKey(NAMESPACE, JobName(name))
