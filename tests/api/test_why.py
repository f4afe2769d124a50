"""Why is it not running? For every cause there is an answer with its evidence and its remedy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.client import Client, Virtual
from tests.api.test_contract import create
from tests.api.test_runs import refuse, run_of, stumble, trigger


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def why(client: Client, path: str) -> Any:
    told = client.get(f"{path}/why").expect(200).json
    assert told.keys() == {"status", "summary", "blockers", "nextFireAt"}
    for blocker in told["blockers"]:
        assert blocker.keys() == {"code", "detail", "remedy"}
        assert all(blocker.values())
    return told


def blocker_of_run(client: Client, job: str, run_id: str) -> Any:
    """The one thing in the run's way; its task says the same."""
    told = why(client, f"/jobs/{job}/runs/{run_id}")
    task = run_of(client, job, run_id)["tasks"][0]["id"]
    assert why(client, f"/jobs/{job}/runs/{run_id}/tasks/{task}") == told
    (blocker,) = told["blockers"]
    return blocker


def test_a_paused_job_names_who_paused_it_and_with_which_words(virtual: Virtual) -> None:
    create(virtual.admin, "daily")
    operator = virtual.callers.role("operator")
    operator.post("/jobs/daily/pause", {"note": "the warehouse moves"}).expect(200)
    actor = virtual.admin.get("/audit?limit=1").items[0]["actor"]
    told = why(virtual.admin, "/jobs/daily")
    (blocker,) = told["blockers"]
    assert (told["status"], blocker["code"]) == ("paused", "paused")
    assert actor in blocker["detail"]
    assert "the warehouse moves" in blocker["detail"]
    assert "Resume" in blocker["remedy"]


def test_a_fire_held_by_a_pause_says_so(virtual: Virtual) -> None:
    create(virtual.admin, "once", schedule={"at": "2026-03-02T00:10:01Z"}, command="x")
    virtual.admin.post("/jobs/once/pause").expect(200)
    virtual.go_on(seconds=3)
    (held,) = virtual.admin.get("/jobs/once/runs?include=planned").items
    assert blocker_of_run(virtual.admin, "once", held["runId"])["code"] == "paused"


def test_a_job_with_nothing_in_its_way_says_when_it_fires_next(admin: Client) -> None:
    create(admin, "daily")
    told = why(admin, "/jobs/daily")
    assert (told["status"], told["blockers"], told["nextFireAt"]) == ("active", [], "2026-03-02T01:00:00Z")
    create(admin, "by-hand", command="x")
    assert "triggers it" in why(admin, "/jobs/by-hand")["summary"]
    create(admin, "over", schedule={"at": "2026-01-01T00:00:00Z"}, command="x")
    assert "no fire to come" in why(admin, "/jobs/over")["summary"]
    create(admin, "after", dependencies=["nobody"], command="x")
    assert "There is no job nobody" in why(admin, "/jobs/after")["summary"]


def test_a_run_waits_while_its_job_has_as_many_as_it_may(virtual: Virtual) -> None:
    create(virtual.admin, "one", command="x", concurrency={"runs": 1})
    virtual.on("one", takes="10m")
    first, second = trigger(virtual.admin, "one"), trigger(virtual.admin, "one")
    virtual.go_on(seconds=1)
    states = {run_id: run_of(virtual.admin, "one", run_id)["state"] for run_id in (first, second)}
    running, waiting = sorted(states, key=lambda run_id: states[run_id] != "running")
    blocker = blocker_of_run(virtual.admin, "one", waiting)
    assert blocker["code"] == "concurrency"
    assert running in blocker["detail"]
    assert why(virtual.admin, "/jobs/one")["blockers"] == [blocker]
    assert "runs on" in why(virtual.admin, f"/jobs/one/runs/{running}")["summary"]


def test_a_run_waits_while_its_pool_is_full(virtual: Virtual) -> None:
    virtual.admin.put("/pools/warehouse", {"slots": 1}).expect(201)
    for name in ("holder", "waiter"):
        create(virtual.admin, name, command="x", concurrency={"pool": "warehouse"})
        virtual.on(name, takes="10m")
    held = trigger(virtual.admin, "holder")
    virtual.go_on(seconds=1)
    waiting = trigger(virtual.admin, "waiter")
    virtual.go_on(seconds=1)
    blocker = blocker_of_run(virtual.admin, "waiter", waiting)
    assert blocker["code"] == "pool"
    assert "1 of 1" in blocker["detail"]
    assert held in blocker["detail"]


def test_a_fire_in_a_blackout_is_skipped_or_held_and_says_until_when(virtual: Virtual) -> None:
    stretch = {"from": "2026-03-02T00:50:00Z", "to": "2026-03-02T01:30:00Z"}
    create(virtual.admin, "skips", schedule={"cron": "0 * * * *", "blackouts": [stretch]}, command="x")
    holding = {"cron": "0 * * * *", "blackouts": [{**stretch, "policy": "hold"}]}
    create(virtual.admin, "holds", schedule=holding, command="x")
    virtual.go_on(minutes=55)
    skipped = blocker_of_run(virtual.admin, "skips", "20260302T010000Z")
    assert (skipped["code"], "2026-03-02T01:30:00" in skipped["detail"]) == ("blackout", True)
    held = blocker_of_run(virtual.admin, "holds", "20260302T010000Z")
    assert (held["code"], "2026-03-02T01:30:00" in held["detail"]) == ("blackout", True)
    assert why(virtual.admin, "/jobs/holds")["blockers"] == [held]


def test_a_fire_on_a_closed_day_names_the_calendar(virtual: Virtual) -> None:
    virtual.admin.put("/calendars/holidays", {"closed": ["2026-03-02"]}).expect(201)
    create(virtual.admin, "daily", schedule={"cron": "0 * * * *", "calendar": "holidays"}, command="x")
    virtual.go_on(hours=1)
    blocker = blocker_of_run(virtual.admin, "daily", "20260302T010000Z")
    assert blocker["code"] == "calendar"
    assert "2026-03-02 is closed in calendar holidays" in blocker["detail"]


def test_a_run_for_external_workers_waits_for_one(virtual: Virtual) -> None:
    create(virtual.admin, "outside", run={"external": {"queue": "gpu"}})
    run_id = trigger(virtual.admin, "outside")
    virtual.go_on(seconds=1)
    blocker = blocker_of_run(virtual.admin, "outside", run_id)
    assert (blocker["code"], "'gpu'" in blocker["detail"]) == ("worker", True)


def test_a_run_between_two_attempts_shows_the_last_failure(virtual: Virtual) -> None:
    create(virtual.admin, "flaky", command="x", retry={"attempts": 3, "backoff": "fixed", "delay": "10m"})
    virtual.on("flaky", stumble)
    run_id = trigger(virtual.admin, "flaky")
    virtual.go_on(seconds=1)
    assert run_of(virtual.admin, "flaky", run_id)["state"] == "retrying"
    blocker = blocker_of_run(virtual.admin, "flaky", run_id)
    assert (blocker["code"], "the line is cut" in blocker["detail"]) == ("retry", True)
    assert "2026-03-02T00:20:00Z" in why(virtual.admin, f"/jobs/flaky/runs/{run_id}")["summary"]
    assert why(virtual.admin, "/jobs/flaky")["blockers"] == [blocker]


def test_a_run_whose_worker_is_silent_is_about_to_be_taken_over(virtual: Virtual) -> None:
    create(virtual.admin, "outside", run={"external": {}})
    run_id = trigger(virtual.admin, "outside")
    virtual.go_on(seconds=1)
    virtual.admin.post("/leases", {"workerId": "w"}).expect(200)
    told = why(virtual.admin, f"/jobs/outside/runs/{run_id}")
    assert told["summary"].startswith("Attempt 1 runs on w, ")
    assert told["blockers"] == []
    virtual.jump(seconds=90)
    blocker = blocker_of_run(virtual.admin, "outside", run_id)
    assert (blocker["code"], "30 s ago" in blocker["detail"]) == ("lost", True)


def test_an_ended_run_says_why_it_ended_so(virtual: Virtual) -> None:
    create(virtual.admin, "bad", command="x")
    virtual.on("bad", refuse)
    failed = trigger(virtual.admin, "bad")
    virtual.go_on(seconds=1)
    blocker = blocker_of_run(virtual.admin, "bad", failed)
    assert (blocker["code"], blocker["detail"]) == ("error", "no such table")
    cancelled = trigger(virtual.admin, "bad")
    virtual.admin.post(f"/jobs/bad/runs/{cancelled}/cancel").expect(200)
    assert blocker_of_run(virtual.admin, "bad", cancelled)["code"] == "cancelled"
    virtual.on("bad")
    good = trigger(virtual.admin, "bad")
    virtual.go_on(seconds=1)
    told = why(virtual.admin, f"/jobs/bad/runs/{good}")
    assert (told["status"], told["blockers"]) == ("succeeded", [])


def test_a_fire_that_came_too_late_names_its_deadline(virtual: Virtual) -> None:
    create(virtual.admin, "fresh", schedule="0 * * * *", command="x", startDeadline="10s", catchup="all")
    virtual.go_on(minutes=49, seconds=57)
    virtual.outage(seconds=60)
    virtual.go_on(minutes=2)
    assert blocker_of_run(virtual.admin, "fresh", "20260302T010000Z")["code"] == "start_deadline"


def test_what_is_not_there_has_no_reason(admin: Client) -> None:
    create(admin, "daily")
    for path in ("/jobs/no", "/jobs/daily/runs/20260101T000000Z", "/jobs/daily/runs/20260101T000000Z/tasks/main"):
        admin.get(f"{path}/why").expect(404)
