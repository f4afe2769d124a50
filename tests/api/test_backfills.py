"""The contract of backfills, on both engines: what is asked for, what comes of it, and what is refused."""

from __future__ import annotations

from typing import Any, Final

import pytest

from sweephand.calls import Call
from sweephand.testing import Permanent
from tests.api.client import TABLE, Client, Virtual, sqlite_only
from tests.api.test_contract import create

SINCE: Final = "2026-02-20T00:00:00Z"
UNTIL: Final = "2026-03-02T00:00:00Z"
"""Ten days before the job is there."""
BACKFILL: Final = frozenset(
    {"backfillId", "jobId", "state", "reason", "from", "to", "only", "order", "maxActive", "collapse", "count", "made"}
    | {"active", "succeeded", "failed", "cancelled", "skipped", "progress", "createdAt", "createdBy", "endedAt", "note"}
)


def asked(client: Client, job: str = "daily", **body: Any) -> Any:
    return client.post(f"/jobs/{job}/backfills", {"from": SINCE, "to": UNTIL, **body}).expect(202).json


def shown(client: Client, made: Any) -> Any:
    return client.get(f"/jobs/{made['jobId']}/backfills/{made['backfillId']}").expect(200).json


def done(virtual: Virtual, made: Any) -> Any:
    for _ in range(20):
        virtual.go_on(seconds=30)
        if shown(virtual.admin, made)["state"] != "running":
            break
    return shown(virtual.admin, made)


def refuse(_call: Call) -> None:
    raise Permanent("no such table")


def test_a_dry_run_says_how_many_and_what_they_cost_and_changes_nothing(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *")
    body = {"from": SINCE, "to": UNTIL, "dryRun": True}
    told = virtual.admin.post("/jobs/daily/backfills", body).expect(200).json
    assert (told["dryRun"], told["count"], told["runs"], told["undone"]) == (True, 10, 10, 10)
    assert told["fires"] == {"missing": 10}
    assert (told["firstFireAt"], told["lastFireAt"]) == ("2026-02-20T06:00:00Z", "2026-03-01T06:00:00Z")
    assert 0 < told["cost"]["dollars"] < 0.001
    assert told["cost"]["writeUnits"] == 80
    assert virtual.admin.get("/jobs/daily/backfills").expect(200).items == []
    assert virtual.admin.get("/jobs/daily/runs").expect(200).items == []


def test_what_is_missing_is_run_once_and_then_nothing_is_missing(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *")
    virtual.on("daily", lambda call: {"at": call.context["fireAt"]})
    answered = virtual.admin.post("/jobs/daily/backfills", {"from": SINCE, "to": UNTIL, "maxActive": 3})
    made = answered.expect(202).json
    assert made.keys() == BACKFILL
    assert answered.headers["location"] == f"/api/v1/jobs/daily/backfills/{made['backfillId']}"
    assert (made["state"], made["count"], len(made["active"])) == ("running", 10, 3)
    ended = done(virtual, made)
    assert (ended["state"], ended["succeeded"], ended["progress"]) == ("done", 10, 100)
    runs = virtual.admin.get("/jobs/daily/runs").expect(200).items
    assert {(run["trigger"], run["state"], run["backfillId"]) for run in runs} == {
        ("backfill", "succeeded", made["backfillId"])
    }
    assert sorted(run["output"]["at"] for run in runs) == sorted(run["fireAt"] for run in runs)
    again = done(virtual, asked(virtual.admin))
    assert (again["state"], again["count"], again["made"]) == ("done", 0, 0)
    listed = virtual.admin.get("/jobs/daily/backfills?limit=1").expect(200)
    assert [one["backfillId"] for one in listed.items] == [again["backfillId"]], "the newest first"
    rest = virtual.admin.get(f"/jobs/daily/backfills?limit=1&cursor={listed.json['nextCursor']}").expect(200)
    assert (rest.items, rest.json["nextCursor"]) == ([ended], None)


def test_it_works_while_the_job_is_paused_and_what_failed_is_told_apart(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *")
    virtual.admin.post("/jobs/daily/pause").expect(200)
    virtual.on("daily", refuse)
    failed = done(virtual, asked(virtual.admin, maxActive=10))
    assert (failed["state"], failed["failed"]) == ("done", 10)
    virtual.on("daily")
    told = virtual.admin.post("/jobs/daily/backfills", {"from": SINCE, "to": UNTIL, "dryRun": True}).expect(200).json
    assert (told["count"], told["undone"], told["fires"]) == (0, 10, {"failed": 10})
    assert done(virtual, asked(virtual.admin, only="failed", order="newest"))["succeeded"] == 10


def test_collapsed_it_is_one_run_over_the_range(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command=["x", "${run.intervalStart}", "${run.intervalEnd}"], schedule="0 6 * * *")
    seen: list[Any] = []
    virtual.on("daily", lambda call: seen.append(call.context))
    made = asked(virtual.admin, collapse=True)
    assert (made["count"], len(made["active"])) == (10, 1)
    assert done(virtual, made)["succeeded"] == 1
    (run,) = virtual.admin.get("/jobs/daily/runs").expect(200).items
    between = {"intervalStart": "2026-02-19T06:00:00Z", "intervalEnd": "2026-03-01T06:00:00Z"}
    assert {name: run[name] for name in between} == between
    assert {name: seen[0][name] for name in between} == between
    assert asked(virtual.admin)["count"] == 0


def test_cancelled_half_way_it_leaves_nothing_queued(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *", timeout="10m")
    virtual.on("daily", takes="5m")
    made = asked(virtual.admin, maxActive=2)
    virtual.go_on(minutes=6)
    where = f"/jobs/daily/backfills/{made['backfillId']}"
    ended = virtual.admin.post(f"{where}/cancel", {"note": "enough"}).expect(200).json
    assert ended["state"] == "cancelled"
    assert ended["reason"].endswith(": enough")
    virtual.go_on(minutes=20)
    states = [run["state"] for run in virtual.admin.get("/jobs/daily/runs").expect(200).items]
    assert not set(states) & {"queued", "running", "retrying"}
    assert 2 <= states.count("succeeded") <= 4
    after = shown(virtual.admin, made)
    assert after["succeeded"] + after["cancelled"] == after["made"] < 10
    virtual.admin.post(f"{where}/cancel", {"running": True}).expect(200)
    virtual.admin.post(f"{where}/pause").expect(409)


def test_paused_it_waits_and_resumed_it_goes_on(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *")
    made = asked(virtual.admin, maxActive=1)
    where = f"/jobs/daily/backfills/{made['backfillId']}"
    assert virtual.admin.post(f"{where}/pause", {"note": "lunch"}).expect(200).json["state"] == "paused"
    virtual.go_on(minutes=30)
    assert shown(virtual.admin, made)["succeeded"] == 1
    assert virtual.admin.post(f"{where}/resume").expect(200).json["state"] == "running"
    assert done(virtual, made)["succeeded"] == 10
    actions = {row["action"] for row in virtual.admin.get("/audit").expect(200).items}
    assert actions >= {"backfill.create", "backfill.pause", "backfill.resume"}


def test_running_ones_end_too_where_that_is_asked_for(virtual: Virtual) -> None:
    create(virtual.admin, "daily", run={"external": {}}, schedule="0 6 * * *", timeout="1h")
    made = asked(virtual.admin, maxActive=2)
    virtual.go_on(seconds=10)
    leased = virtual.admin.post("/leases", {"workerId": "w", "max": 1}).expect(200).items
    assert len(leased) == 1
    where = f"/jobs/daily/backfills/{made['backfillId']}"
    assert len(virtual.admin.post(f"{where}/cancel").expect(200).json["active"]) == 1, "what has started goes on"
    ended = virtual.admin.post(f"{where}/cancel", {"running": True}).expect(200).json
    assert (ended["active"], ended["cancelled"]) == ([], 2)


def test_a_key_names_one_backfill(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *")
    body = {"from": SINCE, "to": UNTIL}
    one, again = (
        virtual.admin.post("/jobs/daily/backfills", body, Idempotency_Key="k").expect(202).json for _ in range(2)
    )
    assert one["backfillId"] == again["backfillId"]


def test_a_namespace_has_its_limit_of_backfills(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *")
    virtual.admin.put("/namespaces/default", {"limits": {"backfills": 1}}).expect(201)
    virtual.on("daily", takes="5m")
    asked(virtual.admin)
    refused = virtual.admin.post("/jobs/daily/backfills", {"from": SINCE, "to": UNTIL}).expect(429)
    assert refused.headers["retry-after"] == "60"


def test_a_deleted_jobs_backfills_end_and_stay_on_record(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *", timeout="10m")
    virtual.on("daily", takes="5m")
    made = asked(virtual.admin, maxActive=2)
    virtual.go_on(seconds=10)
    virtual.admin.delete("/jobs/daily").expect(204)
    virtual.go_on(minutes=20)
    ended = shown(virtual.admin, made)
    assert (ended["state"], ended["reason"], ended["active"]) == ("cancelled", "its job was deleted", [])
    assert virtual.admin.get("/jobs/daily/backfills").expect(200).items == [ended]
    virtual.admin.post("/jobs/daily/backfills", {"from": SINCE, "to": UNTIL}).expect(404)


@sqlite_only(TABLE)
@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "from"),
        ({"from": SINCE}, "to"),
        ({"from": "yesterday", "to": UNTIL}, "from"),
        ({"from": UNTIL, "to": SINCE}, "to"),
        ({"from": SINCE, "to": SINCE}, "to"),
        ({"from": "2026-03-03T00:00:00Z", "to": "2026-03-04T00:00:00Z"}, "from"),
        ({"from": SINCE, "to": UNTIL, "only": "some"}, "only"),
        ({"from": SINCE, "to": UNTIL, "order": "random"}, "order"),
        ({"from": SINCE, "to": UNTIL, "maxActive": 0}, "maxActive"),
        ({"from": SINCE, "to": UNTIL, "maxActive": 101}, "maxActive"),
        ({"from": SINCE, "to": UNTIL, "maxActive": "4"}, "maxActive"),
        ({"from": SINCE, "to": UNTIL, "collapse": "yes"}, "collapse"),
        ({"from": SINCE, "to": UNTIL, "dryRun": 1}, "dryRun"),
        ({"from": SINCE, "to": UNTIL, "force": True}, "force"),
        ({"from": "2016-03-02T00:00:00Z", "to": UNTIL}, "to"),
        ({"from": "1970-01-01T00:00:00Z", "to": "8999-01-01T00:00:00Z"}, "to"),
    ],
)
def test_bad_input_is_refused_with_the_field_and_changes_nothing(
    virtual: Virtual, body: dict[str, Any], path: str
) -> None:
    create(virtual.admin, "often", command="x", schedule="* * * * *")
    refused = virtual.admin.post("/jobs/often/backfills", body).expect(400).json
    assert [one["path"] for one in refused["errors"]][:1] == [path], refused
    assert virtual.admin.get("/jobs/often/backfills").expect(200).items == []
    virtual.go_on(seconds=10)
    assert not [run for run in virtual.admin.get("/jobs/often/runs").items if run["trigger"] == "backfill"]


@sqlite_only(TABLE)
def test_ten_years_of_minutes_are_refused_with_their_number_and_the_bound(virtual: Virtual) -> None:
    create(virtual.admin, "often", command="x", schedule="* * * * *")
    body = {"from": "2016-03-02T00:00:00Z", "to": "2026-03-02T00:00:00Z", "dryRun": True}
    detail = virtual.admin.post("/jobs/often/backfills", body).expect(400).json["detail"]
    assert "5,258,880 fires" in detail
    assert "20,000" in detail


@sqlite_only(TABLE)
def test_who_may_only_look_asks_for_none_and_strangers_see_none(virtual: Virtual) -> None:
    create(virtual.admin, "daily", command="x", schedule="0 6 * * *")
    made = asked(virtual.admin)
    viewer, operator = virtual.callers.role("viewer"), virtual.callers.role("operator")
    body = {"from": SINCE, "to": UNTIL}
    viewer.post("/jobs/daily/backfills", body | {"dryRun": True}).expect(403)
    where = f"/jobs/daily/backfills/{made['backfillId']}"
    viewer.get(where).expect(200)
    viewer.get("/jobs/daily/backfills").expect(200)
    for verb in ("pause", "resume", "cancel"):
        viewer.post(f"{where}/{verb}").expect(403)
    operator.post(f"{where}/pause").expect(200)
    for path in ("/jobs/nobody/backfills", "/jobs/daily/backfills/nobody", "/jobs/nobody/backfills/x"):
        operator.get(path).expect(404)
    operator.post("/jobs/daily/backfills/nobody/cancel").expect(404)
    create(virtual.admin, "manual", command="x")
    operator.post("/jobs/manual/backfills", body).expect(409)


@sqlite_only(TABLE)
def test_a_job_that_is_named_like_the_beginning_of_another_has_its_own(virtual: Virtual) -> None:
    for name in ("a", "a-b", "a.b"):
        create(virtual.admin, name, command="x", schedule="0 6 * * *")
        asked(virtual.admin, name)
    for name in ("a", "a-b", "a.b"):
        (one,) = virtual.admin.get(f"/jobs/{name}/backfills").expect(200).items
        assert one["jobId"] == name
