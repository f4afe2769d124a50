"""A folder of job files on this machine, and `sweephand up --jobs`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sweephand.api.filing import FILE_BYTES_MAX
from sweephand.errors import InvalidInput, Unavailable
from sweephand.local.job_folder import JobFolder
from tests.local.test_up import refused, up
from tests.local.waiting import until

WITHIN_S = 30.0
DAILY = "name: daily\ncommand: report\n"


def tags(folder: JobFolder) -> dict[str, str]:
    return {found.path: found.tag for found in folder.listed()}


def test_job_files_are_found_however_deep_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.yaml", "team/b.json", "team/deep/c.yml", "d.py", ".git/e.yaml", "f.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DAILY)
    (tmp_path / "folder.yaml").mkdir()
    folder = JobFolder(tmp_path)
    assert list(tags(folder)) == ["a.yaml", "team/b.json", "team/deep/c.yml"]
    assert folder.read("team/b.json") == DAILY.encode()
    assert folder.read("gone.yaml") is None


def test_a_file_counts_as_changed_when_its_content_has(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(DAILY)
    folder = JobFolder(tmp_path)
    first = tags(folder)
    os.utime(path, ns=(1, 1))
    assert tags(folder) == first
    path.write_text(DAILY.replace("report", "other"))
    os.utime(path, ns=(2, 2))
    assert tags(folder) != first


def test_a_file_whose_time_and_size_are_the_same_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(DAILY)
    os.utime(path, ns=(1, 1))
    folder = JobFolder(tmp_path)
    first = tags(folder)
    path.write_text(DAILY.replace("report", "refort"))
    os.utime(path, ns=(1, 1))
    assert tags(folder) == first


def test_no_more_is_read_than_a_file_may_have(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"x" * (FILE_BYTES_MAX + 100))
    content = JobFolder(tmp_path).read("a.yaml")
    assert content is not None
    assert len(content) == FILE_BYTES_MAX + 1


def test_a_folder_that_is_not_there_is_refused_and_one_that_goes_is_not_empty(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        JobFolder(tmp_path / "none")
    assert refused.value.path == "jobs"
    inside = tmp_path / "jobs"
    inside.mkdir()
    folder = JobFolder(inside)
    assert folder.listed() == []
    inside.rmdir()
    with pytest.raises(Unavailable, match="is gone"):
        folder.listed()


def test_up_follows_a_folder_and_tells_what_became_of_its_files(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "daily.yaml").write_text(DAILY)
    (jobs / "wrong.yaml").write_text("name: wrong\ncomand: x\n")
    with up(tmp_path / "data", "--no-examples", "--jobs", str(jobs)) as place:

        def files() -> dict[str, Any]:
            return {one["path"]: one for one in place.call("GET", "/files")["items"]}

        until(lambda: len(files()) == 2, within_s=WITHIN_S, what="the files are scanned")
        assert files()["daily.yaml"]["jobs"] == [{"jobId": "daily", "version": 1}]
        assert files()["wrong.yaml"]["status"] == "error"
        assert "comand" in [error["path"] for error in files()["wrong.yaml"]["errors"]]
        assert [one["path"] for one in place.call("GET", "/files?status=error")["items"]] == ["wrong.yaml"]
        assert place.call("GET", "/jobs/daily/versions")["items"][0]["createdBy"] == "file:daily.yaml"
        (jobs / "daily.yaml").write_text(f"{DAILY}tags: [new]\n")
        until(lambda: place.call("GET", "/jobs/daily")["version"] == 2, within_s=WITHIN_S, what="the change is applied")
        (jobs / "daily.yaml").unlink()
        until(lambda: "daily" not in place.jobs(), within_s=WITHIN_S, what="the job is removed")


def test_a_folder_that_is_not_there_is_told_before_anything_starts(tmp_path: Path) -> None:
    assert "There is no folder" in refused(tmp_path / "data", "--jobs", str(tmp_path / "none"))
    assert "--jobs is for sqlite" in refused(tmp_path / "data", "--jobs", str(tmp_path), "--engine", "moto")
