"""Packs that are larger than other bodies may be, through a real server: from who may store code, and nobody else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sweephand import Client
from sweephand.domain.access import Role
from sweephand.domain.ids import DEFAULT
from sweephand.domain.zips import digest_of, zipped
from sweephand.engine.issue import issue
from sweephand.errors import InvalidInput, Refused
from tests.agent.launching import Place, launching

LARGE = zipped({"large.bin": random.Random(1).randbytes(9 * 1024 * 1024), "told.py": b"def told(): return 1\n"})


def client(place: Place, role: Role) -> Client:
    token = issue(place.world, namespace=DEFAULT, role=role, name=str(role), actor="test").text
    return Client(place.target.url, token)


def test_a_pack_of_many_megabytes_is_stored_by_an_editor_and_by_no_operator(tmp_path: Path) -> None:
    with launching(tmp_path) as place:
        with client(place, Role.OPERATOR) as operator, pytest.raises(Refused):
            operator.code.put(LARGE)
        with client(place, Role.EDITOR) as editor:
            assert editor.code.put(LARGE) == {"sha256": digest_of(LARGE), "size": len(LARGE)}
            assert place.world.packs.read(DEFAULT, digest_of(LARGE)) == LARGE
            with pytest.raises(InvalidInput, match="too large"):
                editor.create({"name": "large", "command": "x" * 9_000_000})
