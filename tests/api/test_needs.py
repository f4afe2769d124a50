"""Fires that wait for other jobs, over HTTP: what the plan foresees, what `why` says, and that they start."""

from __future__ import annotations

from typing import Any

from tests.api.client import Client, Virtual
from tests.api.test_contract import create
from tests.api.test_runs import run_of
from tests.api.test_tasks import fail
from tests.api.test_why import why

NIGHTLY = {"cron": "20 0 * * *", "needs": ["ingest"]}


def only_run(client: Client, job: str) -> dict[str, Any]:
    (run,) = client.get(f"/jobs/{job}/runs").expect(200).items
    return run


def test_a_fire_waits_until_what_it_needs_is_done_and_says_so_meanwhile(virtual: Virtual) -> None:
    admin = virtual.admin
    virtual.on("ingest", fail)
    create(admin, "ingest", schedule="15 0 * * *", command="ingest")
    create(admin, "report", schedule=NIGHTLY, command="report")
    virtual.go_on(minutes=12)
    run = only_run(admin, "report")
    reason = "needs: ingest of 2026-03-02T00:15:00Z failed"
    assert (run["state"], run["reason"], run["startedAt"]) == ("queued", reason, None)
    told = why(admin, f"/jobs/report/runs/{run['runId']}")
    assert told["summary"] == f"It waits: {reason}."
    assert [blocker["code"] for blocker in told["blockers"]] == ["needs"]
    assert why(admin, "/jobs/report")["blockers"] == told["blockers"]
    (row,) = admin.get("/jobs/report/ledger").items
    assert (row["status"], row["reason"]) == ("pending", reason)

    virtual.on("ingest")
    failed = only_run(admin, "ingest")["runId"]
    admin.post(f"/jobs/ingest/runs/{failed}/rerun", {}).expect(202)
    virtual.go_on(seconds=10)
    assert run_of(admin, "report", run["runId"])["state"] == "succeeded"


def test_a_fire_that_waited_for_too_long_is_skipped_and_can_be_made_up_for(virtual: Virtual) -> None:
    admin = virtual.admin
    create(
        admin, "report", schedule={"cron": "20 0 * * *", "needs": {"jobs": ["ingest"], "timeout": "5m"}}, command="x"
    )
    virtual.go_on(minutes=17)
    run = only_run(admin, "report")
    assert (run["state"], run["reason"]) == ("skipped", "needs: it did not come in time: there is no job ingest")
    wanted = {"from": "2026-03-02T00:00:00Z", "to": "2026-03-02T00:27:00Z"}
    admin.post("/jobs/report/backfills", wanted).expect(202)
    virtual.go_on(seconds=10)
    assert admin.get("/jobs/report/runs").items[0]["state"] == "succeeded", "who makes up for it does not wait"


def test_a_plan_says_what_its_fires_would_wait_for(virtual: Virtual) -> None:
    admin = virtual.admin
    wanted: dict[str, Any] = {"name": "report", "schedule": NIGHTLY, "command": "x"}
    plan = admin.post("/plan", wanted).expect(200).json
    which = "the run of its last fire up to then"
    assert plan["notes"] == [
        f"Each fire waits for a success of ingest, {which}, for 1d at the most; then it is skipped.",
        "There is no job ingest: fires wait for it in vain.",
    ]
    assert plan["difference"]["summary"] == ["created: every day at 00:20, waiting for ingest; task main"]
    create(admin, "ingest", command="ingest")
    refused = admin.post("/plan", wanted).expect(400).json
    assert refused["errors"][0]["path"] == "schedule.needs"
    daily = {"jobs": ["ingest"], "window": "sameDay", "timezone": "Europe/Berlin", "timeout": "2h"}
    plan = admin.post("/plan", {**wanted, "schedule": {**NIGHTLY, "needs": daily}}).expect(200).json
    which = "a run of the same day in Europe/Berlin"
    assert plan["notes"] == [
        f"Each fire waits for a success of ingest, {which}, for 2h at the most; then it is skipped."
    ]
