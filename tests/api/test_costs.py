"""What runs cost: on AWS an estimate, on one machine nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sweephand.domain.ids import DEFAULT, JobKey, JobName, RunId, RunKey
from sweephand.engine.overview import overview
from sweephand.engine.spending import cost_of_run
from tests.api.client import Client, Virtual, VirtualEmbedded, sqlite_only
from tests.api.test_contract import create
from tests.api.test_runs import trigger

COST = {"dollars", "writeUnits", "transitions", "basis", "charged"}


def cost_of(client: Client, job: str, run: str) -> Any:
    cost = client.get(f"/jobs/{job}/runs/{run}").expect(200).json["cost"]
    assert cost.keys() == COST
    return cost


def is_here(virtual: Virtual) -> bool:
    return isinstance(virtual, VirtualEmbedded)


def test_a_run_says_what_it_has_cost(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "once", command="x", schedule="20 * * * *")
    create(admin, "again", command="x", retry={"attempts": 3, "delays": ["1s"]})
    tasks = [{"id": "a", "command": "x"}, {"id": "b", "command": "x", "needs": ["a"]}]
    create(admin, "several", tasks=tasks)
    failing = iter([True, True, False])

    def fails_twice(_call: object) -> None:
        if next(failing):
            raise ConnectionError("not yet")

    virtual.on("again", fails_twice)
    again, several = trigger(admin, "again"), trigger(admin, "several")
    virtual.go_on(minutes=11)
    once = cost_of(admin, "once", "20260302T002000Z")
    found = [once, cost_of(admin, "again", again), cost_of(admin, "several", several)]
    if is_here(virtual):
        assert {(one["dollars"], one["writeUnits"], one["transitions"], one["charged"]) for one in found} == {
            (0, 0, 0, False)
        }
        assert "one machine" in once["basis"]
        return
    assert all(one["charged"] and "estimate" in one["basis"] for one in found)
    assert [one["writeUnits"] for one in found] == [6, 4 + 2 * 3, 4 + 2 * 9]
    assert [one["transitions"] for one in found] == [0, 0, 5]
    assert once["dollars"] == 15.59e-6
    assert 0 < once["dollars"] < found[1]["dollars"] < found[2]["dollars"]


def test_what_a_rerun_took_over_costs_nothing_again(virtual: Virtual) -> None:
    admin = virtual.admin
    tasks = [{"id": "a", "command": "x"}, {"id": "b", "command": "x", "needs": ["a"]}]
    create(admin, "several", tasks=tasks)
    failing = iter([True, False])

    def second_fails_once(call: Any) -> None:
        if call.task.id == "b" and next(failing):
            raise ConnectionError("not today")

    virtual.on("several", second_fails_once)
    first = trigger(admin, "several")
    virtual.go_on(minutes=1)
    second = admin.post(f"/jobs/several/runs/{first}/rerun", {"from": "failed"}).expect(202).json["runId"]
    virtual.go_on(minutes=1)
    whole, half = cost_of(admin, "several", first), cost_of(admin, "several", second)
    assert admin.get(f"/jobs/several/runs/{second}").json["state"] == "succeeded"
    if not is_here(virtual):
        assert (whole["writeUnits"], half["writeUnits"]) == (22, 13)


def costs(virtual: Virtual, schedule: Any) -> Iterator[Any]:
    """Per month, of a plan, and of the job."""
    document = {"name": "job", "command": "x", "schedule": schedule}
    yield virtual.admin.post("/plan", document).expect(200).json["costPerMonth"]
    current = virtual.admin.get("/jobs/job")
    if current.status == 200:
        virtual.admin.put("/jobs/job", document, If_Match="*").expect(200)
    else:
        create(virtual.admin, **document)
    yield virtual.admin.get("/jobs/job?include=cost").expect(200).json["costPerMonth"]


def test_a_schedule_says_what_a_month_of_it_would_cost_on_aws(virtual: Virtual) -> None:
    for cost in costs(virtual, "0 * * * *"):
        assert cost.keys() == COST
        assert (cost["writeUnits"], cost["transitions"], cost["charged"]) == (4_320, 0, not is_here(virtual))
        assert abs(cost["dollars"] - 720 * 15.59e-6) < 1e-5
        assert "On one machine, nothing" in cost["basis"]
    for cost in costs(virtual, "*/2 * * * *"):
        assert 0.2 < cost["dollars"] < 0.4
    assert list(costs(virtual, None)) == [None, None]
    assert "costPerMonth" not in virtual.admin.get("/jobs/job").json
    assert "cost" not in virtual.admin.post("/jobs/job/trigger").expect(202).json


def test_the_cost_of_a_deleted_job_is_asked_for_beside_the_job(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "job", schedule="0 * * * *", command="x")
    admin.delete("/jobs/job").expect(204)
    admin.get("/jobs/job?include=cost").expect(404)
    for both in ("deleted,cost", "cost,deleted"):
        assert admin.get(f"/jobs/job?include={both}").expect(200).json["costPerMonth"] is None
    admin.put("/namespaces/other", {}).expect(201)
    admin.within("other").get("/jobs/job?include=deleted,cost").expect(404)


def test_a_backfill_says_whether_anybody_charges_for_it(virtual: Virtual) -> None:
    create(virtual.admin, "job", schedule="*/5 * * * *", command="x")
    virtual.jump(minutes=30)
    body = {"from": "2026-03-02T00:10:00Z", "to": "2026-03-02T00:30:00Z", "only": "all", "dryRun": True}
    cost = virtual.admin.post("/jobs/job/backfills", body).expect(200).json["cost"]
    assert cost.keys() == COST
    assert cost["charged"] is not is_here(virtual)
    assert cost["dollars"] > 0


@sqlite_only("It is about an estimate, which one machine does not show.")
def test_tasks_that_are_not_looked_at_are_taken_to_be_like_those_that_are(virtual: Virtual) -> None:
    tasks = [
        {"id": "list", "command": "x"},
        {"id": "each", "command": "x", "needs": ["list"], "map": {"over": list(range(60))}},
    ]
    create(virtual.admin, "many", tasks=tasks)
    run_id = trigger(virtual.admin, "many")
    virtual.go_on(minutes=1)
    seen = overview(virtual.world, RunKey(JobKey(DEFAULT, JobName("many")), RunId(run_id)))
    every, more = seen.page(limit=100)
    assert (len(every), more) == (62, False)
    whole = cost_of_run(seen, every, is_all=True)
    assert whole.write_units == 4 + 9 * 61
    part, more = seen.page(limit=20)
    guessed = cost_of_run(seen, part, is_all=not more)
    assert guessed.write_units == pytest.approx(whole.write_units)
    assert guessed.dollars == pytest.approx(whole.dollars)
    assert cost_of_run(seen, part, is_all=True).write_units < whole.write_units / 2
