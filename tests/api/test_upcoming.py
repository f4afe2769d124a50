"""What fires next, whichever job it is."""

from __future__ import annotations

from typing import Any

from sweephand.domain.access import DEFAULT
from sweephand.engine.put import put
from sweephand.engine.upcoming import EVALUATED_MAX
from tests.api.client import MANY, Client, Virtual, sqlite_only
from tests.api.test_contract import create


def coming(client: Client, query: str = "") -> list[tuple[str, str]]:
    """The time and the job of every fire, page after page."""
    pages = client.pages(f"/upcoming{query}")
    return [(item["fireAt"].removeprefix("2026-03-02T"), item["jobId"]) for page in pages for item in page]


def test_the_next_fires_of_all_jobs_come_soonest_first(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "hourly", schedule="0 * * * *", command="x")
    create(admin, "often", schedule="*/20 * * * *", command="x")
    create(admin, "once", schedule={"at": "2026-03-02T00:30:00Z"}, command="x")
    create(admin, "tomorrow", schedule="0 0 3 3 *", command="x")
    create(admin, "by-hand", command="x")
    create(admin, "paused", schedule="*/20 * * * *", command="x")
    create(admin, "gone", schedule="*/20 * * * *", command="x")
    admin.post("/jobs/paused/pause").expect(200)
    admin.delete("/jobs/gone").expect(204)
    admin.put("/namespaces/other", {}).expect(201)
    create(admin.within("other"), "theirs", schedule="*/20 * * * *", command="x")
    answered = admin.get("/upcoming").expect(200).json
    assert [(one["fireAt"][11:19], one["jobId"]) for one in answered["items"]] == [
        ("00:20:00", "often"),
        ("00:30:00", "once"),
        ("00:40:00", "often"),
        ("01:00:00", "hourly"),
        ("01:00:00", "often"),
    ]
    assert (answered["nextCursor"], answered["truncated"]) == (None, False)
    virtual.go_on(minutes=15)
    assert coming(admin, "?within=20m") == [("00:30:00Z", "once"), ("00:40:00Z", "often")]
    assert coming(admin, "?within=600") == [("00:30:00Z", "once")]
    in_a_day = [job for _, job in coming(admin, "?within=1d")]
    assert in_a_day == ["once", "often", "hourly", "often", "often", "hourly", "hourly", "tomorrow"]
    assert coming(admin.within("other"), "?within=10m") == []
    admin.post("/jobs/paused/resume").expect(200)
    assert ("00:40:00Z", "paused") in coming(admin, "?within=20m")


def test_a_job_that_fires_each_second_is_shown_three_times_and_hides_nobody(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "beat", schedule="* * * * * *", command="x")
    create(admin, "later", schedule="30 * * * *", command="x")
    seconds = [(f"00:10:0{second}Z", "beat") for second in (1, 2, 3)]
    for limit in (1, 2, 50):
        assert coming(admin, f"?limit={limit}") == [*seconds, ("00:30:00Z", "later")]
    first = admin.get("/upcoming?limit=2").json
    virtual.go_on(seconds=10)
    rest = admin.get(f"/upcoming?limit=2&cursor={first['nextCursor']}").expect(200).items
    assert [(one["fireAt"][11:], one["jobId"]) for one in rest] == [seconds[2], ("00:30:00Z", "later")]
    for other in ("?limit=2&within=2h&", "?limit=2&within=3601&"):
        admin.get(f"/upcoming{other}cursor={first['nextCursor']}").expect(400)
    assert admin.get(f"/upcoming?within=1h&cursor={first['nextCursor']}").expect(200).items == rest


def test_a_fire_to_come_says_its_local_time_and_what_a_clock_change_did_to_it(virtual: Virtual) -> None:
    schedule = {"cron": "30 2 29 3 *", "timezone": "Europe/Berlin"}
    create(virtual.admin, "report", schedule=schedule, command="x")
    (one,) = virtual.admin.get("/upcoming?within=30d").expect(200).items
    assert one.keys() == {"jobId", "fireAt", "local", "note"}
    assert (one["fireAt"], one["local"]) == ("2026-03-29T01:30:00Z", "2026-03-29T03:30:00+02:00")
    assert "does not exist" in one["note"]


def test_what_an_edit_took_away_does_not_come(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "job", schedule="12 * * * *", command="x")
    virtual.go_on(seconds=1)  # on AWS it is planned by now
    admin.put("/jobs/job", {"schedule": "50 * * * *", "command": "x"}, If_Match="1").expect(200)
    assert coming(admin) == [("00:50:00Z", "job")]


@sqlite_only(MANY)
def test_of_too_many_jobs_it_says_that_not_all_were_looked_at(virtual: Virtual) -> None:
    documents: list[dict[str, Any]] = [
        {"name": f"job-{n:05}", "command": "x", "schedule": "0 * * * *"} for n in range(EVALUATED_MAX + 200)
    ]
    documents.append({"name": "first", "command": "x", "schedule": "11 * * * *"})
    for document in documents:
        put(virtual.world, DEFAULT, document, actor="test", expected=None)
    virtual.go_on(seconds=10)
    answered = virtual.admin.get("/upcoming?limit=10").expect(200).json
    assert answered["items"][0]["jobId"] == "first"
    assert answered["truncated"] is True
    assert virtual.admin.get("/upcoming?limit=1&within=2m").json["truncated"] is False
    assert virtual.admin.get("/upcoming?limit=500").json["truncated"] is False
