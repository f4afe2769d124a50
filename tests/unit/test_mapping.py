"""Mapped tasks: their instances, what those are called, and what they give together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.job import Map, Task
from sweephand.domain.mapping import Instance, expand, gathered, instance_id, known_to, parts_of
from sweephand.domain.templates import pieces, resolve
from sweephand.errors import InvalidInput

KNOWN = {"params": {"days": ["mo", "tu"], "day": "we"}, "tasks": {"load": {"output": [{"n": 1}, None]}}}


def mapped(over: Any, most: int = 10) -> Task:
    return Task("load", "external", {}, map=Map(over, most))


@pytest.mark.parametrize(
    ("over", "items"),
    [
        ("${params.days}", ["mo", "tu"]),
        ("${tasks.load.output}", [{"n": 1}, None]),
        (["a", 2, {"b": "${params.day}"}], ["a", 2, {"b": "we"}]),
        ([], []),
    ],
)
def test_a_map_goes_over_params_outputs_or_a_list(over: Any, items: list[Any]) -> None:
    assert expand(mapped(over), KNOWN) == tuple(Instance(index, item) for index, item in enumerate(items))


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ("${params.day}", "'we' is not a list"),
        ("${params.nowhere}", "'${params.nowhere}' is unknown"),
        ("${tasks.load.output.0}", "{'n': 1} is not a list"),
        ([1] * 11, "The list has 11 items: map.max of the task is 10."),
        (["a", "ä" * 16_384], "Item 1 takes 32770 bytes as JSON: at most 32768 are right."),
    ],
)
def test_what_cannot_be_mapped_over_is_refused(over: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        expand(mapped(over), KNOWN)
    assert said in refused.value.message


def test_only_mapped_tasks_have_instances() -> None:
    with pytest.raises(InvalidInput, match="not mapped"):
        expand(Task("a", "external", {}), {})


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True), st.integers(0, 10_000))
def test_an_instance_is_named_for_its_task_and_place(task: str, index: int) -> None:
    assert parts_of(instance_id(task, index)) == (task, index)
    assert parts_of(task) == (task, None)


@pytest.mark.parametrize("text", ["load[01]", "load[-1]", "load[]", "load[1", "load[1][2]", "[1]", "load[1] "])
def test_what_only_looks_like_an_instance_is_none(text: str) -> None:
    assert parts_of(text) == (text, None)


def test_the_templates_of_an_instance_know_its_item() -> None:
    known = known_to(KNOWN, 1, {"path": "a.csv"})
    assert resolve(["${item.path}", "${item}", "${index}", "n${index}"], known) == ["a.csv", {"path": "a.csv"}, 1, "n1"]


def test_in_a_shells_line_an_item_is_ours_only_where_the_task_is_mapped() -> None:
    line = "for item in a b; do echo ${item} ${index}; done"
    assert pieces(line, "", is_shell=True) == [line]
    assert [str(one) for one in pieces(line, "", is_shell=True, is_mapped=True)][1:4] == ["item", " ", "index"]


def test_the_output_of_a_map_is_a_list_in_the_order_of_its_items() -> None:
    assert gathered(4, {3: "d", 0: "a", 1: None}) == ["a", None, None, "d"]
