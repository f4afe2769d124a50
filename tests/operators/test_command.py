"""Commands: what they get, what their end means, and that nothing of them stays."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Skipped, Succeeded
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.retry import Failure, FailureClass
from sweephand.operators import Operators
from tests.local.waiting import until
from tests.operators.calls import call, command, execute, is_alive, script

PERMANENT = FailureClass.PERMANENT
SLEEPS = "import threading; threading.Event().wait()"


def failure_of(outcome: object) -> Failure:
    assert isinstance(outcome, Failure)
    return outcome


def stdout_of(outcome: object) -> str:
    assert isinstance(outcome, Succeeded), outcome
    printed: str = outcome.output["stdout"]
    return printed


# What a command gets.


def test_a_command_sees_what_was_promised_and_nothing_else_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "sings")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("HOME", "/somewhere")
    words = command(["/usr/bin/env", "-0"], env={"MINE": "1", "SWEEPHAND_JOB": "another"}, params={"region": "eu"})
    printed = stdout_of(execute(tmp_path, words))
    # What cannot be text in an output comes as a mark: that is what separates the variables here.
    seen = dict(one.split("=", 1) for one in printed.split("\N{REPLACEMENT CHARACTER}") if one)
    place = Path(seen["TMPDIR"]).parent
    assert place.is_relative_to(tmp_path)
    assert json.loads(seen.pop("SWEEPHAND_PARAMS")) == {"region": "eu"}
    assert seen == {
        "PATH": os.environ["PATH"],
        "HOME": "/somewhere",
        "LANG": os.environ.get("LANG") or "C.UTF-8",
        "TMPDIR": str(place / "tmp"),
        "MINE": "1",
        "SWEEPHAND_JOB": "report",
        "SWEEPHAND_NAMESPACE": "team",
        "SWEEPHAND_RUN_ID": "20261003T233000Z",
        "SWEEPHAND_TASK_ID": "main",
        "SWEEPHAND_ATTEMPT": "1",
        "SWEEPHAND_FIRE_AT": "2026-10-03T23:30:00Z",
        "SWEEPHAND_IDEMPOTENCY_KEY": "team/report/20261003T233000Z/main",
        "SWEEPHAND_OUTPUT": str(place / "output"),
        "SWEEPHAND_PROGRESS": str(place / "progress"),
        "SWEEPHAND_CHECKPOINT": str(place / "checkpoint"),
        "SWEEPHAND_ARTIFACTS": str(place / "artifacts"),
    }


def test_a_command_has_no_descriptor_of_ours_and_nothing_to_read(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        source = "import os, sys; print(sorted(os.listdir('/proc/self/fd'))[:4], repr(sys.stdin.read()))"
        assert stdout_of(execute(tmp_path, script(source))) == "['0', '1', '2', '3'] ''"  # 3 is the listing's own


def test_a_command_runs_in_an_empty_folder_of_its_own_or_in_the_one_it_names(tmp_path: Path) -> None:
    work = Path(stdout_of(execute(tmp_path / "area", command(["pwd"]))))
    assert work.is_relative_to(tmp_path / "area")
    assert stdout_of(execute(tmp_path / "area", command(["pwd"], cwd=str(tmp_path)))) == str(tmp_path)
    assert stdout_of(execute(tmp_path, script("import os; print(os.listdir('.'))"))) == "[]"


HOSTILE = (
    "; rm -rf canary",
    "$(touch hit)",
    "`touch hit`",
    "a\ntouch hit",
    "&& touch hit",
    "| touch hit",
    "> hit",
    "*",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_shell_would_run_is_only_text_to_a_command(tmp_path: Path, text: str) -> None:
    (tmp_path / "canary").touch()
    source = "import sys; print(ascii(sys.argv[1:]))"
    given = script(source, text, "${params.x}", "a ${params.x}", params={"x": text}, cwd=str(tmp_path))
    assert stdout_of(execute(tmp_path / "area", given)) == ascii([text, text, f"a {text}"])
    assert {one.name for one in tmp_path.iterdir()} == {"canary", "area"}


@pytest.mark.parametrize("text", [*HOSTILE, '"; touch hit; "', "'; touch hit; '", "${HOME}"])
def test_a_value_in_a_shells_line_is_never_read_as_code(tmp_path: Path, text: str) -> None:
    (tmp_path / "canary").touch()
    given = command('printf %s "<${params.x}>"', shell=True, params={"x": text}, cwd=str(tmp_path))
    assert stdout_of(execute(tmp_path / "area", given)) == f"<{text}>"
    bare = command("true ${params.x} '${params.x}'", shell=True, params={"x": text}, cwd=str(tmp_path))
    assert execute(tmp_path / "area", bare) == Succeeded()
    assert {one.name for one in tmp_path.iterdir()} == {"canary", "area"}


def test_a_shells_line_has_the_shells_own_syntax_too(tmp_path: Path) -> None:
    line = 'for n in 1 2; do echo "$n ${MINE} ${NONE:-none} ${params.a}${params.a}"; done | tail -1'
    given = command(line, shell=True, params={"a": 7}, env={"MINE": "m"})
    assert stdout_of(execute(tmp_path, given)) == "2 m none 77"


def test_templates_reach_words_and_variables(tmp_path: Path) -> None:
    given = script(
        "import os, sys; print(sys.argv[1:], os.environ['WHEN'])",
        "${params.n}",
        "${params.flag}",
        "${params.o}",
        "$${x}",
        params={"n": 3, "flag": True, "o": {"a": [1]}},
        env={"WHEN": "on ${run.localDate}, try ${run.attempt}"},
    )
    assert stdout_of(execute(tmp_path, given)) == "['3', 'true', '{\"a\":[1]}', '${x}'] on 2026-10-03, try 1"


def test_an_unknown_template_is_a_failure_for_good_that_says_what_there_is(tmp_path: Path) -> None:
    failure = failure_of(execute(tmp_path, command(["echo", "${params.regoin}"], params={"region": "eu"})))
    assert (failure.error, failure.kind) == ("InvalidInput", PERMANENT)
    assert failure.message == "command[1]: '${params.regoin}' is unknown: 'params' has region."


# What its end means.


def test_a_command_that_says_nothing_succeeds_without_output(tmp_path: Path) -> None:
    assert execute(tmp_path, command(["true"])) == Succeeded(None)


def test_what_a_command_prints_is_its_output_unless_it_writes_one(tmp_path: Path) -> None:
    assert execute(tmp_path, command(["echo", "hello"])) == Succeeded({"stdout": "hello"})
    given = command('echo hello; echo \'{"rows": 3}\' > "$SWEEPHAND_OUTPUT"', shell=True)
    assert execute(tmp_path, given) == Succeeded({"rows": 3})


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("{", "InvalidOutput"),
        ("", "InvalidOutput"),
        ("NaN", "InvalidOutput"),
        ("1e999", "InvalidOutput"),
        ("[" * 3000, "InvalidOutput"),
        ("[" * 40 + "]" * 40, "InvalidOutput"),
        ('"\\u0000"', "InvalidOutput"),
        ('"\\ud800"', "InvalidOutput"),
        ('"' + "x" * (OUTPUT_BYTES_MAX - 1) + '"', "OutputTooLarge"),
    ],
)
def test_an_output_that_cannot_be_kept_is_a_failure_for_good(tmp_path: Path, written: str, error: str) -> None:
    given = command('printf %s "${params.text}" > "$SWEEPHAND_OUTPUT"', shell=True, params={"text": written})
    failure = failure_of(execute(tmp_path, given))
    assert (failure.error, failure.kind) == (error, PERMANENT)


def test_an_output_of_the_largest_size_is_kept(tmp_path: Path) -> None:
    text = "x" * (OUTPUT_BYTES_MAX - 2)
    given = command('printf \'"%s"\' "${params.text}" > "$SWEEPHAND_OUTPUT"', shell=True, params={"text": text})
    assert execute(tmp_path, given) == Succeeded(text)


def test_an_output_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    assert failure_of(execute(tmp_path, command('mkfifo "$SWEEPHAND_OUTPUT"', shell=True))).error == "InvalidOutput"


def test_another_exit_code_is_a_failure_with_the_last_words(tmp_path: Path) -> None:
    failure = failure_of(execute(tmp_path, command("echo before; echo no table >&2; exit 3", shell=True)))
    assert failure == Failure("ExitCode3", "It ended with exit code 3: no table")
    assert failure_of(execute(tmp_path, command(["false"]))).message == "It ended with exit code 1."
    long = failure_of(execute(tmp_path, script("import sys; sys.exit('x' * 100_000 + 'end')")))
    assert long.message.endswith("xend")
    assert len(long.message) < 1_000


def test_a_signal_is_a_failure_that_names_it(tmp_path: Path) -> None:
    assert execute(tmp_path, command("kill -9 $$", shell=True)) == Failure("Signal", "It was killed by signal 9.")


def test_exit_code_99_skips_the_task_unless_another_one_does(tmp_path: Path) -> None:
    assert execute(tmp_path, command("exit 99", shell=True)) == Skipped("the task said so: exit code 99")
    assert isinstance(execute(tmp_path, command("exit 99", shell=True, skipExitCode=4)), Failure)
    assert execute(tmp_path, command("exit 4", shell=True, skipExitCode=4)) == Skipped("the task said so: exit code 4")


def test_what_cannot_be_started_fails_for_good_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "locked").touch(mode=0o600)
    (tmp_path / "noise").write_bytes(b"\0\1\2")
    (tmp_path / "noise").chmod(0o700)
    said = {
        name: failure_of(execute(tmp_path / "area", given))
        for name, given in {
            "absent": command(["no-such-program"]),
            "nowhere": command(["true"], cwd=str(tmp_path / "absent")),
            "a file": command(["true"], cwd=str(tmp_path / "locked")),
            "locked": command([str(tmp_path / "locked")]),
            "noise": command([str(tmp_path / "noise")]),
            "long": command(["echo", "x" * 200_000]),
            "null": command(["echo", "${params.x}"], params={"x": "a\0b"}),
            "nothing": command(["${params.x}"], params={"x": ""}),
            "secret": command(["true"], secrets={"DB": "dsn"}),
        }.items()
    }
    assert {name: one.error for name, one in said.items()} == {
        "absent": "NotFound",
        "nowhere": "NotFound",
        "a file": "NotFound",
        "locked": "NotPermitted",
        "noise": "NotExecutable",
        "long": "TooLarge",
        "null": "InvalidInput",
        "nothing": "InvalidInput",
        "secret": "SecretNotFound",
    }
    assert {one.kind for one in said.values()} == {PERMANENT}
    assert said["absent"].message == "There is no 'no-such-program' here."
    assert str(tmp_path / "absent") in said["nowhere"].message
    assert said["secret"].message == "The call came without its secrets DB."


def test_a_kind_that_this_place_has_no_operator_for_fails_for_good(tmp_path: Path) -> None:
    failure = failure_of(execute(tmp_path, call("lambda", "load")))
    assert failure == Failure(
        "UnknownOperator", "'lambda' cannot run here: this place runs command, http, python.", PERMANENT
    )
    assert Operators(tmp_path).kinds == {"command", "http", "python"}


# That it is bounded, and can be ended.


def test_fifty_megabytes_on_both_streams_neither_hang_nor_stay_in_memory(tmp_path: Path) -> None:
    source = (
        "import os\n"
        "for n in range(800):\n"
        "    os.write(1, b'o' * 65535 + b'\\n'); os.write(2, b'e' * 65535 + b'\\n')\n"
        "os.write(1, b'last words')"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert execute(tmp_path, script(source)) == Succeeded({"stdout": "last words"})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # KiB


def test_printed_text_that_is_long_as_json_is_cut_to_what_a_run_keeps(tmp_path: Path) -> None:
    outcome = execute(tmp_path, script(r"print('\1' * 5000 + 'end')"))
    assert stdout_of(outcome).endswith("end")
    assert len(json.dumps({"stdout": stdout_of(outcome)})) <= OUTPUT_BYTES_MAX


def _family(pids: Path, *, deaf: bool) -> Call:
    """A program with a child; both write their numbers and wait for long, deaf to SIGTERM or not."""
    ear = "trap '' TERM; " if deaf else ""
    line = f'{ear}sh -c \'echo $$ >> "$PIDS"; exec sleep 1000\' & echo $$ >> "$PIDS"; wait'
    return command(line, shell=True, env={"PIDS": str(pids)}, timeout_s=1.5)


def _pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.mark.parametrize("deaf", [False, True])
def test_a_time_out_ends_the_whole_group(tmp_path: Path, deaf: bool) -> None:
    pids = tmp_path / "pids"
    operators = Operators(tmp_path / "area", grace=timedelta(seconds=0.2 if deaf else 60))
    outcome = operators.execute(_family(pids, deaf=deaf))
    assert outcome == Failure("Timeout", "The attempt took longer than 1s500ms.")
    assert len(_pids(pids)) == 2
    until(lambda: not any(map(is_alive, _pids(pids))), within_s=5, what="the group is gone")


def test_a_child_may_clean_up_after_sigterm_although_its_parent_is_gone(tmp_path: Path) -> None:
    child = (
        "import signal, sys, threading\n"
        "over = threading.Event()\n"
        f"def clean(*_):\n    threading.Event().wait(0.3); open({str(tmp_path / 'clean')!r}, 'w'); over.set()\n"
        "signal.signal(signal.SIGTERM, clean)\n"
        f"open({str(tmp_path / 'ready')!r}, 'w')\n"
        "while not over.wait(0.05): pass"
    )
    operators = Operators(tmp_path / "area")
    given = command('"$PYTHON" -c "$CHILD"; true', shell=True, env={"PYTHON": sys.executable, "CHILD": child})
    _cancelled(operators, given, when=tmp_path / "ready")
    assert (tmp_path / "clean").exists()


def _cancelled(operators: Operators, given: Call, *, when: Path) -> None:
    """Cancels the call once the file is there, and sees it end."""
    outcomes: list[object] = []
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(given)))
    thread.start()
    until(when.exists, within_s=20, what="it runs")
    operators.cancel(given)
    thread.join(20)
    assert outcomes == [Failure("Cancelled", "The attempt was told to stop.")]


def test_a_cancel_from_another_thread_ends_the_whole_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    given = replace(_family(pids, deaf=False), timeout=timedelta(minutes=1))
    _cancelled(Operators(tmp_path / "area"), given, when=pids)
    until(lambda: not any(map(is_alive, _pids(pids))), within_s=5, what="the group is gone")


def test_a_cancel_that_comes_first_is_not_lost_and_meets_only_its_own_attempt(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    operators.cancel(command(["true"], attempt=1))
    assert operators.execute(command(["true"], attempt=2)) == Succeeded()
    assert failure_of(operators.execute(command(["true"], attempt=1))).error == "Cancelled"
    assert operators.execute(command(["true"], attempt=1)) == Succeeded()


def test_a_late_cancel_changes_nothing(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    for attempt in range(1_100):
        operators.cancel(command(["true"], attempt=attempt))
    assert operators.execute(command(["true"], attempt=0)) == Succeeded()  # the oldest are forgotten


def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    given = script(
        f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {SLEEPS!r}])\nprint(child.pid)"
    )
    left = int(stdout_of(execute(tmp_path, given)))
    until(lambda: not is_alive(left), within_s=5, what="it is gone")


def test_who_left_the_group_and_holds_the_pipe_ends_with_it_too(tmp_path: Path) -> None:
    given = script(
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEPS!r}], start_new_session=True)\n"
        "print(child.pid)"
    )
    left = int(stdout_of(execute(tmp_path, given)))
    assert not is_alive(left)


def _descriptors() -> set[str]:
    return {one.name for one in Path("/proc/self/fd").iterdir()}


def test_nothing_is_left_of_many_attempts(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    operators.execute(command(["true"]))
    descriptors, threads = _descriptors(), threading.active_count()
    for _ in range(5):
        operators.execute(command(["echo", "x"]))
        operators.execute(command(["false"]))
        operators.execute(command(["no-such-program"]))
        operators.execute(script(SLEEPS, timeout_s=0.05))
    assert _descriptors() == descriptors
    assert threading.active_count() == threads
    assert not list(tmp_path.iterdir())
    assert os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None  # no dead child


def test_an_exit_code_is_learnt_even_where_children_are_ignored() -> None:
    """Where SIGCHLD is ignored, the kernel reaps, but not for a warden: seen in a process of its own."""
    source = (
        "import signal, tempfile\n"
        "from pathlib import Path\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from tests.operators.calls import command, execute\n"
        "print(execute(Path(tempfile.mkdtemp()), command(['false'])).message)\n"
    )
    told = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout == "It ended with exit code 1.\n"
