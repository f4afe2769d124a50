"""Templates of jobs: what they declare, what jobs give, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.domain.job_templates import filled, is_left_open, samples_of
from sweephand.errors import InvalidInput

NIGHTLY: dict[str, Any] = {
    "parameters": {
        "region": {"enum": ["eu", "us"], "default": "eu", "description": "Where it runs."},
        "hour": {"type": "integer"},
        "tables": {"type": "list", "default": ["sales"]},
        "dry": {"type": "boolean", "default": False},
    },
    "schedule": {"cron": "0 ${with.hour} * * *"},
    "timeout": "10m",
    "params": {"region": "${with.region}", "tables": "${with.tables}", "dry": "${with.dry}", "say": "$${with.region}"},
    "command": ["load", "--region=${with.region}", "${params.day}", "${with.tables}"],
}


def errors_of(given: Any, template: dict[str, Any] = NIGHTLY) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        filled(template, given, template="nightly")
    return dict(refused.value.errors)


def test_values_stand_where_the_template_names_them() -> None:
    made = filled(NIGHTLY, {"hour": 6, "region": "us", "tables": ["a", "b"]}, template="nightly")
    assert made == {
        "schedule": {"cron": "0 6 * * *"},
        "timeout": "10m",
        "params": {"region": "us", "tables": ["a", "b"], "dry": False, "say": "$${with.region}"},
        "command": ["load", "--region=us", "${params.day}", ["a", "b"]],
    }


def test_what_a_job_does_not_say_is_the_default() -> None:
    made = filled(NIGHTLY, {"hour": 6, "dry": None}, template="nightly")
    assert made["params"] == {"region": "eu", "tables": ["sales"], "dry": False, "say": "$${with.region}"}


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({}, "with.hour", "needs 'hour', a value of type integer"),
        (None, "with.hour", "needs 'hour'"),
        ({"hour": "6"}, "with.hour", "'6' is not an integer"),
        ({"hour": True}, "with.hour", "True is not an integer"),
        ({"hour": 6.5}, "with.hour", "not an integer"),
        ({"hour": 6, "region": "asia"}, "with.region", "use eu, us"),
        ({"hour": 6, "region": 1}, "with.region", "not a string"),
        ({"hour": 6, "dry": 1}, "with.dry", "not a boolean"),
        ({"hour": 6, "tables": "a"}, "with.tables", "not a list"),
        ({"hour": 6, "regoin": "us"}, "with.regoin", "did you mean 'region'"),
        (["hour"], "with", "not an object"),
    ],
)
def test_what_a_job_gives_wrongly_is_refused_by_its_path(given: Any, path: str, words: str) -> None:
    errors = errors_of(given)
    assert list(errors) == [path]
    assert words in errors[path]


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert set(errors_of({"region": "asia", "other": 1})) == {"with.region", "with.other", "with.hour"}


@pytest.mark.parametrize(
    ("parameters", "path", "words"),
    [
        ([], "parameters", "not an object"),
        ({"a b": {}}, "parameters.a b", "begins with a letter"),
        ({"a": "string"}, "parameters.a", "not an object"),
        ({"a": {"type": "text"}}, "parameters.a.type", "string, integer"),
        ({"a": {"defualt": 1}}, "parameters.a.defualt", "did you mean 'default'"),
        ({"a": {"type": "integer", "default": "1"}}, "parameters.a.default", "not an integer"),
        ({"a": {"enum": ["x", 1]}}, "parameters.a.enum[1]", "not a string"),
        ({"a": {"enum": []}}, "parameters.a.enum", "0 items"),
        ({"a": {"enum": ["x"], "default": "y"}}, "parameters.a.default", "use x"),
        ({"a": {"type": "number", "enum": [1], "default": True}}, "parameters.a.default", "not a number"),
        ({f"p{n}": {} for n in range(51)}, "parameters", "at most 50"),
    ],
)
def test_a_wrong_parameter_is_refused_by_its_path(parameters: Any, path: str, words: str) -> None:
    errors = errors_of({}, {"parameters": parameters})
    assert list(errors) == [path]
    assert words in errors[path]


@pytest.mark.parametrize("written", ["${with.regoin}", "a ${with.}", "${with}", "x${with.region.name}"])
def test_a_name_that_is_not_declared_is_refused_where_it_stands(written: str) -> None:
    template = {"parameters": {"region": {"default": "eu"}}, "tasks": [{"id": "a", "command": ["x", written]}]}
    assert list(errors_of({}, template)) == ["tasks[0].command[1]"]


def test_a_template_without_parameters_takes_none() -> None:
    assert filled({"command": "x"}, None, template="t") == {"command": "x"}
    assert list(errors_of({"a": 1}, {"command": "x"})) == ["with.a"]


@pytest.mark.parametrize(
    ("path", "is_open"),
    [
        ("schedule.cron", True),
        ("schedule", True),
        ("schedule.cron.deeper", True),
        ("schedule.timezone", False),
        ("timeout", False),
        ("params.region", False),
    ],
)
def test_what_only_a_job_can_say_is_left_open(path: str, is_open: bool) -> None:
    assert samples_of(NIGHTLY) == {"region": "eu", "hour": 1, "tables": ["sales"], "dry": False}
    assert is_left_open(NIGHTLY, path) is is_open
