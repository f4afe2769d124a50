"""Packs of code: kept once, found by their name, and never in another namespace."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from sweephand.domain.ids import DEFAULT, Namespace
from sweephand.domain.zips import digest_of, zipped
from sweephand.embedded.packs import FilePacks
from sweephand.errors import Unavailable
from sweephand.packs import Pack, Packs
from tests.contract.world import Stores, VirtualClock
from tests.moto_world import moto_world, throttled

CONTENT = zipped({"jobs.py": b"x = 1\n"})
PACK = Pack(digest_of(CONTENT), CONTENT)
OTHER = Namespace("another")


@pytest.fixture
def packs(stores: Stores) -> Packs:
    return stores.packs


def test_what_was_kept_is_read_again(packs: Packs) -> None:
    assert packs.size(DEFAULT, PACK.digest) is None
    assert packs.read(DEFAULT, PACK.digest) is None
    for _ in range(2):
        packs.keep(DEFAULT, PACK)
        assert packs.size(DEFAULT, PACK.digest) == len(CONTENT)
        assert packs.read(DEFAULT, PACK.digest) == CONTENT


def test_another_namespace_has_its_own(packs: Packs) -> None:
    packs.keep(DEFAULT, PACK)
    assert packs.size(OTHER, PACK.digest) is None
    assert packs.read(OTHER, PACK.digest) is None
    packs.keep(OTHER, PACK)
    assert packs.read(OTHER, PACK.digest) == CONTENT


def test_an_address_takes_one_pack_and_no_other(packs: Packs) -> None:
    upload = packs.upload(DEFAULT, PACK.digest, len(CONTENT))
    if upload is None:
        assert not packs.platform.wheels
        return
    found = urlparse(upload.url)
    query = parse_qs(found.query)
    assert found.path.endswith(f"/code/default/{PACK.digest}.zip")
    assert query["X-Amz-Expires"] == ["900"]
    signed = set(query["X-Amz-SignedHeaders"][0].split(";"))
    assert {"content-length", "host", *upload.headers} <= signed
    assert upload.headers == {"x-amz-checksum-sha256": b64encode(bytes.fromhex(PACK.digest)).decode()}
    assert packs.platform.python == "3.13"


def test_a_folder_keeps_packs_across_processes(tmp_path: Path) -> None:
    FilePacks(tmp_path).keep(DEFAULT, PACK)
    assert FilePacks(tmp_path).read(DEFAULT, PACK.digest) == CONTENT
    assert [one.name for one in (tmp_path / "default").iterdir()] == [f"{PACK.digest}.zip"]


def test_a_disk_that_refuses_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "default").write_text("no folder")
    packs = FilePacks(tmp_path)
    for ask in (packs.size, packs.read):
        with pytest.raises(Unavailable):
            ask(DEFAULT, PACK.digest)
    with pytest.raises(Unavailable):
        packs.keep(DEFAULT, PACK)


def test_a_throttled_bucket_is_unavailable_and_not_empty() -> None:
    with moto_world(VirtualClock(), faults=lambda _service, operation, _params: throttled(operation)) as stores:
        for ask in (stores.packs.size, stores.packs.read):
            with pytest.raises(Unavailable):
                ask(DEFAULT, PACK.digest)
