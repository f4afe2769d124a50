"""What happens at a terminal: questions, colours, and progress."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.scripted import Answer, scripted
from tests.local.waiting import until

SWEEPHAND = [sys.executable, "-m", "sweephand"]
CREATE: dict[str, Any] = {
    "fires": [],
    "notes": [],
    "runsPerDay": 0,
    "difference": {"action": "create", "version": None, "changes": []},
}
CHANGE = CREATE | {
    "difference": {"action": "change", "version": 3, "changes": [{"path": "timeout", "before": 1, "after": 2}]}
}


def at_terminal(url: str, *words: str, typed: str = "", asked: str = "") -> tuple[int, str]:
    """The exit code, and all that the terminal showed; `typed` is the answer to what is `asked`."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "SWEEPHAND_URL": url}
    environ.pop("NO_COLOR", None)
    process = subprocess.Popen([*SWEEPHAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    shown, has_typed = "", not typed

    def is_over() -> bool:
        nonlocal shown, has_typed
        readable, _, _ = select.select([ours], [], [], 0)
        try:
            shown += os.read(ours, 65_536).decode(errors="replace") if readable else ""
        except OSError:
            return True  # the terminal is closed: the program has ended
        if not has_typed and asked in shown:
            os.write(ours, typed.encode())
            has_typed = True
        return not readable and process.poll() is not None

    until(is_over, within_s=60, what=f"the end of {words}: {shown}")
    os.close(ours)
    return process.wait(60), shown


def test_apply_asks_before_it_changes_something() -> None:
    Path("job.yaml").write_text("name: a\ncommand: 'true'\n")
    for answer, code, calls in (("n\n", 1, 1), ("y\n", 0, 2)):
        with scripted(Answer(200, CREATE)) as script:
            ended, shown = at_terminal(
                script.url, "apply", "-f", "job.yaml", typed=answer, asked="Apply this plan? [y/N]"
            )
        assert ended == code, shown
        assert len(script.questions) == calls
        assert "\x1b[32m+ a: to create" in shown


def test_a_token_is_typed_unseen(home: Path) -> None:
    with scripted(Answer(200, {"items": [], "nextCursor": None})) as script:
        code, shown = at_terminal(script.url, "login", typed="hush\n", asked="Token:")
    assert code == 0, shown
    assert "hush" not in shown
    assert "hush" in (home / ".config/sweephand/config.json").read_text()


def test_a_run_that_is_awaited_shows_how_far_it_is() -> None:
    half = Answer(200, {"runId": "r", "state": "running", "progress": 50})
    done = Answer(200, {"runId": "r", "state": "succeeded", "progress": 100})
    with scripted(Answer(202, {"runId": "r"}), half, half, half, done) as script:
        code, shown = at_terminal(script.url, "trigger", "a", "--wait")
    assert code == 0, shown
    assert "50%" in shown
    assert "succeeded" in shown


def test_one_jobs_conflict_does_not_stop_the_others_and_is_reported() -> None:
    for name in "ab":
        Path(f"{name}.yaml").write_text(f"name: {name}\ncommand: 'true'\n")
    stale = Answer(412, {"detail": "Job a is at version 4, not 3."})
    plan = Answer(200, CHANGE)
    with scripted(plan, plan, stale, Answer(200, {"jobId": "b"})) as script:
        command = [*SWEEPHAND, "--url", script.url, "apply", "--json", "a.yaml", "b.yaml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == ["  a.yaml: a: Job a is at version 4, not 3."]
    assert [one["outcome"] for one in json.loads(done.stdout)] == ["failed", "applied"]
    assert [question.headers.get("if-match") for question in script.questions] == [None, None, "3", "3"]
