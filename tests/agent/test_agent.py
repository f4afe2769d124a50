"""`sweephand agent` as a real process against a real API: what it does, and what becomes of it when it is not let."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweephand.domain.ids import DEFAULT
from sweephand.domain.output import Kept
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.checkpoint import read_checkpoint
from sweephand.engine.outputs import output_of
from sweephand.engine.share import put_secret
from tests.agent.launching import WITHIN_S, Place, launching
from tests.local.waiting import until
from tests.operators.calls import is_alive

RETRY = {"attempts": 3, "backoff": "fixed", "delay": "1s"}
WAITS = "import threading; threading.Event().wait()"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with launching(tmp_path) as made:
        yield made


def python(source: str) -> dict[str, object]:
    return {"command": [sys.executable, "-c", source]}


def test_an_agent_does_its_work_and_reports_it(place: Place) -> None:
    source = "import os; print('hello'); open(os.environ['SWEEPHAND_OUTPUT'], 'w').write('{\"rows\": 3}')"
    run = place.ended(place.begin(python(source)))
    assert (run.state, run.output, run.attempt, run.owner is not None) == (RunState.SUCCEEDED, {"rows": 3}, 1, True)
    assert place.launched(1).wait(WITHIN_S) == 0
    assert "stdout: hello" in place.printed()


@pytest.mark.parametrize(("size", "state"), [(5_000, "succeeded"), (1_048_576, "succeeded"), (1_048_577, "failed")])
def test_an_output_that_its_run_cannot_hold_is_reported_and_kept(place: Place, size: int, state: str) -> None:
    source = f"import os; open(os.environ['SWEEPHAND_OUTPUT'], 'w').write('\"' + 'x' * {size - 2} + '\"')"
    ended = place.ended(place.begin(python(source), retries=2))
    assert (ended.state, ended.attempt) == (state, 1), ended.failure
    if state == "failed":
        assert ended.failure is not None
        assert ended.failure.error == "OutputTooLarge"
    else:
        assert ended.output == Kept(ended.key.run_id, "main", 1, size)
        assert output_of(place.stores.artifacts, ended) == "x" * (size - 2)


def test_what_it_knows_is_not_among_its_words_nor_among_its_tasks_variables(place: Place) -> None:
    source = "import os; print(sorted(name for name in os.environ if name.startswith('SWEEPHAND_')))"
    run = place.ended(place.begin(python(source)))
    assert place.launched(1).args == [sys.executable, "-m", "sweephand", "agent"]
    assert "SWEEPHAND_RUN_ID" in str(run.output)
    assert not {"SWEEPHAND_LEASE", "SWEEPHAND_URL", "SWEEPHAND_EPOCH"} & set(str(run.output).split("'"))
    lease = place.target.calls[0].lease
    assert lease is not None
    assert lease not in place.printed()


def test_a_task_that_fails_is_tried_again_by_another_agent(place: Place) -> None:
    mark = place.target.folder / "mark"
    source = f"import pathlib; p = pathlib.Path({str(mark)!r}); n = p.exists(); p.touch(); raise SystemExit(3 - 3 * n)"
    run = place.ended(place.begin(python(source), retry=RETRY))
    assert (run.state, run.attempt, len(place.target.agents)) == (RunState.SUCCEEDED, 2, 2)


def test_a_permanent_failure_keeps_its_name_and_is_not_tried_again(place: Place) -> None:
    run = place.ended(place.begin({"command": ["/no/such/program"]}, retry=RETRY))
    assert run.failure is not None
    assert (run.state, run.attempt, run.failure.error) == (RunState.FAILED, 1, "NotFound")


def test_a_task_can_say_that_there_is_nothing_to_do(place: Place) -> None:
    run = place.ended(place.begin(python("raise SystemExit(99)")))
    assert run.state is RunState.SKIPPED
    assert run.reason is not None
    assert "99" in run.reason.detail


def test_progress_is_told_while_it_runs_and_a_cancel_ends_it(place: Place) -> None:
    pid = place.target.folder / "pid"
    source = f"import os, sweephand; open({str(pid)!r}, 'w').write(str(os.getpid())); sweephand.progress(42); {WAITS}"
    key = place.begin(python(source))
    until(lambda: place.run(key).progress == 42, within_s=WITHIN_S, what="progress is told")
    cancel(place.world, key, actor="ann")
    assert place.launched(1).wait(WITHIN_S) == 1
    assert place.run(key).state is RunState.CANCELLED
    assert not is_alive(int(pid.read_text()))
    assert len(place.target.agents) == 1


def test_a_task_that_takes_too_long_is_ended(place: Place) -> None:
    run = place.ended(place.begin(python(WAITS), timeout="2s"))
    assert (run.state, run.reason and run.reason.code) == (RunState.FAILED, ReasonCode.TIMEOUT)
    place.launched(1).wait(WITHIN_S)


def test_told_to_stop_it_lets_the_task_save_its_checkpoint_and_has_it_tried_again(place: Place) -> None:
    source = (
        "import signal, sys, threading, sweephand\n"
        "if sweephand.checkpoint() == {'half': True}: sys.exit(0)\n"
        "def end(*_): sweephand.save_checkpoint({'half': True}); sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, end); sweephand.progress(1)\n"
        "while True: threading.Event().wait(0.1)\n"
    )
    key = place.begin(python(source), retry=RETRY)
    until(lambda: place.run(key).progress == 1, within_s=WITHIN_S, what="it works")
    place.launched(1).send_signal(signal.SIGTERM)
    run = place.ended(key)
    assert (run.state, run.attempt, len(place.target.agents)) == (RunState.SUCCEEDED, 2, 2)
    assert place.launched(1).wait(WITHIN_S) == 0


COUNTS = """\
import os, pathlib, sys, threading, sweephand
done = sweephand.checkpoint(0)
for minute in range(done + 1, 31):
    sweephand.save_checkpoint(minute)
    sweephand.progress(minute * 100 / 30)
    if minute == 15 and not done:
        threading.Event().wait()  # until it is killed
sweephand.output({"began": done, "ended": minute})
"""


def test_a_task_of_thirty_steps_whose_agent_is_killed_half_way_goes_on_from_its_checkpoint(place: Place) -> None:
    key = place.begin(python(COUNTS))
    saved = {"text": "15"}
    until(lambda: read_checkpoint(place.world, key) == saved, within_s=WITHIN_S, what="half of it is saved")
    os.killpg(place.launched(1).pid, signal.SIGKILL)
    place.clock.move(minutes=11)
    run = place.ended(key)
    assert (run.state, run.output) == (RunState.SUCCEEDED, {"began": 15, "ended": 30})
    assert (run.epoch, run.attempt, run.lost) == (2, 2, 1)
    until(lambda: read_checkpoint(place.world, key) is None, within_s=WITHIN_S, what="nothing is left of it")


def test_an_agent_that_was_frozen_and_replaced_cannot_complete_when_it_thaws(place: Place) -> None:
    go = place.target.folder / "go"
    source = (
        "import os, pathlib, threading, sweephand; sweephand.progress(1)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): threading.Event().wait(0.05)\n"
        "sweephand.output(os.environ['SWEEPHAND_ATTEMPT'])\n"
    )
    key = place.begin(python(source))
    until(lambda: place.run(key).progress == 1, within_s=WITHIN_S, what="it works")
    frozen = place.launched(1)
    frozen.send_signal(signal.SIGSTOP)
    place.clock.move(minutes=11)
    place.launched(2)
    go.touch()  # both could end now, and only the second is awake
    run = place.ended(key)
    assert (run.state, run.output, run.epoch) == (RunState.SUCCEEDED, "2", 2)
    frozen.send_signal(signal.SIGCONT)
    assert frozen.wait(WITHIN_S) == 1
    assert "not ours any more" in place.printed(1)
    assert place.run(key) == run


def test_an_agent_whose_server_is_silent_for_a_while_goes_on_and_reports(place: Place) -> None:
    go = place.target.folder / "go"
    source = (
        "import pathlib, threading, sweephand; sweephand.progress(1)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): threading.Event().wait(0.05)\n"
    )
    key = place.begin(python(source))
    until(lambda: place.run(key).progress == 1, within_s=WITHIN_S, what="it works")
    place.deaf = True
    until(lambda: "was not heard" in place.printed(), within_s=WITHIN_S, what="it notices")
    go.touch()
    place.deaf = False
    assert place.ended(key).state is RunState.SUCCEEDED


def test_secrets_come_with_the_work_and_stay_out_of_what_is_printed(place: Place) -> None:
    put_secret(place.world, DEFAULT, "dsn", "hunter2-canary", expected=0, now=place.clock.now())
    step = {**python("import os; print(os.environ['DB'], os.environ['DB'][::-1])"), "secrets": {"DB": "dsn"}}
    run = place.ended(place.begin(step))
    assert run.state is RunState.SUCCEEDED
    assert "yranac-2retnuh" in str(run.output)
    assert "hunter2-canary" not in str(run.output) + place.printed()


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ({}, "SWEEPHAND_URL"),
        ({"SWEEPHAND_URL": "http://127.0.0.1:1"}, "SWEEPHAND_LEASE"),
        ({"SWEEPHAND_URL": "http://127.0.0.1:1", "SWEEPHAND_LEASE": "a"}, "SWEEPHAND_EPOCH"),
        ({"SWEEPHAND_URL": "http://127.0.0.1:1", "SWEEPHAND_LEASE": "a", "SWEEPHAND_EPOCH": "x"}, "SWEEPHAND_EPOCH"),
        ({"SWEEPHAND_URL": "http://example.org", "SWEEPHAND_LEASE": "a", "SWEEPHAND_EPOCH": "1"}, "https"),
    ],
)
def test_an_agent_that_is_not_told_what_it_needs_says_which_variable_it_is(told: dict[str, str], wrong: str) -> None:
    env = {"PATH": os.environ["PATH"], **told}
    done = subprocess.run(
        [sys.executable, "-m", "sweephand", "agent"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert wrong in done.stderr
