"""The figures of an overview."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sweephand.domain.ids import DEFAULT, JobKey, JobName, RunKey, run_id_of_fire
from sweephand.domain.run import RunState, Trigger
from sweephand.domain.status import StatusRow
from tests.api.client import MANY, Client, Virtual, sqlite_only
from tests.api.test_contract import create
from tests.api.test_runs import refuse, trigger

SECOND = timedelta(seconds=1)


def stats(client: Client) -> Any:
    return client.get("/stats").expect(200).json


def test_the_runs_of_the_last_day_come_hour_by_hour(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "often", schedule="*/20 * * * *", command="x")
    create(admin, "blocked", schedule="40,45 * * * *", command="x", overlap="skip")
    virtual.on("often", lambda call: refuse(call) if call.run.fire_at.hour == 1 else None)
    virtual.on("blocked", takes="12m")
    virtual.go_on(minutes=94)
    found = stats(admin)
    assert [one["hour"] for one in found["hours"]] == [
        *(f"2026-03-01T{hour:02}:00:00Z" for hour in range(2, 24)),
        "2026-03-02T00:00:00Z",
        "2026-03-02T01:00:00Z",
    ]
    nothing = {"succeeded": 0, "failed": 0, "skipped": 0}
    assert all({**one, "hour": ""} == {**nothing, "hour": ""} for one in found["hours"][:-2])
    midnight, one = found["hours"][-2:]
    assert (midnight["succeeded"], midnight["failed"], midnight["skipped"]) == (3, 0, 1)
    assert (one["succeeded"], one["failed"], one["skipped"]) == (0, 3, 0)
    assert found["lastDay"] == {"succeeded": 3, "failed": 3, "skipped": 1, "successRate": 0.5}
    assert found["runs"] == {"succeeded": 3, "failed": 3, "skipped": 1, "running": 1}
    assert (found["running"], found["queued"]) == (1, 0)
    assert found["since"] == "2026-03-01T02:00:00Z"
    virtual.jump(hours=23)
    later = stats(admin)
    assert (later["since"], later["runs"]) == ("2026-03-02T01:00:00Z", {"failed": 3, "running": 1})


def test_where_nothing_ran_there_is_no_rate_and_nobody_is_late(virtual: Virtual) -> None:
    found = stats(virtual.admin)
    assert found["lastDay"] == {"succeeded": 0, "failed": 0, "skipped": 0, "successRate": None}
    assert found["late"] == {"count": 0, "oldestAt": None}
    assert (found["jobs"], found["running"], found["queued"], len(found["hours"])) == (0, 0, 0, 24)


def test_who_should_have_begun_over_a_minute_ago_is_late(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "slow", command="x", concurrency={"runs": 1})
    create(admin, "paused", schedule="11 * * * *", command="x")
    admin.put("/namespaces/other", {}).expect(201)
    create(admin.within("other"), "slow", command="x", concurrency={"runs": 1})
    virtual.on("slow", takes="12m")
    for client in (admin, admin, admin, admin.within("other"), admin.within("other")):
        trigger(client, "slow")
        virtual.go_on(seconds=10)
    admin.post("/jobs/paused/pause").expect(200)
    found = stats(admin)
    assert (found["running"], found["queued"], found["late"]) == (1, 2, {"count": 0, "oldestAt": None})
    virtual.go_on(minutes=1)
    late = stats(admin)["late"]
    assert late["count"] == 2
    assert late["oldestAt"].startswith("2026-03-02T00:10:1")
    assert stats(admin.within("other"))["late"]["count"] == 1
    virtual.go_on(minutes=13)
    assert stats(admin)["late"]["count"] == 1
    admin.post("/runs/bulk", {"action": "cancel", "filter": {}}).expect(200)
    virtual.go_on(seconds=10)
    assert (stats(admin)["late"]["count"], stats(admin)["queued"], stats(admin)["running"]) == (0, 0, 0)


@sqlite_only(MANY)
def test_all_runs_are_counted_and_the_newest_say_how_late_they_begin(virtual: Virtual) -> None:
    rows = []
    for n in range(2_500):
        at = virtual.now - n * SECOND
        begun = at + (SECOND if n < 2_000 else 60 * SECOND)
        key = RunKey(JobKey(DEFAULT, JobName("beat")), run_id_of_fire(at))
        rows.append(StatusRow(key, 1, RunState.SUCCEEDED, Trigger.SCHEDULE, at, 1, begun, begun, None))
    virtual.world.views.append(DEFAULT, "b", rows)
    found = stats(virtual.admin)
    assert found["runs"] == {"succeeded": 2_500}
    assert found["skewMs"] == {"p50": 1_000, "p99": 1_000}
    assert 59 < found["throughputPerMinute"] < 61
