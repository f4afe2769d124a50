"""How a definition names secrets, and where it may."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.domain.kinds import read_step
from sweephand.domain.secret import Elsewhere, check_value, elsewhere
from sweephand.errors import InvalidInput

DECLARED = {"secrets": {"DB": "warehouse-dsn"}}


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("warehouse-dsn", None),
        ("ssm:/jobs/dsn", Elsewhere("ssm", "/jobs/dsn")),
        ("secretsmanager:prod/db", Elsewhere("secretsmanager", "prod/db")),
        ("secretsmanager:prod/db#password", Elsewhere("secretsmanager", "prod/db", "password")),
        (
            "secretsmanager:arn:aws:secretsmanager:eu-west-1:111111111111:secret:db-AbCdEf#a b",
            Elsewhere("secretsmanager", "arn:aws:secretsmanager:eu-west-1:111111111111:secret:db-AbCdEf", "a b"),
        ),
    ],
)
def test_a_reference_is_an_id_or_says_where_aws_keeps_it(reference: str, meant: Elsewhere | None) -> None:
    read_step({"command": ["x"], "secrets": {"DB": reference}}, "run")
    assert elsewhere(reference) == meant


@pytest.mark.parametrize("reference", ["", "a b", "ssm:", "vault:x", "ssm:/a#b", "postgres://user:pw@host/db", 7, None])
def test_what_is_no_reference_is_refused_without_repeating_it(reference: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_step({"command": ["x"], "secrets": {"DB": reference}}, "run")
    assert refused.value.path == "run.secrets.DB"
    assert "pw@host" not in refused.value.message


@pytest.mark.parametrize(
    "step",
    [
        {"command": ["x"], "env": {"URL": "postgres://u:${secrets.DB}@host"}, **DECLARED},
        {"python": "m:f", "env": {"URL": "${secrets.DB}"}, **DECLARED},
        {"container": {"image": "x", **DECLARED}},
        {"http": {"url": "https://x.test/${secrets.DB}", "headers": {"A": "Bearer ${secrets.DB}"}, **DECLARED}},
        {"http": {"url": "https://x.test", "body": {"deep": ["${secrets.DB}"]}, **DECLARED}},
        {"command": "echo $${secrets.DB}"},
        {"external": {"queue": "q", "anything": 1, **DECLARED}},
    ],
)
def test_a_template_may_name_a_declared_secret_in_env_and_in_what_http_sends(step: dict[str, Any]) -> None:
    read_step(step, "run")


@pytest.mark.parametrize(
    ("step", "path", "said"),
    [
        ({"command": ["x", "${secrets.DB}"], **DECLARED}, "run.command[1]", "cannot stand here"),
        ({"command": "echo ${secrets.DB}", "shell": True, **DECLARED}, "run.command", "cannot stand here"),
        ({"command": ["x"], "cwd": "/${secrets.DB}", **DECLARED}, "run.cwd", "cannot stand here"),
        ({"python": "m:f", "kwargs": {"a": ["${secrets.DB}"]}, **DECLARED}, "run.kwargs.a[0]", "cannot stand here"),
        ({"sqs": "q", "body": "${secrets.DB}"}, "run.body", "cannot stand here"),
        (
            {"http": {"url": "https://x.test", "body": "${secrets.X}"}},
            "run.http.body",
            "no secret 'X'",
        ),
        ({"command": ["x"], "env": {"A": "${secrets.db}"}, **DECLARED}, "run.env.A", "declares no secret 'db'"),
        ({"command": ["x"], "env": {"A": "${secrets}"}, **DECLARED}, "run.env.A", "${secrets.NAME}"),
        ({"command": ["x"], "env": {"A": "${secrets.DB.x}"}, **DECLARED}, "run.env.A", "${secrets.NAME}"),
        ({"external": {"secrets": ["DB"]}}, "run.external.secrets", "not an object"),
    ],
)
def test_anywhere_else_it_is_refused_when_it_is_saved(step: dict[str, Any], path: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_step(step, "run")
    assert (refused.value.path, said in refused.value.message) == (path, True), refused.value.message


@pytest.mark.parametrize("value", ["abc", "", "    ", "x" * 65_537, "ä" * 32_769, "abc\0def"])
def test_a_value_that_cannot_be_kept_secret_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_value(value)
    assert refused.value.path == "value"
    assert not value or value not in refused.value.message


def test_a_value_of_64_kilobytes_is_right() -> None:
    check_value("x" * 65_536)
