"""The contract of templates with parameters: several jobs of one, and what is wrong by its path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.client import TABLE, Client, Virtual, sqlite_only

NIGHTLY = {
    "parameters": {"region": {"enum": ["eu", "us"], "default": "eu"}, "hour": {"type": "integer"}},
    "schedule": {"cron": "0 ${with.hour} * * *", "timezone": "Europe/Berlin"},
    "tags": ["nightly"],
    "command": ["load", "--region=${with.region}"],
}


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    client = virtual.admin
    client.put("/templates/nightly", NIGHTLY).expect(201)
    return client


def made(admin: Client, name: str, **fields: Any) -> Any:
    return admin.post("/jobs", {"name": name, "template": "nightly", **fields})


def test_several_jobs_are_made_of_one_template(admin: Client) -> None:
    assert admin.get("/templates/nightly").json["parameters"] == NIGHTLY["parameters"]
    made(admin, "europe", **{"with": {"hour": 6}}).expect(201)
    made(admin, "america", tags=["mine"], **{"with": {"hour": 12, "region": "us"}}).expect(201)
    europe, america = (admin.get(f"/jobs/{name}").json for name in ("europe", "america"))
    assert europe["schedule"] == {"cron": "0 6 * * *", "timezone": "Europe/Berlin"}
    assert (europe["tags"], america["tags"]) == (["nightly"], ["mine"])
    assert america["tasks"] == [{"id": "main", "run": {"command": ["load", "--region=us"]}}]
    assert not {"template", "with", "parameters"} & europe.keys()
    notes = {deed["subject"]: deed["note"] for deed in admin.get("/audit").items if deed["action"] == "job.put"}
    assert notes["jobs/europe"] == "from template nightly"


def test_a_changed_template_changes_a_job_when_it_is_applied_again(admin: Client) -> None:
    definition = {"name": "europe", "template": "nightly", "with": {"hour": 6}}
    admin.post("/jobs", definition).expect(201)
    assert admin.post("/plan", definition).json["difference"]["action"] == "none"
    admin.put("/templates/nightly", {**NIGHTLY, "timeout": "20m"}).expect(200)
    assert admin.get("/jobs/europe").json["version"] == 1
    assert admin.post("/plan", definition).json["difference"]["summary"] == ["timeout: 1h → 20m"]
    admin.put("/jobs/europe", definition, If_Match="1").expect(200)
    assert admin.get("/jobs/europe").json["timeout"] == "20m"


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({}, ["with.hour"]),
        ({"with": {"hour": 6, "regoin": "us"}}, ["with.regoin"]),
        ({"with": {"hour": "6"}}, ["with.hour"]),
        ({"with": {"hour": 6, "region": "asia"}}, ["with.region"]),
        ({"with": {"hour": 99}}, ["schedule.cron"]),
        ({"with": []}, ["with"]),
        ({"with": {"hour": 6}, "template": None, "command": "x"}, ["with"]),
    ],
)
@sqlite_only(TABLE)
def test_what_a_job_gives_wrongly_is_refused_and_nothing_is_made(
    admin: Client, fields: dict[str, Any], paths: list[str]
) -> None:
    refused = made(admin, "job", **fields).expect(400)
    assert [error["path"] for error in refused.json["errors"]] == paths
    admin.get("/jobs/job").expect(404)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"parameters": {"a": {"type": "text"}}, "command": "x"}, "parameters.a.type"),
        ({"parameters": {"a": {"default": 1}}, "command": "x"}, "parameters.a.default"),
        ({"parameters": {"a": {}}, "command": ["x", "${with.b}"]}, "command[1]"),
        ({"parameters": {"a": {"default": "soon"}}, "command": "x", "timeout": "${with.a}"}, "timeout"),
        ({"parameters": {"a": {}}, "command": "x", "timeout": "soon"}, "timeout"),
        ({"command": "${with.a}"}, "command"),
    ],
)
@sqlite_only(TABLE)
def test_a_template_that_no_job_could_use_is_refused(admin: Client, document: dict[str, Any], path: str) -> None:
    refused = admin.put("/templates/other", document).expect(400)
    assert [error["path"] for error in refused.json["errors"]] == [path]
    admin.get("/templates/other").expect(404)


def test_what_only_a_job_can_say_is_judged_with_the_job(admin: Client) -> None:
    template = {
        "parameters": {"wait": {}, "steps": {"type": "list"}},
        "timeout": "${with.wait}",
        "tasks": "${with.steps}",
    }
    admin.put("/templates/open", template).expect(201)
    steps = [{"id": "a", "command": "x"}, {"id": "b", "command": "y", "needs": ["a"]}]
    job = {"name": "job", "template": "open", "with": {"wait": "5m", "steps": steps}}
    assert [task["id"] for task in admin.post("/jobs", job).expect(201).json["tasks"]] == ["a", "b"]
    wrong = {**job, "name": "other", "with": {"wait": "soon", "steps": steps}}
    assert admin.post("/jobs", wrong).expect(400).json["errors"][0]["path"] == "timeout"
