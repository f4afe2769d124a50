"""Templates: paths that stand for values, and nothing that could be code."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.expression import parse
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import Job, Task
from sweephand.domain.kinds import read_step
from sweephand.domain.run import Run
from sweephand.domain.schedule import At, Schedule
from sweephand.domain.templates import PATH_CHARS_MAX, RUN_FACTS, check, pieces, resolve, run_facts
from sweephand.errors import InvalidInput

NAMES = st.from_regex(r"[\w-]{1,8}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
PLAIN = st.text().filter(lambda text: "${" not in text)


@given(NAMES, JSON)
def test_a_text_that_is_one_template_keeps_the_values_type(name: str, value: Any) -> None:
    found = resolve([f"${{params.{name}}}"], {"params": {name: value}})
    assert found == [value]
    assert type(found[0]) is type(value)


@given(NAMES, JSON, PLAIN.filter(lambda text: not text.endswith("$")), PLAIN)
def test_inside_text_a_value_is_its_text_or_its_json(name: str, value: Any, before: str, after: str) -> None:
    found = resolve(f"{before}x${{params.{name}}}x{after}", {"params": {name: value}})
    inner = found.removeprefix(f"{before}x").removesuffix(f"x{after}")
    assert inner == value if isinstance(value, str) else json.loads(inner) == value


def test_a_dollar_escapes_only_what_follows_it() -> None:
    known = {"params": {"x": 1}}
    found = [resolve(text, known) for text in ("${params.x}$", "$ ${params.x}", "$$${params.x}", "${params.x}$${x}")]
    assert found == ["1$", "$ 1", "$${params.x}", "1${x}"]


@given(PLAIN, JSON)
def test_what_has_no_template_stays_as_it_is(text: str, value: Any) -> None:
    assert resolve(text, {}) == text
    check(text, "")
    if "${" not in json.dumps(value):
        assert resolve(value, {}) == value


@given(st.text(alphabet="$" + "{}x.") | st.text())
def test_any_text_can_be_written_by_escaping(text: str) -> None:
    escaped = text.replace("${", "$${")
    check(escaped, "")
    assert resolve(escaped, {}) == text
    assert "".join(map(str, pieces(escaped, ""))) == text


def refusal_of(step: Callable[[], object]) -> str:
    """What a step was refused with; empty where it was not."""
    try:
        step()
    except InvalidInput as refused:
        return refused.message
    return ""


@given(st.text(alphabet="${}params.rn x") | st.from_regex(r"(\$\{(params|run)?[.}ap]*){1,4}", fullmatch=True))
def test_any_text_is_resolved_or_refused_and_check_agrees(text: str) -> None:
    known = {"params": {"p": 1, "a": {"r": "x"}}, "run": {}, "tasks": {}}
    at_save, at_run = refusal_of(lambda: check(text, "here")), refusal_of(lambda: resolve(text, known))
    assert not at_save or at_save == at_run
    assert at_save or not at_run or "is unknown" in at_run


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${", "has no end"),
        ("${params.x", "has no end"),
        ("${" + "x" * (PATH_CHARS_MAX + 1) + "}", "has no end"),
        ("${}", "no template"),
        ("${params.}", "no template"),
        ("${params..x}", "no template"),
        ("${params.x + 1}", "no template"),
        ("${params['x']}", "no template"),
        ("${params.x()}", "no template"),
        ("${" + ".".join("x" * 40) + "}", "no template"),
        ("${HOME}", "'HOME' is no root of templates: use params, run, secrets, tasks, item, index; '$${' stands"),
        ("${__class__.x}", "no root"),
        ("${run.fireat}", "A run has no 'fireat': did you mean 'fireAt'?"),
        ("${run.id.x}", "A run has no 'id.x'"),
    ],
)
def test_what_is_no_template_is_refused_when_it_is_saved(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check({"a": ["ok", f"x{text}"]}, "run.env")
    assert said in refused.value.message
    assert refused.value.path == "run.env.a[1]"


def test_all_wrong_templates_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        check(["${a}", "${params.x}", "${b}"], "command")
    assert [path for path, _ in refused.value.errors] == ["command[0]", "command[2]"]


KNOWN = {"params": {"a": {"b": [10, {"c": 1}]}, "dotted.name": {"x": 2}, "empty": {}}, "run": {"id": "r"}}


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b.0", 10), ("a.b.1.c", 1), ("dotted.name.x", 2), ("a.b", [10, {"c": 1}]), ("empty", {})],
)
def test_a_path_leads_through_objects_lists_and_names_with_dots(path: str, value: Any) -> None:
    assert resolve(f"${{params.{path}}}", KNOWN) == value


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("params.z", "'${params.z}' is unknown: 'params' has a, dotted.name, empty."),
        ("params.a.z", "'${params.a.z}' is unknown: 'params.a' has b."),
        ("params.a.b.2", "'${params.a.b.2}' is unknown: 'params.a.b' is a list of 2, counted from 0."),
        ("params.a.b.x", "'params.a.b' is a list of 2"),
        ("params.a.b.0.x", "'params.a.b.0' is no object."),
        ("params.a.b.0.__class__", "is no object."),
        ("params.empty.x", "'params.empty' has nothing."),
        ("tasks.x.output", "'${tasks.x.output}' is unknown: known here: params, run."),
    ],
)
def test_an_unknown_path_is_named_with_what_there_is(path: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        resolve({"a": f"${{{path}}}"}, KNOWN, "env")
    assert said in refused.value.message
    assert refused.value.path == "env.a"


def test_a_short_spec_cannot_become_a_huge_one() -> None:
    for value in ("${params.x} ", "${params.x}"):
        with pytest.raises(InvalidInput, match="more than 1048576 bytes"):
            resolve([value * 1 for _ in range(1_000)], {"params": {"x": ["y" * 2_000]}})


def test_hard_texts_take_no_longer_than_they_are_long() -> None:
    for text in ("$" * 500_000, "$${" * 200_000, "${params.x}" * 20_000, "${" + "." * 500_000):
        refused = refusal_of(lambda text=text: resolve(text, {"params": {"x": 1}}))  # type: ignore[misc]
        assert not refused or "no end" in refused


def test_a_shells_line_keeps_the_shells_own_templates() -> None:
    check("echo ${HOME} ${x:-y} ${#x} ${params.x}", "", is_shell=True)
    with pytest.raises(InvalidInput):
        check("echo ${params.x:-y}", "", is_shell=True)
    found = pieces("a ${HOME} ${params.x}${run}b", "", is_shell=True)
    assert [str(piece) for piece in found] == ["a ${HOME} ", "params.x", "run", "b"]


def test_a_definition_with_a_wrong_template_is_not_saved() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_step({"command": ["echo", "${HOME}"]}, "run")
    assert refused.value.path == "run.command[1]"
    read_step({"command": "echo ${HOME}", "shell": True}, "run")
    with pytest.raises(InvalidInput):
        read_step({"command": "echo ${HOME}", "shell": True, "env": {"A": "${HOME}"}}, "run")


# What templates call `run`.

FIRE_AT = datetime(2026, 10, 5, 4, tzinfo=UTC)
KEY = RunKey(JobKey(Namespace("default"), JobName("report")), RunId("20261005T040000Z"))
RUN = Run(KEY, FIRE_AT, FIRE_AT, created_at=FIRE_AT, changed_at=FIRE_AT, attempt=2)
ASKS = Task("main", "command", {"value": ["echo", "since ${run.intervalStart}"]})
WEEKDAYS = Schedule(parse("0 6 * * 1-5", hash_id="x", path=""), "Europe/Berlin")


def test_the_facts_of_a_run_are_those_that_templates_may_name() -> None:
    facts = run_facts(RUN, Job("report", (ASKS,), WEEKDAYS), ASKS)
    assert facts == {
        "id": "20261005T040000Z",
        "fireAt": "2026-10-05T04:00:00Z",
        "attempt": 2,
        "idempotencyKey": "report/20261005T040000Z/main",
        "localDate": "2026-10-05",
        "intervalStart": "2026-10-02T04:00:00Z",
        "intervalEnd": "2026-10-05T04:00:00Z",
    }
    assert tuple(facts) == RUN_FACTS


def test_the_local_date_is_that_of_the_schedules_zone() -> None:
    late = replace(RUN, fire_at=datetime(2026, 10, 5, 23, tzinfo=UTC))
    facts = [run_facts(late, Job("report", (ASKS,), schedule), ASKS) for schedule in (WEEKDAYS, None)]
    assert [one["localDate"] for one in facts] == ["2026-10-06", "2026-10-05"]


@pytest.mark.parametrize("schedule", [None, Schedule(At(FIRE_AT)), replace(WEEKDAYS, start_at=FIRE_AT)])
def test_without_an_earlier_fire_the_interval_has_no_length(schedule: Schedule | None) -> None:
    facts = run_facts(RUN, Job("report", (ASKS,), schedule), ASKS)
    assert facts["intervalStart"] == facts["intervalEnd"] == facts["fireAt"]


def test_a_run_that_the_schedule_does_not_name_has_an_interval_of_no_length() -> None:
    by_hand = replace(RUN, fire_at=FIRE_AT.replace(minute=17))
    facts = run_facts(by_hand, Job("report", (ASKS,), WEEKDAYS), ASKS)
    assert facts["intervalStart"] == facts["intervalEnd"] == "2026-10-05T04:17:00Z"


def test_the_interval_is_searched_only_for_tasks_that_ask() -> None:
    silent = replace(ASKS, spec={"value": ["echo", "${run.id}"]})
    assert "intervalStart" not in run_facts(RUN, Job("report", (silent,), WEEKDAYS), silent)
    for spec in ({"value": "m:f", "kwargs": {"run": "${run}"}}, {"value": [], "env": {"A": "x${run.intervalEnd}"}}):
        asks = replace(ASKS, spec=spec)
        assert "intervalStart" in run_facts(RUN, Job("report", (asks,), WEEKDAYS), asks)
