"""`sweephand secret`: a value comes from a prompt, a pipe, a variable or a file, and is never said again."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sweephand import Client
from sweephand.cli import main
from tests.cli.conftest import Server
from tests.cli.scripted import Answer, Scripted, scripted

CANARY = "hunter2-canary"
STORED = Answer(201, {"id": "dsn", "version": 1, "updatedAt": "2026-03-02T00:10:00Z", "updatedBy": "ada"})


def run(script: Scripted, *words: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["--url", script.url, "secret", *words], input=given)


def sent(script: Scripted) -> list[tuple[str, str, object]]:
    return [(one.method, one.path.removeprefix("/api/v1"), json.loads(one.body)) for one in script.questions]


@pytest.mark.parametrize(
    ("words", "given", "value"),
    [
        ([], CANARY, CANARY),
        ([], f"{CANARY}\n", CANARY),
        ([], f"{CANARY}\r\n", CANARY),
        ([], f"{CANARY}\nmore\n\n", f"{CANARY}\nmore\n"),
        (["--from-env", "DSN"], None, f"{CANARY}-env\n"),
        (["--from-file", "dsn.txt"], None, f"{CANARY}\nfile\n"),
    ],
)
def test_a_value_comes_from_standard_input_a_variable_or_a_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], given: str | None, value: str
) -> None:
    monkeypatch.setenv("DSN", f"{CANARY}-env\n")
    (home / "dsn.txt").write_text(f"{CANARY}\nfile\n")
    with scripted(STORED) as script:
        result = run(script, "set", "dsn", *words, given=given)
    assert (result.exit_code, result.output) == (0, "The secret dsn is stored: version 1.\n")
    assert sent(script) == [("PUT", "/secrets/dsn", {"value": value})]


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        ([], "", "at least 4 characters"),
        ([], "abc\n", "at least 4 characters"),
        ([], "x" * 65_537, "at most 65536 bytes"),
        ([], b"\xff\xfe\xff\xfe", "not UTF-8"),
        (["--from-env", "NOTHING"], None, "no environment variable NOTHING"),
        (["--from-file", "nothing"], None, "nothing cannot be read: No such file or directory"),
        (["--from-env", "A", "--from-file", "b"], None, "exclude each other"),
    ],
)
def test_what_is_no_value_is_refused_before_anything_is_sent(
    words: list[str], given: str | bytes | None, said: str
) -> None:
    with scripted(STORED) as script:
        result = run(script, "set", "dsn", *words, given=given)
    assert result.exit_code == 1
    assert said in result.stderr
    assert not script.questions


def test_a_value_is_no_argument() -> None:
    with scripted(STORED) as script:
        assert run(script, "set", "dsn", CANARY).exit_code == 64
    assert not script.questions


def test_at_a_terminal_it_is_asked_for_and_not_shown(home: Path) -> None:
    with scripted(STORED) as script:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "sweephand", "--url", script.url, "secret", "set", "dsn"]
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
            os.close(theirs)
            said = b""
            while b"Value: " not in said:
                said += os.read(ours, 1024)
            os.write(ours, f"{CANARY}\n".encode())
            while b"is stored" not in said:
                said += os.read(ours, 1024)
            assert process.wait(30) == 0
        os.close(ours)
    assert CANARY.encode() not in said
    assert sent(script) == [("PUT", "/secrets/dsn", {"value": CANARY})]


def test_secrets_are_set_listed_used_and_deleted(server: Server) -> None:
    def said(*words: str, given: str | None = None) -> str:
        result = CliRunner().invoke(main, ["secret", *words], input=given)
        assert result.exit_code == 0, result.output
        assert CANARY not in result.output
        return result.output

    assert "There are no secrets." in said("list")
    assert "version 1" in said("set", "dsn", given=CANARY)
    assert "version 2" in said("set", "dsn", given=CANARY)
    (listed,) = json.loads(said("list", "--json"))
    assert (listed["id"], listed["version"], listed.keys()) == (
        "dsn",
        2,
        {"id", "version", "updatedAt", "updatedBy"},
    )
    with Client() as client:
        run = {"command": ["sh", "-c", 'echo "$DB"'], "secrets": {"DB": "dsn"}}
        client.create({"name": "job", "run": run, "timeout": "30s"})
    ended = CliRunner().invoke(main, ["trigger", "job", "--wait", "--json"])
    assert ended.exit_code == 0, ended.output
    assert CANARY not in ended.output
    assert "is deleted" in said("delete", "dsn")
    assert CliRunner().invoke(main, ["secret", "delete", "dsn"]).exit_code == 1
