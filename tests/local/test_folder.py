"""The data folder: made once, by whoever comes first, and closed to everybody else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweephand.api.sessions import Issuer
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.access import DEFAULT, EVERYWHERE, Role
from sweephand.domain.definition import parse
from sweephand.domain.ids import JobKey, JobName
from sweephand.domain.job import JobStatus
from sweephand.embedded import Stores, open_stores
from sweephand.engine.delete import delete
from sweephand.engine.issue import recognise, revoke, tokens_of
from sweephand.errors import InvalidInput, Refused
from sweephand.local import Runtime
from sweephand.local.examples import EXAMPLES, PAUSED, load_examples
from sweephand.local.folder import ACTOR, Folder, admin_token, issuer_key, open_folder
from sweephand.operators import Operators
from sweephand.ports import World

CLOCK = SystemClock()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return open_folder(tmp_path / "new" / "data")


@pytest.fixture
def stores(folder: Folder) -> Iterator[Stores]:
    opened = open_stores(folder.database, clock=CLOCK)
    yield opened
    opened.close()


@pytest.fixture
def world(folder: Folder, stores: Stores) -> World:
    return Runtime(stores, target=Operators(folder.work), clock=CLOCK, dice=SystemDice()).world


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_nobody_else_can_read_anything(folder: Folder, world: World) -> None:
    admin_token(folder, world)
    issuer_key(folder)
    with folder.locked():
        assert mode(folder.path) == 0o700
        assert mode(folder.work) == 0o700
        assert {path.name: mode(path) for path in folder.path.iterdir() if path.is_file()} == {
            "admin.token": 0o600,
            "issuer.key": 0o600,
            "lock": 0o600,
            "sweephand.db": 0o600,
            "sweephand.db-shm": 0o600,
            "sweephand.db-wal": 0o600,
        }


def test_the_admin_token_is_issued_once(folder: Folder, world: World) -> None:
    text = admin_token(folder, world)
    assert folder.token.read_text() == f"{text}\n"
    assert admin_token(folder, world) == text
    (token,) = tokens_of(world, [EVERYWHERE])
    assert recognise(world, text) == token
    assert (token.role, token.created_by) == (Role.ADMIN, ACTOR)


def test_a_token_that_the_database_does_not_know_is_replaced(folder: Folder, world: World) -> None:
    old = admin_token(folder, world)
    (token,) = tokens_of(world, [EVERYWHERE])
    revoke(world, [EVERYWHERE], token.id, actor="test")
    new = admin_token(folder, world)
    assert new != old
    assert folder.token.read_text() == f"{new}\n"
    assert mode(folder.token) == 0o600
    folder.token.write_bytes(b"\xff nonsense")
    assert recognise(world, admin_token(folder, world)) is not None


def test_the_key_stays_and_can_sign(folder: Folder) -> None:
    key = issuer_key(folder)
    assert issuer_key(folder) == key
    text, _ = Issuer(key.encode(), url="test", clock=CLOCK).issue("somebody")
    again = Issuer(issuer_key(folder).encode(), url="test", clock=CLOCK).verifier().claims(text)
    assert again is not None
    assert again["sub"] == "somebody"


@pytest.mark.parametrize("name", ["admin.token", "issuer.key"])
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o602])
def test_a_secret_that_others_can_reach_is_refused_with_what_mends_it(folder: Folder, name: str, bits: int) -> None:
    secret = folder.path / name
    secret.write_text("secret")
    secret.chmod(bits)
    with pytest.raises(Refused, match=f"chmod 600 {secret}"):
        open_folder(folder.path)
    secret.chmod(0o600)
    open_folder(folder.path)


def test_a_secret_must_be_a_file_of_its_own(folder: Folder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("secret")
    elsewhere.chmod(0o600)
    folder.token.symlink_to(elsewhere)
    with pytest.raises(Refused, match="it is a link"):
        open_folder(folder.path)
    folder.token.unlink()
    os.mkfifo(folder.token, 0o600)
    with pytest.raises(Refused, match="it is no file"):
        open_folder(folder.path)


def test_a_folder_that_anybody_can_write_to_is_refused(folder: Folder) -> None:
    folder.path.chmod(0o777)
    with pytest.raises(Refused, match=f"chmod 700 {folder.path}"):
        open_folder(folder.path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput):
        open_folder(tmp_path / "file")
    with pytest.raises(InvalidInput):
        open_folder(tmp_path / "file" / "below")


def test_examples_come_once_and_stay_away_when_deleted(world: World) -> None:
    assert load_examples(world, actor=ACTOR)
    heads = world.jobs.heads(DEFAULT, limit=100)
    assert sorted(head.key.name for head in heads) == sorted(example["name"] for example in EXAMPLES)
    assert {head.key.name for head in heads if head.status is JobStatus.PAUSED} == set(PAUSED)
    for head in heads:
        delete(world, JobKey(DEFAULT, JobName(head.key.name)), actor="test")
    assert not load_examples(world, actor=ACTOR)
    assert world.jobs.count(DEFAULT) == 0


def test_examples_run_nothing_that_could_do_harm() -> None:
    for example in EXAMPLES:
        job = parse(example, namespace=DEFAULT, now=CLOCK.now())
        assert [task.kind for task in job.tasks] in (["command"], ["python"])
        assert example["run"].get("command", ["echo"])[0] == "echo"
        assert example["tags"][0] == "example"
