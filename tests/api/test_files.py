"""The contract of scanned job files: what became of each, page by page."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.api.filing import ApiFiling
from sweephand.domain.ids import DEFAULT
from sweephand.engine.scan import Found, scan
from tests.api.client import Virtual

TEXTS = {
    "a.yaml": "name: a\ncommand: x\n",
    "team/b.json": '[{"name": "b", "command": "x"}, {"name": "c", "command": "x"}]',
    "wrong.yaml": "name: wrong\ncommand: x\nretries: many\n",
}


class Files:
    """Three files in memory."""

    def listed(self) -> Sequence[Found]:
        return [Found(path, "1") for path in TEXTS]

    def read(self, path: str) -> bytes | None:
        return TEXTS[path].encode()


def test_files_are_listed_by_path_with_their_jobs_and_errors(virtual: Virtual) -> None:
    assert virtual.admin.get("/files").expect(200).items == []
    scan(virtual.world, DEFAULT, Files(), ApiFiling(virtual.world, kinds=frozenset({"command"}), operators={}))
    admin = virtual.admin
    items = admin.get("/files").expect(200).items
    assert [(one["path"], one["status"]) for one in items] == [
        ("a.yaml", "applied"),
        ("team/b.json", "applied"),
        ("wrong.yaml", "error"),
    ]
    assert items[1]["jobs"] == [{"jobId": "b", "version": 1}, {"jobId": "c", "version": 1}]
    assert [error["path"] for error in items[2]["errors"]] == ["retries"]
    assert [len(page) for page in admin.pages("/files?limit=2")] == [2, 1]
    assert [one["path"] for one in admin.get("/files?status=error").items] == ["wrong.yaml"]
    admin.get("/files?status=wrong").expect(400)
    assert admin.get("/jobs/b").expect(200).json["createdBy"] == "file:team/b.json"
    admin.put("/namespaces/team", {}).expect(201)
    assert admin.within("team").get("/files").items == []
