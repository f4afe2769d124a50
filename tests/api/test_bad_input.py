"""Bad input gets a clear refusal, and changes nothing."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from typing import Any

import pytest

from tests.api.client import MANY, TABLE, Answered, Client, Served, Virtual, sqlite_only
from tests.api.test_contract import HOURLY, create

SEPARATORS = ["#", "|", "/", ":", "\x00", "\u2028", " ", "\n", "..%2f", "é", "*", "?", "\\", "'", '"', "\u202e"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A place with a little in it, which every test leaves as it was."""
    with Served(tmp_path_factory.mktemp("bad")) as served:
        create(served.admin, "job", **HOURLY)
        served.admin.put("/pools/pool", {"slots": 1}).expect(201)
        served.admin.put("/calendars/calendar", {}).expect(201)
        served.admin.post("/jobs/job/trigger").expect(202)
        yield served


@pytest.fixture
def unchanged(place: Served) -> Iterator[Client]:
    """A caller who may do everything, and to whom nothing is done."""
    before = digest(place)
    yield place.admin
    assert digest(place) == before


def digest(place: Served) -> str:
    """Everything that is stored, in one text."""
    found = blake2b()
    with closing(sqlite3.connect(f"file:{place.database}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (table,) in tables:
            found.update(table.encode())
            for row in database.execute(f'SELECT * FROM "{table}"'):
                found.update(repr(row).encode())
    return found.hexdigest()


def refused(answered: Answered, status: int = 400) -> Any:
    problem = answered.expect(status).json
    assert answered.headers["content-type"] == "application/problem+json"
    assert problem.keys() >= {"type", "title", "status", "detail"}
    assert problem["status"] == status
    assert problem["detail"]
    assert "Traceback" not in answered.text
    return problem


def test_the_digest_sees_every_change(place: Served) -> None:
    before = digest(place)
    place.admin.put("/pools/other", {"slots": 1}).expect(201)
    between = digest(place)
    place.admin.delete("/pools/other").expect(204)
    assert len({before, between, digest(place)}) == 3


# Names.


@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
def test_no_name_contains_what_separates_keys(unchanged: Client, separator: str) -> None:
    name = f"a{separator}b"
    for body in (
        {"name": name, **HOURLY},
        {"name": f"{separator}a", **HOURLY},
        {"name": f"a{separator}", **HOURLY},
        {"name": "new", "command": "x", "dependencies": [name]},
        {"name": "new", "command": "x", "schedule": {"cron": "0 0 * * *", "calendar": name}},
        {"name": "new", "command": "x", "concurrency": {"pool": name}},
        {"name": "new", "tasks": [{"id": name, "run": {"command": ["x"]}}]},
    ):
        assert refused(unchanged.post("/jobs", body))["errors"]
    for path in (f"/pools/{name}", f"/calendars/{name}", f"/templates/{name}", f"/namespaces/{name}", f"/jobs/{name}"):
        body = {"slots": 1} if "pools" in path else {"command": "x"} if "jobs" in path else {}
        assert unchanged.call("PUT", path.replace("?", "%3F"), body).status in (400, 404), path
    assert unchanged.get(f"/jobs/job/runs/{name.replace('?', '%3F')}").status in (400, 404)
    refused(unchanged.post("/leases", {"workerId": name}))
    refused(unchanged.post("/leases", {"workerId": "w", "labels": [name]}))
    refused(unchanged.post("/runs/bulk", {"action": "cancel", "filter": {"job": name}}))


@pytest.mark.parametrize("end", ["%0A", "\n", "%00", "%2F", "%2fwhy", "%2Fruns", "%20", "%E2%80%A8", "%23", "%252F"])
def test_no_encoded_character_makes_one_address_pass_for_another(unchanged: Client, end: str) -> None:
    unchanged.get("/jobs/%6A%6fb").expect(200)
    for method in ("GET", "PUT", "DELETE"):
        for path in ("/jobs/job", "/pools/pool", "/calendars/calendar"):
            assert unchanged.call(method, f"{path}{end}", {}, headers={"If-Match": "1"}).status in (400, 404)
    assert unchanged.post(f"/jobs/job/trigger{end}").status in (400, 404)


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "_a", "a" * 129, None, 7, ["a"], {"a": 1}, True])
def test_a_name_is_a_short_text_that_begins_with_a_letter_or_a_digit(unchanged: Client, name: Any) -> None:
    problem = refused(unchanged.post("/jobs", {"name": name, **HOURLY}))
    assert [error["path"] for error in problem["errors"]] == ["name"]


# Bodies.

DEEP = b"[" * 100_000 + b"]" * 100_000
BODIES: dict[str, tuple[bytes, int]] = {
    "nothing that is JSON": (b"name: daily", 400),
    "half of an object": (b'{"name": "new"', 400),
    "two documents": (b"{}{}", 400),
    "a text": (b'"new"', 400),
    "a list": (b"[]", 400),
    "a number": (b"1", 400),
    "null": (b"null", 400),
    "a duplicate key": (b'{"name": "new", "command": "x", "name": "new2"}', 400),
    "a duplicate key inside": (b'{"name": "new", "command": "x", "params": {"a": 1, "a": 2}}', 400),
    "NaN": (b'{"name": "new", "command": "x", "params": {"a": NaN}}', 400),
    "Infinity": (b'{"name": "new", "command": "x", "timeout": -Infinity}', 400),
    "1e999": (b'{"name": "new", "command": "x", "params": {"a": 1e999}}', 400),
    "a timeout of 1e308": (b'{"name": "new", "command": "x", "timeout": 1e308}', 400),
    "an integer of 10,000 digits": (b'{"name": "new", "command": "x", "params": {"a": ' + b"9" * 10_000 + b"}}", 400),
    "an integer of 400 digits as a duration": (b'{"name": "new", "command": "x", "timeout": ' + b"9" * 400 + b"}", 400),
    "half a surrogate pair": (b'{"name": "new", "command": "x", "description": "\\ud800"}', 400),
    "half a surrogate pair in a key": (b'{"name": "new", "command": "x", "params": {"\\udfff": 1}}', 400),
    "a raw surrogate": (b'{"name": "new", "command": "x", "description": "\xed\xa0\x80"}', 400),
    "invalid UTF-8": (b'{"name": "new", "command": "x", "description": "\xff"}', 400),
    "UTF-16": ('{"name": "new", "command": "x"}'.encode("utf-16"), 400),
    "a byte order mark": (b"\xef\xbb\xbf" + b'{"name": "new", "command": "x"}', 400),
    "a NUL": (b'{"name": "new", "command": "x\x00"}', 400),
    "a single quote": (b"{'name': 'new'}", 400),
    "a comment": (b'{"name": "new", "command": "x"} // mine', 400),
    "a trailing comma": (b'{"name": "new", "command": "x",}', 400),
    "100,000 levels": (b'{"name": "new", "command": "x", "params": {"a": ' + DEEP + b"}}", 400),
    "1,000 levels": (b'{"a": ' * 1_000 + b"1" + b"}" * 1_000, 400),
    "10 MB": (b'{"name": "new", "description": "' + b"x" * 10_000_000 + b'"}', 413),
    "10 MB of nothing": (b" " * 10_000_000, 413),
    "5 MB of invalid UTF-8": (b"\xff" * 5_000_000, 413),
    "20,000 keys": (b"{" + b",".join(b'"k%d":1' % n for n in range(20_000)) + b"}", 400),
    "a description of 200 KB": (b'{"name": "new", "command": "x", "description": "' + b"x" * 200_000 + b'"}', 400),
}


@pytest.mark.parametrize("what", BODIES)
def test_a_body_that_is_not_strict_json_is_refused(unchanged: Client, what: str) -> None:
    raw, status = BODIES[what]
    begun = time.thread_time()
    for path in ("/jobs", "/plan", "/jobs/job/trigger"):
        refused(unchanged.call("POST", path, raw=raw), status)
    refused(unchanged.call("PUT", "/templates/new", raw=raw), status)
    assert time.thread_time() - begun < 4


def test_only_a_definition_may_be_large(unchanged: Client) -> None:
    raw = b'{"params": {"a": "' + b"x" * 300_000 + b'"}}'
    refused(unchanged.call("POST", "/jobs/job/trigger", raw=raw), 413)
    refused(unchanged.call("POST", "/jobs", raw=raw), 400)


@pytest.mark.parametrize("depth", [70, 200, 600, 900, 940, 950, 960, 970, 980, 985, 990, 995])
def test_no_depth_of_nesting_is_our_mistake(unchanged: Client, depth: int) -> None:
    raw = b'{"params": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
    for path in ("/jobs/job/trigger", "/jobs", "/plan"):
        refused(unchanged.call("POST", path, raw=raw))
    refused(unchanged.call("PUT", "/templates/new", raw=raw))


@pytest.mark.parametrize(
    "where",
    [
        ("POST", "/jobs/job/trigger", {"note": "{}"}),
        ("POST", "/jobs/job/trigger", {"params": {"a": "{}"}}),
        ("POST", "/events", {"source": "{}", "type": "t"}),
        ("POST", "/events", {"source": "s", "type": "t", "detail": {"{}": 1}}),
        ("PUT", "/templates/new", {"description": "{}"}),
        ("PUT", "/calendars/new", {"timezone": "{}"}),
        ("PUT", "/namespaces/new", {"description": "{}"}),
        ("POST", "/tokens", {"name": "{}", "role": "viewer"}),
        ("POST", "/jobs/job/pause", {"note": "{}"}),
    ],
    ids=lambda where: f"{where[1]} {next(iter(where[2]))}",
)
def test_half_a_surrogate_pair_is_no_character_anywhere(unchanged: Client, where: tuple[str, str, Any]) -> None:
    method, path, body = where
    problem = refused(unchanged.call(method, path, raw=json.dumps(body).replace("{}", "\\ud83d", 1).encode()))
    assert "surrogate" in problem["detail"]


@pytest.mark.parametrize(
    "media", ["text/plain", "application/xml", "application/x-www-form-urlencoded", "application/yaml", "", "json"]
)
def test_a_body_says_that_it_is_json(unchanged: Client, media: str) -> None:
    raw = json.dumps({"name": "new", **HOURLY}).encode()
    refused(unchanged.call("POST", "/jobs", raw=raw, headers={"Content-Type": media}), 415)


def test_the_media_type_may_have_parameters(virtual: Virtual) -> None:
    raw = json.dumps({"name": "new", **HOURLY}).encode()
    virtual.admin.call("POST", "/jobs", raw=raw, headers={"Content-Type": "Application/JSON; charset=utf-8"}).expect(
        201
    )


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
@sqlite_only(TABLE)
def test_where_there_is_no_body_its_type_does_not_matter(virtual: Virtual, media: str) -> None:
    create(virtual.admin, "job")
    for raw in (b"", b" \n"):
        virtual.admin.call("POST", "/jobs/job/pause", raw=raw, headers={"Content-Type": media}).expect(200)


def test_a_wrong_method_is_told_the_right_ones(unchanged: Client) -> None:
    for method, path, allowed in (
        ("PATCH", "/jobs/job", "DELETE, GET, PUT"),
        ("DELETE", "/jobs", "GET, POST"),
        ("GET", "/plan", "POST"),
        ("POST", "/pools/pool", "DELETE, GET, PUT"),
        ("PUT", "/leases/heartbeat", "GET, POST"),
        ("POST", "/health", "GET"),
        ("TRACE", "/jobs/job/trigger", "POST"),
        ("", "/jobs", "GET, POST"),
    ):
        answered = unchanged.call(method, path)
        refused(answered, 405)
        assert answered.headers["allow"] == allowed


# Fields and parameters.


@pytest.mark.parametrize(
    ("body", "path", "nearest"),
    [
        ({"name": "new", "command": "x", "shedule": "0 0 * * *"}, "shedule", "schedule"),
        ({"name": "new", "command": "x", "retrys": 3}, "retrys", "retry"),
        ({"name": "new", "command": "x", "cron": "0 0 * * *"}, "cron", "schedule.cron"),
        ({"name": "new", "command": "x", "schedule": {"corn": "0 0 * * *"}}, "schedule.corn", "cron"),
        ({"name": "new", "command": "x", "retry": {"attempt": 3}}, "retry.attempt", "attempts"),
        ({"name": "new", "run": {"comand": ["x"]}}, "run", "command"),
    ],
)
def test_an_unknown_field_is_told_the_nearest(unchanged: Client, body: Any, path: str, nearest: str) -> None:
    errors = refused(unchanged.post("/jobs", body))["errors"]
    (found,) = [error for error in errors if error["path"] == path]
    assert f"'{nearest}'" in found["message"]


def test_every_mistake_is_listed_at_once(unchanged: Client) -> None:
    body = {"name": "new", "command": "x", "schedule": "61 * * * *", "timeout": "soon", "overlap": "Skip", "x": 1}
    paths = {error["path"] for error in refused(unchanged.post("/jobs", body))["errors"]}
    assert paths == {"schedule", "timeout", "overlap", "x"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/jobs/job/trigger", {"parms": {}}, "parms"),
        ("/jobs/job/trigger", {"params": []}, "params"),
        ("/jobs/job/trigger", {"params": {"a": "x" * 40_000}}, "params"),
        ("/jobs/job/trigger", {"note": "x" * 201}, "note"),
        ("/jobs/job/trigger", {"note": 7}, "note"),
        ("/jobs/job/resume", {"catchup": "some"}, "catchup"),
        ("/jobs/job/resume", {"dryRun": "yes"}, "dryRun"),
        ("/jobs/job/resume", {"dry_run": True}, "dry_run"),
        ("/jobs/job/rollback", {}, "version"),
        ("/jobs/job/rollback", {"version": "1"}, "version"),
        ("/jobs/job/rollback", {"version": 1.5}, "version"),
        ("/jobs/job/rollback", {"version": 0}, "version"),
        ("/jobs/job/rollback", {"version": 10**400}, "version"),
        ("/jobs/job/rollback", {"version": True}, "version"),
        ("/runs/bulk", {"action": "cancel"}, "filter"),
        ("/runs/bulk", {"action": "cancel", "filter": {"state": "done"}}, "filter.state"),
        ("/runs/bulk", {"action": "cancel", "filter": {"from": "yesterday"}}, "filter.from"),
        ("/events", {"type": "t"}, "source"),
        ("/events", {"source": "s", "type": "t", "detail": "x"}, "detail"),
        ("/leases", {}, "workerId"),
        ("/leases", {"workerId": "w", "max": 101}, "max"),
        ("/leases", {"workerId": "w", "waitSeconds": 21}, "waitSeconds"),
        ("/leases", {"workerId": "w", "waitSeconds": -1}, "waitSeconds"),
        ("/leases/bm8/complete", {}, "epoch"),
        ("/leases/bm8/complete", {"epoch": 1, "output": "x" * 1_100_000}, "output"),
        ("/leases/bm8/fail", {"epoch": 1, "class": "odd"}, "class"),
        ("/leases/heartbeat", {"leases": []}, "leases"),
        ("/leases/heartbeat", {"leases": [{"lease": "x", "epoch": 1}] * 101}, "leases"),
        ("/tokens", {"name": "n", "role": "owner"}, "role"),
        ("/tokens", {"role": "viewer"}, "name"),
        ("/tokens", {"name": "n", "role": "viewer", "expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ("/tokens", {"name": "n", "role": "viewer", "expiresAt": 1e12}, "expiresAt"),
        ("/namespaces/default/pause", {"cursor": "x"}, "cursor"),
    ],
)
def test_a_wrong_field_is_refused_by_its_path(unchanged: Client, path: str, body: Any, field: str) -> None:
    assert refused(unchanged.post(path, body))["errors"][0]["path"] == field


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/jobs?statuss=paused", "statuss"),
        ("/jobs?status=Paused", "status"),
        ("/jobs?limit=0", "limit"),
        ("/jobs?limit=1001", "limit"),
        ("/jobs?limit=ten", "limit"),
        ("/jobs?limit=1&limit=2", "limit"),
        ("/jobs?prefix=%00", "prefix"),
        ("/jobs?prefix=a%23b", "prefix"),
        ("/jobs?tag=", "tag"),
        ("/jobs?search=", "search"),
        ("/jobs?search=%00", "search"),
        ("/jobs?search=a%0Ab", "search"),
        (f"/jobs?search={'x' * 129}", "search"),
        ("/jobs?include=runs", "include"),
        ("/jobs/job?include=costs", "include"),
        ("/jobs/job?include=cost,cost", "include"),
        ("/jobs/job?include=", "include"),
        ("/jobs?include=recentRuns,cost", "include"),
        ("/jobs/job/fires?count=0", "count"),
        ("/upcoming?within=soon", "within"),
        ("/upcoming?within=0", "within"),
        ("/upcoming?within=-1h", "within"),
        ("/upcoming?within=100d", "within"),
        ("/upcoming?within=9999999999", "within"),
        ("/upcoming?within=", "within"),
        ("/upcoming?limit=1001", "limit"),
        ("/upcoming?cursor=x", "cursor"),
        ("/upcoming?job=a", "job"),
        ("/jobs/job/fires?count=1001", "count"),
        ("/jobs/job/fires?from=tomorrow", "from"),
        ("/jobs/job/fires?from=0001-01-01T00:00:00Z", "from"),
        ("/jobs/job/fires?from=9999-12-31T23:59:59Z", "from"),
        ("/jobs/job/ledger?frm=2026-01-01T00:00:00Z", "frm"),
        ("/jobs/job/ledger?from=0001-01-01T00:00:00Z", "from"),
        ("/jobs/job/ledger?to=9999-12-31T23:59:59Z", "to"),
        ("/jobs/job/ledger?from=2026-01-01", "from"),
        ("/jobs/job/runs?state=done", "state"),
        ("/jobs/job/runs?include=all", "include"),
        ("/runs?to=0001-01-01T00:00:00Z", "to"),
        ("/runs?job=a%2Fb", "job"),
        ("/deadletters?to=0001-01-01T00:00:00Z", "to"),
        ("/jobs/job?include=everything", "include"),
        ("/health?verbose=1", "verbose"),
    ],
)
def test_a_wrong_parameter_is_refused_by_its_name(unchanged: Client, path: str, name: str) -> None:
    problem = refused(unchanged.get(path))
    assert problem["errors"][0]["path"] == name


def test_a_misspelt_parameter_does_not_do_more_than_was_meant(unchanged: Client) -> None:
    assert "'cancel'" in refused(unchanged.delete("/jobs/job?cancle=true"))["detail"]
    refused(unchanged.delete("/jobs/job?cancel=yes"))


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "1234567890", "", '"', "1, 2", "٣"])
def test_a_version_that_is_none_is_refused(unchanged: Client, value: str) -> None:
    assert refused(unchanged.put("/jobs/job", HOURLY, If_Match=value))["errors"][0]["path"] == "If-Match"
    refused(unchanged.delete("/jobs/job", If_Match=value))


@pytest.mark.parametrize("key", ["", "x" * 256, "\x00", "é", "a\nb"])
def test_an_idempotency_key_is_short_and_printable(unchanged: Client, key: str) -> None:
    problem = refused(unchanged.post("/jobs/job/trigger", {}, Idempotency_Key=key))
    assert problem["errors"][0]["path"] == "Idempotency-Key"


def test_a_forged_cursor_is_refused_and_breaks_nothing(virtual: Virtual) -> None:
    for name in ("a", "b", "c"):
        create(virtual.admin, name, command="x")
        virtual.admin.put(f"/pools/{name}", {"slots": 1}).expect(201)
        virtual.admin.put("/jobs/a", {"command": name}, If_Match=virtual.admin.get("/jobs/a").headers["etag"])
    for path in ("/jobs", "/pools", "/audit", "/jobs/a/versions"):
        cursor = virtual.admin.get(f"{path}?limit=1").expect(200).json["nextCursor"]
        digest_of_query, *position = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        for wrong in ("\ud800", "\x00", 7, None, ["a"], {"a": 1}, "x" * 600):
            forged = [digest_of_query, *([wrong] * len(position))]
            text = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
            answered = virtual.admin.get(f"{path}?limit=1&cursor={text[:2000]}")
            assert answered.status == 400, (path, wrong)
        for wrong in ("a", "9" * 500, "-1", "2026-01-01"):
            forged = [digest_of_query, *([wrong] * len(position))]
            text = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
            assert virtual.admin.get(f"{path}?limit=1&cursor={text}").status in (200, 400), (path, wrong)


# Graphs.


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        [{"id": "a", "needs": ["a"], "run": {"command": ["x"]}}],
        [{"id": "a", "needs": ["b"], "run": {"command": ["x"]}}],
        [{"id": "a", "run": {"command": ["x"]}}, {"id": "a", "run": {"command": ["x"]}}],
        [{"id": one, "needs": [other], "run": {"command": ["x"]}} for one, other in ("ab", "ba")],
        [{"id": "a", "map": {"over": "${params.x}", "max": 10**9}, "run": {"command": ["x"]}}],
        [{"id": f"t{n}", "run": {"command": ["x"]}} for n in range(11_000)],
        [{"id": f"t{n}", "command": "x"} for n in range(100_000)],
        [{"id": "a", "map": {"over": list(range(100_000))}, "run": {"command": ["x"]}}],
        [{"id": "a", "run": {"command": ["${tasks.nowhere.output}"]}}, {"id": "b", "run": {"command": ["x"]}}],
        [{"id": "a", "run": {"command": ["x"]}}, {"id": "b", "run": {"command": ["${tasks.a.output}"]}}],
        {"a": 1},
        "a",
        [None],
    ],
    ids=[
        "none",
        "self",
        "missing",
        "duplicate",
        "cycle",
        "map",
        "11,000",
        "100,000",
        "long",
        "nowhere",
        "no need",
        "object",
        "text",
        "null",
    ],
)
def test_a_graph_that_is_none_is_refused_by_its_path(unchanged: Client, tasks: Any) -> None:
    problem = refused(unchanged.post("/jobs", {"name": "new", "tasks": tasks}))
    assert problem["errors"][0]["path"].startswith("tasks")


def test_a_step_that_nothing_here_can_run_is_refused_at_once(unchanged: Client) -> None:
    for step in ({"lambda": "f"}, {"stateMachine": "m"}, {"sqs": "q", "body": 1}):
        problem = refused(unchanged.post("/jobs", {"name": "new", "run": step}))
        assert "command, external, http, job, python" in problem["detail"]
    refused(unchanged.post("/jobs", {"name": "new"}))
    refused(unchanged.post("/jobs", {"name": "new", "command": "x", "run": {"command": ["y"]}}))
    refused(unchanged.post("/jobs", {"name": "new", "command": "unfinished 'quote"}))


# Cron bombs.

BOMBS = [
    "*/0 * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 8",
    "-1 * * * *",
    "1-0-1 * * * *",
    "5-1/0 * * * *",
    "0 0 31 2 *",
    "0 0 30 2 *",
    "* * * *",
    "* * * * * * * *",
    "@never",
    "* " * 5_000,
    ",".join(["1"] * 1_000) + " * * * *",
    ",".join(str(n) for n in range(10_000)) + " * * * *",
    "*/1" + "0" * 10_000 + " * * * *",
    "(" * 5_000,
    "1-" * 5_000,
    "\x00 * * * *",
    "٣ * * * *",
    "0 0 1 1 * 9999-99999",
    "H(" * 1_000,
    "L-99 * * * *",
    "rate(0 minutes)",
    "rate(1e999 minutes)",
    "rate(" + "9" * 400 + " minutes)",
    "cron(" * 1_000,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: ascii(bomb[:24]))
def test_a_cron_bomb_is_refused_fast_and_by_its_field(unchanged: Client, bomb: str) -> None:
    fastest = 9.0
    for body, field in (
        ({"name": "new", "command": "x", "schedule": bomb}, "schedule"),
        ({"name": "new", "command": "x", "schedule": {"cron": bomb}}, "schedule.cron"),
        ({"name": "new", "command": "x", "schedule": {"cron": bomb, "timezone": "Asia/Gaza"}}, "schedule.cron"),
    ):
        begun = time.thread_time()
        answered = unchanged.post("/jobs", body)
        fastest = min(fastest, time.thread_time() - begun)
        assert refused(answered)["errors"][0]["path"] == field
    assert fastest < 0.05


# Quotas.


@sqlite_only(MANY)
def test_a_namespace_has_room_for_so_many_jobs(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/small", {"limits": {"jobs": 2}}).expect(201)
    small = virtual.admin.within("small")
    create(small, "a", command="x")
    create(small, "b", command="x")
    full = small.post("/jobs", {"name": "c", "command": "x"})
    assert "2 jobs" in refused(full, 429)["detail"]
    assert int(full.headers["retry-after"]) > 0
    small.get("/jobs/c").expect(404)
    small.put("/jobs/a", {"command": "y"}, If_Match="1").expect(200)
    small.delete("/jobs/b").expect(204)
    create(small, "c", command="x")
    create(virtual.admin, "c", command="x")


@sqlite_only(MANY)
def test_a_namespace_has_room_for_so_many_jobs_that_fire_often(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/small", {"limits": {"frequentJobs": 2}}).expect(201)
    small = virtual.admin.within("small")
    often = {"schedule": "* * * * * *", "command": "x"}
    for name in ("a", "b"):
        create(small, name, **often)
    problem = refused(small.post("/jobs", {"name": "c", **often}))
    assert problem["errors"][0]["path"] == "schedule"
    refused(small.post("/jobs", {"name": "c", "command": "x", "schedule": {"every": "5s"}}))
    create(small, "c", schedule="* * * * *", command="x")
    refused(small.put("/jobs/c", often, If_Match="1"))
    small.put("/jobs/a", {"command": "x"}, If_Match="1").expect(200)
    small.put("/jobs/c", often, If_Match="1").expect(200)


def test_a_namespace_that_asks_too_often_is_slowed_down_alone(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/busy", {"limits": {"requestsPerSecond": 5}}).expect(201)
    busy, other = virtual.callers.role("viewer", "busy"), virtual.callers.role("viewer")
    answers = [busy.get("/jobs") for _ in range(12)]
    assert [answered.status for answered in answers] == [200] * 10 + [429] * 2
    refused(answers[-1], 429)
    assert int(answers[-1].headers["retry-after"]) == 1
    assert {other.get("/jobs").status for _ in range(50)} == {200}
    virtual.jump(seconds=0.2)
    assert [busy.get("/jobs").status for _ in range(2)] == [200, 429]
    virtual.jump(seconds=60)
    assert [busy.get("/jobs").status for _ in range(11)] == [200] * 10 + [429]
