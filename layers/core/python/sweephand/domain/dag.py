"""A job's tasks as a graph, and what becomes of each when others end: all of it pure, and nothing recurses.

The states of a run's tasks are a vector of one byte each, in the order of the job's tasks. The low half of a byte is
the state; the high half is what a task gives its children to judge: whether it, or an instance of it where it is
mapped, succeeded, failed, was skipped or was held up. Trigger rules ask for nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.fields import nearest, shown
from sweephand.domain.job import Job, OnFailure, Task
from sweephand.domain.task import TaskState
from sweephand.errors import InvalidInput

__all__ = [
    "ENDED",
    "FAILED",
    "HELD_UP",
    "SKIPPED",
    "SUCCEEDED",
    "Graph",
    "Summary",
    "blank",
    "byte_of",
    "byte_of_mapped",
    "chosen",
    "compiled",
    "is_over",
    "levels",
    "state_of",
    "summary",
]

_CODES: Final[Mapping[TaskState, int]] = {
    TaskState.WAITING: 0,
    TaskState.QUEUED: 1,
    TaskState.RUNNING: 2,
    TaskState.RETRYING: 3,
    TaskState.SUCCEEDED: 4,
    TaskState.FAILED: 5,
    TaskState.CANCELLED: 6,
    TaskState.SKIPPED: 7,
    TaskState.UPSTREAM_FAILED: 8,
}
"""Stored: never renumbered."""
_STATES: Final = {code: state for state, code in _CODES.items()}
_CODE: Final = 0x0F

SUCCEEDED: Final = 0x10
FAILED: Final = 0x20
SKIPPED: Final = 0x40
HELD_UP: Final = 0x80
"""What a task, or one of its instances, did; a cancelled one counts as failed."""

_SEEN: Final[Mapping[TaskState, int]] = {
    TaskState.SUCCEEDED: SUCCEEDED,
    TaskState.FAILED: FAILED,
    TaskState.CANCELLED: FAILED,
    TaskState.SKIPPED: SKIPPED,
    TaskState.UPSTREAM_FAILED: HELD_UP,
}
ENDED: Final = frozenset(byte for byte in range(256) if _STATES.get(byte & _CODE) in _SEEN)
"""The bytes of tasks that are over."""
_ENDED_BYTES: Final = bytes(sorted(ENDED))


class Graph(Struct, frozen=True):
    """Who needs whom, by the places of the tasks in their job."""

    tasks: tuple[Task, ...]
    places: Mapping[str, int]
    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]
    level: tuple[int, ...]
    """The longest way to a task from one that needs nothing."""
    branches: tuple[tuple[int, ...], ...]
    """The parents of a task that choose what goes on after them."""
    leaves: tuple[int, ...]
    """The last tasks, those that nothing needs: they decide the run."""
    on_failure: OnFailure = OnFailure.FINISH

    def below(self, starts: Iterable[int], *, level_max: int | None = None) -> set[int]:
        """These tasks and all that come after them, down to a level."""
        return _reached(self.children, starts, lambda n: level_max is None or self.level[n] <= level_max)

    def above(self, starts: Iterable[int]) -> set[int]:
        """These tasks and all that they need, directly or not."""
        return _reached(self.parents, starts, lambda _n: True)

    def named(self, task: str) -> int:
        """A task's place."""
        found = self.places.get(task)
        if found is None:
            raise InvalidInput(f"There is no task '{task[:128]}'{nearest(task, self.places)}")
        return found


def compiled(job: Job) -> Graph:
    """The graph of a job, which has no cycle: `parse` refused those."""
    places = {task.id: n for n, task in enumerate(job.tasks)}
    parents = tuple(tuple(places[need] for need in task.needs) for task in job.tasks)
    children: list[list[int]] = [[] for _ in job.tasks]
    for n, needed in enumerate(parents):
        for parent in needed:
            children[parent].append(n)
    return Graph(
        tasks=job.tasks,
        places=places,
        parents=parents,
        children=tuple(map(tuple, children)),
        level=levels(parents, children),
        branches=tuple(tuple(parent for parent in needed if job.tasks[parent].branch) for needed in parents),
        leaves=tuple(n for n, after in enumerate(children) if not after),
        on_failure=job.on_failure,
    )


def levels(parents: Sequence[Sequence[int]], children: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """For each task the longest way to it; tasks of one level do not need each other."""
    level = [0] * len(parents)
    waiting = [len(needed) for needed in parents]
    ready = [n for n, count in enumerate(waiting) if not count]
    while ready:
        done = ready.pop()
        for child in children[done]:
            level[child] = max(level[child], level[done] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return tuple(level)


def _reached(edges: Sequence[Sequence[int]], starts: Iterable[int], is_within: Callable[[int], bool]) -> set[int]:
    found = set(starts)
    ahead = list(found)
    while ahead:
        for n in edges[ahead.pop()]:
            if n not in found and is_within(n):
                found.add(n)
                ahead.append(n)
    return found


# The vector.


def blank(graph: Graph) -> bytes:
    """The vector of a run of which nothing has begun."""
    return bytes(len(graph.tasks))


def byte_of(state: TaskState) -> int:
    """The byte of a task that is not mapped."""
    return _CODES[state] | _SEEN.get(state, 0)


def byte_of_mapped(instances: Mapping[TaskState, int]) -> int:
    """The byte of a mapped task by how many of its instances are in each state, ended or not.

    As a whole it failed if one failed, and was skipped if all were. Its children judge the instances: one that was
    skipped beside others that succeeded is a skipped one for `all_success`, as Airflow has it.
    """
    found = {state for state, count in instances.items() if count}
    seen = 0
    for state in found:
        seen |= _SEEN.get(state, 0)
    if open_states := found - _SEEN.keys():
        started = bool(seen & ~SKIPPED) or bool(open_states - {TaskState.WAITING, TaskState.QUEUED})
        state = TaskState.RUNNING if started else TaskState.QUEUED
    elif found == {TaskState.CANCELLED}:
        state = TaskState.CANCELLED
    elif seen & (FAILED | HELD_UP):
        state = TaskState.FAILED
    elif seen & SUCCEEDED:
        state = TaskState.SUCCEEDED
    else:
        state = TaskState.SKIPPED
    return _CODES[state] | seen


def state_of(byte: int) -> TaskState:
    """The state that a byte of a vector stands for."""
    return _STATES[byte & _CODE]


def is_over(states: bytes) -> bool:
    """Whether every task has ended."""
    return not states.translate(None, _ENDED_BYTES)


# The run as a whole.


class Summary(Struct, frozen=True):
    """What a run came to, or has come to so far."""

    counts: Mapping[TaskState, int]
    is_over: bool
    is_failed: bool
    """Whether a last task failed, was cancelled or was held up; Airflow's outcome of a run."""

    @property
    def forgiven(self) -> int:
        """Tasks that failed in a run that succeeded: something after them was made for it."""
        return 0 if self.is_failed else self.counts[TaskState.FAILED] + self.counts[TaskState.CANCELLED]


def summary(graph: Graph, states: bytes) -> Summary:
    """How many tasks are in each state, and how the last ones ended."""
    counts = Counter(dict.fromkeys(TaskState, 0))
    for byte, count in Counter(states).items():
        counts[state_of(byte)] += count
    failed = (TaskState.FAILED, TaskState.CANCELLED, TaskState.UPSTREAM_FAILED)
    return Summary(counts, is_over(states), any(state_of(states[leaf]) in failed for leaf in graph.leaves))


# Branches.


def chosen(graph: Graph, branch: int, output: Any) -> frozenset[int]:
    """The children that go on after a branch, or a refusal of an output that names none of them.

    A child that also comes after a chosen one goes on too, as in Airflow: a join may need the branch itself.
    """
    task = graph.tasks[branch]
    names = [output] if isinstance(output, str) else output
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise InvalidInput(
            f"{shown(output)} chooses nothing: the output of branch '{task.id}' is the id of a task that needs it, "
            "or a list of such ids, which may be empty."
        )
    children = {graph.tasks[child].id: child for child in graph.children[branch]}
    for one in names:
        if one not in children:
            raise InvalidInput(f"No task '{one[:128]}' needs branch '{task.id}'{nearest(one, children)}")
    picked = {children[one] for one in names}
    if len(picked) == len(children) or not picked:
        return frozenset(picked)
    lowest = max(graph.level[child] for child in children.values())
    return frozenset(graph.below(picked, level_max=lowest).intersection(children.values()))
