"""The graph of a job's tasks, the vector of their states, what a run came to, and how large all of it may be."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.dag import (
    ENDED,
    Graph,
    blank,
    byte_of,
    byte_of_mapped,
    chosen,
    compiled,
    is_over,
    state_of,
    summary,
)
from sweephand.domain.limits import TASKS_MAX
from sweephand.domain.ready import ready
from sweephand.domain.task import TASK_LIFECYCLE, TaskState
from sweephand.errors import InvalidInput
from tests.dags.player import job_of
from tests.dags.scripts import script_of

SUCCEEDED, FAILED, SKIPPED = TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED
CANCELLED, HELD_UP, RUNNING = TaskState.CANCELLED, TaskState.UPSTREAM_FAILED, TaskState.RUNNING


def graph_of(needs: dict[str, list[str]], **fields: dict[str, Any]) -> Graph:
    tasks = [{"id": one, "needs": ends, "run": {"external": {}}, **fields.get(one, {})} for one, ends in needs.items()]
    return compiled(job_of({"name": "job", "tasks": tasks}))


def chain(count: int) -> Graph:
    return graph_of({f"t{n}": [f"t{n - 1}"] if n else [] for n in range(count)})


DIAMOND = graph_of({"end": ["left", "right"], "left": ["start"], "right": ["start"], "start": []})


def test_a_graph_knows_both_ends_of_its_edges_whatever_the_order_of_its_tasks() -> None:
    assert DIAMOND.places == {"end": 0, "left": 1, "right": 2, "start": 3}
    assert DIAMOND.parents == ((1, 2), (3,), (3,), ())
    assert DIAMOND.children == ((), (0,), (0,), (1, 2))
    assert DIAMOND.level == (2, 1, 1, 0)
    assert DIAMOND.leaves == (0,)
    assert DIAMOND.below([1]) == {1, 0}
    assert DIAMOND.above([1]) == {1, 3}
    assert DIAMOND.named("left") == 1
    with pytest.raises(InvalidInput, match="did you mean 'left'"):
        DIAMOND.named("lefd")


@given(st.integers(0, 10_000))
def test_a_task_is_exactly_one_level_below_the_lowest_that_it_needs(seed: int) -> None:
    graph = compiled(job_of(script_of(seed, tasks_max=25).document))
    for task, parents in enumerate(graph.parents):
        assert graph.level[task] == max((graph.level[parent] + 1 for parent in parents), default=0)


# The vector.


def test_every_state_has_a_byte_of_its_own_that_never_changes() -> None:
    assert [byte_of(state) for state in TaskState] == [0x00, 0x01, 0x02, 0x03, 0x14, 0x25, 0x26, 0x47, 0x88]
    for state in TaskState:
        assert state_of(byte_of(state)) is state
        assert (byte_of(state) in ENDED) == (state in TASK_LIFECYCLE.terminal)
    assert set(blank(DIAMOND)) == {byte_of(TaskState.WAITING)}


@pytest.mark.parametrize(
    ("instances", "state"),
    [
        ({SUCCEEDED: 3}, SUCCEEDED),
        ({SUCCEEDED: 3, FAILED: 0}, SUCCEEDED),
        ({SUCCEEDED: 3, SKIPPED: 1}, SUCCEEDED),
        ({SKIPPED: 2}, SKIPPED),
        ({SUCCEEDED: 3, FAILED: 1}, FAILED),
        ({SKIPPED: 3, FAILED: 1}, FAILED),
        ({SUCCEEDED: 3, CANCELLED: 1}, FAILED),
        ({CANCELLED: 2}, CANCELLED),
        ({SUCCEEDED: 1, TaskState.QUEUED: 1}, RUNNING),
        ({FAILED: 1, TaskState.RETRYING: 1}, RUNNING),
        ({SKIPPED: 1, TaskState.QUEUED: 1}, TaskState.QUEUED),
        ({TaskState.QUEUED: 2}, TaskState.QUEUED),
        ({TaskState.QUEUED: 2, RUNNING: 1}, RUNNING),
    ],
)
def test_a_mapped_task_is_in_the_state_that_its_instances_add_up_to(
    instances: dict[TaskState, int], state: TaskState
) -> None:
    byte = byte_of_mapped(instances)
    assert state_of(byte) is state
    assert (byte in ENDED) == (state in TASK_LIFECYCLE.terminal)
    seen = 0
    for one, count in instances.items():
        seen |= byte_of(one) & 0xF0 if count else 0
    assert byte & 0xF0 == seen


# What a run came to.


@pytest.mark.parametrize(
    ("states", "failed", "forgiven"),
    [
        ({"a": SUCCEEDED, "b": SUCCEEDED, "c": SUCCEEDED}, False, 0),
        ({"a": SUCCEEDED, "b": FAILED, "c": SUCCEEDED}, True, 0),
        ({"a": FAILED, "b": SKIPPED, "c": SUCCEEDED}, False, 1),
        ({"a": SKIPPED, "b": SKIPPED, "c": SKIPPED}, False, 0),
        ({"a": FAILED, "b": HELD_UP, "c": SUCCEEDED}, True, 0),
        ({"a": SUCCEEDED, "b": CANCELLED, "c": SUCCEEDED}, True, 0),
    ],
)
def test_the_last_tasks_decide_what_a_run_came_to(states: dict[str, TaskState], failed: bool, forgiven: int) -> None:
    graph = graph_of({"a": [], "b": ["a"], "c": ["a"]})
    found = summary(graph, bytes(byte_of(states[task.id]) for task in graph.tasks))
    assert (found.is_over, found.is_failed, found.forgiven) == (True, failed, forgiven)
    assert {state: count for state, count in found.counts.items() if count} == Counter(states.values())


def test_a_run_is_over_when_every_task_is() -> None:
    over = bytes(map(byte_of, (SUCCEEDED, FAILED, CANCELLED, SKIPPED)))
    assert is_over(over)
    for state in set(TaskState) - TASK_LIFECYCLE.terminal:
        assert not is_over(over[:3] + bytes([byte_of(state)]))
    assert not summary(DIAMOND, blank(DIAMOND)).is_over


# Branches.


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (None, "None chooses nothing"),
        (3, "3 chooses nothing"),
        ([3], "chooses nothing"),
        ({"left": True}, "chooses nothing"),
        ("lefd", "No task 'lefd' needs branch 'start': did you mean 'left'?"),
        (["left", "end"], "No task 'end' needs branch 'start'"),
    ],
)
def test_a_branch_that_chooses_nothing_is_told_what_would_be_right(output: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        chosen(DIAMOND, 3, output)
    assert said in refused.value.message


@given(st.integers(0, 10_000))
def test_a_child_goes_on_if_it_was_chosen_or_comes_after_one_that_was(seed: int) -> None:
    random = Random(seed)
    graph = compiled(job_of(script_of(seed, tasks_max=25).document))
    branch = random.randrange(len(graph.tasks))
    picked = [child for child in graph.children[branch] if random.random() < 0.5]
    found = chosen(graph, branch, [graph.tasks[child].id for child in picked])
    assert found == graph.below(picked) & set(graph.children[branch])


# Sizes.


class Counted(tuple[tuple[int, ...], ...]):  # noqa: SLOT001 - it counts
    """Edges that count how often they are asked for."""

    asked = 0

    def __getitem__(self, task: Any) -> Any:
        self.asked += 1
        return super().__getitem__(task)


def test_a_look_after_one_task_does_not_look_at_the_others() -> None:
    graph = chain(TASKS_MAX)
    parents = Counted(graph.parents)
    counted = replace(graph, parents=parents)
    states = bytes([byte_of(SUCCEEDED)]) * 5_000 + bytes(TASKS_MAX - 5_000)
    (move,) = ready(counted, states, [4_999], {}).moves
    assert (move.task, parents.asked) == (5_000, 1)


def test_a_failure_at_the_head_of_a_long_chain_comes_to_its_end() -> None:
    graph = chain(TASKS_MAX)
    decided = ready(graph, bytes([byte_of(FAILED)]) + bytes(TASKS_MAX - 1), [0], {})
    assert set(decided.states[1:]) == {byte_of(HELD_UP)}
    assert all(before.task < after.task for before, after in pairwise(decided.moves))


def test_the_last_of_ten_thousand_parents_releases_their_child() -> None:
    names = [f"t{n}" for n in range(TASKS_MAX - 1)]
    graph = graph_of({**{name: [] for name in names}, "end": names})
    states = bytes([byte_of(SUCCEEDED)]) * (TASKS_MAX - 2) + bytes([byte_of(RUNNING), 0])
    assert not ready(graph, states, [0, TASKS_MAX - 2], {}).moves
    states = bytes([byte_of(SUCCEEDED)]) * (TASKS_MAX - 1) + bytes(1)
    assert [move.task for move in ready(graph, states, [TASKS_MAX - 2], {}).moves] == [TASKS_MAX - 1]
