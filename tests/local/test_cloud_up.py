"""`sweephand up --engine moto` as a user has it: the same lines, the same API, in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus

import sweephand
from sweephand.clock import SystemClock
from tests.local.listening import listening
from tests.local.test_up import Up, up
from tests.local.test_up import command as command_of
from tests.local.waiting import until
from tests.operators.calls import is_alive

WITHIN_S = 30
SOON = timedelta(seconds=10)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("up") / "data", "--engine", "moto") as process:
        yield process


def test_it_says_what_the_other_engine_says_and_that_nothing_is_kept(running: Up) -> None:
    until(lambda: len(running.lines) >= 4, within_s=WITHIN_S, what="its lines")
    where, token, following, note = running.lines
    assert where == f"Sweephand is up at {running.url}"
    assert token == f"The admin's token is in data/admin.token: {running.token}"
    assert "SWEEPHAND_TOKEN=$(cat data/admin.token)" in following
    assert note == "It is an AWS account in memory: what is stored is gone when it stops."
    folders = ["artifacts", "code", "logs", "unpacked", "work"]
    assert sorted(path.name for path in running.data.iterdir()) == sorted([*folders, "admin.token", "lock"])
    assert (running.data / "admin.token").stat().st_mode & 0o777 == 0o600


def test_the_examples_are_there_and_one_is_followed_by_the_other(running: Up) -> None:
    assert {"hello", "after-hello", "mean", "nightly-report"} <= set(running.jobs())
    run_id = running.trigger("hello")
    running.await_state("hello", run_id, "succeeded", within_s=WITHIN_S)
    until(
        lambda: [run["state"] for run in running.call("GET", "/jobs/after-hello/runs")["items"]][-1:] == ["succeeded"],
        within_s=WITHIN_S,
        what="what follows has run",
    )


def test_a_run_of_users_code_has_its_output_and_a_long_one_goes_through_its_machine(running: Up) -> None:
    for name, timeout in (("short", "1m"), ("long", "5m")):
        running.call(
            "POST", "/jobs", json={"name": name, "run": {"python": "math:sqrt", "args": [16]}, "timeout": timeout}
        )
        run_id = running.trigger(name)
        assert running.await_state(name, run_id, "succeeded", within_s=WITHIN_S)["output"] == 4.0


def test_a_job_soon_to_come_fires_to_the_second(running: Up) -> None:
    at = (SystemClock().now() + SOON).replace(microsecond=0)
    fire = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    running.call("POST", "/jobs", json={"name": "soon", "schedule": {"at": fire}, "command": "true", "timeout": "1m"})
    until(lambda: running.call("GET", "/jobs/soon/runs")["items"], within_s=WITHIN_S, what="it has fired")
    (run,) = running.call("GET", "/jobs/soon/runs")["items"]
    run = running.await_state("soon", run["runId"], "succeeded", within_s=WITHIN_S)
    skew = datetime.fromisoformat(run["startedAt"]) - at
    assert timedelta(0) <= skew < timedelta(seconds=5), skew


def test_who_listens_hears_of_runs_and_of_one_runs_tasks_from_the_function_live(running: Up) -> None:
    port = httpx.URL(running.url).port
    assert port is not None
    step = {"run": {"python": "math:sqrt", "args": [16]}, "timeout": "1m"}
    running.call("POST", "/jobs", json={"name": "steps", "tasks": [{"id": "a", **step}, {"id": "b", **step}]})
    for name in ("127.0.0.1", "localhost"):
        with listening(port, name=name, origin=f"http://{name}:{port}") as one:
            one.welcomed(running.token)
            run_id = running.trigger("steps")
            one.say({"subscribe": [f"run:steps/{run_id}"]})
            seen = one.until(lambda change: "taskId" not in change and change["state"] == "succeeded")
        ends = {change["taskId"] for change in seen if "taskId" in change and change["state"] == "succeeded"}
        assert ends == {"a", "b"}


def test_who_has_no_token_is_let_go_of_there_too(running: Up) -> None:
    port = httpx.URL(running.url).port
    assert port is not None
    with listening(port) as one:
        one.say({"subscribe": ["runs"]})
        assert one.end() is not None
        assert [heard["type"] for heard in one.heard] == ["error"]
    with pytest.raises(InvalidStatus) as refused, listening(port, origin="https://elsewhere.example"):
        pass
    assert refused.value.response.status_code == 403


def test_told_to_stop_it_does_not_wait_for_what_runs_and_leaves_none_of_it_behind(tmp_path: Path) -> None:
    mine = tmp_path / "pid"
    with up(tmp_path / "data", "--engine", "moto", "--no-examples") as process:
        process.create("endless", "sh", "-c", f"echo $$ > {mine}.new && mv {mine}.new {mine} && exec sleep 1000")
        process.trigger("endless")
        until(mine.exists, within_s=WITHIN_S, what="it runs")
        assert process.end() == 0
    until(lambda: not is_alive(int(mine.read_text())), within_s=WITHIN_S, what="its program has ended")


def said_by(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment}
    )
    assert done.stdout == ""
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_without_moto_it_says_how_to_get_it(tmp_path: Path) -> None:
    script = "import sys; sys.modules['moto'] = None; from sweephand.cli import main; main()"
    line = said_by(sys.executable, "-c", script, "up", "--engine", "moto", "--data", str(tmp_path / "data"))
    assert line == "The engine moto is not installed: `pip install 'sweephand[moto]'` does it."


def test_without_a_checkout_it_says_that_it_needs_one(tmp_path: Path) -> None:
    installed = tmp_path / "a" / "lib" / "python3" / "site-packages"
    shutil.copytree(Path(sweephand.__file__).parent, installed / "sweephand", ignore=shutil.ignore_patterns("*.pyc"))
    line = said_by(*command_of(tmp_path / "data", "--engine", "moto"), PYTHONPATH=str(installed))
    assert line == "The engine moto runs the Lambda functions of a checkout: start it from one."


def test_the_other_engine_starts_without_what_only_this_one_needs() -> None:
    script = "import sys, sweephand.local.up; sys.exit(bool({'boto3', 'moto'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", script], check=True)
