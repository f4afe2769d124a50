"""The contract of secrets: written, listed by name, given to attempts, and shown nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sweephand.calls import Call
from sweephand.domain.ids import Namespace
from tests.api.client import TABLE, Client, Virtual, sqlite_only
from tests.api.test_contract import create
from tests.api.test_runs import run_of, trigger

VALUE = "hunter2-canary/äöü"
DECLARES = {"command": ["x"], "secrets": {"DB": "dsn"}}
LONG = "10m"


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def stored(virtual: Virtual, name: str = "dsn", value: str = VALUE) -> None:
    virtual.admin.put(f"/secrets/{name}", {"value": value})


def test_a_secret_is_stored_listed_changed_and_removed_and_its_value_never_shown(virtual: Virtual) -> None:
    admin = virtual.admin
    admin.get("/secrets/dsn").expect(404)
    made = admin.put("/secrets/dsn", {"value": VALUE}, If_None_Match="*").expect(201)
    assert made.headers["etag"] == '"1"'
    assert made.json.keys() == {"id", "version", "updatedAt", "updatedBy"}
    assert (made.json["id"], made.json["version"]) == ("dsn", 1)
    assert made.json["updatedAt"] == "2026-03-02T00:10:00Z"
    assert admin.get("/secrets/dsn").expect(200).json == made.json
    assert admin.get("/secrets").items == [made.json]
    virtual.jump(minutes=1)
    changed = admin.put("/secrets/dsn", {"value": f"{VALUE}2"}, If_Match="1").expect(200).json
    assert (changed["version"], changed["updatedAt"]) == (2, "2026-03-02T00:11:00Z")
    admin.put("/secrets/dsn", {"value": VALUE}, If_Match="1").expect(412)
    admin.put("/secrets/dsn", {"value": VALUE}, If_None_Match="*").expect(412)
    admin.delete("/secrets/dsn", If_Match="1").expect(412)
    admin.delete("/secrets/dsn", If_Match="2").expect(204)
    admin.delete("/secrets/dsn").expect(404)
    audit = admin.get("/audit").items
    actions = [deed["action"] for deed in audit if deed["subject"] == "secrets/dsn"]
    assert sorted(actions) == ["secret.delete", "secret.put", "secret.put"]
    assert VALUE not in json.dumps(audit, ensure_ascii=False)
    assert "sealed" not in json.dumps(audit)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"value": ""},
        {"value": "abc"},
        {"value": 12345},
        {"value": None},
        {"value": "x" * 65_537},
        {"value": "ä" * 32_769},
        {"value": "ab\0cd"},
        {"value": VALUE, "valu": VALUE},
    ],
)
@sqlite_only(TABLE)
def test_what_is_no_value_is_refused_and_not_repeated(admin: Client, body: dict[str, Any]) -> None:
    refused = admin.put("/secrets/dsn", body).expect(400)
    assert refused.json["errors"][0]["path"] in {"value", "valu"}
    assert VALUE not in refused.text
    admin.get("/secrets/dsn").expect(404)


@sqlite_only(TABLE)
def test_a_value_may_take_64_kilobytes_however_its_json_writes_it(admin: Client) -> None:
    admin.put("/secrets/large", {"value": "\x01" * 65_536}).expect(201)


@sqlite_only(TABLE)
def test_editors_store_secrets_and_everybody_sees_their_names_only(virtual: Virtual) -> None:
    editor, operator, viewer = (virtual.callers.role(role) for role in ("editor", "operator", "viewer"))
    editor.put("/secrets/dsn", {"value": VALUE}).expect(201)
    for caller in (operator, viewer):
        caller.put("/secrets/dsn", {"value": VALUE}).expect(403)
        caller.delete("/secrets/dsn").expect(403)
        for answer in (caller.get("/secrets").expect(200), caller.get("/secrets/dsn").expect(200)):
            assert VALUE not in json.dumps(answer.json, ensure_ascii=False)
    editor.delete("/secrets/dsn").expect(204)


def test_a_repeated_key_keeps_neither_the_value_nor_a_hash_of_it(virtual: Virtual) -> None:
    first = virtual.admin.put("/secrets/dsn", {"value": VALUE}, Idempotency_Key="once").expect(201)
    again = virtual.admin.put("/secrets/dsn", {"value": VALUE}, Idempotency_Key="once").expect(200)
    assert (first.json["version"], again.json["version"]) == (1, 2)


@pytest.mark.parametrize("timeout", ["30s", LONG])
def test_an_attempt_gets_the_values_of_what_its_task_declares(virtual: Virtual, timeout: str) -> None:
    seen: list[dict[str, str]] = []
    stored(virtual)
    stored(virtual, "other", "not-declared")
    create(virtual.admin, "job", run=DECLARES, timeout=timeout)
    virtual.on("job", lambda call: seen.append(dict(call.secrets.by_name)))
    run_id = trigger(virtual.admin, "job")
    virtual.go_on(minutes=1)
    assert run_of(virtual.admin, "job", run_id)["state"] == "succeeded"
    stored(virtual, value="hunter3-canary")
    trigger(virtual.admin, "job")
    virtual.go_on(minutes=1)
    assert seen == [{"DB": VALUE}, {"DB": "hunter3-canary"}]


@pytest.mark.parametrize("timeout", ["30s", LONG])
def test_without_the_secret_the_attempt_fails_for_good_and_names_it(virtual: Virtual, timeout: str) -> None:
    create(virtual.admin, "job", run=DECLARES, timeout=timeout, retries=3)
    run_id = trigger(virtual.admin, "job")
    virtual.go_on(minutes=10)
    run = run_of(virtual.admin, "job", run_id)
    assert (run["state"], run["attempt"], run["error"]["error"]) == ("failed", 1, "SecretNotFound")
    assert "dsn" in run["error"]["message"]


def test_one_namespace_never_reads_anothers_secret(virtual: Virtual) -> None:
    stored(virtual)
    virtual.admin.put("/namespaces/others", {}).expect(201)
    others = virtual.admin.within("others")
    others.get("/secrets/dsn").expect(404)
    assert others.get("/secrets").items == []
    create(others, "job", run=DECLARES)
    run_id = trigger(others, "job")
    virtual.go_on(minutes=1)
    assert run_of(others, "job", run_id)["error"]["error"] == "SecretNotFound"


def test_secrets_go_with_their_namespace(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/team", {}).expect(201)
    virtual.admin.within("team").put("/secrets/dsn", {"value": VALUE}).expect(201)
    virtual.admin.delete("/namespaces/team").expect(204)
    assert virtual.world.shared.listed(Namespace("team"), "secret", limit=10) == []


def _fails(call: Call) -> None:
    raise RuntimeError(f"refused with {call.secrets.by_name['DB']}")


def test_what_a_task_answers_is_kept_without_the_value(virtual: Virtual) -> None:
    """A long task's outcome on AWS is redacted where it ran: see tests/functions."""
    stored(virtual)
    for name in ("says", "fails"):
        create(virtual.admin, name, run=DECLARES, timeout="30s")
    virtual.on("says", lambda call: {"url": f"db://{call.secrets.by_name['DB']}@host"})
    virtual.on("fails", _fails)
    ids = {name: trigger(virtual.admin, name) for name in ("says", "fails")}
    virtual.go_on(minutes=1)
    runs = {name: run_of(virtual.admin, name, run_id) for name, run_id in ids.items()}
    assert runs["says"]["output"] == {"url": "db://•••@host"}
    assert runs["fails"]["error"]["message"] == "refused with •••"


def test_a_worker_gets_values_with_its_lease_and_what_it_says_is_kept_without_them(virtual: Virtual) -> None:
    stored(virtual)
    worker = virtual.callers.role("operator")
    create(virtual.admin, "job", run={"external": {"secrets": {"DB": "dsn"}}}, retries=1)
    run_id = trigger(virtual.admin, "job")
    virtual.go_on()
    (work,) = worker.post("/leases", {"workerId": "w"}, Idempotency_Key="k").expect(200).items
    assert work["secrets"] == {"DB": VALUE}
    assert work["run"] == {"external": {"secrets": {"DB": "dsn"}}}
    lease = f"/leases/{work['lease']}"
    worker.post(f"{lease}/heartbeat", {"epoch": 1, "checkpoint": {"at": VALUE, "line": 7}}).expect(200)
    many = {"leases": [{"lease": work["lease"], "epoch": 1, "checkpoint": {"at": [VALUE], "line": 8}}]}
    worker.post("/leases/heartbeat", many).expect(200)
    failed = worker.post(f"{lease}/fail", {"epoch": 1, "error": {"name": "E", "message": f"x {VALUE}"}}).expect(200)
    assert VALUE not in failed.json["error"]["message"]
    virtual.go_on(minutes=5)
    (again,) = worker.post("/leases", {"workerId": "w"}).expect(200).items
    assert again["checkpoint"] == {"at": ["•••"], "line": 8}
    done = worker.post(f"/leases/{again['lease']}/complete", {"epoch": 2, "output": [VALUE, 1]}).expect(200)
    assert done.json["output"] == ["•••", 1]
    assert run_of(virtual.admin, "job", run_id)["output"] == ["•••", 1]


def test_without_the_secret_no_worker_gets_the_work(virtual: Virtual) -> None:
    worker = virtual.callers.role("operator")
    create(virtual.admin, "job", run={"external": {"secrets": {"DB": "dsn"}}}, retries=1)
    run_id = trigger(virtual.admin, "job")
    virtual.go_on()
    assert worker.post("/leases", {"workerId": "w"}).expect(200).items == []
    assert run_of(virtual.admin, "job", run_id)["error"]["error"] == "SecretNotFound"


def test_a_misplaced_secret_is_refused_when_the_job_is_saved(virtual: Virtual) -> None:
    run = {"command": ["x", "${secrets.DB}"], "secrets": {"DB": "dsn"}}
    refused = virtual.admin.post("/jobs", {"name": "job", "run": run}).expect(400).json
    assert "cannot stand here" in refused["detail"]
    run = {"command": ["x"], "env": {"A": "${secrets.OTHER}"}, "secrets": {"DB": "dsn"}}
    assert "'OTHER'" in virtual.admin.post("/jobs", {"name": "job", "run": run}).expect(400).json["detail"]
