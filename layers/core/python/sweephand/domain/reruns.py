"""A run done again in part: which tasks start anew, and which are carried over with their states and outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Self

from msgspec import Struct, field

from sweephand.domain.dag import ENDED, Graph, state_of
from sweephand.domain.mapping import instance_id, parts_of
from sweephand.domain.task import TaskState

__all__ = ["MARKABLE", "MARKS_MAX", "Marks", "Rerun", "carried_over", "marked", "rerun_from_failed", "rerun_from_task"]

MARKS_MAX: Final = 100
MARKABLE: Final = (TaskState.SUCCEEDED, TaskState.SKIPPED)
_STAND: Final = frozenset(MARKABLE)


class Marks(Struct, frozen=True):
    """What somebody says of tasks that a rerun would do again: that they are over, without having been done."""

    by: str = ""
    tasks: Mapping[str, TaskState] = field(default_factory=dict)

    def encode(self) -> dict[str, Any]:
        return {"by": self.by, "tasks": {name: str(state) for name, state in self.tasks.items()}}

    @classmethod
    def decode(cls, stored: Mapping[str, Any]) -> Self:
        tasks = stored.get("tasks") or {}
        return cls(stored.get("by", ""), {name: TaskState(state) for name, state in tasks.items()})


class Rerun(Struct, frozen=True):
    """The tasks that start anew; all others are carried over as they were."""

    anew: frozenset[int]
    first: frozenset[int]
    """Those that need nothing that starts anew. A mapped one among them has the same list as it had."""
    states: bytes
    """The vector that the rerun begins with: what was carried over, and what waits."""


def rerun_from_failed(graph: Graph, states: bytes) -> Rerun:
    """All that neither succeeded nor was skipped, and everything after it, whatever it did then.

    What was skipped stands where nothing before it starts anew: what skipped it would do so again.
    """
    return _rerun(graph, states, [task for task, byte in enumerate(states) if state_of(byte) not in _STAND])


def rerun_from_task(graph: Graph, states: bytes, task: int) -> Rerun:
    """The task and everything after it; the others that have ended stay as they were, failed ones too."""
    return _rerun(graph, states, [task, *(n for n, byte in enumerate(states) if byte not in ENDED)])


def carried_over(old: Graph, new: Graph, rerun: Rerun) -> dict[int, int]:
    """For each task that is carried over its place in the graph that it was done in, by its place in the present one.

    Tasks are the same by their ids. One is carried over only with all that it needs now, only if it had ended, and only
    if it is mapped now as it was then: what comes after it asks for one output, or for a list of them.
    """
    found: dict[int, int] = {}
    for place in sorted(range(len(new.tasks)), key=new.level.__getitem__):
        was = old.places.get(new.tasks[place].id)
        if was is None or was in rerun.anew or rerun.states[was] not in ENDED:
            continue
        if (old.tasks[was].map is None) != (new.tasks[place].map is None):
            continue
        if all(parent in found for parent in new.parents[place]):
            found[place] = was
    return found


def marked(
    graph: Graph, rerun: Rerun, instances: Mapping[int, bytes], known: Collection[int], marks: Marks
) -> dict[str, TaskState]:
    """The runs of tasks that are over by a word, by their names, of those that the rerun would do again.

    `known` are the mapped tasks whose list is the same as it was. A word about one of these is about its instances that
    neither succeeded nor were skipped; about any other mapped task it is about the task, which then has no instances.
    """
    found: dict[str, TaskState] = {}
    for name, state in marks.tasks.items():
        task, index = parts_of(name)
        place = graph.places.get(task)
        if place is None or place not in rerun.anew:
            continue
        own = instances.get(place) if place in known else None
        if own is None:
            found |= {task: state} if index is None else {}
            continue
        left = [n for n, byte in enumerate(own) if state_of(byte) not in _STAND]
        found |= {instance_id(task, n): state for n in left if index in (None, n)}
    return found


def _rerun(graph: Graph, states: bytes, starts: Collection[int]) -> Rerun:
    anew = frozenset(graph.below(starts))
    kept = bytearray(states)
    for task in anew:
        kept[task] = 0
    first = frozenset(task for task in anew if anew.isdisjoint(graph.parents[task]))
    return Rerun(anew, first, bytes(kept))
