"""`sweephand run logs`: what was printed, while it is, and what a terminal may see of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from sweephand import Client
from sweephand.cli import main
from sweephand.cli.logs import harmless
from tests.cli.conftest import Server
from tests.cli.scripted import Answer, scripted
from tests.cli.test_terminal import at_terminal
from tests.local.waiting import until

WITHIN_S = 60


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


def begun(client: Client, name: str, line: str, **more: Any) -> str:
    client.create({"name": name, "run": {"command": ["sh", "-c", line]}, "timeout": "50s", **more})
    found: str = client.trigger(name)["runId"]
    return found


@contextmanager
def following(*words: str) -> Iterator[subprocess.Popen[str]]:
    """`sweephand run logs … --follow`, in a process of its own that hears Ctrl-C."""
    with subprocess.Popen(
        [sys.executable, "-m", "sweephand", "run", "logs", *words, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no thread is needed there
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def test_a_run_is_followed_while_it_runs_and_its_end_is_the_end(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Client() as client:
        name = begun(client, "followed", f"echo begun; echo trouble >&2; cat {gate}; echo done")
        with following("followed", name) as process:
            assert {heard(process), heard(process)} == {"begun", "trouble"}
            assert client.run("followed", name)["state"] == "running"
            gate.write_text("through the gate\n")
            assert [heard(process), heard(process)] == ["through the gate", "done"]
            assert process.wait(WITHIN_S) == 0
    assert run("run", "logs", "followed", name, "--tail", "1").stdout == "done\n"
    shown = [json.loads(line) for line in run("run", "logs", "followed", name, "--json").stdout.splitlines()]
    assert [(line["stream"], line["attempt"], line["task"]) for line in shown if line["text"] == "trouble"] == [
        ("stderr", 1, "main")
    ]
    assert "stderr 1  trouble\n" in run("run", "logs", "followed", name, "--times").stdout


def test_each_line_is_shown_while_the_task_that_printed_it_waits_until_somebody_has_seen_it(
    server: Server, tmp_path: Path
) -> None:
    """What is shown late is not shown at all: the task goes on only when its line was seen, or ends in its time-out."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Client() as client:
        name = begun(client, "seen", f"for n in 1 2 3 4 5; do echo line $n; cat {gate}; done; echo done")
        with following("seen", name, "--times") as process:
            for number in range(1, 6):
                assert heard(process).endswith(f"stdout 1  line {number}")
                assert client.run("seen", name)["state"] == "running"
                gate.write_text("")
            assert heard(process).endswith("done")
            assert process.wait(WITHIN_S) == 0


def test_every_attempt_is_followed_and_a_failure_is_the_exit_code(server: Server) -> None:
    with Client() as client:
        again = {"attempts": 2, "backoff": "fixed", "delay": "1s"}
        name = begun(client, "failing", "echo try $SWEEPHAND_ATTEMPT; exit 3", retry=again)
    with following("failing", name) as process:
        out, errors = process.communicate(timeout=WITHIN_S)
    assert out.splitlines() == ["try 1", "try 2"]
    assert process.returncode == 1
    assert errors.startswith("Error: the run failed: ExitCode")
    assert run("run", "logs", "failing", name, "--attempt", "2").stdout == "try 2\n"


def test_ctrl_c_ends_the_following_and_not_the_run(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Client() as client:
        name = begun(client, "interrupted", f"echo begun; cat {gate}")
        with following("interrupted", name) as process:
            assert heard(process) == "begun"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=WITHIN_S)
        assert (process.returncode, errors.strip()) == (130, "")
        gate.write_text("")
        until(lambda: client.run("interrupted", name)["state"] == "succeeded", within_s=WITHIN_S, what="its end")


def test_what_a_run_left_behind_is_fetched_as_it_was(server: Server) -> None:
    with Client() as client:
        name = begun(client, "leaving", r"printf '\000\377\n' > $SWEEPHAND_ARTIFACTS/bytes.bin")
        until(lambda: client.run("leaving", name)["state"] == "succeeded", within_s=WITHIN_S, what="its end")
        (found,) = client.artifacts("leaving", name)
    assert (found["name"], found["size"]) == ("bytes.bin", 3)
    if found["url"].startswith("/"):  # an address of S3 leads out of this process, where moto is not
        fetched = httpx.get(server.url + found["url"], trust_env=False)
        assert fetched.content == b"\0\xff\n"
        assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''bytes.bin"
        assert httpx.get(server.url + found["url"][:-1], trust_env=False).status_code == 403
        guarded = f"{server.url}/api/v1/jobs/leaving/runs/{name}/artifacts/file?task=main&attempt=1&name=bytes.bin"
        assert httpx.get(guarded, trust_env=False).status_code == 401
        token = {"Authorization": f"Bearer {server.token}"}
        assert httpx.get(guarded, headers=token, trust_env=False).content == b"\0\xff\n"


def test_a_run_that_is_not_there_is_said_to_be_so(server: Server) -> None:
    assert "There is no run" in run("run", "logs", "nobody", "20260101T000000Z", code=1).stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext", "plain\ttext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b[2J\x1b[Hb", "ab"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x9b31mx\x1bPq\x1b\\y\x1bcz", "xyz"),
        ("cut \x1b", "cut "),
        ("back\x08\rspace \u202etxt", "back\\x08\\rspace \\u202etxt"),
        ("<script>ünïcode</script>", "<script>ünïcode</script>"),
    ],
)
def test_nothing_that_steers_a_terminal_gets_through(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_terminal_sees_no_control_sequences_unless_it_is_told_to() -> None:
    line = {"at": "2026-01-01T00:00:00Z", "stream": "stdout", "text": "a\x1b[31mb", "task": "main", "attempt": 1}
    page = Answer(200, {"items": [line], "nextCursor": None, "more": False, "ended": True, "truncated": False})
    with scripted(page) as script:
        code, shown = at_terminal(script.url, "run", "logs", "job", "run")
        assert (code, shown) == (0, "ab\r\n")
        code, shown = at_terminal(script.url, "run", "logs", "job", "run", "--raw")
        assert (code, shown) == (0, "a\x1b[31mb\r\n")
        words = [sys.executable, "-m", "sweephand", "--url", script.url, "run", "logs", "job", "run"]
        piped = subprocess.run(words, capture_output=True, text=True, check=True)
        assert piped.stdout == "a\x1b[31mb\n"
