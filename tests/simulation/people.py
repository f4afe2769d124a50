"""People in the simulated world: the jobs they write, and what they do to them at random moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from msgspec.structs import replace

from sweephand.domain.ids import JobKey, JobName, RunKey
from sweephand.domain.job import CatchupPolicy
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.task import TaskState
from sweephand.engine.cancel import cancel
from sweephand.engine.carry import beginning
from sweephand.engine.delete import delete
from sweephand.engine.mark import Verdict, decide, mark
from sweephand.engine.pause import pause
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.resume import resume
from sweephand.engine.rollback import rollback
from sweephand.engine.trigger import trigger
from sweephand.errors import SweephandError, Unavailable
from sweephand.ports import World
from tests.dags.scripts import Script, script_of
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

ENDS = (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED, TaskState.CANCELLED)
"""What people make of a task."""

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


def with_tasks(rng: Random, document: dict[str, Any]) -> Script:
    """The same job with a handful of tasks that need each other, by any rule; some of them ask people."""
    script = script_of(rng.getrandbits(32), tasks_min=2, tasks_max=6)
    stops = rng.random() < 0.15
    tasks: list[dict[str, Any]] = []
    for one in script.document["tasks"]:
        task = {**one, "run": {"command": ["true"]}}
        if stops:
            task["when"] = "all_success"
        if not {"map", "branch"} & task.keys() and rng.random() < 0.1:
            task["run"] = {"approval": rng.choice(({}, {"timeout": "20m"}))}
        if rng.random() < 0.15:
            task["pool"] = "tasks"
        tasks.append(task)
    rest = {name: value for name, value in document.items() if name != "command"}
    if stops:
        rest["onFailure"] = "stop"
    if rng.random() < 0.2:
        rest["runTimeout"] = rng.choice(("5m", "30m"))
    return replace(script, document={**rest, "params": script.document["params"], "tasks": tasks})


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
    """Whether time is dear."""
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
            *(((self._mark, 3), (self._rerun_in_part, 3)) if self.stage.scripts else ()),
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

    def _mark(self, world: World, key: JobKey) -> None:
        """Say how a task ends, or that one is not to be done."""
        rng = self.stage.work.rng
        runs = [run for run in world.runs.of_job(key, limit=6) if not run.is_terminal]
        if runs and key.name in self.stage.scripts:
            task = rng.choice(self.stage.scripts[key.name].document["tasks"])["id"]
            mark(world, rng.choice(runs).key, task, Verdict(rng.choice(ENDS), "ann"))

    def _rerun_in_part(self, world: World, key: JobKey) -> None:
        rng = self.stage.work.rng
        runs = [run for run in world.runs.of_job(key, limit=6) if run.is_terminal]
        if runs and key.name in self.stage.scripts:
            task = rng.choice(self.stage.scripts[key.name].document["tasks"])["id"]
            rerun(world, rng.choice(runs).key, start=rng.choice(("failed", "failed", beginning(task))))

    def answers(self, actor: Actor) -> None:
        """Whoever is asked says yes or no before long, to the end."""
        world, rng = self.stage.world_of(actor), self.stage.work.rng
        while True:
            self.stage.work.sleep(A_SECOND * rng.uniform(20, 200))
            for run in [steps[-1].run for steps in self.stage.record.steps.values()]:
                if run.key.task and not run.is_terminal and run.reason and run.reason.code is ReasonCode.APPROVAL:
                    yes = rng.random() < 0.8
                    act = partial(decide, world, run.key.whole, run.key.task, approved=yes, actor="boss")
                    self.do(actor, f"say {'yes' if yes else 'no'} to", str(run.key), act)

    def _roll_back(self, world: World, key: JobKey) -> None:
        rollback(world, key, 1, actor="ann")


def _key(name: str) -> JobKey:
    return JobKey(NAMESPACE, JobName(name))
