"""However much there is, a call costs a page of it, and repeating it does not double anything."""

from __future__ import annotations

from typing import Any

from sweephand.api.asked import Asked
from sweephand.api.listing import LOOKED_AT_MAX
from sweephand.api.walk import Walk
from sweephand.domain.access import DEFAULT, Caller, PrincipalKind, Role
from sweephand.engine.put import put
from tests.api.client import MANY, Client, Virtual, sqlite_only
from tests.api.test_contract import create
from tests.api.test_runs import refuse, run_of, trigger


def every_page(client: Client, path: str) -> list[list[Any]]:
    return list(client.pages(path))


def test_what_was_rerun_in_bulk_is_not_rerun_again(virtual: Virtual) -> None:
    admin = virtual.admin
    virtual.on("bad", refuse)
    for name in ("bad", "good"):
        create(admin, name, command="x")
        trigger(admin, name)
    virtual.go_on(seconds=1)
    body = {"action": "rerun", "filter": {}}
    first = admin.post("/runs/bulk", body).expect(200).json
    assert ([one["jobId"] for one in first["items"]], first["nextCursor"]) == (["bad"], None)
    again = admin.post("/runs/bulk", body).expect(200).json
    assert again["matched"] == 0  # its rerun is under way
    virtual.go_on(seconds=1)
    third = admin.post("/runs/bulk", body).expect(200).json
    assert [one["runId"] for one in third["items"]] == [first["items"][0]["result"]["runId"]]  # the rerun failed too


def test_a_bulk_action_goes_on_where_its_cursor_says(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "slow", command="x")
    virtual.on("slow", takes="1h")
    runs = [trigger(admin, "slow") for _ in range(7)]
    virtual.go_on(seconds=1)
    cursor, done = None, 0
    for _ in range(4):
        body: dict[str, Any] = {"action": "cancel", "filter": {}, "limit": 3, "cursor": cursor}
        answer = admin.post("/runs/bulk", body).expect(200).json
        done, cursor = done + answer["done"], answer["nextCursor"]
        if cursor is None:
            break
    assert (done, cursor) == (7, None)
    assert {run_of(admin, "slow", run)["state"] for run in runs} == {"cancelled"}


@sqlite_only(MANY)
def test_lists_across_jobs_come_in_pages_from_their_cursor(virtual: Virtual) -> None:
    admin = virtual.admin
    virtual.on("bad", refuse)
    for name in ("a", "bad", "c"):
        create(admin, name, command="x", schedule="* * * * * *")
    virtual.go_on(seconds=5)
    for path in ("/runs", "/deadletters"):
        whole = admin.get(f"{path}?limit=1000").items
        pages = every_page(admin, f"{path}?limit=2")
        assert [row for page in pages for row in page] == whole
        assert len(pages) > 2


@sqlite_only(MANY)
def test_a_cursor_of_dead_letters_goes_on_while_time_passes(virtual: Virtual) -> None:
    virtual.on("bad", refuse)
    create(virtual.admin, "bad", command="x")
    for _ in range(3):
        trigger(virtual.admin, "bad")
    virtual.go_on(seconds=2)
    first = virtual.admin.get("/deadletters?limit=2").expect(200).json
    virtual.go_on(seconds=5)
    rest = virtual.admin.get(f"/deadletters?limit=2&cursor={first['nextCursor']}").expect(200).json
    assert (len(first["items"]), len(rest["items"]), rest["nextCursor"]) == (2, 1, None)


def test_all_dead_letters_are_redriven_once_page_by_page(virtual: Virtual) -> None:
    admin = virtual.admin
    for name in ("bad", "worse"):
        virtual.on(name, refuse)
        create(admin, name, command="x")
    runs = [trigger(admin, "bad") for _ in range(3)]
    trigger(admin, "worse")
    virtual.go_on(seconds=5)
    shown = admin.get(f"/deadletters/bad:{runs[0]}").expect(200).json
    assert (shown["runId"], shown["state"], shown["error"] is not None) == (runs[0], "failed", True)
    admin.get("/deadletters/bad:20200101T000000Z").expect(404)
    planned = admin.post("/deadletters/redrive", {"dryRun": True}).expect(200).json
    assert (planned["matched"], planned["done"], len(planned["items"])) == (4, 0, 4)
    for name in ("bad", "worse"):
        virtual.on(name)
    body: dict[str, Any] = {"job": "bad", "limit": 2}
    first = admin.post("/deadletters/redrive", body).expect(200).json
    again = admin.post(f"/deadletters/{first['items'][0]['id']}/redrive").expect(202).json
    assert again["runId"] == first["items"][0]["result"]["runId"]  # asked again, it is the same run
    virtual.go_on(seconds=5)
    rest = admin.post("/deadletters/redrive", {**body, "cursor": first["nextCursor"]}).expect(200).json
    virtual.go_on(seconds=5)
    assert (first["done"], rest["done"], rest["nextCursor"]) == (2, 1, None)
    assert {one["state"] for one in admin.get("/jobs/bad/runs").items if one["rerunOf"]} == {"succeeded"}
    assert [one["jobId"] for one in admin.get("/deadletters").items] == ["worse"]
    ended = first["items"][0]["result"]["runId"]
    admin.post(f"/deadletters/bad:{ended}/redrive").expect(409)  # it has succeeded: nothing is changed
    admin.get(f"/deadletters/bad:{ended}").expect(404)
    assert len(admin.get("/jobs/bad/runs").items) == 6


@sqlite_only(MANY)
def test_a_walk_stops_after_so_many_rows_and_its_cursor_goes_on(virtual: Virtual) -> None:
    create(virtual.admin, "beat", command="x", schedule="* * * * * *")
    virtual.go_on(seconds=30)
    caller = Caller("t", PrincipalKind.TOKEN, DEFAULT, Role.VIEWER)
    ask = Asked(virtual.world, caller, {}, frozenset(), {}, None, None)
    cursor: str | None = None
    walks: list[list[str]] = []
    while not walks or cursor is not None:
        walk = Walk(ask, cursor=cursor, looked_at_max=8)
        walks.append([row.run.run_id for row in walk.rows()])
        cursor = walk.cursor()
    assert [len(rows) for rows in walks] == [8, 8, 8, 7]
    whole = [row["runId"] for row in virtual.admin.get("/runs?limit=1000").items]
    assert [run_id for rows in walks for run_id in rows] == whole


@sqlite_only(MANY)
def test_a_year_of_a_ledger_of_seconds_comes_in_pages(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "beat", command="x", schedule="* * * * * *")
    virtual.go_on(seconds=25)
    path = "/jobs/beat/ledger?from=2025-03-02T00:00:00Z&to=2026-03-02T00:10:25Z&limit=10"
    pages = every_page(virtual.admin, path)
    assert [len(page) for page in pages] == [10, 10, 5]
    assert len({row["fireAt"] for page in pages for row in page}) == 25


@sqlite_only(MANY)
def test_a_run_that_many_skipped_ones_followed_is_still_seen_to_run(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "beat", command="x", schedule="* * * * * *", overlap="skip")
    virtual.on("beat", takes="10m")
    virtual.go_on(seconds=60)
    job = admin.get("/jobs/beat").json
    assert (job["status"], job["startedAt"], job["lastRun"]["state"]) == ("running", "2026-03-02T00:10:00Z", "skipped")
    assert [one["jobId"] for one in admin.get("/jobs?status=running").items] == ["beat"]
    admin.delete("/jobs/beat?cancel=true").expect(204)
    assert run_of(admin, "beat", "20260302T001000Z")["state"] == "cancelled"


def test_an_event_repeated_under_its_key_runs_no_listener_twice(virtual: Virtual) -> None:
    admin = virtual.admin
    for name in ("a", "b"):
        create(admin, name, command="x", schedule={"events": [{"source": "shop"}]})
    event = {"source": "shop", "type": "order"}
    first = admin.post("/events", event, Idempotency_Key="k").expect(202).json
    keyless = admin.post("/events", event).expect(202).json
    assert first["runs"] != keyless["runs"]
    again = admin.post("/events", {**event, "id": "key/k"}).expect(202).json
    assert again["runs"] == first["runs"]  # as if the first answer had been lost before it was kept


def test_the_name_of_a_namespace_is_not_given_away_again(virtual: Virtual) -> None:
    admin = virtual.admin
    admin.put("/namespaces/team", {}).expect(201)
    admin.put("/namespaces/team", {}, If_None_Match="*").expect(412)
    admin.delete("/namespaces/team").expect(204)
    admin.delete("/namespaces/team").expect(404)
    admin.get("/namespaces/team").expect(404)
    assert "another name" in admin.put("/namespaces/team", {}).expect(409).json["detail"]
    assert [one["namespace"] for one in admin.get("/namespaces").items] == ["default"]
    admin.within("team").get("/jobs").expect(403)


@sqlite_only(MANY)
def test_a_rollback_asks_for_room_as_a_put_does(virtual: Virtual) -> None:
    admin = virtual.admin
    admin.put("/namespaces/default", {"limits": {"frequentJobs": 1}}).expect(201)
    create(admin, "one", command="x", schedule="* * * * * *")
    admin.put("/jobs/one", {"command": "x", "schedule": "@hourly"}, If_Match="1").expect(200)
    create(admin, "two", command="x", schedule="* * * * * *")
    refused = admin.post("/jobs/one/rollback", {"version": 1}).expect(400)
    assert "more often than once a minute" in refused.json["detail"]


def test_one_who_asks_for_other_namespaces_does_not_fill_the_log(virtual: Virtual) -> None:
    viewer = virtual.callers.role("viewer")
    for n in range(30):
        viewer.within(f"other-{n}").get("/jobs").expect(403)
    rows = [row for row in virtual.admin.get("/audit").items if row["action"] == "access.refuse"]
    assert 1 <= len(rows) <= 2


@sqlite_only(MANY)
def test_a_list_of_few_among_many_comes_in_pages_that_may_be_empty(virtual: Virtual) -> None:
    admin = virtual.admin
    many = LOOKED_AT_MAX + 300
    for n in range(many):
        document = {"name": f"job-{n:05}", "command": "x", "tags": ["last"] if n == many - 1 else ["common"]}
        put(virtual.world, DEFAULT, document, actor="test", expected=None)
    for query in ("tag=last", "status=paused", "status=running", "search=job&tag=last"):
        pages = every_page(admin, f"/jobs?{query}")
        assert [len(page) for page in pages] == [0, 1 if "last" in query else 0], query
    assert [len(page) for page in every_page(admin, "/jobs?search=LAST")] == [1]
    assert len(every_page(admin, "/jobs?prefix=job-00001&tag=last")) == 1
    whole = [job["jobId"] for page in every_page(admin, "/jobs?search=common&limit=700") for job in page]
    assert whole == [f"job-{n:05}" for n in range(many - 1)]
