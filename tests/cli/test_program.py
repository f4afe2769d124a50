"""The program around its commands: help, exit codes, completion, and how it ends."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from sweephand.cli import main
from sweephand.cli.session import Verb
from tests.cli.scripted import Answer, scripted

SWEEPHAND = [sys.executable, "-m", "sweephand"]


def run(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, words, input=given)


def verbs(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from verbs(command, (*path, name))
        else:
            yield (*path, name), command


VERBS = [*verbs()]


def test_the_commands_of_the_contract_are_there() -> None:
    there = {" ".join(path) for path, _ in VERBS} | set(main.commands)
    promised = ["up", "apply", "get", "list", "delete", "pause", "resume", "trigger", "runs", "fires", "ledger", "why"]
    promised += [
        "plan",
        "worker",
        "deadletters",
        "login",
        "export",
        "versions",
        "rollback",
        "stats",
        "audit",
        "completion",
    ]
    promised += ["run show", "run cancel", "run rerun", "deadletters redrive", "token create", "token list"]
    promised += ["token revoke", "namespace list", "namespace put", "namespace pause", "namespace resume"]
    promised += ["namespace delete"]
    promised += ["member list", "member put", "member remove"]
    kinds, their = ("calendar", "pool", "template"), ("put", "get", "list", "delete")
    promised += [f"{kind} {verb}" for kind in kinds for verb in their]
    assert set(promised) <= there


@pytest.mark.parametrize(("path", "command"), VERBS, ids=[" ".join(path) for path, _ in VERBS])
def test_every_command_has_a_help_with_an_example_that_can_be_typed(path: tuple[str, ...], command: Verb) -> None:
    shown = run(*path, "--help")
    assert shown.exit_code == 0
    assert f"Example:\n    {command.example}" in shown.output
    assert command.help
    first, *words = shlex.split(command.example.partition("<")[0].partition(">")[0])
    assert first == "sweephand"
    context = main.make_context("sweephand", [*words])
    words = words[2:] if words[0] == "-n" else words
    found: click.Command | None = main
    name: str | None = None
    while isinstance(found, click.Group):
        name, found, words = found.resolve_command(context, words)
    assert found is command
    command.make_context(name, words, parent=context)


SPEAK_FOR_THEMSELVES = {"agent", "up", "worker", "completion"}


@pytest.mark.parametrize("path", [path for path, command in VERBS if path[0] not in SPEAK_FOR_THEMSELVES])
def test_every_answer_can_be_json(path: tuple[str, ...]) -> None:
    assert "--json" in run(*path, "--help").output


@pytest.mark.parametrize(
    "words", [["lst"], ["list", "--nope"], ["get"], ["apply"], ["pause"], ["why", "a", "--task", "t"]]
)
def test_a_command_line_that_is_not_understood_exits_with_64(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 64
    assert "Usage: sweephand" in result.stderr


@pytest.mark.parametrize("words", [["pause", "a", "--all"], ["run", "cancel"], ["run", "rerun", "a"]])
def test_what_would_be_ambiguous_exits_with_64(words: list[str]) -> None:
    assert run(*words).exit_code == 64


def test_no_option_takes_a_token() -> None:
    options = {name for _, command in VERBS for option in command.params for name in option.opts}
    options |= {name for option in main.params for name in option.opts}
    assert not [name for name in options if name.startswith("-") and ("token" in name or "insecure" in name)]


def test_a_failure_is_one_line_and_exit_code_1() -> None:
    with scripted(Answer(404, {"detail": "There is no job a."})) as script:
        result = run("--url", script.url, "get", "a")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "Error: There is no job a.\n")


def test_field_errors_are_indented_below_it() -> None:
    errors = [{"path": "slots", "message": "Too many.\x1b[2J"}, {"path": "", "message": "Odd."}]
    Path("pool.yaml").write_text("slots: 900\n")
    with scripted(Answer(400, {"detail": "Two are wrong.", "errors": errors})) as script:
        result = run("--url", script.url, "pool", "put", "p", "-f", "pool.yaml")
    assert result.exit_code == 1
    assert result.stderr == "Error: Two are wrong.\n  slots: Too many.\\x1b[2J\n  Odd.\n"


def test_apply_refuses_a_file_without_jobs_and_asks_no_server() -> None:
    Path("job.py").write_text("")
    result = run("--url", "http://127.0.0.1:1", "apply", "-f", "job.py")
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: Nothing was changed.\n"
        "  job.py: It makes no job: put @job before the function that calls the job's tasks.\n"
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_for_its_shell_and_parses(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"_SWEEPHAND_COMPLETE={shell}_complete" in result.stdout
    if found := shutil.which(shell):
        parsed = subprocess.run([found, "-n"], input=result.stdout, text=True, capture_output=True, check=False)
        assert (parsed.returncode, parsed.stderr) == (0, "")


def completed(words: str, **environ: str) -> list[str]:
    asked = {"_SWEEPHAND_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        SWEEPHAND, env={**os.environ, **asked, **environ}, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_the_shell_completes_names_of_jobs() -> None:
    page = {"items": [{"jobId": "report"}, {"jobId": "report-eu"}], "nextCursor": None}
    with scripted(Answer(200, page)) as script:
        assert completed("sweephand get rep", SWEEPHAND_URL=script.url) == ["report", "report-eu"]
        assert completed(f"sweephand --url {script.url} pause rep") == ["report", "report-eu"]
    assert "prefix=rep" in script.questions[0].path


def test_the_shell_completes_nothing_where_no_server_answers() -> None:
    assert completed("sweephand get rep", SWEEPHAND_URL="http://127.0.0.1:1") == []


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    page = {"items": [{"jobId": f"job-{n}"} for n in range(10_000)], "nextCursor": None}
    with scripted(Answer(200, page)) as script:
        reading, writing = os.pipe()
        os.close(reading)
        try:
            for words in (["list"], ["list", "--json"], ["--help"]):
                command = [*SWEEPHAND, "--url", script.url, *words]
                done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
                assert done.stderr == b""
        finally:
            os.close(writing)


def test_ctrl_c_ends_with_130_and_no_traceback() -> None:
    with scripted(Answer(202, {"runId": "r"}), Answer(200, {"runId": "r", "state": "running"})) as script:
        command = [*SWEEPHAND, "--url", script.url, "trigger", "a", "--wait"]
        # A process that a shell started in the background ignores Ctrl-C, and so do its children: not this one.
        process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no thread is needed there
        )
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "Run r of a\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait(60)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_login_without_a_token_is_refused() -> None:
    assert run("login", given="\n").exit_code == 1


def test_login_keeps_no_token_that_the_server_does_not_know(home: Path) -> None:
    with scripted(Answer(401, {"detail": "The token opens nothing."})) as script:
        result = run("--url", script.url, "login", given="hush\n")
    assert (result.exit_code, result.stderr) == (1, "Error: The token opens nothing.\n")
    assert not (home / ".config").exists()


def test_login_reads_standard_input_and_shows_no_token(home: Path) -> None:
    with scripted(Answer(200, {"items": [], "nextCursor": None})) as script:
        result = run("--url", script.url, "-n", "team", "login", given="hush\n")
        assert result.exit_code == 0
        assert "hush" not in result.output
        assert run("list").exit_code == 0
    assert [question.headers["authorization"] for question in script.questions] == ["Bearer hush"] * 2
    assert [question.headers["x-namespace"] for question in script.questions] == ["team"] * 2
    assert (home / ".config/sweephand/config.json").stat().st_mode & 0o777 == 0o600


def test_the_version_is_the_packages() -> None:
    assert run("--version").output.startswith("sweephand 0.")
