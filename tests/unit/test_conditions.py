"""Conditions: what they mean, what they refuse and at which character, and that nothing in them is code."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.conditions import holds, is_about_items, parse_condition
from sweephand.domain.limits import CONDITION_CHARS_MAX, CONDITION_DEPTH_MAX
from sweephand.errors import InvalidInput

KNOWN: dict[str, Any] = {
    "params": {"region": "eu", "n": 3, "ok": True, "none": None, "list": [1, "a", None, [2]], "object": {"k": 1}},
    "tasks": {"a": {"output": {"rows": 5, "share": 0.5}}, "b.c": {"output": None}},
    "run": {"attempt": 1},
    "item": {"size": 7},
    "index": 2,
}


def refusal_of(text: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        holds(text, KNOWN)
    return refused.value.message


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${tasks.a.output.rows} > 0", True),
        ("${tasks.a.output.rows} <= 4", False),
        ("${tasks.a.output.share} == 0.5", True),
        ("${tasks.a.output.rows} == 5.0", True),
        ("${tasks.b.c.output} == null", True),
        ("${tasks.b.c.output} != null and ${tasks.b.c.output.rows} > 0", False),
        ("${params.region} == 'eu'", True),
        ('${params.region} != "eu"', False),
        ("'ab' < 'b'", True),
        ("${params.ok}", True),
        ("not ${params.ok}", False),
        ("not not ${params.ok}", True),
        ("true or false and false", True),
        ("(true or false) and false", False),
        ("not true or true", True),
        ("not (true or true)", False),
        ("not 1 == 2", True),
        ("true or ${params.missing} > 1", True),
        ("false and ${params.missing} > 1", False),
        ("${params.region} in ['eu', 'us']", True),
        ("${params.region} not in ['eu', 'us']", False),
        ("1 in ${params.list}", True),
        ("true in ${params.list}", False),
        ("[2] in ${params.list}", True),
        ("null in ${params.list}", True),
        ("'e' in ${params.region}", True),
        ("'k' in ${params.object}", True),
        ("${params.object} == ${params.object}", True),
        ("[1, 'a'] == [1, 'a']", True),
        ("[1] == [true]", False),
        ("[] == []", True),
        ("[1,] == [1]", True),
        ("null == 3", False),
        ("null != 3", True),
        ("-1.5e3 < -1", True),
        (r"'it\'s' == \"it's\"".replace('\\"', '"'), True),
        (r"'a\\b' == 'a\\b'", True),
        ("${item.size} > 5 and ${index} == 2", True),
        ("${run.attempt}==1", True),
        ("\n\t true ", True),
    ],
)
def test_a_condition_means_what_it_says(text: str, result: bool) -> None:
    assert holds(text, KNOWN) is result


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("", 1, "empty"),
        ("   ", 4, "empty"),
        ("1 = 1", 3, "'==' compares"),
        ("true && false", 6, "write 'and'"),
        ("true || false", 6, "write 'or'"),
        ("!true", 1, "write 'not'"),
        ("1 +1", 3, "+ cannot stand here"),
        ("'abc", 1, "the text has no end"),
        ("rows > 1", 1, "'rows' means nothing here: text is in quotes"),
        ("True", 1, "'True' means nothing here"),
        ("1 ==", 5, "A value is expected"),
        ("1 == and", 6, "A value is expected, not and"),
        ("== 1", 1, "A value is expected, not =="),
        ("1 < 2 < 3", 7, "join them with 'and'"),
        ("(1 == 1", 8, "')' is expected"),
        ("1 == 1)", 7, ") cannot stand here"),
        ("[1, 2 == 3", 7, "']' is expected"),
        ("1 not 2", 7, "Only 'in' can follow 'not'"),
        ("1 == 1 2", 8, "2 cannot stand here: 'and', 'or' or the end"),
        ("'${params.x}' == 'eu'", 1, "write it without quotes"),
        ("${params.x", 1, "has no end"),
        ("${params.x + 1} > 1", 1, "no code"),
        ("${os.environ} == 1", 1, "no root"),
        ("${secrets.DB} == 'x'", 1, "No condition can ask for a secret"),
        ("1 == " + "9" * 19, 6, "too long"),
        ("1 == 1e999", 6, "too large"),
        ("__import__('os')", 1, "means nothing here"),
        ("true.real", 5, ". cannot stand here"),
        ("x[0]", 1, "means nothing here"),
        ("1 == 1 or é", 11, "é cannot stand here"),
    ],
)
def test_what_is_no_condition_is_refused_at_its_character(text: str, at: int, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_condition(text, "tasks[0].if")
    assert refused.value.path == "tasks[0].if"
    assert refused.value.message.startswith(f"At character {at}: ")
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${params.n} == 'eu'", "3 (a number) and 'eu' (text) are never equal"),
        ("${params.ok} == 1", "True (true or false) and 1 (a number)"),
        ("${params.n} > 'eu'", "> compares two numbers or two texts, not 3 (a number) and 'eu' (text)"),
        ("${params.none} > 1", "None (null) and 1 (a number)"),
        ("true < false", "compares two numbers or two texts"),
        ("1 in 2", "'in' looks for a value in a list"),
        ("1 in 'abc'", "'in' looks for"),
        ("${params.n}", "3, the value of ${params.n}, is neither true nor false"),
        ("true and ${params.n}", "the value of ${params.n}, is neither"),
        ("not ${params.none}", "None, the value of ${params.none}, is neither"),
        ("${params.nowhere} == 1", "'${params.nowhere}' is unknown"),
        ("${tasks.b.c.output.rows} > 0", "'${tasks.b.c.output.rows}' is unknown"),
    ],
)
def test_what_cannot_be_compared_is_said(text: str, said: str) -> None:
    assert said in refusal_of(text)


def test_a_condition_is_bounded_in_length_and_depth() -> None:
    deep = "(" * CONDITION_DEPTH_MAX + "true" + ")" * CONDITION_DEPTH_MAX
    assert holds(deep, {})
    assert holds("not " * CONDITION_DEPTH_MAX + "true", {})
    assert holds(" and ".join(["not false", "(true)", "1 in [1]"] * CONDITION_DEPTH_MAX), {})
    for text in (f"({deep})", f"not {deep}", "not " * 21 + "true", "[" * 21 + "]" * 21 + " == 1"):
        assert "deeper than 20 levels" in refusal_of(text)
    longest = "true" + " and true" * 113
    assert len(longest) <= CONDITION_CHARS_MAX < len(longest) + 9
    assert holds(longest, {})
    assert "1 to 1024 are right" in refusal_of(longest + " and true")


@given(st.text(alphabet="()[]${}.'\"\\ <>=!andortuefslinpm,12-é") | st.text())
def test_any_text_has_a_meaning_or_is_refused(text: str) -> None:
    try:
        assert holds(text, KNOWN) in (True, False)
    except InvalidInput:
        parse_condition("true", "if")  # what was refused leaves nothing behind


NUMBERS = st.integers(-9, 9) | st.floats(-9, 9).map(lambda x: round(x, 2))
SIGNS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


COMPARISONS = st.tuples(NUMBERS, st.sampled_from(sorted(SIGNS)), NUMBERS)
TREES = st.recursive(
    COMPARISONS,
    lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner) | st.tuples(st.just("not"), inner),
    max_leaves=8,
)


@given(TREES)
def test_a_condition_is_what_python_would_make_of_it(tree: Any) -> None:
    def written(one: Any) -> str:
        if one[0] == "not":
            return f"not ({written(one[1])})"
        if one[1] in SIGNS:
            return f"{one[0]} {one[1]} {one[2]}"
        return f"({written(one[0])}) {one[1]} ({written(one[2])})"

    def meant(one: Any) -> bool:
        if one[0] == "not":
            return not meant(one[1])
        if one[1] in SIGNS:
            return bool(SIGNS[one[1]](one[0], one[2]))
        both = meant(one[0]), meant(one[2])
        return all(both) if one[1] == "and" else any(both)

    assert holds(written(tree), {}) is meant(tree)


def test_a_condition_knows_what_it_names() -> None:
    condition = parse_condition("${tasks.a.output.x} in [${item.y}, ${params.z}]", "if")
    assert [str(one) for one in condition.references] == ["tasks.a.output.x", "item.y", "params.z"]
    assert is_about_items("${index} > 1")
    assert not is_about_items("${params.item} > 1 and 'item' == 'item'")
