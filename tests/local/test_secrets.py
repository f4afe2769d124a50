"""Secrets on one machine: what tasks are given is in no table and no file of the data folder, log or answer."""

from __future__ import annotations

import logging
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sweephand.api.app import Api
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.access import EVERYWHERE, Role
from sweephand.domain.kinds import KINDS
from sweephand.embedded import open_stores
from sweephand.engine.issue import issue
from sweephand.errors import Refused
from sweephand.local import Runtime
from sweephand.local.cloud import Front
from sweephand.local.cloud.account import AwsCall, Perform
from sweephand.local.folder import Folder, open_folder, secrets_key
from sweephand.operators import Logging, Operators, containers_here
from tests import canaries
from tests.api.client import Callers, Client
from tests.canaries import CANARY, found
from tests.local.launched import on_moto
from tests.local.waiting import until

CLOCK = SystemClock()
ENDED = {"succeeded", "failed", "skipped"}


@contextmanager
def serving(folder: Folder) -> Iterator[Client]:
    """The scheduler on a folder, as `sweephand up` has it, and an administrator."""
    with closing(open_stores(folder.database, clock=CLOCK, secrets_key=partial(secrets_key, folder))) as stores:
        operators = Operators(
            folder.work,
            http_may_reach=["127.0.0.1"],
            logging=Logging(stores.logs.open),
            keep=stores.artifacts.keep,
            keep_output=stores.artifacts.keep_output,
            containers=containers_here(as_processes=True),
        )
        runtime = Runtime(stores, target=operators, clock=CLOCK, dice=SystemDice(), workers=4)
        token = issue(runtime.world, namespace=EVERYWHERE, role=Role.ADMIN, name="admin", actor="test").text
        with runtime:
            yield Client(Api(runtime.world, kinds=frozenset(KINDS), operators=operators.steps), token)


def await_ends(admin: Client, names: list[str]) -> set[str]:
    def states() -> set[str]:
        runs = [run for name in names for run in admin.get(f"/jobs/{name}/runs").expect(200).items]
        return {run["state"] for run in runs}

    until(lambda: states() <= ENDED, within_s=60, what="every run has ended")
    return states()


def files(folder: Folder) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


def rows(folder: Folder) -> Iterator[str]:
    with closing(sqlite3.connect(f"file:{folder.database}?mode=ro", uri=True)) as database:
        yield from database.iterdump()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return open_folder(tmp_path / "data")


def test_a_canary_is_found_nowhere(
    folder: Folder, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with canaries.asked() as web, serving(folder) as admin:
        own = canaries.programs() | canaries.functions(tmp_path) | canaries.containers()
        names = canaries.created(admin, own | canaries.requests(web, "30s"), timeout="30s")
        canaries.offer_outside(admin)
        assert await_ends(admin, names) == {"succeeded", "failed"}
        for epoch in (1, 2):
            until(lambda: _offered(admin), within_s=30, what="the work is on offer")
            canaries.work_outside(admin, epoch=epoch)
        assert canaries.was_told(web)
        answers = canaries.shown(admin, [*names, "outside"])
        assert not [path for path, content in files(folder).items() if found(content)]
    assert not [text for text in answers if found(text)]
    assert sum(r"\u2022" in text for text in answers) > 10
    assert not [path for path, content in files(folder).items() if found(content)]
    assert any("/logs/" in path for path in files(folder))
    assert not [row for row in rows(folder) if found(row)]
    assert not found(caplog.text)
    assert not [record for record in caplog.records if found(repr(vars(record)))]
    assert not found("".join(capfd.readouterr()))


def test_a_canary_is_found_nowhere_that_agents_and_containers_reach(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    calls: list[AwsCall] = []

    def noted(call: AwsCall, perform: Perform) -> Any:
        calls.append(call)
        return perform(call.params)

    said = {"container-prints", "container-outputs", "container-fails", "container-is-cut", "prints", "fails"}
    launched = {name: run for name, run in (canaries.containers() | canaries.programs()).items() if name in said}
    with on_moto(tmp_path, around=noted) as place:
        assert place.deployment is not None
        cluster = place.deployment.cluster
        admin = Callers(place.world, Front(place.deployment)).platform()
        names = canaries.created(admin, launched, timeout="20m", attempts=1)
        assert await_ends(admin, names) == {"succeeded", "failed"}
        assert len(cluster.tasks) == len(names) == len(said)
        answers = canaries.shown(admin, names)
        until(lambda: not cluster.running, within_s=60, what="every agent is gone")
        rest = list(canaries.stored(place.deployment))
    assert not [text for text in answers if found(text)]
    assert sum(r"\u2022" in text for text in answers) > 10
    assert not [(where, text) for where, text in rest if found(text)]
    assert sum("•" in text or r"\u2022" in text for where, text in rest if where == "logs") > 5
    assert not [(call.service, call.operation) for call in calls if found(repr(call.params))]
    assert {call.operation for call in calls} >= {"RunTask", "PutLogEvents"}
    assert not found(caplog.text)
    assert not found("".join(capfd.readouterr()))


def _offered(admin: Client) -> bool:
    (run,) = admin.get("/jobs/outside/runs").expect(200).items
    return run["state"] in {"queued", "retrying"} and "worker" in str(run["reason"])


def test_the_key_is_made_with_the_first_secret_and_is_nobody_elses(folder: Folder) -> None:
    with serving(folder) as admin:
        assert not folder.secrets.exists()
        admin.put("/secrets/dsn", {"value": CANARY}).expect(201)
    assert stat.S_IMODE(folder.secrets.lstat().st_mode) == 0o600
    folder.secrets.chmod(0o644)
    with pytest.raises(Refused, match=r"Others can read .*secrets\.key"):
        open_folder(folder.path)


def test_secrets_outlive_the_process_and_a_lost_key_is_said(folder: Folder) -> None:
    run = {"command": ["sh", "-c", 'test "$DB" = "$0"', "canary/4f9c2e71+do-not-keep"], "secrets": {"DB": "dsn"}}
    with serving(folder) as admin:
        admin.put("/secrets/dsn", {"value": CANARY}).expect(201)
        admin.post("/jobs", {"name": "job", "run": run}).expect(201)
    with serving(folder) as admin:
        admin.post("/jobs/job/trigger").expect(202)
        assert await_ends(admin, ["job"]) == {"succeeded"}
    folder.secrets.unlink()
    with serving(folder) as admin:
        run_id = admin.post("/jobs/job/trigger").expect(202).json["runId"]
        await_ends(admin, ["job"])
        error = admin.get(f"/jobs/job/runs/{run_id}").json["error"]
        assert (error["error"], error["class"]) == ("SecretUnreadable", "permanent")
        assert "dsn" in error["message"]
