"""Times at the edges: leap seconds and far-off years are refused, with the field named, wherever a time is taken."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import jsonschema_rs
import pytest

from sweephand.api.vocabulary import ASKED_INSTANT, INSTANT, WHOLE_SECOND
from sweephand.domain.cron import EARLIEST, LATEST
from tests.api.client import TABLE, Answered, Virtual, sqlite_only
from tests.api.fuzz import JSON, described

REFUSED: Final = [
    "2016-12-31T23:59:60Z",
    "2016-12-31T23:59:60.5Z",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "9000-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "10000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00+24:00",
    "-2026-01-01T00:00:00Z",
]
BEYOND_IN_UTC: Final = ["1970-01-01T00:00:00+00:01", "8999-12-31T23:59:59-00:01"]
"""The schema speaks of years as they are written."""
TAKEN: Final = ["1970-01-01T00:00:00Z", "8999-12-31T23:59:59Z", "2026-01-01t00:00:00.123456z", "2026-01-01T00:00+14:00"]


def takers() -> list[tuple[str, str]]:
    """Every parameter of every call that is a time."""
    return [
        (path, parameter["name"])
        for path, methods in described()["paths"].items()
        for parameter in methods.get("get", {}).get("parameters", ())
        if parameter.get("schema", {}).get("format") == "date-time"
    ]


def asked(virtual: Virtual, path: str, name: str, value: str) -> Answered:
    virtual.admin.put("/jobs/j", {"command": "true", "schedule": "0 0 * * *"}, If_None_Match="*")
    return virtual.admin.get(f"{path.replace('{job}', 'j')}?{name}={quote(value, safe='&=')}")


def is_refused(answer: Answered, path: str) -> bool:
    return answer.status == 400 and [one["path"] for one in answer.json["errors"]] == [path]


def test_there_are_such_parameters() -> None:
    assert {path for path, _ in takers()} >= {"/runs", "/jobs/{job}/runs", "/jobs/{job}/fires", "/jobs/{job}/ledger"}


@pytest.mark.parametrize(("path", "name"), takers())
@sqlite_only(TABLE)
def test_a_query_takes_the_times_that_the_document_says(virtual: Virtual, path: str, name: str) -> None:
    for value in [*REFUSED, *BEYOND_IN_UTC]:
        assert is_refused(asked(virtual, path, name, value), name), value
    for value in TAKEN:
        answer = asked(virtual, path, name, value)
        assert answer.status == 200 or "days can be looked at" in answer.json["detail"], answer.text


@pytest.mark.parametrize("path", sorted({path for path, _ in takers()}))
def test_all_of_time_can_be_asked_for(virtual: Virtual, path: str) -> None:
    first, last = TAKEN[:2]
    assert asked(virtual, path, "from", f"{first}&to={last}").status in (200, 400)
    assert asked(virtual, path, "from", f"{last}&to={first}").status in (200, 400)


@pytest.mark.parametrize("value", [*REFUSED, *BEYOND_IN_UTC])
@sqlite_only(TABLE)
def test_a_body_takes_no_others_either(virtual: Virtual, value: str) -> None:
    token: JSON = {"name": "n", "role": "viewer", "expiresAt": value}
    assert is_refused(virtual.admin.post("/tokens", token), "expiresAt")
    bulk: JSON = {"action": "cancel", "filter": {"from": value}, "dryRun": True}
    assert is_refused(virtual.admin.post("/runs/bulk", bulk), "filter.from")


@pytest.mark.parametrize("value", REFUSED)
def test_the_schema_refuses_them_too(value: str) -> None:
    assert not _fits(ASKED_INSTANT, value)


@pytest.mark.parametrize("value", [*TAKEN, *BEYOND_IN_UTC])
def test_the_schema_takes_the_others(value: str) -> None:
    pattern = {**ASKED_INSTANT, "format": "text"}  # minutes alone are ours: the format wants seconds
    assert _fits(pattern, value)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (EARLIEST.isoformat(), 200),
        (LATEST.isoformat(), 200),
        ("1899-12-31T23:59:59Z", 400),
        ("9999-01-01T00:00:00Z", 400),
        ("0000-01-01T00:00:00Z", 400),
        ("2016-12-31T23:59:60Z", 400),
        ("2026-01-01T00:00:00.5Z", 400),
    ],
)
@sqlite_only(TABLE)
def test_a_definition_takes_the_times_that_schedules_know(virtual: Virtual, value: str, status: int) -> None:
    answer = virtual.admin.post("/plan", {"name": "a", "command": "x", "schedule": {"at": value}})
    assert answer.status == status
    assert status == 200 or is_refused(answer, "schedule.at")
    assert _fits(WHOLE_SECOND, value) == (status == 200)
    assert _fits(INSTANT, value) == (status == 200 or ".5" in value)


def _fits(schema: JSON, value: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid(value)
