"""A scripted DAG on a whole engine: what became of its tasks, and in which order they began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final, Protocol

from sweephand.calls import Outcome, Skipped, Succeeded
from sweephand.domain.dag import state_of
from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey
from sweephand.domain.mapping import instance_id
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.orders import encode_outcome
from sweephand.ports import World
from tests.dags.order import decided
from tests.dags.reference import Reference
from tests.dags.scripts import Script
from tests.engine.world import Town
from tests.faults.place import Place

NS: Final = Namespace("default")
SOURCES: Final = ("high", "normal", "low", "machines")
AT_ONCE: Final = -1
_A_WHILE: Final = timedelta(minutes=15)

Does = Callable[[str, int], Outcome]
"""What the attempt of a task comes to; the name is empty where the job has but one."""


class Engine(Protocol):
    """Where runs go on by themselves."""

    @property
    def world(self) -> World: ...

    def teach(self, job: str, does: Does) -> None:
        """What the job's tasks do."""

    def go_on(self) -> None:
        """Let everything happen that happens now, and what is tried again soon."""


class OnTown:
    """The verbs on a store: whoever has a run's message advances it."""

    def __init__(self, town: Town) -> None:
        self.world = town.world
        self._town = town
        self._waits = False

    def teach(self, job: str, does: Does) -> None:
        self._waits = False
        self._town.target.rules[job] = lambda call: does(call.run.key.task, call.run.attempt)

    def go_on(self) -> None:
        """First what happens now: the next one comes back from its timer."""
        if self._waits:
            self._town.advance(minutes=_A_WHILE / timedelta(minutes=1), ticking=False)
        self._town.drive()
        self._waits = True


class OnFunctions:
    """The handlers of a deployment, and an execution of `dag_run` for each run."""

    def __init__(self, place: Place) -> None:
        place.only(*SOURCES)
        self.world = place.world
        self._place = place
        self._waits = False

    def teach(self, job: str, does: Does) -> None:
        self._waits = False
        self._place.target.does[job] = lambda effect: encode_outcome(does(effect.run.task, effect.attempt))

    def go_on(self) -> None:
        if self._waits:
            self._place.pass_time(_A_WHILE)
        self._place.step()
        self._waits = True


class Played:
    """A script on an engine. `begun` has the tasks' attempts in their order."""

    def __init__(self, engine: Engine, script: Script) -> None:
        self.script = script
        self.begun: list[str] = []
        self.at_once: frozenset[str] = frozenset()
        """The tasks and instances that were there when the first of them began."""
        self._world = engine.world
        name = script.document["name"]
        tasks = [{**task, "run": {"command": ["true"]}, "timeout": "30s"} for task in script.document["tasks"]]
        self._only = tasks[0]["id"]
        engine.teach(name, self._does)
        put(self._world, NS, {**script.document, "tasks": tasks}, actor="ann", expected=None)
        self.key: RunKey = trigger(self._world, JobKey(NS, JobName(name))).key
        while not self.run.is_terminal:
            engine.go_on()

    @property
    def run(self) -> Run:
        run = self._world.runs.get(self.key)
        assert run is not None
        return run

    def _does(self, task: str, attempt: int) -> Outcome:
        name = task or self._only
        if not self.begun:
            there = self._world.runs.tasks(self.key, limit=1_000)
            self.at_once = frozenset(run.key.task for run in there) or frozenset([name])
        self.begun.append(name)
        ending = self.script.endings[name][attempt - 1]
        match ending.how:
            case "succeeded":
                return Succeeded(ending.output)
            case "skipped":
                return Skipped("as scripted")
            case _:
                return Failure("Scripted", "as scripted", FailureClass.TRANSIENT)

    @property
    def ends(self) -> dict[str, str]:
        """The states of all tasks and instances."""
        run, progress = self.run, self._world.dags.get(self.key)
        job = version_of(self._world, self.key.job, run.version or 0).job
        assert job is not None
        if not job.is_dag:
            return {self._only: str(run.state)}
        assert progress is not None
        tasks = graph_of(self._world, self.key.job, run.version or 0, job).tasks
        found = {task.id: str(state_of(byte)) for task, byte in zip(tasks, progress.states, strict=True)}
        for place, states in progress.instances.items():
            found |= {instance_id(tasks[place].id, n): str(state_of(byte)) for n, byte in enumerate(states)}
        return found


def misplaced(played: Played) -> Iterator[str]:
    """Tasks that began before the ends that let them start, and those that waited although nothing kept them."""
    reference = Reference(played.script)
    last = {task: n for n, task in enumerate(played.begun)}
    over: dict[str, int] = {}
    """When a task or an instance can have been over at the earliest: of one that ran, with its last attempt."""
    for name in reference.above:
        over[name] = when = decided(reference, name, over, AT_ONCE)
        for part in reference.parts[name]:
            over[part] = last.get(part, when)
            if part in last and played.begun.index(part) <= when:
                yield f"{part} began at {played.begun.index(part)}, and could not before {when}"
            if part in last and (part in played.at_once) != (when == AT_ONCE):
                yield f"{part} was {'' if part in played.at_once else 'not '}there at once, and could at {when}"
