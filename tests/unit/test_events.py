"""Whether an event is what a job listens for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.events import Event, EventRule

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
DETAILS = st.dictionaries(NAMES, VALUES, max_size=3)
PATTERNS = st.dictionaries(NAMES, VALUES, max_size=2)


def accepts(match: dict[str, Any], detail: dict[str, Any]) -> bool:
    return EventRule("shop", None, match).accepts(Event("shop", "order", detail))


def exactly(value: Any) -> Any:
    """The pattern that names this value alone."""
    return {name: exactly(one) for name, one in value.items()} if isinstance(value, dict) else [value]


@pytest.mark.parametrize(
    ("source", "kind", "is_accepted"),
    [("shop", None, True), ("shop", "order", True), ("shop", "refund", False), ("bank", None, False)],
)
def test_source_and_type_must_be_the_rules_own(source: str, kind: str | None, is_accepted: bool) -> None:
    assert EventRule(source, kind).accepts(Event("shop", "order")) is is_accepted


@pytest.mark.parametrize(
    ("match", "detail", "is_accepted"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": [1, 2]}, {"a": 2}, True),
        ({"a": [1, 2]}, {"a": 3}, False),
        ({"a": []}, {"a": 3}, False),
        ({"a": {"b": "x"}}, {"a": {"b": "x", "c": 1}}, True),
        ({"a": {"b": "x"}}, {"a": "x"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": [{"b": True}]}, {"a": {"b": 1}}, False),
        ({"a": [[0]]}, {"a": [False]}, False),
        ({"a": [{"b": 1}]}, {"a": {"b": 1}}, True),
        ({"a": 1}, {"a": 1.0}, True),
    ],
)
def test_a_pattern_is_matched_field_by_field(match: dict[str, Any], detail: dict[str, Any], is_accepted: bool) -> None:
    assert accepts(match, detail) is is_accepted


@given(DETAILS)
def test_no_pattern_accepts_everything(detail: dict[str, Any]) -> None:
    assert accepts({}, detail)


@given(DETAILS, DETAILS)
def test_a_detail_matches_itself_and_whatever_more_there_is(detail: dict[str, Any], more: dict[str, Any]) -> None:
    assert accepts(exactly(detail), {**more, **detail})


@given(PATTERNS, PATTERNS, DETAILS)
def test_a_further_field_never_accepts_more(one: dict[str, Any], more: dict[str, Any], detail: dict[str, Any]) -> None:
    if accepts({**more, **one}, detail):
        assert accepts(one, detail)


@given(NAMES, st.lists(VALUES, max_size=3), DETAILS)
def test_a_list_accepts_what_one_of_its_values_does(name: str, allowed: list[Any], detail: dict[str, Any]) -> None:
    assert accepts({name: allowed}, detail) == any(accepts({name: [one]}, detail) for one in allowed)
