"""What a rerun takes over from the run that it repeats: the states of tasks, and copies of their runs; and which of the
others are over by somebody's word."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.domain.dag import Graph, blank, byte_of, byte_of_mapped, state_of
from sweephand.domain.ids import RunId, RunKey
from sweephand.domain.mapping import parts_of
from sweephand.domain.reruns import Marks, Rerun, carried_over, marked, rerun_from_failed, rerun_from_task
from sweephand.domain.run import Run, RunState
from sweephand.domain.task import TaskState
from sweephand.engine.insist import insist
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.mark import Verdict, ended_at_once
from sweephand.engine.whereabouts import APPROVAL
from sweephand.ports import World

FAILED: Final = "failed"
_TASK: Final = "task:"
_PAGE: Final = 500


class Carried(Struct, frozen=True):
    """The vectors that a run begins with."""

    states: bytes = b""
    instances: Mapping[int, bytes] = field(default_factory=dict)


class Past(Struct, frozen=True):
    """An ended run of several tasks, as its tasks' own runs have it."""

    graph: Graph
    states: bytes
    instances: Mapping[int, bytes]
    runs: tuple[Run, ...]


def beginning(task: str) -> str:
    """What a run keeps where it begins with this task."""
    return f"{_TASK}{task}"


def carry_over(world: World, run: Run, graph: Graph) -> Carried:
    """Copy what a rerun takes over into the run, and tell what it begins with.

    A task that is over by somebody's word gets a run that says so, whatever becomes of what it needs; one that asks for
    approval by now asks. All of these are put if they are absent, so that repeating it changes nothing. What can no
    longer be read is done anew.
    """
    nothing = Carried(blank(graph))
    if run.rerun_of is None or run.rerun_from is None:
        return nothing
    old = world.runs.get(RunKey(run.key.job, RunId(run.rerun_of)))
    past = past_of(world, old) if old is not None else None
    rerun = chosen(past, run.rerun_from) if past is not None else None
    if old is None or past is None or rerun is None:
        return nothing
    kept = carried_over(past.graph, graph, rerun)
    again = instances_kept(past, rerun) if old.version == run.version else frozenset()
    names = {past.graph.tasks[was].id for was in kept.values()}
    copies = [
        _copy(world, one, run)
        for one in past.runs
        if one.is_terminal and (parts_of(one.key.task)[0] in names or _is_kept(past.graph, one, again))
    ]
    by_word = _by_word(world, run, graph, marked(past.graph, rerun, past.instances, again, Marks.decode(run.marks)))
    copies += by_word
    for start in range(0, len(copies), _PAGE):
        page = copies[start : start + _PAGE]
        insist(lambda page=page: world.runs.create(page))  # type: ignore[misc]
    states = bytearray(nothing.states)
    for place, was in kept.items():
        states[place] = past.states[was]
    for one in by_word:
        if one.key.task in graph.places:  # an instance has its place once its map is expanded
            states[graph.places[one.key.task]] = byte_of(TaskState(one.state))
    instances = {place: past.instances[was] for place, was in kept.items() if was in past.instances}
    return Carried(bytes(states), instances)


def chosen(past: Past, start: str) -> Rerun | None:
    """The tasks that start anew; None where the one that it begins with was never there."""
    if start == FAILED:
        return rerun_from_failed(past.graph, past.states)
    place = past.graph.places.get(start.removeprefix(_TASK))
    return rerun_from_task(past.graph, past.states, place) if place is not None else None


def past_of(world: World, run: Run) -> Past | None:
    """What became of the tasks of a run; None where it has none, or never began. Reads only."""
    progress = world.dags.get(run.key)
    job = version_of(world, run.key.job, run.version).job if run.version is not None else None
    if progress is None or job is None or not job.is_dag:
        return None
    graph = graph_of(world, run.key.job, run.version or 0, job)
    runs = tuple(tasks_of(world, run.key))
    states, instances = bytearray(progress.states), {n: bytearray(one) for n, one in progress.instances.items()}
    record(graph, [one for one in runs if one.is_terminal], states, instances)
    return Past(graph, bytes(states), {n: bytes(one) for n, one in instances.items()}, runs)


def tasks_of(world: World, key: RunKey) -> Iterator[Run]:
    """The runs of a run's tasks, in the order of their ids."""
    after = ""
    while page := world.runs.tasks(key, after=after, limit=_PAGE):
        yield from page
        after = page[-1].key.task


def record(graph: Graph, ended: Sequence[Run], states: bytearray, instances: Mapping[int, bytearray]) -> frozenset[int]:
    """Write the states of what ended into the vectors; the places that are over by that."""
    touched: set[int] = set()
    for run in ended:
        task, index = parts_of(run.key.task)
        place = graph.named(task)
        if index is None:
            states[place] = byte_of(TaskState(run.state))
        elif place in instances:
            instances[place][index] = byte_of(TaskState(run.state))
        touched.add(place)
    for place in touched & instances.keys():
        states[place] = byte_of_mapped(Counter(map(state_of, instances[place])))
    return frozenset(touched)


def _by_word(world: World, run: Run, graph: Graph, said: Mapping[str, TaskState]) -> list[Run]:
    """The runs of tasks that are over by somebody's word."""
    by, now = Marks.decode(run.marks).by, world.clock.now()
    places = {name: graph.places.get(parts_of(name)[0]) for name in said}
    return [
        ended_at_once(world, run, run.key.of_task(name), Verdict(said[name], by, run.note or ""), now=now)
        for name, place in places.items()
        if place is not None and graph.tasks[place].kind != APPROVAL
    ]


def instances_kept(past: Past, rerun: Rerun) -> frozenset[int]:
    """The mapped tasks that start anew over the same list: of those, instances that succeeded need not run again."""
    tasks = past.graph.tasks
    return frozenset(n for n in rerun.first if (each := tasks[n].map) and "${run." not in json.dumps(each.over))


def _is_kept(graph: Graph, run: Run, again: frozenset[int]) -> bool:
    task, index = parts_of(run.key.task)
    return index is not None and run.state is RunState.SUCCEEDED and graph.places.get(task) in again


def _copy(world: World, old: Run, run: Run) -> Run:
    """The end of a task as a run of its own in another run, which says where it was done."""
    return replace(
        old,
        key=run.key.of_task(old.key.task),
        rerun_of=old.rerun_of or old.key.run_id,
        version=run.version,
        rev=0,
        nonce=world.dice.nonce(),
    )
