"""The OpenAPI document: valid, complete, true to the domain's readers, and of a size that can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import jsonschema_rs
import pytest
import schemathesis

from sweephand.api.access import LEAST_ROLE, PUBLIC_CALLS
from sweephand.api.definitions import FIELDS, components
from sweephand.domain.calendars import Calendar
from sweephand.domain.definition import TEMPLATE_FIELDS, parse
from sweephand.errors import InvalidInput
from tests.api.client import TABLE, Virtual, sqlite_only
from tests.api.fuzz import JSON, described

NOW: Final = datetime(2026, 11, 16, tzinfo=UTC)
BYTES_MAX: Final = 260_000
HIDDEN: Final = {"getKeys", "download"}
"""For verifiers of sessions, who know where keys are published; and for whoever was given an address."""
OPTIONAL_BODIES: Final = {"pauseJob", "resumeJob", "triggerJob", "cancelRun", "rerunRun", "startDagRun"}


@pytest.fixture(scope="module")
def document() -> JSON:
    return described()


def operations(document: JSON) -> Iterator[tuple[str, JSON]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def validator(component: str) -> jsonschema_rs.Validator:
    known = {"schemas": components({"command", "python", "http", "external", "approval", "job"})}
    schema = {"$ref": f"#/components/schemas/{component}", "components": known}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def test_it_is_valid_and_so_are_its_schemas(document: JSON) -> None:
    assert document["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(document).validate()
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})


def test_it_and_the_table_of_roles_name_the_same_calls(document: JSON) -> None:
    calls = [operation["operationId"] for _, operation in operations(document)]
    assert len(calls) == len(set(calls))
    assert {*calls, *HIDDEN} == LEAST_ROLE.keys() | PUBLIC_CALLS
    assert not HIDDEN & set(calls)


def test_every_error_is_a_problem_and_no_call_answers_422(document: JSON) -> None:
    known = document["components"]["responses"]
    for where, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) < 400:
                continue
            told = known[response["$ref"].rpartition("/")[2]]
            assert status != "422", where
            assert list(told["content"]) == ["application/problem+json"], where
        assert {"400", "503"} <= operation["responses"].keys(), where
        assert operation["operationId"] in PUBLIC_CALLS or {"401", "403", "429"} <= operation["responses"].keys()


def test_a_body_that_needs_no_field_is_not_needed(document: JSON) -> None:
    optional = {
        operation["operationId"]
        for _, operation in operations(document)
        if "requestBody" in operation and not operation["requestBody"]["required"]
    }
    assert optional >= OPTIONAL_BODIES
    assert not optional & {"createJob", "putJob", "planJob", "rollbackJob", "leaseWork", "issueToken", "putPool"}


def test_its_size_is_bounded(document: JSON) -> None:
    assert len(json.dumps(document, separators=(",", ":"))) < BYTES_MAX


def test_every_field_of_a_template_is_described() -> None:
    assert FIELDS.keys() == set(TEMPLATE_FIELDS)


def test_only_kinds_that_can_be_run_are_described(virtual: Virtual) -> None:
    steps = virtual.admin.get("/openapi.json").expect(200).json["components"]["schemas"]["Step"]["anyOf"]
    known = {"command", "python", "http", "external", "shell", "wait", "sensor", "approval", "job"}
    # On AWS there are containers, of the images that the deployment lists.
    assert {kind for step in steps for kind in step["required"]} - {"container"} == known
    described = "container" in {kind for step in steps for kind in step["required"]}
    job = {"name": "job", "run": {"container": {"image": "team/report:1"}}}
    assert virtual.admin.post("/jobs", job).status == (201 if described else 400)
    others = components({"external", "mine"})["Step"]["anyOf"]
    assert {kind for step in others for kind in step["required"]} == {"external", "mine"}


LONG: Final[JSON] = {
    "name": "daily-report",
    "description": "Sales report for the team",
    "schedule": {
        "cron": "0 6 * * 1-5",
        "timezone": "Europe/Berlin",
        "dst": {"gap": "shift", "fold": "first"},
        "startAt": "2026-01-01T00:00:00Z",
        "endAt": None,
        "jitter": "30s",
        "calendar": "business-days",
        "blackouts": [{"from": "2026-12-24T00:00:00Z", "to": "2026-12-27T00:00:00+01:00", "policy": "hold"}],
        "after": ["ingest"],
        "datasets": {"any": ["sales.daily"]},
        "events": [{"source": "shop", "type": "closed", "match": {"day": [1, 2]}}],
    },
    "catchup": {"policy": "latest", "max": 100, "window": "1d"},
    "overlap": "allow",
    "startDeadline": "1h",
    "concurrency": {"runs": 1, "pool": "warehouse", "slots": 1},
    "priority": "normal",
    "guarantee": "at-least-once",
    "retry": {
        "attempts": 4,
        "backoff": "exponential",
        "delay": "10s",
        "maxDelay": "10m",
        "on": ["transient"],
        "never": ["InvalidInput"],
    },
    "timeout": "1h",
    "runTimeout": 7200,
    "deadline": "07:00",
    "pauseAfterFailures": 5,
    "notify": [{"on": ["failed", "deadlineMissed"], "to": "sns:alerts"}],
    "publishes": ["report.daily"],
    "params": {"region": "eu"},
    "tags": ["finance"],
    "tasks": [
        {
            "id": "extract",
            "run": {"command": ["python", "extract.py"], "env": {"A": ""}, "secrets": {"DB": "dsn"}},
            "needs": [],
            "when": "all_success",
            "if": "${params.region} == 'eu'",
            "map": {"over": "${params.list}", "max": 50},
            "retries": 2,
            "timeout": "10m",
            "pool": "small",
            "slots": 2,
            "group": "ingest.raw",
            "branch": False,
            "priority": "high",
            "labels": ["gpu"],
        }
    ],
}
SHORT: Final[JSON] = {"name": "a", "schedule": "0 0 * * *", "command": "python generate_report.py", "retries": 3}


def changed(*path: str | int, to: Any) -> JSON:
    """The long form with another value somewhere."""
    copy: JSON = json.loads(json.dumps(LONG))
    within: Any = copy
    for part in path[:-1]:
        within = within[part]
    within[path[-1]] = to
    return copy


GOOD: Final = [
    LONG,
    SHORT,
    {"name": "a", "command": ["x"]},
    {"name": "a", "command": "x", "run": None, "tasks": None, "retry": {"delays": [1, "2s"]}},
    {"name": "a", "run": {"command": "a | b ${HOME}", "shell": True}},
    {"name": "a", "run": {"python": "m:f", "args": [1], "kwargs": {"b": None}, "cwd": "d"}},
    {"name": "a", "run": {"external": {"any": ["thing"]}}, "schedule": {"every": "90s"}},
    {"name": "a", "run": {"http": {"url": "https://example.org/?a=${params.b}", "method": "PUT", "body": [1, None]}}},
    {"name": "a", "run": {"http": {"url": "${params.url}", "headers": {"A": "", "b": "\tc"}, "expect": [200, 302]}}},
    {"name": "a", "run": {"http": {"url": "http://10.0.0.1:8080", "maxBytes": 0, "secrets": {"A": "b"}, "body": None}}},
    {"name": "a", "command": "x", "schedule": {"at": "9998-12-31T23:59:59Z"}},
    {"name": "a", "command": "x", "schedule": {"cron": None, "events": [{"source": "s"}]}},
    {"name": "a", "command": "x", "schedule": {"after": {"any": ["b", "c"], "window": None, "timezone": None}}},
    {"name": "a", "command": "x", "schedule": {"after": {"all": ["b"], "window": "sameDay", "timezone": "Asia/Tokyo"}}},
    {"name": "a", "command": "x", "schedule": {"cron": "@daily", "needs": ["b"]}},
    {"name": "a", "command": "x", "schedule": {"every": "1h", "needs": {"jobs": ["b"], "timeout": 60}}},
    {
        "name": "a",
        "command": "x",
        "schedule": {"cron": "@daily", "needs": {"jobs": ["b"], "window": "sameDay", "timezone": "Asia/Tokyo"}},
    },
    {"name": "a", "command": "x", "dependencies": ["b"], "timeout": 0.001, "catchup": "none"},
    {
        "name": "a",
        "onFailure": "finish",
        "tasks": [
            {"id": "a", "command": "x", "branch": True, "group": "in.raw"},
            {"id": "b", "needs": ["a"], "command": "x", "pool": "p", "slots": 2, "map": {"over": [1, 2]}},
        ],
    },
    {"name": "a", "tasks": [{"id": "a", "command": "x", "publishes": ["rows"]}], "schedule": {"datasets": ["b"]}},
    {"name": "a", "run": {"approval": {"by": ["editor", "ann@example.org"], "timeout": "1h", "message": "m"}}},
    {"name": "a", "run": {"approval": {}}},
    {"name": "a", "run": {"job": "b", "params": {"c": "${params.d}"}, "async": True}},
]
WRONG: Final[list[tuple[tuple[str | int, ...], Any]]] = [
    (("name",), None),
    (("bogus",), 1),
    (("description",), "x" * 4097),
    (("schedule", "startAt"), "0000-01-01T00:00:00Z"),
    (("schedule", "startAt"), "1899-12-31T23:59:59Z"),
    (("schedule", "startAt"), "9999-01-01T00:00:00Z"),
    (("schedule", "startAt"), "2016-12-31T23:59:60Z"),
    (("schedule", "startAt"), "2026-01-01"),
    (("schedule", "jitter"), 86_401),
    (("schedule", "jitter"), "1x"),
    (("schedule", "dst", "gap"), "SHIFT"),
    (("schedule", "blackouts", 0, "to"), None),
    (("schedule", "events"), []),
    (("schedule", "after"), ["b", "b"]),
    (("schedule", "after"), {}),
    (("schedule", "after"), {"all": ["b"], "any": ["c"]}),
    (("schedule", "after"), {"all": ["b"], "timezone": "UTC"}),
    (("schedule", "after"), {"any": ["b"], "window": "latest", "timezone": "UTC"}),
    (("schedule", "after"), {"any": ["b"], "window": "day"}),
    (("schedule", "needs"), []),
    (("schedule", "needs"), {"jobs": ["b"], "window": "latest"}),
    (("schedule", "needs"), {"jobs": ["b"], "timezone": "UTC"}),
    (("schedule", "needs"), {"jobs": ["b"], "timeout": 604_801}),
    (("schedule", "needs"), {"window": "sameDay"}),
    (("schedule", "datasets"), []),
    (("schedule", "datasets"), {"any": ["a"], "window": "latest"}),
    (("publishes",), ["a", "a"]),
    (("tasks", 0, "publishes"), ["a b"]),
    (("catchup", "max"), 10_001),
    (("catchup", "window"), 0),
    (("overlap",), "Allow"),
    (("concurrency", "runs"), 501),
    (("retry", "attempts"), 0),
    (("retry", "delay"), 604_801),
    (("timeout",), 0),
    (("timeout",), True),
    (("deadline",), "24:00"),
    (("pauseAfterFailures",), 1_001),
    (("notify", 0, "on"), ["never"]),
    (("notify", 0, "to"), "alerts"),
    (("params",), []),
    (("tags",), [""]),
    (("tasks", 0, "id"), None),
    (("tasks", 0, "command"), "x"),
    (("tasks", 0, "when"), "never"),
    (("tasks", 0, "map"), {}),
    (("tasks", 0, "map"), {"over": 3}),
    (("tasks", 0, "slots"), 0),
    (("tasks", 0, "group"), "a..b"),
    (("tasks", 0, "branch"), "yes"),
    (("onFailure",), "fast"),
    (("tasks", 0, "needs"), ["a", "a"]),
    (("tasks", 0, "run", "skipExitCode"), 256),
    (("tasks", 0, "run", "limits"), {"memory": 15}),
    (("tasks", 0, "run", "limits"), {"memroy": 512}),
    (("tasks", 0, "run", "limits"), {"cpuTime": 0}),
]
"""What is right in the long form but for one value."""
BAD: Final = [
    {},
    {"name": "a"},
    {"name": "-", "command": "x"},
    {"name": "a", "command": ""},
    {"name": "a", "command": []},
    {"name": "a", "command": "x", "run": {"command": "x"}},
    {"name": "a", "run": {}},
    {"name": "a", "run": {"command": ["x"], "shell": True}},
    {"name": "a", "run": {"command": "x", "python": "m:f"}},
    {"name": "a", "run": {"command": "x", "env": {"1": ""}}},
    {"name": "a", "run": {"python": "m:f", "shell": True}},
    {"name": "a", "run": {"http": {}}},
    {"name": "a", "run": {"http": {"url": "ftp://example.org"}}},
    {"name": "a", "run": {"http": {"url": "https://example.org/a b"}}},
    {"name": "a", "run": {"http": {"url": "https://example.org", "method": "get"}}},
    {"name": "a", "run": {"http": {"url": "https://example.org", "headers": {"a b": ""}}}},
    {"name": "a", "run": {"http": {"url": "https://example.org", "headers": {"a": "b\r\nc: d"}}}},
    {"name": "a", "run": {"http": {"url": "https://example.org", "expect": []}}},
    {"name": "a", "run": {"http": {"url": "https://example.org", "timeout": 1}}},
    {"name": "a", "tasks": []},
    {"name": "a", "run": {"approval": {"by": []}}},
    {"name": "a", "run": {"approval": {"who": "ann"}}},
    {"name": "a", "run": {"job": "a b"}},
    {"name": "a", "command": "x", "retry": {}, "retries": 1},
    {"name": "a", "command": "x", "retry": {"backoff": "list"}},
    {"name": "a", "command": "x", "retry": {"backoff": "fixed", "delays": [1]}},
    {"name": "a", "command": "x", "dependencies": ["b"], "schedule": {"after": ["c"]}},
    {"name": "a", "command": "x", "schedule": {}},
    {"name": "a", "command": "x", "schedule": {"cron": "* * * * *", "every": 1}},
    {"name": "a", "command": "x", "schedule": {"timezone": "UTC"}},
    *(changed(*path, to=value) for path, value in WRONG),
]


@pytest.mark.parametrize("body", GOOD, ids=str)
def test_what_the_domain_takes_the_schema_takes(body: JSON) -> None:
    parse(body, namespace="default", now=NOW)
    validator("JobDefinition").validate(body)


@pytest.mark.parametrize("body", BAD, ids=lambda body: str(body)[-80:])
def test_what_the_schema_refuses_the_domain_refuses(body: JSON) -> None:
    assert not validator("JobDefinition").is_valid(body)
    with pytest.raises(InvalidInput):
        parse(body, namespace="default", now=NOW)


@pytest.mark.parametrize(
    ("body", "is_right"),
    [
        ({}, True),
        ({"id": "c", "timezone": "UTC", "weekdays": ["mon", "mon"], "closed": ["2026-12-25"]}, True),
        ({"weekdays": []}, True),
        ({"weekdays": ["Mon"]}, False),
        ({"closed": None}, False),
        ({"closed": ["0000-01-01"]}, False),
        ({"closed": ["2026-02-30"]}, False),
        ({"bogus": 1}, False),
    ],
)
def test_a_calendar_is_what_its_schema_says(body: JSON, is_right: bool) -> None:
    assert validator("Calendar").is_valid(body) == is_right
    if is_right:
        Calendar.parse(body, id="c")
    else:
        with pytest.raises(InvalidInput):
            Calendar.parse(body, id="c")


def test_a_definition_goes_before_its_template_and_null_takes_nothing_away(virtual: Virtual) -> None:
    admin = virtual.admin
    admin.put("/templates/t", {"command": "true", "retries": 2, "tags": ["t"]}).expect(201)
    admin.post("/jobs", {"name": "a", "template": "t", "run": None, "command": None}).expect(201)
    own = {"name": "b", "template": "t", "run": {"external": {}}, "retry": {"attempts": 7}, "tags": ["b"]}
    admin.post("/jobs", own).expect(201)
    admin.post("/jobs", {"name": "c", "template": None, "command": "x"}).expect(201)
    first, second = admin.get("/jobs/a").json, admin.get("/jobs/b").json
    assert (first["tasks"][0]["run"], first["retry"], first["tags"]) == ({"command": ["true"]}, {"attempts": 3}, ["t"])
    assert (second["tasks"][0]["run"], second["retry"], second["tags"]) == ({"external": {}}, {"attempts": 7}, ["b"])


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"retries": "many"}, "retries"),
        ({"schedule": {"timezone": "UTC"}}, "schedule"),
        ({"command": "x", "run": {"external": {}}}, "command"),
        ({"run": {"lambda": "f"}}, "run.lambda"),
        ({"name": "a"}, "name"),
    ],
)
@sqlite_only(TABLE)
def test_a_template_that_no_job_could_use_is_refused(virtual: Virtual, body: JSON, path: str) -> None:
    refused = virtual.admin.put("/templates/t", body).expect(400)
    assert path in [one["path"] for one in refused.json["errors"]]


def test_whole_numbers_may_be_written_with_a_point_and_names_only_as_documented(virtual: Virtual) -> None:
    admin = virtual.admin
    assert admin.call("PUT", "/pools/p", raw=b'{"slots": 2.0}').expect(201).json["slots"] == 2
    admin.call("PUT", "/pools/p", raw=b'{"slots": 2.5}').expect(400)
    admin.post("/jobs", SHORT).expect(201)
    admin.post("/jobs/a/resume", {"dry_run": True}).expect(400)


@pytest.mark.parametrize(
    "headers", [{"If_Match": '"3'}, {"If_Match": "W/3"}, {"If_None_Match": '"1"'}, {"X_Namespace": ""}]
)
@sqlite_only(TABLE)
def test_a_header_that_says_nothing_is_refused(virtual: Virtual, headers: dict[str, str]) -> None:
    assert virtual.admin.put("/jobs/a", SHORT, **headers).status in (400, 403)


def test_any_version_will_do_where_the_caller_says_so(virtual: Virtual) -> None:
    virtual.admin.post("/jobs", SHORT).expect(201)
    virtual.admin.put("/jobs/a", SHORT).expect(428)
    assert virtual.admin.put("/jobs/a", {**SHORT, "retries": 1}, If_Match="*").expect(200).json["version"] == 2
