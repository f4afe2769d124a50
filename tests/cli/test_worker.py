"""The worker against a server that answers what the test says: no output and no mishap keeps it from reporting."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sweephand.cli import main
from sweephand.domain.fields import json_bytes
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from tests.cli.scripted import Answer, Scripted, scripted

DONE = Answer(200, {})


def leased(*leases: dict[str, Any]) -> Answer:
    return Answer(200, {"items": [{"lease": "l", "epoch": 1, "jobId": "a", "runId": "r", **one} for one in leases]})


def work(script: Scripted, *command: str) -> Result:
    return CliRunner().invoke(main, ["--url", script.url, "worker", "--once", "--", *command])


def reports(script: Scripted) -> list[tuple[str, Any]]:
    """What was reported: the lease and the verb, and the body."""
    told = [question for question in script.questions if question.path != "/api/v1/leases"]
    return [(question.path.removeprefix("/api/v1/leases/"), json.loads(question.body)) for question in told]


@pytest.mark.parametrize(
    ("printed", "output"),
    [
        (b'{"n": [1, 2.5, "\xc3\xa4"]}', {"n": [1, 2.5, "ä"]}),
        (b"done\n", "done"),
        (b"", None),
        (b"NaN", "NaN"),
        (b'{"n": -Infinity}', '{"n": -Infinity}'),
        (b"1e999", "1e999"),
        (rb'["\ud800"]', r'["\ud800"]'),
        (b"[" * 3000, "[" * 3000),
        (b"[" * 40 + b"]" * 40, "[" * 40 + "]" * 40),
        (b"9" * 4_000, "9" * 4_000),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
    ids=["json", "text", "nothing", "nan", "infinity", "too-large", "surrogate", "endless", "deep", "digits", "bytes"],
)
def test_what_is_no_json_that_can_be_sent_is_reported_as_the_text_that_it_is(printed: bytes, output: object) -> None:
    with scripted(leased({}), DONE) as script:
        result = work(script, sys.executable, "-c", f"import sys; sys.stdout.buffer.write({printed!r})")
    assert result.exit_code == 0, result.stderr
    said = {"epoch": 1} if output is None else {"epoch": 1, "output": output}
    assert reports(script) == [("l/complete", said)]


def test_of_a_long_output_the_end_is_kept_within_its_limit_as_json() -> None:
    with scripted(leased({}), DONE) as script:
        work(script, sys.executable, "-c", "print('\\x01' * 9000 + 'end')")
    ((_, body),) = reports(script)
    assert body["output"].endswith("\x01end")
    assert OUTPUT_BYTES_MAX // 2 < json_bytes(body["output"]) <= OUTPUT_BYTES_MAX


def test_an_unforeseen_error_is_a_failure_of_its_lease_and_the_next_is_worked_on() -> None:
    # No environment can carry half a surrogate pair, so the command cannot be started.
    with scripted(leased({"lease": "bad", "idempotencyKey": "\ud800"}, {"lease": "good"}), DONE) as script:
        result = work(script, "true")
    assert result.exit_code == 0
    (failed, about), (completed, _) = reports(script)
    assert (failed, completed) == ("bad/fail", "good/complete")
    assert about["error"].startswith("The worker failed: UnicodeEncodeError: ")
    assert about["class"] == "transient"
    assert "a r: failed: UnicodeEncodeError: " in result.stderr
    assert "a r: completed" in result.stderr


def test_an_output_that_the_server_refuses_is_a_failure_of_its_lease() -> None:
    with scripted(leased({}), Answer(400, {"detail": "Too odd."}), DONE) as script:
        result = work(script, "echo", "1")
    assert [what for what, _ in reports(script)] == ["l/complete", "l/fail"]
    assert reports(script)[1][1]["error"] == "The worker failed: Too odd."
    assert result.exit_code == 0


def test_a_report_that_is_refused_too_is_logged_and_the_next_is_worked_on() -> None:
    refused = Answer(400, {"detail": "No."})
    with scripted(leased({"lease": "one"}, {"lease": "two"}), refused, refused, DONE) as script:
        result = work(script, "true")
    assert [what for what, _ in reports(script)] == ["one/complete", "one/fail", "two/complete"]
    assert "a r: the report was not taken. No." in result.stderr


def test_a_failure_that_cannot_be_written_down_is_reported_in_part() -> None:
    with scripted(leased({}), DONE) as script:
        work(script, "no-such-command-\udcff" + "x" * 2_000)
    ((what, body),) = reports(script)
    assert what == "l/fail"
    assert body["error"].startswith("no-such-command-?xxx")
    assert len(body["error"]) == 1_000


def test_a_worker_that_cannot_go_on_says_so_and_exits_with_1() -> None:
    with scripted(Answer(200, {"items": [7]})) as script:
        result = work(script, "true")
    assert result.exit_code == 1
    assert "Error: The worker cannot go on: " in result.stderr


def test_secrets_are_variables_of_the_command_and_in_nothing_that_it_is_told_or_says() -> None:
    canary = "hunter2-canary"
    source = (
        "import os, sys; told = sys.stdin.read(); db = os.environ['DB'];"
        "print('x' * 5_000 + db, db in told, len(db), 'x' * (4_096 - 40), db)"
    )
    with scripted(leased({"secrets": {"DB": canary}}), DONE) as script:
        result = work(script, sys.executable, "-c", source)
    ((path, said),) = reports(script)
    assert path == "l/complete"
    assert said["output"].endswith("x •••")
    assert f"False {len(canary)} x" in said["output"]
    assert not any(canary[at : at + 4] in json.dumps(said) + result.output for at in range(len(canary) - 4))
