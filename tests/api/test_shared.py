"""The contract of what jobs share: calendars, pools, templates."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.client import TABLE, Client, Virtual, sqlite_only
from tests.api.test_contract import create

DOCUMENTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("calendars", {"weekdays": ["mon"], "timezone": "Europe/Berlin"}, {"closed": ["2026-12-25"]}),
    ("pools", {"slots": 2}, {"slots": 5}),
    ("templates", {"retries": 2, "tags": ["etl"]}, {"retries": 3}),
]


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


@pytest.mark.parametrize(("kind", "first", "second"), DOCUMENTS, ids=[one[0] for one in DOCUMENTS])
def test_a_shared_object_is_put_shown_changed_and_removed(
    admin: Client, kind: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    admin.get(f"/{kind}/one").expect(404)
    made = admin.put(f"/{kind}/one", first).expect(201)
    assert made.headers["etag"] == '"1"'
    assert made.json == {**first, "id": "one", "version": 1}
    shown = admin.get(f"/{kind}/one").expect(200)
    assert (shown.json, shown.headers["etag"]) == (made.json, '"1"')
    assert admin.put(f"/{kind}/one", second, If_Match="1").expect(200).json == {**second, "id": "one", "version": 2}
    admin.put(f"/{kind}/one", first, If_Match="1").expect(412)
    admin.put(f"/{kind}/one", first, If_None_Match="*").expect(412)
    assert admin.get(f"/{kind}/one").json["version"] == 2
    assert admin.put(f"/{kind}/one", first).expect(200).json["version"] == 3
    admin.delete(f"/{kind}/one", If_Match="1").expect(412)
    admin.delete(f"/{kind}/one").expect(204)
    admin.delete(f"/{kind}/one").expect(404)
    admin.get(f"/{kind}/one").expect(404)


@pytest.mark.parametrize(("kind", "document", "_other"), DOCUMENTS, ids=[one[0] for one in DOCUMENTS])
def test_shared_objects_come_in_pages(
    virtual: Virtual, kind: str, document: dict[str, Any], _other: dict[str, Any]
) -> None:
    admin = virtual.admin
    wanted = [f"n{number}" for number in range(7)]
    for name in reversed(wanted):
        admin.put(f"/{kind}/{name}", document).expect(201)
    pages = list(admin.pages(f"/{kind}?limit=3"))
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [item["id"] for page in pages for item in page] == wanted
    cursor = admin.get(f"/{kind}?limit=3").json["nextCursor"]
    others = [name for name, _, _ in DOCUMENTS if name != kind]
    for other in others:
        admin.get(f"/{other}?cursor={cursor}").expect(400)


@pytest.mark.parametrize(
    ("kind", "document", "fields"),
    [
        ("calendars", {"weekdays": ["mon"]}, {"schedule": {"cron": "0 0 * * *", "calendar": "one"}}),
        ("pools", {"slots": 1}, {"concurrency": {"pool": "one"}}),
    ],
    ids=["calendars", "pools"],
)
def test_what_a_job_uses_stays_and_what_is_not_there_cannot_be_used(
    admin: Client, kind: str, document: dict[str, Any], fields: dict[str, Any]
) -> None:
    refused = admin.post("/jobs", {"name": "user", "command": "x", **fields}).expect(400).json
    assert "'one'" in refused["detail"]
    admin.put(f"/{kind}/one", document).expect(201)
    create(admin, "user", command="x", **fields)
    assert "user" in admin.delete(f"/{kind}/one").expect(409).json["detail"]
    admin.get(f"/{kind}/one").expect(200)
    admin.delete("/jobs/user").expect(204)
    admin.delete(f"/{kind}/one").expect(204)


def test_a_job_made_from_a_template_has_its_fields_and_its_own(admin: Client) -> None:
    template = {"retries": 2, "tags": ["etl"], "timeout": "5m", "command": "load --all"}
    admin.put("/templates/etl", template).expect(201)
    made = admin.post("/jobs", {"name": "load", "template": "etl", "tags": ["mine"]}).expect(201).json
    assert (made["tags"], made["timeout"]) == (["mine"], "5m")
    assert made["tasks"] == [{"id": "main", "run": {"command": ["load", "--all"]}}]
    assert "template" not in made
    refused = admin.post("/jobs", {"name": "other", "template": "nothing"}).expect(400)
    assert refused.json["errors"][0]["path"] == "template"
    admin.post("/jobs", {"name": "other", "template": ["etl"]}).expect(400)


def test_a_template_is_copied_so_that_its_end_changes_no_job(admin: Client) -> None:
    admin.put("/templates/etl", {"command": "load"}).expect(201)
    admin.post("/jobs", {"name": "load", "template": "etl"}).expect(201)
    before = admin.get("/jobs/load").json
    admin.put("/templates/etl", {"command": "other"}).expect(200)
    admin.delete("/templates/etl").expect(204)
    assert admin.get("/jobs/load").json == before


@pytest.mark.parametrize(
    ("path", "document", "field"),
    [
        ("/calendars/c", {"weekdays": ["monday"]}, "weekdays"),
        ("/calendars/c", {"closed": ["25.12.2026"]}, "closed[0]"),
        ("/calendars/c", {"timezone": "Mars/Olympus"}, "timezone"),
        ("/calendars/c", {"open": []}, "open"),
        ("/calendars/c", {"closed": ["2026-12-25"], "opened": ["2026-12-25"]}, "opened"),
        ("/pools/p", {"slots": 0}, "slots"),
        ("/pools/p", {"slots": "2"}, "slots"),
        ("/pools/p", {"slots": True}, "slots"),
        ("/pools/p", {"slots": 501}, "slots"),
        ("/pools/p", {}, "slots"),
        ("/templates/t", {"retris": 2}, "retris"),
        ("/templates/t", {"name": "x"}, "name"),
    ],
)
@sqlite_only(TABLE)
def test_a_wrong_document_is_refused_by_its_field(
    admin: Client, path: str, document: dict[str, Any], field: str
) -> None:
    assert admin.put(path, document).expect(400).json["errors"][0]["path"] == field
    admin.get(path).expect(404)
