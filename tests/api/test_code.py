"""The contract of code: packs are stored under their own hash, seen by their namespace, and there before a job is."""

from __future__ import annotations

import io
import zipfile
from base64 import b64encode
from typing import Any

import pytest

from sweephand.domain.zips import digest_of, zipped
from sweephand.packs import PACK_BYTES_MAX
from tests.api.client import Client, Virtual

CONTENT = zipped({"sales.py": b"def load(): return 1\n"})
DIGEST = digest_of(CONTENT)


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def body(content: bytes) -> dict[str, str]:
    return {"content": b64encode(content).decode()}


def job(name: str = "sales", **run: Any) -> dict[str, Any]:
    return {"name": name, "run": {"python": "sales:load", **run}}


def test_code_is_stored_once_and_found_by_its_name(admin: Client) -> None:
    assert admin.get(f"/code/{DIGEST}").expect(404).json["detail"] == f"There is no code {DIGEST}."
    made = admin.put(f"/code/{DIGEST}", body(CONTENT)).expect(201).json
    assert made == {"sha256": DIGEST, "size": len(CONTENT)}
    assert admin.get(f"/code/{DIGEST}").expect(200).json == made
    assert admin.put(f"/code/{DIGEST}", body(CONTENT)).expect(200).json == made
    deeds = [deed for deed in admin.get("/audit").items if deed["subject"] == f"code/{DIGEST}"]
    assert [(deed["action"], deed["after"]) for deed in deeds] == [("code.put", {"size": len(CONTENT)})]


def test_the_target_says_what_to_pack_for(admin: Client) -> None:
    target = admin.get("/code").expect(200).json
    assert target.keys() == {"python", "wheels", "maxBytes", "inlineBytes"}
    assert target["maxBytes"] == PACK_BYTES_MAX


def test_another_namespace_sees_none_of_it(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/team", {}).expect(201)
    other = virtual.admin.within("team")
    virtual.admin.put(f"/code/{DIGEST}", body(CONTENT)).expect(201)
    other.get(f"/code/{DIGEST}").expect(404)
    assert other.post("/jobs", job(code=DIGEST)).expect(400).json["errors"][0]["path"] == "run.code"
    other.put(f"/code/{DIGEST}", body(CONTENT)).expect(201)
    other.post("/jobs", job(code=DIGEST)).expect(201)


def bomb() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros", "w") as file:
        for _ in range(300):
            file.write(bytes(1024 * 1024))
    return made.getvalue()


def outside() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("../../up.py", "")
    return made.getvalue()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: b"no zip", "no zip"),
        (bomb, "Unpacked it has more than"),
        (outside, "would not stay in its folder"),
        (lambda: CONTENT[:-1], "no zip"),
    ],
)
def test_a_bad_pack_is_refused_and_nothing_is_kept(admin: Client, make: Any, why: str) -> None:
    content = make()
    refused = admin.put(f"/code/{digest_of(content)}", body(content)).expect(400).json
    assert (refused["errors"][0]["path"], why in refused["errors"][0]["message"]) == ("content", True)
    admin.get(f"/code/{digest_of(content)}").expect(404)
    assert not [deed for deed in admin.get("/audit").items if deed["subject"].startswith("code/")]


def test_a_pack_under_a_wrong_name_is_refused_with_the_right_one(admin: Client) -> None:
    refused = admin.put(f"/code/{'0' * 64}", body(CONTENT)).expect(400).json
    assert DIGEST in refused["errors"][0]["message"]
    admin.get(f"/code/{'0' * 64}").expect(404)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "content"),
        ({"content": 1}, "content"),
        ({"content": "no base64!"}, "content"),
        ({"content": "ü"}, "content"),
        ({"content": "", "more": 1}, "content"),
        ({"content": "AA==", "more": 1}, "more"),
    ],
)
def test_a_wrong_body_is_refused_by_its_field(admin: Client, given: dict[str, Any], path: str) -> None:
    refused = admin.put(f"/code/{DIGEST}", given).expect(400).json
    assert path in {error["path"] for error in refused["errors"]}
    admin.get(f"/code/{DIGEST}").expect(404)


@pytest.mark.parametrize("name", ["short", "0" * 63, "G" * 64, "F" * 64])
def test_a_name_is_64_small_hex_digits(admin: Client, name: str) -> None:
    for answer in (admin.get(f"/code/{name}"), admin.put(f"/code/{name}", body(CONTENT))):
        assert answer.expect(400).json["errors"][0]["path"] == "sha256"
    refused = admin.post("/jobs", job(code=name)).expect(400).json
    assert (refused["errors"][0]["path"], "64 hex digits" in refused["detail"]) == ("run.code", True)


@pytest.mark.parametrize("size", [0, -1, PACK_BYTES_MAX + 1, "1", None])
def test_an_upload_has_a_size_within_the_bounds(admin: Client, size: Any) -> None:
    assert admin.post(f"/code/{DIGEST}/upload", {"size": size}).expect(400).json["errors"][0]["path"] == "size"


def test_what_is_too_large_for_a_call_has_an_address_where_there_is_one(virtual: Virtual) -> None:
    upload = virtual.admin.post(f"/code/{DIGEST}/upload", {"size": len(CONTENT)}).expect(200).json
    assert upload["sha256"] == DIGEST
    if upload["url"] is None:
        assert upload["headers"] == {}
    else:
        assert f"/code/default/{DIGEST}.zip?" in upload["url"]
        assert upload["headers"].keys() == {"x-amz-checksum-sha256"}
    assert "code.upload" in {deed["action"] for deed in virtual.admin.get("/audit").items}


def test_a_job_is_saved_only_after_its_code_and_planned_before(admin: Client) -> None:
    definition = {
        "name": "several",
        "tasks": [
            {"id": "a", "run": {"command": ["true"]}},
            {"id": "b", "run": {"python": "sales:load", "code": DIGEST}},
        ],
    }
    admin.post("/plan", definition).expect(200)
    refused = admin.post("/jobs", definition).expect(400).json
    assert refused["errors"] == [
        {
            "path": "tasks[1].run.code",
            "message": f"There is no code {DIGEST}: store it first, as `sweephand apply` does.",
        }
    ]
    admin.get("/jobs/several").expect(404)
    admin.put(f"/code/{DIGEST}", body(CONTENT)).expect(201)
    admin.post("/jobs", definition).expect(201)
    admin.put("/jobs/several", {**definition, "timeout": 9}, If_Match="1").expect(200)


def test_a_job_names_so_many_packs_at_most(admin: Client) -> None:
    tasks = [{"id": f"t{n}", "run": {"python": "m:f", "code": f"{n:064x}"}} for n in range(51)]
    refused = admin.post("/jobs", {"name": "many", "tasks": tasks}).expect(400).json
    assert refused["errors"][0]["path"] == "tasks"
