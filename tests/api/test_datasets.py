"""The contract of datasets: listed with who publishes and who subscribes, updated from outside."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.client import Client, Virtual
from tests.api.test_contract import create


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def subscribes(admin: Client, name: str, datasets: Any) -> None:
    create(admin, name, command="true", schedule={"datasets": datasets})


def test_datasets_are_listed_with_who_has_to_do_with_them(admin: Client) -> None:
    tasks = [{"id": "export", "command": "true", "publishes": ["sales.daily"]}, {"id": "check", "command": "true"}]
    admin.post("/jobs", {"name": "load", "tasks": tasks, "publishes": ["done"]}).expect(201)
    subscribes(admin, "report", {"any": ["sales.daily", "prices"]})
    sales = {
        "id": "sales.daily",
        "publishers": [{"jobId": "load", "taskId": "export"}],
        "subscribers": [{"jobId": "report", "quantity": "any"}],
        "updatedAt": None,
        "updateId": None,
    }
    listed = admin.get("/datasets").expect(200).items
    assert [one["id"] for one in listed] == ["done", "prices", "sales.daily"]
    assert listed[2] == sales
    assert admin.get("/datasets/sales.daily").expect(200).json == sales
    pages = list(admin.pages("/datasets?limit=2"))
    assert [[one["id"] for one in page] for page in pages] == [["done", "prices"], ["sales.daily"]]


def test_an_update_from_outside_runs_who_subscribes_once(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "report", schedule={"datasets": ["feed"]}, run={"command": ["x", "${params.datasets.feed.id}"]})
    made = admin.post("/datasets/feed/updates", {"id": "file-1"}).expect(202).json
    assert made["id"] == "file-1"
    ((run),) = made["runs"]
    assert run["jobId"] == "report"
    shown = admin.get(f"/jobs/report/runs/{run['runId']}").expect(200).json
    assert (shown["trigger"], shown["params"]["datasets"]["feed"]["id"]) == ("dependency", "file-1")
    assert admin.post("/datasets/feed/updates", {"id": "file-1"}).expect(202).json == {"id": "file-1", "runs": []}
    assert admin.get("/datasets/feed").json["updateId"] == "file-1"
    first = admin.post("/datasets/feed/updates", {}, Idempotency_Key="once").expect(202).json
    assert admin.post("/datasets/feed/updates", {}, Idempotency_Key="once").expect(202).json == first
    assert len(first["runs"]) == 1
    deeds = [deed for deed in admin.get("/audit").items if deed["action"] == "dataset.update"]
    assert {deed["subject"] for deed in deeds} == {"datasets/feed"}


@pytest.mark.parametrize(("body", "path"), [({"id": ""}, "id"), ({"id": 3}, "id"), ({"at": "now"}, "at")])
def test_an_update_that_is_wrong_is_refused_and_updates_nothing(admin: Client, body: Any, path: str) -> None:
    subscribes(admin, "report", ["feed"])
    refused = admin.post("/datasets/feed/updates", body).expect(400)
    assert [error["path"] for error in refused.json["errors"]] == [path]
    assert admin.get("/datasets/feed").json["updateId"] is None


def test_what_no_job_knows_is_absent(virtual: Virtual) -> None:
    admin = virtual.admin
    admin.get("/datasets/feed").expect(404)
    admin.post("/datasets/feed/updates", {}).expect(404)
    subscribes(admin, "report", ["feed"])
    admin.put("/namespaces/team", {}).expect(201)
    others = admin.within("team")
    others.get("/datasets/feed").expect(404)
    others.post("/datasets/feed/updates", {}).expect(404)
    assert others.get("/datasets").items == []


def test_a_job_that_would_update_what_it_waits_for_is_refused(admin: Client) -> None:
    definition = {"name": "loop", "command": "true", "schedule": {"datasets": ["x"]}, "publishes": ["x"]}
    refused = admin.post("/jobs", definition).expect(400)
    assert refused.json["errors"] == [
        {"path": "schedule.datasets", "message": "These jobs come after each other: loop → loop."}
    ]
    admin.get("/jobs/loop").expect(404)


def test_why_says_what_a_subscriber_waits_for(admin: Client) -> None:
    subscribes(admin, "one", ["x", "y"])
    create(
        admin,
        "two",
        command="true",
        schedule={"after": {"any": ["one"], "window": "sameDay", "timezone": "Asia/Tokyo"}},
    )
    assert "when the datasets x, y are updated" in admin.get("/jobs/one/why").json["summary"]
    assert admin.get("/jobs/two/why").json["summary"] == (
        "It runs once a day, when any of one succeeds for the same day in Asia/Tokyo."
    )
