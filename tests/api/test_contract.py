"""The contract of jobs: statuses, shapes and headers, as the interface's document promises them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api.client import Client, Virtual

HOURLY: Mapping[str, Any] = {"schedule": "0 * * * *", "command": "report --all"}

JOB = {
    "jobId",
    "name",
    "version",
    "status",
    "createdAt",
    "createdBy",
    "updatedAt",
    "nextFireAt",
    "lastRun",
    "startedAt",
    "progress",
}
RUN = {
    "runId",
    "jobId",
    "state",
    "reason",
    "trigger",
    "fireAt",
    "version",
    "attempt",
    "queuedAt",
    "startedAt",
    "endedAt",
    "progress",
    "params",
    "output",
    "error",
    "rerunOf",
    "tasks",
}
TASK = {"id", "state", "reason", "needs", "attempt", "attempts", "startedAt", "endedAt", "output"}
FIRE = {"fireAt", "local", "note"}
LEDGER_ROW = {"fireAt", "status", "runId", "skewMs", "reason"}


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def create(client: Client, name: str, **fields: Any) -> Any:
    return client.post("/jobs", {"name": name, **(fields or HOURLY)}).expect(201).json


def names(items: list[dict[str, Any]]) -> list[str]:
    return [str(item["jobId"]) for item in items]


# Creating and changing.


def test_a_created_job_is_scheduled_and_says_where_it_is(admin: Client) -> None:
    made = admin.post("/jobs", {"name": "daily", **HOURLY}).expect(201)
    assert made.headers["location"] == "/api/v1/jobs/daily"
    assert made.headers["etag"] == '"1"'
    assert made.headers["content-type"] == "application/json"
    assert made.json.keys() >= JOB
    assert made.json == {
        "name": "daily",
        "jobId": "daily",
        "version": 1,
        "status": "scheduled",
        "schedule": {"cron": "0 * * * *"},
        "tasks": [{"id": "main", "run": {"command": ["report", "--all"]}}],
        "createdAt": "2026-03-02T00:10:00Z",
        "updatedAt": "2026-03-02T00:10:00Z",
        "createdBy": made.json["createdBy"],
        "nextFireAt": "2026-03-02T01:00:00Z",
        "lastRun": None,
        "startedAt": None,
        "progress": None,
    }
    assert made.json["createdBy"].startswith("token:")


def test_a_job_of_the_same_name_is_a_conflict(admin: Client) -> None:
    create(admin, "daily")
    again = admin.post("/jobs", {"name": "daily", **HOURLY}).expect(409)
    assert again.headers["content-type"] == "application/problem+json"
    assert again.json == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "detail": "Job default/daily exists already.",
    }


def test_a_deleted_job_can_be_created_again_and_its_versions_go_on(admin: Client) -> None:
    create(admin, "daily")
    admin.delete("/jobs/daily").expect(204)
    assert create(admin, "daily")["version"] == 3


def test_a_change_says_which_version_it_is_based_on(admin: Client) -> None:
    create(admin, "daily")
    assert "If-Match" in admin.put("/jobs/daily", HOURLY).expect(428).json["detail"]
    changed = admin.put("/jobs/daily", {"schedule": "@daily", "command": "x"}, If_Match="1").expect(200)
    assert (changed.json["version"], changed.headers["etag"]) == (2, '"2"')
    assert "version 2, not 1" in admin.put("/jobs/daily", HOURLY, If_Match='"1"').expect(412).json["detail"]
    assert admin.get("/jobs/daily").expect(200).json["schedule"] == {"cron": "@daily"}
    assert admin.put("/jobs/daily", HOURLY, If_Match='"2"').expect(200).json["version"] == 3


def test_a_put_creates_with_if_none_match_and_changes_with_if_match(admin: Client) -> None:
    assert admin.put("/jobs/one", HOURLY, If_None_Match="*").expect(201).json["version"] == 1
    admin.put("/jobs/one", {"command": "other"}, If_None_Match="*").expect(412)
    assert admin.get("/jobs/one").json["version"] == 1
    admin.put("/jobs/two", HOURLY).expect(428)
    admin.get("/jobs/two").expect(404)
    admin.put("/jobs/three", HOURLY, If_Match="1").expect(412)
    admin.get("/jobs/three").expect(404)


def test_a_put_names_the_job_once(admin: Client) -> None:
    refused = admin.put("/jobs/one", {"name": "two", **HOURLY}).expect(400)
    assert refused.json["errors"][0]["path"] == "name"


def test_a_deleted_job_is_absent_unless_it_is_asked_for(admin: Client) -> None:
    create(admin, "daily")
    deleted = admin.delete("/jobs/daily").expect(204)
    assert deleted.text == ""
    admin.get("/jobs/daily").expect(404)
    admin.delete("/jobs/daily").expect(404)
    shown = admin.get("/jobs/daily?include=deleted").expect(200).json
    assert (shown["status"], shown["nextFireAt"], shown["schedule"]) == ("deleted", None, {"cron": "0 * * * *"})
    assert names(admin.get("/jobs").items) == []
    assert names(admin.get("/jobs?status=deleted").items) == ["daily"]


def test_a_delete_may_name_the_version_that_it_means(admin: Client) -> None:
    create(admin, "daily")
    admin.delete("/jobs/daily", If_Match="7").expect(412)
    admin.delete("/jobs/daily", If_Match="1").expect(204)


@pytest.mark.parametrize(("query", "state"), [("?cancel=true", "cancelled"), ("", "running")])
def test_a_delete_ends_active_runs_only_if_it_says_so(virtual: Virtual, query: str, state: str) -> None:
    create(virtual.admin, "slow", command="x")
    virtual.on("slow", takes="10m")
    run_id = virtual.admin.post("/jobs/slow/trigger").expect(202).json["runId"]
    virtual.go_on(seconds=1)
    virtual.admin.delete(f"/jobs/slow{query}").expect(204)
    assert virtual.admin.get(f"/jobs/slow/runs/{run_id}").expect(200).json["state"] == state


def test_a_job_shows_what_it_is_up_to(virtual: Virtual) -> None:
    create(virtual.admin, "slow", schedule={"cron": "0 * * * *", "timezone": "Europe/Berlin"}, command="x")
    virtual.on("slow", takes="10m")
    virtual.go_on(minutes=50, seconds=5)
    shown = virtual.admin.get("/jobs/slow").expect(200)
    assert shown.headers["etag"] == '"1"'
    job = shown.json
    assert (job["status"], job["startedAt"], job["nextFireAt"]) == (
        "running",
        "2026-03-02T01:00:00Z",
        "2026-03-02T02:00:00Z",
    )
    assert job["lastRun"] == {
        "runId": "20260302T010000Z",
        "state": "running",
        "fireAt": "2026-03-02T01:00:00Z",
        "startedAt": "2026-03-02T01:00:00Z",
        "endedAt": None,
    }
    assert job["nextFires"][0] == {
        "fireAt": "2026-03-02T02:00:00Z",
        "local": "2026-03-02T03:00:00+01:00",
        "note": "",
    }


# Lists.


def test_jobs_are_listed_by_prefix_tag_and_status(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "etl-a", command="x", tags=["finance"])
    create(admin, "etl-b", command="x")
    create(admin, "report", command="x", tags=["finance", "daily"])
    create(admin, "slow", command="x")
    admin.post("/jobs/etl-b/pause").expect(200)
    virtual.on("slow", takes="1h")
    admin.post("/jobs/slow/trigger").expect(202)
    virtual.go_on(seconds=1)

    def listed(query: str) -> list[str]:
        return names(admin.get(f"/jobs{query}").expect(200).items)

    assert listed("") == ["etl-a", "etl-b", "report", "slow"]
    assert listed("?prefix=etl-") == ["etl-a", "etl-b"]
    assert listed("?prefix=report") == ["report"]
    assert listed("?prefix=nothing") == []
    assert listed("?tag=finance") == ["etl-a", "report"]
    assert listed("?tag=fin") == []
    assert listed("?status=paused") == ["etl-b"]
    assert listed("?status=running") == ["slow"]
    assert listed("?prefix=etl&tag=finance&status=active") == ["etl-a"]


def test_jobs_come_in_pages_without_a_gap_or_a_repetition(admin: Client) -> None:
    wanted = [f"job-{n:02}" for n in range(11)]
    for name in reversed(wanted):
        create(admin, name, command="x", tags=["odd"] if int(name[-1]) % 2 else ["even"])
    pages = list(admin.pages("/jobs?limit=3"))
    assert [len(page) for page in pages] == [3, 3, 3, 2]
    assert [name for page in pages for name in names(page)] == wanted
    odd = [name for page in admin.pages("/jobs?limit=2&tag=odd") for name in names(page)]
    assert odd == [name for name in wanted if int(name[-1]) % 2]
    last_two = [name for page in admin.pages("/jobs?limit=1&prefix=job-1") for name in names(page)]
    assert last_two == ["job-10"]
    assert all(item.keys() >= JOB for page in pages for item in page)


def test_jobs_are_searched_by_name_tag_and_description_whatever_the_case(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "Daily-Report", command="x", tags=["finance"], description="Umsatz ÜBER alles")
    create(admin, "daily-backup", command="x", tags=["ops"])
    create(admin, "nightly", schedule="0 0 * * *", command="x", tags=["ops"], description="after the DAILY backup")
    admin.put("/namespaces/other", {}).expect(201)
    create(admin.within("other"), "daily-secret", command="x")
    admin.post("/jobs/nightly/pause").expect(200)

    def listed(query: str) -> list[str]:
        return [name for page in admin.pages(f"/jobs?{query}") for name in names(page)]

    assert listed("search=daily") == listed("search=DAILY") == ["Daily-Report", "daily-backup", "nightly"]
    assert listed("search=%C3%BCber") == ["Daily-Report"]
    assert listed("search=finan") == ["Daily-Report"]
    assert listed("search=daily&tag=ops") == ["daily-backup", "nightly"]
    assert listed("search=daily&status=paused") == ["nightly"]
    assert listed("search=daily&prefix=d") == ["daily-backup"]
    assert listed("search=a&limit=1") == ["Daily-Report", "daily-backup", "nightly"]
    assert listed("search=daily%25") == listed("search=secret") == listed("search=nothing") == []
    admin.delete("/jobs/daily-backup").expect(204)
    assert listed("search=daily") == ["Daily-Report", "nightly"]
    assert listed("search=daily&status=deleted") == ["daily-backup"]
    cursor = admin.get("/jobs?search=a&limit=1").json["nextCursor"]
    admin.get(f"/jobs?search=b&limit=1&cursor={cursor}").expect(400)
    admin.get(f"/jobs?limit=1&cursor={cursor}").expect(400)


def test_a_cursor_belongs_to_its_query_and_its_namespace(virtual: Virtual) -> None:
    admin = virtual.admin
    admin.put("/namespaces/other", {}).expect(201)
    for name in ("a", "b", "c"):
        create(admin, name, command="x")
        create(admin.within("other"), name, command="x")
    cursor = admin.get("/jobs?limit=1").json["nextCursor"]
    assert names(admin.get(f"/jobs?limit=2&cursor={cursor}").expect(200).items) == ["b", "c"]
    for wrong in (f"/jobs?tag=x&cursor={cursor}", f"/jobs?prefix=a&cursor={cursor}", f"/runs?cursor={cursor}"):
        assert admin.get(wrong).expect(400).json["errors"][0]["path"] == "cursor"
    admin.within("other").get(f"/jobs?limit=1&cursor={cursor}").expect(400)
    for garbage in ("x", "e30", cursor[:-2], cursor + "AA", "W10", "%00"):
        admin.get(f"/jobs?cursor={garbage}").expect(400)


# Pausing.


def test_a_pause_and_a_resume_say_what_they_do(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "daily")
    paused = admin.post("/jobs/daily/pause", {"note": "holidays"}).expect(200).json
    assert (paused["status"], paused["nextFireAt"]) == ("paused", None)
    admin.post("/jobs/daily/pause").expect(200)
    virtual.go_on(hours=3, minutes=30)
    fires = [f"2026-03-02T0{hour}:00:00Z" for hour in (1, 2, 3)]

    foreseen = admin.post("/jobs/daily/resume", {"catchup": "all", "dryRun": True}).expect(200).json
    assert (foreseen["status"], foreseen["fires"], foreseen["dropped"]) == ("paused", fires, [])
    latest = admin.post("/jobs/daily/resume", {"catchup": "latest", "dryRun": True}).expect(200).json
    assert latest["fires"] == fires[-1:]
    assert [(one["from"], one["to"], one["count"]) for one in latest["dropped"]] == [(fires[0], fires[1], 2)]
    default = admin.post("/jobs/daily/resume", {"dryRun": True}).expect(200).json
    assert (default["fires"], default["dropped"][0]["count"]) == ([], 3)
    assert virtual.admin.get("/jobs/daily").json["status"] == "paused"

    resumed = admin.post("/jobs/daily/resume", {"catchup": "latest"}).expect(200).json
    assert (resumed["status"], resumed["fires"]) == ("active", fires[-1:])
    virtual.go_on(minutes=1)
    runs = admin.get("/jobs/daily/runs").items
    assert [run["fireAt"] for run in runs] == fires[-1:]


# Versions.


def test_versions_come_newest_first_with_what_changed(admin: Client) -> None:
    create(admin, "daily", schedule="0 6 * * *", command="x", params={"a": 1})
    admin.put("/jobs/daily", {"schedule": "0 7 * * *", "command": "x", "params": {"a": 2}}, If_Match="1").expect(200)
    newest, oldest = admin.get("/jobs/daily/versions").expect(200).items
    assert {"version", "createdAt", "createdBy", "definition", "changes"} <= newest.keys()
    assert (newest["version"], oldest["version"]) == (2, 1)
    assert newest["changes"] == [
        {"path": "schedule.cron", "before": "0 6 * * *", "after": "0 7 * * *"},
        {"path": "params.a", "before": 1, "after": 2},
    ]
    assert newest["summary"] == ["schedule: every day at 06:00 → every day at 07:00", "params.a: 1 → 2"]
    assert oldest["summary"] == ["created: every day at 06:00; task main"]
    assert oldest["definition"]["schedule"] == {"cron": "0 6 * * *"}
    planned = admin.post("/plan", {"name": "daily", "schedule": "0 7 * * *", "command": "x"}).expect(200).json
    assert planned["difference"]["summary"] == ["params.a: 2 → none"]
    admin.delete("/jobs/daily").expect(204)
    assert admin.get("/jobs/daily/versions").items[0]["summary"] == ["deleted"]


def test_versions_come_in_pages_with_the_same_differences(admin: Client) -> None:
    create(admin, "daily", command="v1")
    for version in range(1, 6):
        admin.put("/jobs/daily", {"command": f"v{version + 1}"}, If_Match=str(version)).expect(200)
    paged = [one for page in admin.pages("/jobs/daily/versions?limit=2") for one in page]
    assert [one["version"] for one in paged] == [6, 5, 4, 3, 2, 1]
    assert paged == admin.get("/jobs/daily/versions").items


def test_a_rollback_is_a_new_version_with_an_old_definition(admin: Client) -> None:
    create(admin, "daily", schedule="0 6 * * *", command="x")
    admin.put("/jobs/daily", {"command": "y"}, If_Match="1").expect(200)
    back = admin.post("/jobs/daily/rollback", {"version": 1}).expect(200)
    assert (back.json["version"], back.json["schedule"]) == (3, {"cron": "0 6 * * *"})
    assert back.headers["etag"] == '"3"'
    admin.post("/jobs/daily/rollback", {"version": 99}).expect(404)
    admin.post("/jobs/daily/rollback", {"version": 1}, If_Match="1").expect(412)


# Fires, ledger, plan.


def test_fires_are_shown_in_local_time_with_notes_on_clock_changes(admin: Client) -> None:
    create(admin, "night", schedule={"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, command="x")
    fires = admin.get("/jobs/night/fires?from=2026-03-28T00:00:00Z&count=3").expect(200).items
    assert [fire.keys() for fire in fires] == [FIRE] * 3
    assert [(fire["fireAt"], fire["local"]) for fire in fires] == [
        ("2026-03-28T01:30:00Z", "2026-03-28T02:30:00+01:00"),
        ("2026-03-29T01:30:00Z", "2026-03-29T03:30:00+02:00"),
        ("2026-03-30T00:30:00Z", "2026-03-30T02:30:00+02:00"),
    ]
    assert [bool(fire["note"]) for fire in fires] == [False, True, False]
    bounded = admin.get("/jobs/night/fires?from=2026-03-28T00:00:00Z&to=2026-03-29T12:00:00Z").items
    assert len(bounded) == 2
    create(admin, "by-hand", command="x")
    assert admin.get("/jobs/by-hand/fires").expect(200).items == []


def test_the_ledger_has_a_row_for_every_fire(virtual: Virtual) -> None:
    admin = virtual.admin
    blackout = {"from": "2026-03-02T01:30:00Z", "to": "2026-03-02T02:30:00Z"}
    create(admin, "hourly", schedule={"cron": "0 * * * *", "blackouts": [blackout]}, command="x")
    virtual.go_on(hours=3, minutes=30)
    query = "from=2026-03-02T00:30:00Z&to=2026-03-02T05:30:00Z"
    rows = admin.get(f"/jobs/hourly/ledger?{query}").expect(200).items
    assert [row.keys() for row in rows] == [LEDGER_ROW] * 5
    assert [row["status"] for row in rows] == ["fired", "skipped", "fired", "pending", "pending"]
    assert rows[0] == {
        "fireAt": "2026-03-02T01:00:00Z",
        "status": "fired",
        "runId": "20260302T010000Z",
        "skewMs": 0,
        "reason": None,
    }
    assert rows[1]["reason"].startswith("blackout: ")
    paged = [row for page in admin.pages(f"/jobs/hourly/ledger?{query}&limit=2") for row in page]
    assert paged == rows


def test_the_ledger_is_counted_by_day(virtual: Virtual) -> None:
    admin = virtual.admin
    blackout = {"from": "2026-03-03T05:30:00Z", "to": "2026-03-03T06:30:00Z"}
    create(admin, "job", schedule={"cron": "0 */6 * * *", "blackouts": [blackout]}, command="x")
    for _ in range(6):
        virtual.go_on(hours=6, minutes=5)
    days = admin.get("/jobs/job/ledger/days").expect(200).items
    assert [(day["day"], day["counts"]) for day in days] == [
        ("2026-03-02", {"fired": 3}),
        ("2026-03-03", {"fired": 2, "skipped": 1}),
    ]
    assert admin.get("/jobs/job/ledger/days?from=2026-03-03T00:00:00Z").items == days[1:]
    assert admin.get("/jobs/job/ledger/days?to=2026-03-01T00:00:00Z").items == []
    admin.get("/jobs/nobody/ledger/days").expect(404)


def test_the_ledger_of_a_deleted_job_stays(virtual: Virtual) -> None:
    create(virtual.admin, "hourly")
    virtual.go_on(hours=2, minutes=30)
    virtual.admin.delete("/jobs/hourly").expect(204)
    virtual.go_on(hours=2)
    rows = virtual.admin.get("/jobs/hourly/ledger").expect(200).items
    assert [row["status"] for row in rows] == ["fired", "fired"]
    assert rows[-1]["fireAt"] == "2026-03-02T02:00:00Z"


def test_the_ledger_can_be_asked_for_any_stretch_of_time(admin: Client) -> None:
    create(admin, "yearly", schedule="0 0 1 1 *", command="x")
    admin.get("/jobs/yearly/ledger?from=1970-01-01T00:00:00Z&to=8999-12-31T00:00:00Z&limit=5").expect(200)
    assert admin.get("/jobs/yearly/ledger?from=2026-03-05T00:00:00Z&to=2026-03-04T00:00:00Z").expect(200).items == []


def test_a_plan_shows_what_a_definition_would_do_and_does_nothing(admin: Client) -> None:
    wanted = {"name": "night", "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, "command": "x"}
    plan = admin.post("/plan", wanted).expect(200).json
    assert {"fires", "notes", "runsPerDay", "loadPerHour", "difference"} <= plan.keys()
    assert (plan["runsPerYear"], plan["runsPerDay"], plan["loadPerHour"][2]) == (366, 1.0, 1)
    assert len(plan["notes"]) == 2
    summary = ["created: every day at 02:30 Europe/Berlin; task main"]
    assert plan["difference"] == {"action": "create", "version": None, "changes": [], "summary": summary}
    admin.get("/jobs/night").expect(404)
    admin.post("/jobs", wanted).expect(201)
    assert admin.post("/plan", wanted).expect(200).json["difference"]["action"] == "none"
    changed = admin.post("/plan", {**wanted, "command": "y"}).expect(200).json["difference"]
    assert (changed["action"], changed["version"]) == ("change", 1)
    assert [one["path"] for one in changed["changes"]] == ["tasks[0].run.command[0]"]


# The same under other names.


def test_dags_are_jobs_under_another_name(virtual: Virtual) -> None:
    admin = virtual.admin
    made = admin.post("/dags", {"name": "flow", "command": "x"}).expect(201)
    assert (made.json["jobId"], made.json["status"]) == ("flow", "scheduled")
    assert names(admin.get("/dags").expect(200).items) == names(admin.get("/jobs").items) == ["flow"]
    started = admin.post("/dags/flow/runs", {"params": {"a": 1}}).expect(202).json
    assert (started["runId"], started["status"]) == (started["executionId"], "queued")
    virtual.go_on(seconds=1)
    run = admin.get(f"/dags/flow/runs/{started['runId']}").expect(200).json
    assert run == admin.get(f"/jobs/flow/runs/{started['runId']}").json
    assert (run["state"], run["params"]) == ("succeeded", {"a": 1})
    admin.post("/dags/nothing/runs").expect(404)


def test_the_openapi_document_describes_every_call(admin: Client) -> None:
    document = admin.get("/openapi.json").expect(200).json
    assert document["servers"] == [{"url": "/api/v1"}]
    assert {"/jobs", "/jobs/{job}", "/runs/bulk", "/leases/{lease}/complete"} <= document["paths"].keys()
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    assert all(any(status < "300" for status in one["responses"]) for one in operations)
