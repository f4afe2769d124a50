"""Containers and long tasks, from trigger to end: the same stories on one machine, and on AWS with agents."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweephand.domain.ids import RunKey
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import RunState
from sweephand.engine.checkpoint import read_checkpoint
from sweephand.logs import KEPT_BYTES, Line, LogKey
from tests.local.launched import PLACES, WITHIN_S, Place, on_moto
from tests.local.waiting import until
from tests.operators.calls import is_alive

RETRY = {"attempts": 3, "backoff": "fixed", "delay": "1s"}
WAITS = "import threading; threading.Event().wait()"


@pytest.fixture(params=list(PLACES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with PLACES[request.param](tmp_path) as made:
        yield made


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Place]:
    with on_moto(tmp_path) as made:
        yield made


@pytest.fixture(params=["container", "command"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def step(kind: str, source: str, *words: str, **more: Any) -> dict[str, Any]:
    command = [sys.executable, "-c", source, *words]
    return (
        {"container": {"image": "team/report:1", "command": command, **more}}
        if kind == "container"
        else ({"command": command, **more})
    )


def test_it_succeeds_with_its_output_its_lines_and_its_files(place: Place, kind: str) -> None:
    source = (
        "import json, os, sys\n"
        "print('to', os.environ['WHO'], sys.argv[1], flush=True); print('aside', file=sys.stderr, flush=True)\n"
        "open(os.environ['SWEEPHAND_ARTIFACTS'] + '/file', 'w').write('kept')\n"
        "json.dump({'rows': 3}, open(os.environ['SWEEPHAND_OUTPUT'], 'w'))\n"
    )
    key = place.begin(step(kind, source, "$(id); ${run.id}", env={"WHO": "${params.who}"}), params={"who": "you"})
    run = place.ended(key)
    assert (run.state, run.output, run.attempt, run.failure) == (RunState.SUCCEEDED, {"rows": 3}, 1, None)
    lines = [line for line in place.lines(key) if line[0] != "system"]
    assert sorted(lines) == [("stderr", "aside"), ("stdout", f"to you $(id); {key.run_id}")]
    assert place.files(key) == {"file": 4}


def test_a_permanent_failure_is_not_tried_again(place: Place) -> None:
    missing = {"container": {"image": "team/report:1", "command": ["/no/such/program"]}}
    run = place.ended(place.begin(missing, retry=RETRY))
    assert run.failure is not None
    assert (run.state, run.attempt, str(run.failure.kind)) == (RunState.FAILED, 1, "permanent")


def test_a_transient_failure_is_tried_again_and_then_succeeds(place: Place, kind: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = f"import pathlib; p = pathlib.Path({str(mark)!r}); n = p.exists(); p.touch(); raise SystemExit(3 - 3 * n)"
    run = place.ended(place.begin(step(kind, source), retry=RETRY))
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 2)


def test_one_that_takes_too_long_is_ended(place: Place, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    source = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); {WAITS}"
    key = place.begin(step("container", source), timeout="6s")
    run = place.ended(key)
    assert (run.state, run.reason and run.reason.code) == (RunState.FAILED, ReasonCode.TIMEOUT)
    until(lambda: not is_alive(int(pid.read_text())), within_s=WITHIN_S, what="its process is gone")


def test_one_that_is_cancelled_is_ended(place: Place, kind: str, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    source = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); {WAITS}"
    key = place.begin(step(kind, source))
    until(lambda: pid.exists() and pid.read_text(), within_s=WITHIN_S, what="it works")
    place.cancel(key)
    assert place.run(key).state is RunState.CANCELLED
    until(lambda: not is_alive(int(pid.read_text())), within_s=WITHIN_S, what="its process is gone")


COUNTS = """\
import threading, sweephand
done = sweephand.checkpoint(0)
for minute in range(done + 1, 31):
    sweephand.save_checkpoint(minute)
    if minute == 15 and not done:
        threading.Event().wait()  # until it is killed
sweephand.output({"began": done, "ended": minute})
"""


def test_a_task_of_thirty_steps_whose_agent_is_killed_goes_on_from_its_checkpoint_under_a_new_epoch(
    cloud: Place, kind: str
) -> None:
    key = cloud.begin(step(kind, COUNTS), retry=RETRY)
    until(lambda: read_checkpoint(cloud.world, key) == {"text": "15"}, within_s=WITHIN_S, what="half of it is saved")
    assert cloud.deployment is not None
    (agent,) = cloud.deployment.cluster.running
    os.kill(agent.agent_pid, signal.SIGKILL)
    run = cloud.ended(key)  # ECS tells that the task has stopped
    assert (run.state, run.output, run.epoch) == (RunState.SUCCEEDED, {"began": 15, "ended": 30}, 2)
    until(lambda: read_checkpoint(cloud.world, key) is None, within_s=WITHIN_S, what="nobody needs it any more")


FLOOD = """\
import sys
from pathlib import Path
begun, gate, printed = map(Path, sys.argv[1:])
begun.touch(); gate.read_text()
for n in range(100_000):
    sys.stdout.write(f"{n:06d} {'a line of a thousand letters ' * 34}\\n")
print("the end", flush=True)
printed.touch(); gate.read_text()
"""
AGENT_GROWS_MAX_MB = 48
"""Half of what is kept is held until the end, as events; the rest is what is under way."""


def test_an_agent_passes_a_hundred_megabytes_on_in_little_memory_and_the_end_is_there(
    cloud: Place, kind: str, tmp_path: Path
) -> None:
    begun, gate, printed = (tmp_path / name for name in ("begun", "gate", "printed"))
    os.mkfifo(gate)
    key = cloud.begin(step(kind, FLOOD, str(begun), str(gate), str(printed)))
    until(begun.exists, within_s=WITHIN_S, what="it works")
    assert cloud.deployment is not None
    (agent,) = cloud.deployment.cluster.running
    before_mb = peak_mb(agent.agent_pid)
    gate.write_text("")
    until(printed.exists, within_s=WITHIN_S, what="all is printed")
    assert peak_mb(agent.agent_pid) - before_mb < AGENT_GROWS_MAX_MB
    gate.write_text("")
    run = cloud.ended(key)
    assert (run.state, run.output["stdout"].splitlines()[-1]) == (RunState.SUCCEEDED, "the end")
    lines = list(every_line(cloud, key))
    said = [line for line in lines if line.stream != "system"]
    assert said[0].text.startswith("000000 a line")
    assert said[-1].text == "the end"
    assert sum(len(line.text) for line in lines) < KEPT_BYTES
    assert sum(line.missing for line in lines) + len(said) == 100_001


def every_line(place: Place, key: RunKey) -> Iterator[Line]:
    log, after = LogKey(key, "main", 1), None
    while (page := place.world.logs.read(log, after=after, limit=1000)).more or page.lines:
        yield from page.lines
        after = page.after


def peak_mb(pid: int) -> float:
    """The most memory that a process has held."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
