"""The tasks of a run as people see them: from its graph, how far it is, and the tasks' own runs. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from sweephand.domain.dag import ENDED, Graph, blank, compiled, state_of
from sweephand.domain.ids import RunKey
from sweephand.domain.job import Job, Task
from sweephand.domain.mapping import instance_id, parts_of
from sweephand.domain.progress import Progress
from sweephand.domain.ready import ready
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.domain.task import TaskState
from sweephand.engine.lookup import graph_of, job_of, version_of
from sweephand.engine.outputs import known_of
from sweephand.errors import NotFound
from sweephand.ports import World

MAIN: Final = Task("main", "", {})
"""Of a run whose job is gone and that never began."""
OPEN: Final = "open"


class TaskSeen(Struct, frozen=True):
    """A task of a run, or an instance of a mapped one."""

    name: str
    definition: Task
    state: TaskState
    reason: Reason | None = None
    run: Run | None = None
    counts: Mapping[str, int] | None = None
    """Of a mapped task that has begun: how many instances there are, and how they ended."""

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN


_OPEN: Final = frozenset({TaskState.WAITING, TaskState.QUEUED, TaskState.RUNNING, TaskState.RETRYING})


class Overview(Struct, frozen=True):
    """A run, what defines it, and how far it is."""

    world: World
    run: Run
    job: Job
    graph: Graph
    progress: Progress | None = None

    @property
    def is_dag(self) -> bool:
        return self.job.is_dag

    @property
    def states(self) -> bytes:
        return self.progress.states if self.progress is not None else blank(self.graph)

    @property
    def instances(self) -> Mapping[int, bytes]:
        return self.progress.instances if self.progress is not None else {}

    @property
    def percent(self) -> int | None:
        """How many of its tasks are over, in percent; of a single task, what it says itself."""
        if not self.is_dag or self.progress is None or self.run.is_terminal:
            return self.run.progress
        over = sum(byte in ENDED for byte in self.progress.states)
        return over * 100 // max(len(self.progress.states), 1)

    def key_of(self, name: str) -> RunKey:
        """The key of a task's own run; of a single task, it is the run's."""
        return self.run.key.of_task(name) if self.is_dag else self.run.key

    def place_of(self, name: str) -> tuple[int, int | None]:
        """A task's place and, of an instance, its index; what the run does not have is absent."""
        task, index = parts_of(name)
        place = self.graph.places.get(task)
        count = len(self.instances.get(place, b"")) if place is not None else 0
        if place is None or (index is not None and index >= count):
            raise NotFound(f"Run {self.run.key} has no task {name}.")
        return place, index

    def names(self, after: str | None = None) -> Iterator[str]:
        """The tasks in the order of their job, the instances of each behind it; beginning behind one of them."""
        first, index = self.place_of(after) if after is not None else (-1, None)
        if first >= 0:
            yield from self._instances_of(first, 0 if index is None else index + 1)
        for place in range(first + 1, len(self.graph.tasks)):
            yield self.graph.tasks[place].id
            yield from self._instances_of(place, 0)

    def found(self, name: str) -> TaskSeen:
        self.place_of(name)
        return self.seen([name])[0]

    def page(self, *, after: str | None = None, limit: int) -> tuple[list[TaskSeen], bool]:
        """So many tasks, and whether there are more."""
        names = list(islice(self.names(after), limit + 1))
        return self.seen(names[:limit]), len(names) > limit

    def seen(self, names: Sequence[str]) -> list[TaskSeen]:
        """These tasks, as they are."""
        if not self.is_dag:
            return [_single(self.graph.tasks[0], self.run)] if names else []
        runs = {run.key.task: run for run in self.world.runs.several([self.key_of(name) for name in names])}
        decided = [place for name in names if name not in runs and (place := self._decided(name)) is not None]
        reasons = self._reasons(decided) if decided else {}
        return [self._seen(name, runs.get(name), reasons) for name in names]

    def _instances_of(self, place: int, first: int) -> Iterator[str]:
        task = self.graph.tasks[place].id
        for index in range(first, len(self.instances.get(place, b""))):
            yield instance_id(task, index)

    def _seen(self, name: str, run: Run | None, reasons: Mapping[int, Reason]) -> TaskSeen:
        place, index = self.place_of(name)
        definition, instances = self.graph.tasks[place], self.instances.get(place)
        if run is not None:
            return TaskSeen(name, definition, TaskState(run.state), run.reason, run)
        if index is not None and instances is not None:
            state = state_of(instances[index])
            reason = Reason(ReasonCode.CONDITION, f"{definition.condition} does not hold for item {index}.")
            return TaskSeen(name, definition, state, reason if state is TaskState.SKIPPED else None)
        state = state_of(self.states[place])
        counts = _counted(instances) if instances is not None else None
        return TaskSeen(name, definition, state, reasons.get(place), counts=counts)

    def _decided(self, name: str) -> int | None:
        """The place of a task that is over without a run of its own."""
        place, index = self.place_of(name)
        return place if index is None and place not in self.instances and self.states[place] in ENDED else None

    def _reasons(self, places: Sequence[int]) -> dict[int, Reason]:
        """Why these tasks ended without having begun: decided again, as if they still waited."""
        states = bytearray(self.states)
        for place in places:
            states[place] = 0
        counts = {place: len(one) for place, one in self.instances.items()}
        known = known_of(self.world, self.run, self.job, self.graph, counts)
        decided = ready(self.graph, bytes(states), None, known, instances=sum(counts.values()))
        found = {move.task: move.reason for move in decided.moves if move.reason is not None}
        cancelled = Reason(ReasonCode.CANCELLED, f"the run {self.run.state}")
        ended = {place: state_of(self.states[place]) for place in places}
        return {
            place: found.get(place, cancelled)
            for place, state in ended.items()
            if place in found or state is TaskState.CANCELLED
        }


def overview(world: World, key: RunKey) -> Overview:
    """A run with its tasks; one that is void or absent is not there."""
    run = world.runs.get(key)
    if run is None or run.state is RunState.VOID:
        raise NotFound(f"There is no run {key}.")
    return overview_of(world, run)


def overview_of(world: World, run: Run) -> Overview:
    """The same of a run that was read already."""
    job = _defined(world, run)
    if not job.is_dag:
        return Overview(world, run, job, compiled(job))
    if run.version is None:
        return Overview(world, run, job, compiled(job))
    return Overview(world, run, job, graph_of(world, run.key.job, run.version, job), world.dags.get(run.key))


def _defined(world: World, run: Run) -> Job:
    """The definition that it started with, or would start with."""
    job = None
    if run.version is not None:
        job = version_of(world, run.key.job, run.version).job
    elif (head := world.jobs.head(run.key.job)) is not None:
        job = job_of(world, head)
    return job or Job(run.key.job.name, (MAIN,))


def _single(task: Task, run: Run) -> TaskSeen:
    state = TaskState.WAITING if run.state is RunState.PLANNED else TaskState(run.state)
    return TaskSeen(task.id, task, state, run.reason, run)


def _counted(instances: bytes) -> dict[str, int]:
    states = Counter(state_of(byte) for byte in instances)
    ended = (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED, TaskState.CANCELLED)
    counts = {str(state): states[state] for state in ended}
    return {"total": len(instances), **counts, OPEN: len(instances) - sum(counts.values())}
