"""The contract of runs: what they show, what people do to them, and what makes them."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.calls import Call
from sweephand.testing import Permanent
from tests.api.client import Client, Virtual
from tests.api.test_contract import RUN, TASK, create


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def trigger(client: Client, job: str, **body: Any) -> str:
    return str(client.post(f"/jobs/{job}/trigger", body).expect(202).json["runId"])


def run_of(client: Client, job: str, run_id: str) -> Any:
    return client.get(f"/jobs/{job}/runs/{run_id}").expect(200).json


def refuse(_call: Call) -> None:
    raise Permanent("no such table")


def stumble(_call: Call) -> None:
    raise ConnectionError("the line is cut")


# One run.


def test_a_triggered_run_is_queued_and_has_two_names_for_one_id(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", params={"a": 1, "b": 1})
    started = virtual.admin.post("/jobs/daily/trigger", {"params": {"b": 2}, "note": "why not"}).expect(202).json
    assert started["runId"] == started["executionId"]
    assert started["status"] == "queued"
    run = run_of(virtual.admin, "daily", started["runId"])
    assert run["state"] == "queued"
    assert run["tasks"][0]["state"] == "queued"
    virtual.on("daily", lambda call: {"rows": call.params})
    virtual.go_on(seconds=1)
    run = run_of(virtual.admin, "daily", started["runId"])
    assert run.keys() >= RUN
    assert run | {"runId": "", "tasks": [], "cost": {}} == {
        "runId": "",
        "cost": {},
        "jobId": "daily",
        "state": "succeeded",
        "reason": None,
        "trigger": "manual",
        "fireAt": "2026-03-02T00:10:00Z",
        "version": 1,
        "attempt": 1,
        "queuedAt": "2026-03-02T00:10:00Z",
        "startedAt": "2026-03-02T00:10:00Z",
        "endedAt": "2026-03-02T00:10:00Z",
        "progress": 100,
        "params": {"b": 2},
        "output": {"rows": {"a": 1, "b": 2}},
        "error": None,
        "rerunOf": None,
        "note": "why not",
        "tasks": [],
    }
    assert [task.keys() for task in run["tasks"]] == [TASK]
    assert virtual.admin.get(f"/jobs/daily/runs/{run['runId']}/tasks").expect(200).items == run["tasks"]


def test_a_run_that_has_not_started_names_its_task(admin: Client) -> None:
    create(admin, "etl", tasks=[{"id": "extract", "run": {"command": ["x"]}}])
    run_id = trigger(admin, "etl")
    assert [task["id"] for task in run_of(admin, "etl", run_id)["tasks"]] == ["extract"]
    admin.get(f"/jobs/etl/runs/{run_id}/tasks/extract/why").expect(200)
    admin.get(f"/jobs/etl/runs/{run_id}/tasks/main/why").expect(404)


def test_a_failed_run_shows_its_error(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x")
    virtual.on("daily", refuse)
    run_id = trigger(virtual.admin, "daily")
    virtual.go_on(seconds=1)
    run = run_of(virtual.admin, "daily", run_id)
    assert (run["state"], run["error"]["error"], run["error"]["message"]) == ("failed", "Permanent", "no such table")


def test_a_run_that_took_too_long_failed_by_its_timeout(virtual: Virtual) -> None:
    create(virtual.admin, "slow", command="x", timeout="1m")
    virtual.on("slow", takes="1h")
    run_id = trigger(virtual.admin, "slow")
    virtual.go_on(minutes=2)
    run = run_of(virtual.admin, "slow", run_id)
    assert (run["state"], run["reason"].partition(":")[0]) == ("failed", "timeout")


def test_a_job_that_is_not_there_has_no_runs_and_cannot_be_run(admin: Client) -> None:
    admin.get("/jobs/nothing/runs").expect(404)
    admin.post("/jobs/nothing/trigger").expect(404)
    create(admin, "daily", command="x")
    admin.get("/jobs/daily/runs/20260101T000000Z").expect(404)
    admin.post("/jobs/daily/runs/20260101T000000Z/cancel").expect(404)
    admin.post("/jobs/daily/runs/20260101T000000Z/rerun").expect(404)


def test_cancelling_ends_a_run_once_and_an_ended_one_not_at_all(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x")
    run_id = trigger(virtual.admin, "daily")
    ended = virtual.admin.post(f"/jobs/daily/runs/{run_id}/cancel", {"note": "wrong day"}).expect(200).json
    assert ended["state"] == "cancelled"
    assert ended["reason"].endswith(": wrong day")
    assert virtual.admin.post(f"/jobs/daily/runs/{run_id}/cancel").expect(200).json == ended
    done = trigger(virtual.admin, "daily")
    virtual.go_on(seconds=1)
    virtual.admin.post(f"/jobs/daily/runs/{done}/cancel").expect(409)


def test_a_rerun_is_a_new_run_that_names_the_old_one(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "daily", command="x")
    run_id = trigger(admin, "daily", params={"day": 1})
    admin.post(f"/jobs/daily/runs/{run_id}/rerun").expect(409)
    virtual.go_on(seconds=1)
    again = admin.post(f"/jobs/daily/runs/{run_id}/rerun").expect(202).json
    assert (again["rerunOf"], again["trigger"], again["params"]) == (run_id, "rerun", {"day": 1})
    assert again["runId"] != run_id
    admin.post(f"/jobs/daily/runs/{run_id}/rerun", {"from": "failed"}).expect(409)
    admin.post(f"/jobs/daily/runs/{run_id}/rerun", {"from": "task", "task": "main"}).expect(202)
    for wrong in ({"from": "task"}, {"from": "task", "task": "other"}, {"task": "main"}):
        assert admin.post(f"/jobs/daily/runs/{run_id}/rerun", wrong).expect(400).json["errors"][0]["path"] == "task"


# Lists.


def test_runs_of_a_job_come_newest_first_in_pages(virtual: Virtual) -> None:
    create(virtual.admin, "often", schedule="*/5 * * * *", command="x")
    virtual.on("often", lambda call: refuse(call) if call.run.fire_at.minute == 30 else None)
    virtual.go_on(minutes=42)
    query = "from=2026-03-02T00:20:00Z&to=2026-03-02T00:50:00Z"
    fires = [f"2026-03-02T00:{minute}:00Z" for minute in (45, 40, 35, 30, 25, 20)]
    pages = list(virtual.admin.pages(f"/jobs/often/runs?{query}&limit=2"))
    assert [len(page) for page in pages] == [2, 2, 2]
    assert [run["fireAt"] for page in pages for run in page] == fires
    failed = virtual.admin.get("/jobs/often/runs?state=failed").expect(200).items
    assert [run["fireAt"] for run in failed] == ["2026-03-02T00:30:00Z"]
    virtual.go_on(minutes=2, seconds=57)
    shown = virtual.admin.get("/jobs/often/runs?limit=1").items[0]
    planned = virtual.admin.get("/jobs/often/runs?limit=1&include=planned").items[0]
    assert shown["fireAt"] == "2026-03-02T00:50:00Z"
    assert planned["fireAt"] >= "2026-03-02T00:55:00Z"  # engines look ahead as far as they need
    assert planned["tasks"][0]["state"] == "waiting"


def test_runs_across_jobs_come_newest_first_in_pages(virtual: Virtual) -> None:
    admin = virtual.admin
    for name in ("a", "b", "c"):
        create(admin, name, schedule="*/10 * * * *", command="x", tags=["odd"] if name == "b" else [])
    virtual.on("c", refuse)
    virtual.go_on(minutes=35)
    every = admin.get("/runs").expect(200).items
    assert [(row["fireAt"][14:16], row["jobId"]) for row in every] == [
        (minute, job) for minute in ("40", "30", "20", "10") for job in ("c", "b", "a")
    ]
    pages = list(admin.pages("/runs?limit=5"))
    assert [len(page) for page in pages] == [5, 5, 2]
    assert [row for page in pages for row in page] == every
    assert {row["state"] for row in admin.get("/runs?job=c").items} == {"failed"}
    assert {row["jobId"] for row in admin.get("/runs?state=failed").items} == {"c"}
    assert {row["jobId"] for row in admin.get("/runs?tag=odd").items} == {"b"}
    window = admin.get("/runs?from=2026-03-02T00:20:00Z&to=2026-03-02T00:30:00Z").items
    assert [row["jobId"] for row in window] == ["c", "b", "a"]
    refused = admin.get("/runs?from=2026-01-01T00:00:00Z").expect(400)
    assert refused.json["errors"][0]["path"] == "from"


# Many at once.


def test_bulk_changes_can_be_tried_out_first(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "bad", command="x")
    create(admin, "slow", command="x")
    virtual.on("bad", refuse)
    virtual.on("slow", takes="1h")
    failed = [trigger(admin, "bad") for _ in range(3)]
    slow = [trigger(admin, "slow") for _ in range(2)]
    virtual.go_on(seconds=1)

    tried = admin.post("/runs/bulk", {"action": "rerun", "filter": {"state": "failed"}, "dryRun": True}).expect(200)
    assert (tried.json["dryRun"], tried.json["matched"], tried.json["done"]) == (True, 3, 0)
    assert {row["runId"] for row in tried.json["items"]} == set(failed)
    assert len(admin.get("/jobs/bad/runs").items) == 3

    done = admin.post("/runs/bulk", {"action": "rerun", "filter": {"state": "failed", "job": "bad"}}).expect(200).json
    assert (done["matched"], done["done"], done["nextCursor"]) == (3, 3, None)
    assert {row["result"]["rerunOf"] for row in done["items"]} == set(failed)
    assert len(admin.get("/jobs/bad/runs").items) == 6

    ended = admin.post("/runs/bulk", {"action": "cancel", "filter": {"job": "slow"}}).expect(200).json
    assert (ended["matched"], ended["done"]) == (2, 2)
    assert {run_of(admin, "slow", run_id)["state"] for run_id in slow} == {"cancelled"}
    admin.post("/runs/bulk", {"action": "explode", "filter": {}}).expect(400)


# What makes runs: other jobs.


def test_a_job_after_one_other_runs_once_for_each_of_its_successes(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "ingest", command="x")
    create(admin, "report", command="x", schedule={"after": ["ingest"]})
    virtual.on("ingest", lambda call: refuse(call) if call.params.get("bad") else None)
    for params in ({}, {"bad": True}, {}):
        trigger(admin, "ingest", params=params)
        virtual.go_on(seconds=1)
    runs = admin.get("/jobs/report/runs").items
    assert [(run["trigger"], run["state"]) for run in runs] == [("dependency", "succeeded")] * 2
    successes = admin.get("/jobs/ingest/runs?state=succeeded").items
    assert [run["params"]["after"]["ingest"] for run in runs] == [run["runId"] for run in successes]
    summary = admin.get("/jobs/report/why").expect(200).json["summary"]
    assert "ingest" in summary


def test_a_job_after_two_others_runs_when_both_have_succeeded(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "left", command="x")
    create(admin, "right", command="x")
    create(admin, "join", command="x", dependencies=["left", "right"])

    def joins_after(*upstreams: str) -> int:
        for name in upstreams:
            trigger(admin, name)
            virtual.go_on(seconds=2)
        return len(admin.get("/jobs/join/runs").items)

    assert joins_after("left") == 0
    assert joins_after("left") == 0
    assert joins_after("right") == 1
    assert joins_after("right") == 1
    assert joins_after("left") == 2


def test_jobs_that_come_after_each_other_are_refused(admin: Client) -> None:
    create(admin, "a", command="x")
    create(admin, "b", command="x", dependencies=["a"])
    refused = admin.put("/jobs/a", {"command": "x", "dependencies": ["b"]}, If_Match="1").expect(400)
    assert "a → b → a" in refused.json["detail"] or "b → a → b" in refused.json["detail"]
    assert admin.get("/jobs/a").json["version"] == 1


def test_a_paused_dependent_skips_and_says_why(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "ingest", command="x")
    create(admin, "report", command="x", dependencies=["ingest"])
    admin.post("/jobs/report/pause").expect(200)
    trigger(admin, "ingest")
    virtual.go_on(seconds=1)
    (run,) = admin.get("/jobs/report/runs").items
    assert (run["state"], run["reason"].partition(":")[0]) == ("skipped", "paused")


# What makes runs: events.


def test_an_event_runs_the_jobs_that_listen_for_it(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "any", command="x", schedule={"events": [{"source": "shop"}]})
    create(admin, "orders", command="x", schedule={"events": [{"source": "shop", "type": "order"}]})
    match = {"region": ["eu", "uk"], "total": {"paid": True}}
    rule = {"source": "shop", "type": "order", "match": match}
    create(admin, "paid", command="x", schedule={"events": [rule]})

    def heard(**event: Any) -> list[str]:
        published = admin.post("/events", {"source": "shop", "type": "order", **event}).expect(202).json
        return sorted(run["jobId"] for run in published["runs"])

    assert heard(type="refund") == ["any"]
    assert heard() == ["any", "orders"]
    assert heard(detail={"region": "eu", "total": {"paid": True, "sum": 3}}) == ["any", "orders", "paid"]
    assert heard(detail={"region": "us", "total": {"paid": True}}) == ["any", "orders"]
    assert heard(detail={"region": "eu", "total": {"paid": 1}}) == ["any", "orders"]
    assert heard(source="bank") == []
    virtual.go_on(seconds=1)
    newest = admin.get("/jobs/paid/runs").items[0]
    assert (newest["trigger"], newest["state"]) == ("event", "succeeded")
    assert newest["params"]["event"]["detail"]["region"] == "eu"


def test_an_event_delivered_again_makes_no_second_run(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "orders", command="x", schedule={"events": [{"source": "shop"}]})
    event = {"source": "shop", "type": "order", "id": "7"}
    first = admin.post("/events", event).expect(202).json["runs"]
    virtual.go_on(seconds=5)
    assert admin.post("/events", event).expect(202).json["runs"] == first
    assert len(admin.get("/jobs/orders/runs").items) == 1
    assert admin.post("/events", {**event, "id": "8"}).expect(202).json["runs"] != first


def test_a_source_and_an_id_cannot_pass_for_another_source_and_id(admin: Client) -> None:
    create(admin, "both", command="x", schedule={"events": [{"source": "a"}, {"source": "a/b"}]})
    (one,) = admin.post("/events", {"source": "a", "type": "t", "id": "b/c"}).expect(202).json["runs"]
    (other,) = admin.post("/events", {"source": "a/b", "type": "t", "id": "c"}).expect(202).json["runs"]
    assert one["runId"] != other["runId"]


# Dead letters.


def test_a_run_that_failed_for_good_is_a_dead_letter_until_it_is_run_again(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "bad", command="x")
    virtual.on("bad", refuse)
    run_id = trigger(admin, "bad")
    virtual.go_on(seconds=1)
    (letter,) = admin.get("/deadletters").expect(200).items
    assert letter == {
        "id": f"bad:{run_id}",
        "jobId": "bad",
        "runId": run_id,
        "reason": "error: no such table",
        "deadAt": "2026-03-02T00:10:00Z",
    }
    virtual.on("bad")
    driven = admin.post(f"/deadletters/{letter['id']}/redrive").expect(202).json
    again = admin.post(f"/deadletters/{letter['id']}/redrive").expect(202).json
    assert driven["rerunOf"] == run_id
    assert again["runId"] == driven["runId"]
    virtual.go_on(seconds=1)
    assert admin.get("/deadletters").items == []
    assert len(admin.get("/jobs/bad/runs").items) == 2
    admin.post(f"/deadletters/bad:{driven['runId']}/redrive").expect(409)
    admin.post("/deadletters/bad:20260101T000000Z/redrive").expect(404)


# Idempotency keys.


def test_the_same_key_runs_a_job_once_and_another_body_is_a_conflict(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "daily", command="x")
    first = admin.post("/jobs/daily/trigger", {"params": {"a": 1}}, Idempotency_Key="k").expect(202)
    virtual.go_on(minutes=5)
    assert admin.post("/jobs/daily/trigger", {"params": {"a": 1}}, Idempotency_Key="k") == first
    admin.post("/jobs/daily/trigger", {"params": {"a": 2}}, Idempotency_Key="k").expect(409)
    assert len(admin.get("/jobs/daily/runs").items) == 1
    virtual.go_on(hours=25)
    admin.post("/jobs/daily/trigger", {"params": {"a": 2}}, Idempotency_Key="k").expect(202)


def test_a_key_covers_the_whole_call(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "daily", command="x")
    made = admin.post("/jobs", {"name": "new", "command": "x"}, Idempotency_Key="make").expect(201)
    assert admin.post("/jobs", {"name": "new", "command": "x"}, Idempotency_Key="make") == made
    admin.delete("/jobs/new", Idempotency_Key="drop").expect(204)
    admin.delete("/jobs/new", Idempotency_Key="drop").expect(204)
    admin.delete("/jobs/new?cancel=true", Idempotency_Key="drop").expect(409)
    admin.delete("/jobs/daily", Idempotency_Key="drop").expect(409)
    admin.get("/jobs/daily").expect(200)


def test_a_refusal_is_not_kept_under_its_key(admin: Client) -> None:
    admin.post("/jobs/late/trigger", {}, Idempotency_Key="k").expect(404)
    create(admin, "late", command="x")
    admin.post("/jobs/late/trigger", {}, Idempotency_Key="k").expect(202)


def test_keys_of_different_namespaces_are_different_keys(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/other", {}).expect(201)
    here, there = virtual.admin, virtual.admin.within("other")
    for client in (here, there):
        create(client, "daily", command="x")
    first = here.post("/jobs/daily/trigger", {}, Idempotency_Key="k").expect(202).json["runId"]
    assert there.post("/jobs/daily/trigger", {}, Idempotency_Key="k").expect(202).json["runId"] != first


def test_jobs_are_listed_with_their_newest_runs_where_those_are_asked_for(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "often", schedule="* * * * *", command="x")
    create(admin, "never", command="x")
    create(admin, "slow", command="x")
    virtual.on("often", lambda call: refuse(call) if call.run.fire_at.minute == 20 else None)
    virtual.on("slow", takes="1h")
    virtual.go_on(minutes=12)
    started = admin.post("/jobs/slow/trigger").expect(202).json["runId"]
    virtual.go_on(seconds=1)
    assert all("recentRuns" not in job for job in admin.get("/jobs").items)
    found = {job["jobId"]: job for job in admin.get("/jobs?include=recentRuns").expect(200).items}
    often = found["often"]["recentRuns"]
    assert [run["runId"] for run in often] == [f"20260302T00{minute}00Z" for minute in range(22, 12, -1)]
    assert [run["state"] for run in often] == ["succeeded", "succeeded", "failed", *["succeeded"] * 7]
    assert often[0] == found["often"]["lastRun"]
    assert often[0].keys() == {"runId", "state", "fireAt", "startedAt", "endedAt"}
    assert found["never"]["recentRuns"] == []
    assert found["never"]["lastRun"] is None
    (slow,) = found["slow"]["recentRuns"]
    assert (slow["runId"], slow["state"], slow["endedAt"]) == (started, "running", None)
    assert found["slow"]["status"] == "running"
