"""Artifacts of attempts: kept, listed, fetched, and never another's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from sweephand import ports
from sweephand.artifacts import BYTES_MAX, FILES_MAX, Artifact, Artifacts, left_behind
from sweephand.embedded.artifacts import FileArtifacts
from sweephand.errors import Unavailable
from tests.contract.samples import NOW
from tests.contract.test_logs import key
from tests.contract.world import Stores, VirtualClock
from tests.moto_world import moto_world, throttled


@pytest.fixture
def kept(stores: Stores) -> Artifacts:
    return stores.artifacts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a task left behind."""
    found = tmp_path / "left"
    (found / "deep" / "er").mkdir(parents=True)
    (found / "b.txt").write_text("bee")
    (found / "deep" / "er" / "a ü.txt").write_text("a")
    (found / "empty").touch()
    return found


def test_files_are_listed_by_their_paths_and_sizes(kept: Artifacts, folder: Path) -> None:
    kept.keep(key(), left_behind(folder)[0])
    assert kept.listed(key()) == [Artifact("b.txt", 3), Artifact("deep/er/a ü.txt", 1), Artifact("empty", 0)]
    for other in (key("report-2"), key("repor"), key(attempt=2), key(attempt=11), key(namespace="another")):
        assert kept.listed(other) == []


def test_a_file_is_fetched_by_its_name_or_by_an_address_that_ends_soon(kept: Artifacts, folder: Path) -> None:
    kept.keep(key(), left_behind(folder)[0])
    address = kept.url(key(), "deep/er/a ü.txt")
    if address is None:
        assert kept.read(key(), "deep/er/a ü.txt") == b"a"
        return
    query = parse_qs(urlparse(address).query)
    assert query["X-Amz-Expires"] == ["300"]
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["response-content-disposition"] == ["attachment"]


@pytest.mark.parametrize("name", ["nothing", "../1/b.txt", "deep", "/etc/passwd", "./b.txt", ""])
def test_only_what_is_listed_is_read(folder: Path, tmp_path: Path, name: str) -> None:
    kept = FileArtifacts(tmp_path / "kept")
    kept.keep(key(), left_behind(folder)[0])
    assert kept.read(key(), name) is None


def test_links_pipes_and_names_that_are_no_text_are_left_out(folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "links").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    os.close(os.open(os.fsencode(folder) + b"/b\xff", os.O_CREAT | os.O_WRONLY, 0o600))
    found, others = left_behind(folder)
    assert [one.artifact.name for one in found] == ["b.txt", "empty", "deep/er/a ü.txt"]
    assert {other.name: other.why for other in others} == {
        "'b\\udcff'": "its name is too long, or is no text",
        "link": "it is no file",
        "links": "it is no file",
        "pipe": "it is no file",
    }


def test_of_too_many_files_or_bytes_the_first_are_kept(tmp_path: Path) -> None:
    for number in range(FILES_MAX + 2):
        (tmp_path / f"{number:03d}").touch()
    found, others = left_behind(tmp_path)
    assert [one.artifact.name for one in found] == [f"{number:03d}" for number in range(FILES_MAX)]
    assert [(other.name, other.why) for other in others] == [
        ("100", "100 files are the most"),
        ("101", "100 files are the most"),
    ]
    with (tmp_path / "000").open("wb") as large:
        large.truncate(BYTES_MAX + 1)
    found, others = left_behind(tmp_path)
    assert (found[0].artifact.name, others[0].name) == ("001", "000")


def test_a_link_that_takes_a_files_place_is_not_followed(folder: Path, tmp_path: Path) -> None:
    kept = FileArtifacts(tmp_path / "kept")
    kept.keep(key(), left_behind(folder)[0])
    (path,) = (tmp_path / "kept").rglob("b.txt")
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert kept.read(key(), "b.txt") is None


def test_old_artifacts_go_and_then_the_oldest_of_what_is_too_much(tmp_path: Path) -> None:
    kept = FileArtifacts(tmp_path / "kept")
    for age in (0, 1, 2):
        (tmp_path / "left").mkdir(exist_ok=True)
        (tmp_path / "left" / "file").write_text("x" * 1000)
        kept.keep(key(attempt=age + 1), left_behind(tmp_path / "left")[0])
        (path,) = (tmp_path / "kept").glob(f"*/*/{age + 1}")
        os.utime(path, (NOW.timestamp() - age * 86_400,) * 2)
    assert kept.forget(before=NOW - timedelta(days=1.5), bytes_max=10_000) == 1
    assert kept.forget(before=NOW - timedelta(days=1.5), bytes_max=1_500) == 1
    assert [len(kept.listed(key(attempt=attempt))) for attempt in (1, 2, 3)] == [1, 0, 0]


@pytest.fixture
def refusing() -> Iterator[ports.Stores]:
    with moto_world(VirtualClock(), faults=lambda _service, operation, _params: throttled(operation)) as stores:
        yield stores


def test_a_store_that_refuses_says_so(refusing: ports.Stores, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        refusing.artifacts.keep(key(), left_behind(folder)[0])
    (tmp_path / "kept").write_text("not a folder")
    with pytest.raises(Unavailable):
        FileArtifacts(tmp_path / "kept").keep(key(), left_behind(folder)[0])


def test_an_output_is_kept_beside_the_files_and_is_none_of_them(kept: Artifacts, folder: Path) -> None:
    assert kept.read_output(key()) is None
    kept.keep_output(key(), b"[1]")
    kept.keep_output(key(), b"[2]")
    assert kept.read_output(key()) == b"[2]"
    assert kept.listed(key()) == []
    kept.keep(key(), left_behind(folder)[0])
    assert [one.name for one in kept.listed(key())] == ["b.txt", "deep/er/a ü.txt", "empty"]
    for other in (key("report-2"), key(attempt=2), key(attempt=11), key(namespace="another")):
        assert kept.read_output(other) is None


def test_old_outputs_go_as_artifacts_do(tmp_path: Path) -> None:
    kept = FileArtifacts(tmp_path / "kept")
    for age in (0, 1, 2):
        kept.keep_output(key(attempt=age + 1), b"x" * 1000)
        (path,) = (tmp_path / "kept").glob(f"*/*/{age + 1}.output")
        os.utime(path, (NOW.timestamp() - age * 86_400,) * 2)
    assert kept.forget(before=NOW - timedelta(days=1.5), bytes_max=10_000) == 1
    assert kept.forget(before=NOW - timedelta(days=1.5), bytes_max=1_500) == 1
    assert [kept.read_output(key(attempt=attempt)) is not None for attempt in (1, 2, 3)] == [True, False, False]


def test_a_store_that_refuses_an_output_says_so(refusing: ports.Stores, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("not a folder")
    for broken in (refusing.artifacts, FileArtifacts(tmp_path / "kept")):
        with pytest.raises(Unavailable):
            broken.keep_output(key(), b"[]")
        with pytest.raises(Unavailable):
            broken.read_output(key())
