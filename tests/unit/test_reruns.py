"""Runs done again in part: what starts anew, and what is carried over."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.domain.dag import Graph, byte_of, compiled, is_over, state_of
from sweephand.domain.reruns import Marks, Rerun, carried_over, marked, rerun_from_failed, rerun_from_task
from sweephand.domain.task import TaskState
from tests.dags.player import Player, job_of
from tests.dags.scripts import script_of

SUCCEEDED, FAILED, SKIPPED = TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED
HELD_UP, CANCELLED, WAITING = TaskState.UPSTREAM_FAILED, TaskState.CANCELLED, TaskState.WAITING

NEEDS = {
    "extract": [],
    "choose": ["extract"],
    "unchosen": ["choose"],
    "load": ["extract"],
    "check": ["load"],
    "clean": ["load"],
    "report": ["check", "unchosen"],
}
ENDS = {
    "extract": SUCCEEDED,
    "choose": SUCCEEDED,
    "unchosen": SKIPPED,
    "load": FAILED,
    "check": HELD_UP,
    "clean": SUCCEEDED,
    "report": HELD_UP,
}
GRAPH: Graph = compiled(
    job_of({"name": "job", "tasks": [{"id": i, "needs": n, "run": {"external": {}}} for i, n in NEEDS.items()]})
)
STATES = bytes(byte_of(ENDS[name]) for name in NEEDS)


def names(places: frozenset[int]) -> set[str]:
    return {GRAPH.tasks[place].id for place in places}


def begins_with(rerun: Rerun) -> dict[str, TaskState]:
    return {task.id: state_of(byte) for task, byte in zip(GRAPH.tasks, rerun.states, strict=True)}


def test_from_failed_carries_over_what_succeeded_and_skips_that_stand() -> None:
    rerun = rerun_from_failed(GRAPH, STATES)
    assert names(rerun.anew) == {"load", "check", "clean", "report"}
    assert names(rerun.first) == {"load"}
    anew = dict.fromkeys(["load", "check", "clean", "report"], WAITING)
    assert begins_with(rerun) == {**ENDS, **anew}


def test_from_failed_takes_up_what_was_cancelled_and_what_never_came() -> None:
    states = bytes(map(byte_of, (SUCCEEDED, CANCELLED, CANCELLED, SUCCEEDED, WAITING, SUCCEEDED, WAITING)))
    assert names(rerun_from_failed(GRAPH, states).anew) == {"choose", "unchosen", "check", "report"}


def test_a_run_without_failures_has_nothing_to_do_again() -> None:
    rerun = rerun_from_failed(GRAPH, bytes([byte_of(SUCCEEDED)]) * len(NEEDS))
    assert not rerun.anew


def test_from_a_task_starts_it_and_everything_after_it() -> None:
    rerun = rerun_from_task(GRAPH, STATES, GRAPH.named("choose"))
    assert names(rerun.anew) == {"choose", "unchosen", "report"}
    assert names(rerun.first) == {"choose"}
    assert begins_with(rerun)["load"] is FAILED


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_a_rerun_from_failed_of_the_same_script_comes_to_the_same_ends(seed: int) -> None:
    script = script_of(seed, tasks_max=30)
    first = Player(script, Random(seed))
    ends = first.play()
    again = Player(script, Random(seed + 1))
    rerun = rerun_from_failed(again.graph, first.states)
    again.states, again.instances, again.outputs = rerun.states, first.instances, first.outputs
    carried = {task.id for place, task in enumerate(again.graph.tasks) if place not in rerun.anew}
    again.known["tasks"] = {name: one for name, one in first.known["tasks"].items() if name in carried}
    for place in rerun.anew:
        again.instances.pop(place, None)
    assert again.play() == ends
    for task, parents in enumerate(again.graph.parents):
        assert (task in rerun.anew) >= (not rerun.anew.isdisjoint(parents)), "what needs something new is new"
        assert (task in rerun.first) == (task in rerun.anew and rerun.anew.isdisjoint(parents))


def test_a_task_that_is_mapped_now_and_was_not_then_is_not_carried_over() -> None:
    """Its output would be another thing: that of one run, or the list of what instances gave."""

    def graph(**load: object) -> Graph:
        tasks: list[dict[str, object]] = [
            {"id": "a"},
            {"id": "load", "needs": ["a"], **load},
            {"id": "b", "needs": ["load"]},
        ]
        return compiled(job_of({"name": "job", "tasks": [{"run": {"external": {}}, **one} for one in tasks]}))

    plain, mapped = graph(), graph(map={"over": [1, 2]})
    nothing_anew = Rerun(frozenset(), frozenset(), bytes(map(byte_of, (SUCCEEDED, SUCCEEDED, SUCCEEDED))))
    assert carried_over(plain, mapped, nothing_anew) == {0: 0}
    assert carried_over(mapped, plain, nothing_anew) == {0: 0}
    assert carried_over(mapped, mapped, nothing_anew) == {0: 0, 1: 1, 2: 2}


# What somebody says of what would be done again.


def mapped_graph() -> Graph:
    tasks: list[dict[str, object]] = [{"id": "list"}, {"id": "load", "needs": ["list"], "map": {"over": [0, 1, 2, 3]}}]
    return compiled(job_of({"name": "job", "tasks": [{"run": {"external": {}}, **one} for one in tasks]}))


def said(**tasks: TaskState) -> Marks:
    return Marks("ann", tasks)


def test_only_what_would_be_done_again_is_over_by_a_word() -> None:
    rerun = rerun_from_failed(GRAPH, STATES)
    word = said(load=SUCCEEDED, check=SKIPPED, extract=SKIPPED, unknown=SUCCEEDED)
    assert marked(GRAPH, rerun, {}, (), word) == {"load": SUCCEEDED, "check": SKIPPED}


def test_a_word_about_a_mapped_task_is_about_its_instances_while_its_list_is_known() -> None:
    graph, place = mapped_graph(), 1
    instances = {place: bytes(map(byte_of, (SUCCEEDED, FAILED, SKIPPED, CANCELLED)))}
    rerun = rerun_from_failed(graph, bytes(map(byte_of, (SUCCEEDED, FAILED))))
    known = rerun.first
    both = {"load[1]": SUCCEEDED, "load[3]": SUCCEEDED}
    assert marked(graph, rerun, instances, known, said(load=SUCCEEDED)) == both
    assert marked(graph, rerun, instances, known, Marks("ann", {"load[3]": SKIPPED})) == {"load[3]": SKIPPED}
    assert marked(graph, rerun, instances, known, Marks("ann", {"load[0]": SKIPPED, "load[9]": SKIPPED})) == {}
    assert marked(graph, rerun, instances, (), said(load=SKIPPED)) == {"load": SKIPPED}
    assert marked(graph, rerun, instances, (), Marks("ann", {"load[1]": SKIPPED})) == {}


def test_marks_come_back_as_they_were_stored() -> None:
    word = said(load=SUCCEEDED, check=SKIPPED)
    assert Marks.decode(word.encode()) == word
    assert Marks.decode({}) == Marks()


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_what_is_over_by_a_word_stays_so_and_the_rest_comes_to_an_end(seed: int) -> None:
    """Also where what it needs starts anew: nothing decides a second time about what is over."""
    script = script_of(seed, tasks_max=30)
    first = Player(script, Random(seed))
    first.play()
    again = Player(script, Random(seed + 1))
    rerun = rerun_from_failed(again.graph, first.states)
    names = [again.graph.tasks[place].id for place in sorted(rerun.anew)]
    word = {name: SUCCEEDED if n % 2 else SKIPPED for n, name in enumerate(names) if n % 3}
    done = marked(again.graph, rerun, {}, (), Marks("ann", word))
    assert done == word
    states = bytearray(rerun.states)
    for name, state in done.items():
        states[again.graph.named(name)] = byte_of(state)
    again.states, again.outputs = bytes(states), first.outputs
    again.instances = {place: one for place, one in first.instances.items() if place not in rerun.anew}
    carried = {task.id for place, task in enumerate(again.graph.tasks) if place not in rerun.anew}
    again.known["tasks"] = {name: one for name, one in first.known["tasks"].items() if name in carried}
    ends = again.play()
    assert {name: ends[name] for name in done} == done
    assert is_over(again.states)
