"""What can start: Airflow's table over the whole product, and random DAGs against a naive interpreter."""

from __future__ import annotations

import os
from itertools import product
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.domain.dag import blank, byte_of, byte_of_mapped, compiled, state_of
from sweephand.domain.job import TriggerRule
from sweephand.domain.mapping import Instance
from sweephand.domain.ready import Decided, ready
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.task import TaskEvent, TaskState
from tests.dags.player import Player, job_of
from tests.dags.reference import Reference
from tests.dags.scripts import JSON, script_of

SOAK: Final = os.environ.get("SWEEPHAND_SOAK") == "1"
SUCCEEDED, FAILED, SKIPPED = TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED
QUEUED, WAITING, RUNNING, HELD_UP = TaskState.QUEUED, TaskState.WAITING, TaskState.RUNNING, TaskState.UPSTREAM_FAILED


def task(name: str, *needs: str, **fields: Any) -> JSON:
    return {"id": name, "needs": list(needs), "run": {"external": {}}, **fields}


class Dag:
    """A graph with states by name."""

    def __init__(self, *tasks: JSON, **fields: Any) -> None:
        self.graph = compiled(job_of({"name": "job", "tasks": list(tasks), **fields}))
        self.states = blank(self.graph)

    def put(self, **states: TaskState | int) -> Dag:
        changed = bytearray(self.states)
        for name, state in states.items():
            changed[self.graph.places[name]] = byte_of(state) if isinstance(state, TaskState) else state
        self.states = bytes(changed)
        return self

    def look(self, *changed: str, outputs: JSON | None = None, params: JSON | None = None) -> dict[str, TaskState]:
        """The states of all tasks after a look at what changed, by default at everything."""
        self.decide(*changed, outputs=outputs, params=params)
        return {one.id: state_of(byte) for one, byte in zip(self.graph.tasks, self.states, strict=True)}

    def decide(self, *changed: str, outputs: JSON | None = None, params: JSON | None = None) -> Decided:
        known = {"params": params or {}, "tasks": {name: {"output": one} for name, one in (outputs or {}).items()}}
        places = [self.graph.places[name] for name in changed] if changed else None
        self.decided = ready(self.graph, self.states, places, known)
        self.states = self.decided.states
        return self.decided

    def reason(self, name: str) -> tuple[ReasonCode, str]:
        reasons = [one.reason for one in self.decided.moves if one.task == self.graph.places[name]]
        assert len(reasons) == 1
        assert reasons[0] is not None
        return reasons[0].code, reasons[0].detail


# Airflow's table: for each rule, what becomes of a task by what its parents did (s: succeeded, f: failed, k: skipped,
# u: upstream_failed), however many of them did each. R: it runs, K: it is skipped, U: it is upstream_failed.
PARENTS: Final = ["s", "f", "k", "u", "sf", "sk", "su", "fk", "fu", "ku", "sfk", "sfu", "sku", "fku", "sfku"]
AIRFLOW: Final = {
    "all_success": "R U K U U K U U U U U U U U U",
    "all_failed": "K R K R K K K K R K K K K K K",
    "all_done": "R R R R R R R R R R R R R R R",
    "one_success": "R U K U R R R U U U R R R U R",
    "one_failed": "K R K R R K R R R R R R R R R",
    "one_done": "R R K K R R R R R K R R R R R",
    "none_failed": "R U R U U R U U U U U U U U U",
    "none_failed_min_one_success": "R U K U U R U U U U U U U U U",
    "none_skipped": "R R K R R K R K R K K R K K K",
    "always": "R R R R R R R R R R R R R R R",
}
# And what is decided while other parents are still open: as soon as nothing that they do can change it. Airflow's
# all_success is skipped at once after a skipped parent, and so does not see a failure that comes later; ours waits.
AIRFLOW_EARLY: Final = {
    "all_success": {"U": "fu"},
    "all_failed": {"K": "sk"},
    "all_done": {},
    "one_success": {"R": "s"},
    "one_failed": {"R": "fu"},
    "one_done": {"R": "sf"},
    "none_failed": {"U": "fu"},
    "none_failed_min_one_success": {"U": "fu"},
    "none_skipped": {"K": "k"},
    "always": {"R": "sfku"},
}
MEANING: Final = {"s": SUCCEEDED, "f": FAILED, "k": SKIPPED, "u": HELD_UP, "R": QUEUED, "K": SKIPPED, "U": HELD_UP}
NAMES: Final = "abc"


def fan_in(rule: str, count: int) -> Dag:
    parents = NAMES[:count]
    return Dag(*(task(one) for one in parents), task("child", *parents, when=rule))


@pytest.mark.parametrize("rule", TriggerRule)
def test_every_rule_gives_airflows_result_for_every_combination_of_three_parents(rule: TriggerRule) -> None:
    table = dict(zip(PARENTS, AIRFLOW[rule].split(), strict=True))
    for count in (1, 2, 3):
        for ends in product("sfku", repeat=count):
            dag = fan_in(rule, count).put(**{name: MEANING[end] for name, end in zip(NAMES, ends, strict=False)})
            wanted = table["".join(sorted(set(ends), key="sfku".index))]
            assert dag.look("a")["child"] is MEANING[wanted], (rule, ends)


@pytest.mark.parametrize("rule", TriggerRule)
def test_a_rule_decides_early_exactly_where_nothing_can_change_it(rule: TriggerRule) -> None:
    for count in (1, 2, 3):
        for ends in product("sfku.", repeat=count):
            if "." not in ends:
                continue
            states = {n: MEANING.get(end, RUNNING) for n, end in zip(NAMES, ends, strict=False)}
            early = [what for what, ends_of in AIRFLOW_EARLY[rule].items() if set(ends) & set(ends_of)]
            wanted = MEANING[early[0]] if early else QUEUED if rule == "always" else WAITING
            assert fan_in(rule, count).put(**states).look()["child"] is wanted, (rule, ends)


@pytest.mark.parametrize("rule", TriggerRule)
def test_a_task_without_needs_runs_whatever_its_rule(rule: TriggerRule) -> None:
    assert Dag(task("only", when=rule)).look()["only"] is QUEUED


def test_a_cancelled_parent_is_a_failed_one() -> None:
    for rule in TriggerRule:
        cancelled, failed = (fan_in(rule, 1).put(a=end).look("a") for end in (TaskState.CANCELLED, FAILED))
        assert cancelled["child"] is failed["child"]


def test_what_is_decided_decides_what_comes_after() -> None:
    dag = Dag(task("a"), task("b", "a"), task("c", "b"), task("end", "c", when="all_done"), task("other"))
    assert dag.put(a=FAILED, other=RUNNING).look("a") == {
        "a": FAILED,
        "b": HELD_UP,
        "c": HELD_UP,
        "end": QUEUED,
        "other": RUNNING,
    }
    assert [dag.graph.tasks[move.task].id for move in dag.decided.moves] == ["b", "c", "end"]
    assert dag.reason("b") == (ReasonCode.UPSTREAM, "all_success: task 'a' failed.")
    assert dag.reason("c") == (ReasonCode.UPSTREAM, "all_success: task 'b' was held up by a failure.")
    assert not dag.decide("a").moves


@given(st.integers(0, 2**32), st.integers(0, 2**32))
@settings(max_examples=5_000 if SOAK else 150, deadline=None)
def test_tasks_that_end_in_any_order_come_to_what_the_reference_says(seed: int, order: int) -> None:
    script = script_of(seed, tasks_max=60)
    assert Player(script, Random(order)).play() == Reference(script).ends


def test_generated_dags_have_everything_in_them() -> None:
    scripts = [script_of(seed, attempts_max=3) for seed in range(60)]
    documents = [one for script in scripts for one in script.document["tasks"]]
    assert {one["when"] for one in documents} == set(TriggerRule)
    assert all(any(field in one for one in documents) for field in ("map", "if", "branch", "group", "retry"))
    ends = [end for script in scripts for end in Reference(script).ends.values()]
    assert min(map(ends.count, (SUCCEEDED, FAILED, SKIPPED, HELD_UP))) > 100
    assert all(ending.how == "failed" for script in scripts for one in script.endings.values() for ending in one[:-1])


# Conditions.


def test_a_condition_that_does_not_hold_skips_its_task() -> None:
    dag = Dag(task("a"), task("b", "a", **{"if": "${tasks.a.output.rows} > 0"})).put(a=SUCCEEDED)
    assert dag.look("a", outputs={"a": {"rows": 0}})["b"] is SKIPPED
    assert dag.reason("b") == (ReasonCode.CONDITION, "${tasks.a.output.rows} > 0 does not hold.")
    assert dag.put(b=WAITING).look("a", outputs={"a": {"rows": 1}})["b"] is QUEUED


def test_a_condition_that_nobody_can_tell_fails_its_task() -> None:
    dag = Dag(task("a"), task("b", "a", **{"if": "${tasks.a.output.rows} > 0"}), task("c", "b")).put(a=SUCCEEDED)
    assert dag.look("a", outputs={"a": {"rows": "many"}}) == {"a": SUCCEEDED, "b": FAILED, "c": HELD_UP}
    code, detail = dag.reason("b")
    assert code is ReasonCode.CONDITION
    assert "'many' (text) and 0 (a number)" in detail


def test_a_condition_may_ask_for_the_output_of_what_was_decided_just_before() -> None:
    last = task("c", "b", when="all_done", **{"if": "${tasks.b.output} == null"})
    dag = Dag(task("a"), task("b", "a"), last).put(a=FAILED)
    assert dag.look("a")["c"] is QUEUED


def test_a_condition_is_not_asked_where_the_rule_says_no() -> None:
    dag = Dag(task("a"), task("b", "a", **{"if": "${tasks.a.output.rows} > 0"})).put(a=FAILED)
    assert dag.look("a")["b"] is HELD_UP


# Branches.


def branching() -> Dag:
    join = task("join", "left", "right", when="none_failed_min_one_success")
    return Dag(task("pick", branch=True), task("left", "pick"), task("right", "pick"), join).put(pick=SUCCEEDED)


@pytest.mark.parametrize(
    ("output", "left", "right"),
    [
        ("left", QUEUED, SKIPPED),
        (["right"], SKIPPED, QUEUED),
        (["left", "right"], QUEUED, QUEUED),
        ([], SKIPPED, SKIPPED),
    ],
)
def test_a_branch_skips_what_it_does_not_choose(output: Any, left: TaskState, right: TaskState) -> None:
    dag = branching()
    states = dag.look("pick", outputs={"pick": output})
    assert (states["left"], states["right"]) == (left, right)
    if SKIPPED not in (left, right):
        return
    dag.put(**{name: SUCCEEDED for name in ("left", "right") if states[name] is QUEUED})
    assert dag.look("left", "right", outputs={"pick": output})["join"] is (QUEUED if output else SKIPPED)


def test_what_a_branch_does_not_choose_is_skipped_whatever_its_rule() -> None:
    for rule in TriggerRule:
        dag = Dag(task("pick", branch=True), task("other"), task("a", "pick", "other", when=rule), task("b", "pick"))
        dag.put(pick=SUCCEEDED, other=RUNNING)
        wanted = QUEUED if rule is TriggerRule.ALWAYS else SKIPPED
        assert dag.look("pick", outputs={"pick": "b"})["a"] is wanted, rule


def test_a_task_waits_for_the_branch_that_may_skip_it() -> None:
    dag = Dag(
        task("pick", branch=True), task("other"), task("a", "pick", "other", when="one_success"), task("b", "pick")
    )
    assert dag.put(pick=RUNNING, other=SUCCEEDED).look("other")["a"] is WAITING
    assert dag.put(pick=SUCCEEDED).look("pick", outputs={"pick": "b"})["a"] is SKIPPED
    assert dag.reason("a") == (ReasonCode.BRANCH, "Branch 'pick' did not choose it.")


def test_a_join_that_needs_the_branch_itself_goes_on_with_what_was_chosen() -> None:
    dag = Dag(task("pick", branch=True), task("left", "pick"), task("join", "pick", "left"), task("right", "pick"))
    states = dag.put(pick=SUCCEEDED).look("pick", outputs={"pick": "left"})
    assert (states["left"], states["join"], states["right"]) == (QUEUED, WAITING, SKIPPED)


def test_a_branch_that_failed_or_was_marked_without_a_choice_leaves_it_to_the_rules() -> None:
    assert branching().put(pick=FAILED).look("pick")["left"] is HELD_UP
    states = branching().look("pick", outputs={"pick": None})
    assert (states["left"], states["right"]) == (QUEUED, QUEUED)


# Maps.


def mapping(**fields: Any) -> Dag:
    load = task("load", "list", map={"over": "${tasks.list.output}", "max": 3}, **fields)
    return Dag(task("list"), load, task("end", "load")).put(list=SUCCEEDED)


def test_a_map_is_released_with_an_instance_for_each_item() -> None:
    dag = mapping()
    assert dag.look("list", outputs={"list": ["x", {"y": 1}]})["load"] is QUEUED
    (move,) = dag.decided.moves
    assert (move.event, move.instances) == (TaskEvent.RELEASED, (Instance(0, "x"), Instance(1, {"y": 1})))


@pytest.mark.parametrize(
    ("output", "state", "detail"),
    [
        ([], SKIPPED, "The list that it is mapped over is empty."),
        ([1, 2, 3, 4], FAILED, "The list has 4 items: map.max of the task is 3."),
        ("abc", FAILED, "'abc' is not a list: a task is mapped over the items of one."),
        ({"a": 1}, FAILED, "{'a': 1} is not a list: a task is mapped over the items of one."),
        (None, FAILED, "None is not a list: a task is mapped over the items of one."),
        (list(range(10**6)), FAILED, "take more than 1048576 bytes"),
    ],
    ids=["empty", "too long", "text", "object", "nothing", "a million"],
)
def test_what_is_no_list_for_a_map_ends_the_task_with_the_reason(output: Any, state: TaskState, detail: str) -> None:
    dag = mapping()
    assert dag.look("list", outputs={"list": output})["load"] is state
    code, found = dag.reason("load")
    assert code is ReasonCode.MAP
    assert detail in found


def test_a_run_has_so_many_instances_and_no_more() -> None:
    dag = mapping().put(list=SUCCEEDED)
    known = {"tasks": {"list": {"output": [1, 2, 3]}}}
    fits = ready(dag.graph, dag.states, [0], known, instances=100_000 - 3)
    assert fits.moves[0].event is TaskEvent.RELEASED
    (full, _) = ready(dag.graph, dag.states, [0], known, instances=100_000 - 2).moves
    assert full.event is TaskEvent.FAILED
    assert "99998 instances already" in str(full.reason)


def test_a_condition_about_the_item_is_asked_for_each() -> None:
    dag = mapping(**{"if": "${item} > 1 or ${index} == 2"})
    dag.look("list", outputs={"list": [1, 2, 1]})
    assert [one.skipped is None for one in dag.decided.moves[0].instances] == [False, True, True]
    dag = mapping(**{"if": "${item} > 1"})
    assert dag.look("list", outputs={"list": [1, 0]})["end"] is SKIPPED
    assert dag.reason("load") == (ReasonCode.CONDITION, "${item} > 1 holds for none of 2 items.")


def test_an_instance_that_is_skipped_from_the_start_is_news_at_once() -> None:
    load = task("load", "a", map={"over": [1, 2]}, **{"if": "${item} > 1"})
    states = Dag(task("a"), load, task("end", "load", when="none_skipped")).put(a=SUCCEEDED).look("a")
    assert (states["load"], states["end"]) == (QUEUED, SKIPPED)


def test_children_judge_the_instances_of_a_map() -> None:
    some_skipped = byte_of_mapped({SUCCEEDED: 2, SKIPPED: 1})
    assert state_of(some_skipped) is SUCCEEDED
    assert mapping().put(load=some_skipped).look("load")["end"] is SKIPPED
    for rule, state in (("none_failed", QUEUED), ("one_success", QUEUED), ("none_skipped", SKIPPED)):
        dag = Dag(task("load", map={"over": [1, 2, 3]}), task("end", "load", when=rule)).put(load=some_skipped)
        assert dag.look("load")["end"] is state


def test_rules_that_do_not_wait_for_all_parents_do_not_wait_for_all_instances() -> None:
    one_failed = byte_of_mapped({FAILED: 1, RUNNING: 2})
    assert state_of(one_failed) is RUNNING
    assert mapping().put(load=one_failed).look("load")["end"] is HELD_UP
    dag = Dag(task("load", map={"over": [1, 2, 3]}), task("end", "load", when="one_success")).put(load=one_failed)
    assert dag.look("load")["end"] is WAITING
    assert dag.put(load=byte_of_mapped({FAILED: 1, SUCCEEDED: 1, RUNNING: 1})).look("load")["end"] is QUEUED


# Failing fast.


def test_where_a_failure_stops_the_run_nothing_else_starts() -> None:
    tasks = [task("a"), task("b"), task("c"), task("d", "b"), task("e", "d"), task("f", "a")]
    dag = Dag(*tasks, onFailure="stop").put(a=FAILED, b=RUNNING, c=QUEUED)
    states = dag.look("a")
    assert states == {
        "a": FAILED,
        "b": RUNNING,
        "c": TaskState.CANCELLED,
        "d": TaskState.CANCELLED,
        "e": TaskState.CANCELLED,
        "f": TaskState.CANCELLED,
    }
    assert dag.reason("d") == (ReasonCode.STOPPED, "Task 'a' failed, and onFailure is stop.")
    assert not dag.put(b=SUCCEEDED).decide("b").moves


def test_a_condition_that_fails_its_task_stops_the_run_as_well() -> None:
    wrong = task("b", "a", **{"if": "${tasks.a.output}"})
    dag = Dag(task("a"), task("first", "a"), wrong, task("last", "a"), onFailure="stop").put(a=SUCCEEDED)
    gone = TaskState.CANCELLED
    assert dag.look("a", outputs={"a": 1}) == {"a": SUCCEEDED, "first": gone, "b": FAILED, "last": gone}
    moves = {dag.graph.tasks[move.task].id: move.event for move in dag.decided.moves}
    assert moves == {"b": TaskEvent.FAILED, "first": TaskEvent.CANCELLED, "last": TaskEvent.CANCELLED}
    assert len(dag.decided.moves) == 3
