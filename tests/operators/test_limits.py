"""What programs of tasks may take, held by real processes; and that nothing of them escapes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.calls import Call, Succeeded
from sweephand.domain.bounds import USUAL, Bounds, parse_bounds, read_bounds
from sweephand.domain.retry import Failure, FailureClass, Retry
from sweephand.errors import InvalidInput
from sweephand.operators import Operators
from tests.local.waiting import until
from tests.operators.calls import call, command, execute, is_alive, script

PERMANENT = FailureClass.PERMANENT
FOR_EVER = "threading.Event().wait()"
DAEMON = """
import os, sys, threading
if os.fork():
    pass
else:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.environ.clear()
    for stream in (0, 1, 2):
        os.close(stream)
    with open({path!r}, "w") as file:
        file.write(str(os.getpid()))
    threading.Event().wait()
"""
"""A daemon as the book has it: another session, no parent, no streams."""


def limited(source: str, **limits: Any) -> Call:
    return script(source, limits=limits, timeout_s=60)


# Each limit.


def test_a_program_that_takes_too_much_memory_is_ended_and_says_so(tmp_path: Path) -> None:
    outcome = execute(tmp_path, limited(f"import threading; held = b'x' * 200_000_000; {FOR_EVER}", memory=64))
    assert outcome == Failure("OutOfMemory", "It had more than 64 MB in memory.", PERMANENT)


def test_the_memory_of_all_processes_counts_together(tmp_path: Path) -> None:
    child = f"import threading; held = b'x' * 40_000_000; {FOR_EVER}"
    source = f"import subprocess, sys\nfor _ in range(4): last = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
    outcome = execute(tmp_path, limited(source + "last.wait()", memory=100))
    assert outcome == Failure("OutOfMemory", "It had more than 100 MB in memory.", PERMANENT)


def test_what_forks_share_counts_once(tmp_path: Path) -> None:
    source = (
        "import os, threading\nheld = b'x' * 60_000_000\n"
        "kids = []\n"
        "for _ in range(4):\n"
        "    kid = os.fork()\n"
        "    if not kid:\n        threading.Event().wait(0.6); os._exit(0)\n"
        "    kids.append(kid)\n"
        "print([os.waitpid(kid, 0)[1] for kid in kids])"
    )
    assert execute(tmp_path, limited(source, memory=140)) == Succeeded({"stdout": "[0, 0, 0, 0]"})


def test_a_piece_of_memory_that_is_refused_at_once_has_the_same_reason(tmp_path: Path) -> None:
    outcome = execute(tmp_path, limited("held = bytearray(4_000_000_000)", memory=64))
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind) == ("OutOfMemory", PERMANENT)
    assert outcome.message.endswith("MemoryError")


def test_the_processor_time_of_all_processes_counts_together(tmp_path: Path) -> None:
    child = "while True: pass"
    source = f"import subprocess, sys\nfor _ in range(3): last = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
    outcome = execute(tmp_path, limited(source + "last.wait()", cpuTime="1s"))
    assert outcome == Failure("CpuTimeExceeded", "It took more than 1s of processor time.", PERMANENT)


def test_the_time_of_processes_that_have_ended_counts_too(tmp_path: Path) -> None:
    child = "import time\nwhile time.process_time() < 0.3: pass"
    source = f"import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-c', {child!r}])"
    outcome = execute(tmp_path, limited(source, cpuTime=1))
    assert isinstance(outcome, Failure)
    assert outcome.error == "CpuTimeExceeded"


def test_too_many_processes_end_the_task_and_all_of_them(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    # Each goes to a session of its own, so that no signal to a group would meet them all.
    source = (
        "import os, threading\n"
        "for _ in range(6):\n"
        "    if not os.fork(): os.setsid()\n"
        f"    with open({str(pids)!r}, 'a') as file: file.write(f'{{os.getpid()}}\\n')\n"
        f"{FOR_EVER}"
    )
    outcome = execute(tmp_path / "area", limited(source, processes=20))
    assert outcome == Failure("TooManyProcesses", "It had more than 20 processes.", PERMANENT)
    assert not any(is_alive(int(pid)) for pid in set(pids.read_text().split()))


def test_threads_are_no_processes(tmp_path: Path) -> None:
    source = (
        "import threading\nfor _ in range(50): threading.Thread(target=threading.Event().wait, args=(0.3,)).start()"
    )
    assert execute(tmp_path, limited(source, processes=2)) == Succeeded()


@pytest.mark.parametrize("line", ["exec head -c 3000000 /dev/zero > big", "head -c 3000000 /dev/zero > big; exit $?"])
def test_a_file_that_grows_too_large_ends_whoever_writes_it(tmp_path: Path, line: str) -> None:
    outcome = execute(tmp_path, command(line, shell=True, limits={"file": 1}))
    assert outcome == Failure("FileTooLarge", "It wrote a file of more than 1 MB.", PERMANENT)


def test_a_program_that_prints_too_much_is_ended(tmp_path: Path) -> None:
    outcome = execute(tmp_path, limited("while True: print('x' * 1000)", output=1))
    assert outcome == Failure("TooMuchOutput", "It printed more than 1 MB.", PERMANENT)


def test_a_program_keeps_to_so_many_cores(tmp_path: Path) -> None:
    source = "import os; print(len(os.sched_getaffinity(0)))"
    assert execute(tmp_path, limited(source, cpu=1)) == Succeeded({"stdout": "1"})
    all_of_them = str(len(os.sched_getaffinity(0)))
    assert execute(tmp_path, limited(source, cpu=1_000)) == Succeeded({"stdout": all_of_them})
    assert execute(tmp_path, limited(source)) == Succeeded({"stdout": all_of_them})  # the next one is free again


def test_python_tasks_have_limits_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def hold():\n    held = b'x' * 200_000_000\n    while True: pass\n")
    given = call("python", "mine:hold", cwd=str(tmp_path), limits={"memory": 64})
    outcome = execute(tmp_path / "area", given)
    assert outcome == Failure("OutOfMemory", "It had more than 64 MB in memory.", PERMANENT)


def test_no_program_leaves_its_memory_in_a_file(tmp_path: Path) -> None:
    assert execute(tmp_path, command("ulimit -c", shell=True)) == Succeeded({"stdout": "0"})


def test_a_program_within_its_limits_notices_nothing(tmp_path: Path) -> None:
    limits = {"cpu": 1, "cpuTime": "1m", "memory": 512, "processes": 10, "file": 10, "output": 1}
    source = "open('kept', 'w').write('x' * 1_000_000); print('x' * 100)"
    assert execute(tmp_path, limited(source, **limits)) == Succeeded({"stdout": "x" * 100})


def test_a_job_may_ask_to_try_again_with_what_was_too_much() -> None:
    failure = Failure("OutOfMemory", "…", PERMANENT)
    assert not Retry(attempts=3).covers(failure)
    assert Retry(attempts=3, on=("transient", "OutOfMemory")).covers(failure)


# Whose limits count.


def test_a_place_has_limits_that_no_task_can_widen(tmp_path: Path) -> None:
    operators = Operators(tmp_path, bounds=Bounds(memory=64))
    for named in ({}, {"limits": {"memory": 4_096}}):
        outcome = operators.execute(script(f"import threading; held = b'x' * 200_000_000; {FOR_EVER}", **named))
        assert outcome == Failure("OutOfMemory", "It had more than 64 MB in memory.", PERMANENT)


def test_of_two_limits_the_smaller_one_counts() -> None:
    place, task = Bounds(memory=64, processes=10), Bounds(cpu_time=timedelta(seconds=1), processes=20)
    assert task.within(place) == Bounds(cpu_time=timedelta(seconds=1), memory=64, processes=10)


def test_limits_are_read_with_every_error_at_its_path() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_bounds({"memory": 1, "cpuTime": "soon", "procesess": 3, "cpu": 0.5}, "run.limits")
    assert dict(refused.value.errors) == {
        "run.limits.cpuTime": '\'soon\' is not a duration: write seconds, or text such as "90s", "5m" or "1h30m".',
        "run.limits.cpu": "0.5 is not a whole number from 1 to 1024.",
        "run.limits.memory": "1 is not a whole number from 16 to 1048576.",
        "run.limits.procesess": "There is no field 'procesess' here: did you mean 'processes'?",
    }


def test_a_place_is_told_its_limits_in_words() -> None:
    assert parse_bounds([], "task-limit") == USUAL
    found = parse_bounds(["memory=512", "cpuTime=10m", "processes=5000"], "task-limit")
    assert found == Bounds(memory=512, cpu_time=timedelta(minutes=10), processes=5_000)
    assert parse_bounds(["memory=512"], "task-limit").processes == USUAL.processes
    for wrong in ("memory", "memory=", "=3", "disk=3", "memory=much", "memory=-1", "memory=٣"):
        with pytest.raises(InvalidInput) as refused:
            parse_bounds([wrong], "task-limit")
        assert refused.value.path.startswith("task-limit")


# What escapes.


def _pid(path: Path) -> int:
    until(lambda: path.exists() and path.read_text() != "", within_s=20, what="the daemon runs")
    return int(path.read_text())


def test_a_daemon_ends_with_the_attempt_that_started_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    waits = f"\nwhile not (os.path.exists({str(path)!r}) and open({str(path)!r}).read()): pass"
    assert execute(tmp_path / "area", script(DAEMON.format(path=str(path)) + waits)) == Succeeded()
    assert not is_alive(_pid(path))


def test_a_daemon_ends_with_the_time_out(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    source = DAEMON.format(path=str(path)) + FOR_EVER
    outcome = execute(tmp_path / "area", script(source, timeout_s=1.5))
    assert isinstance(outcome, Failure)
    assert outcome.error == "Timeout"
    assert not is_alive(_pid(path))


def test_a_daemon_ends_with_a_cancel(tmp_path: Path) -> None:
    path, operators, outcomes = tmp_path / "pid", Operators(tmp_path / "area"), list[object]()
    given = script(DAEMON.format(path=str(path)) + FOR_EVER)
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(given)))
    thread.start()
    daemon = _pid(path)
    operators.cancel(given)
    thread.join(20)
    assert outcomes == [Failure("Cancelled", "The attempt was told to stop.")]
    assert not is_alive(daemon)


def test_attempts_that_run_together_end_only_what_is_their_own(tmp_path: Path) -> None:
    path, outcomes = tmp_path / "pid", list[object]()
    operators = Operators(tmp_path / "area")
    long = script(DAEMON.format(path=str(path)) + f"while not os.path.exists({str(tmp_path / 'end')!r}): pass")
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(long)))
    thread.start()
    daemon = _pid(path)
    assert operators.execute(command(["true"], attempt=2)) == Succeeded()
    assert is_alive(daemon)
    (tmp_path / "end").touch()
    thread.join(20)
    assert outcomes == [Succeeded()]
    assert not is_alive(daemon)


def test_what_a_killed_scheduler_ran_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    source = (
        "import sys\nfrom pathlib import Path\nfrom tests.operators.calls import execute, script\n"
        f"execute(Path({str(tmp_path / 'area')!r}), script({DAEMON.format(path=str(path)) + FOR_EVER!r}))"
    )
    with subprocess.Popen([sys.executable, "-c", source]) as scheduler:
        daemon = _pid(path)
        scheduler.kill()
    until(lambda: not is_alive(daemon), within_s=10, what="it is gone")


def test_a_lost_warden_costs_the_attempt_and_nothing_else(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    told = "f'{os.getpid()} {os.getppid()}'"
    given = script(f"import os, threading; open({str(seen)!r}, 'w').write({told}); {FOR_EVER}")
    operators, outcomes = Operators(tmp_path / "area"), list[object]()
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(given)))
    thread.start()
    until(lambda: seen.exists() and len(seen.read_text().split()) == 2, within_s=20, what="it runs")
    program, warden = map(int, seen.read_text().split())
    os.kill(warden, signal.SIGKILL)
    thread.join(20)
    (outcome,) = outcomes
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind) == ("ExitUnknown", FailureClass.TRANSIENT)
    until(lambda: not is_alive(program), within_s=5, what="its program is gone")
    assert operators.execute(command(["true"], attempt=2)) == Succeeded()


def test_an_idle_warden_that_was_lost_is_noticed(tmp_path: Path) -> None:
    seen = execute(tmp_path, command("echo $PPID", shell=True))
    assert isinstance(seen, Succeeded)
    warden = int(seen.output["stdout"])
    os.kill(warden, signal.SIGKILL)
    until(lambda: not is_alive(warden), within_s=5, what="it is gone")
    assert execute(tmp_path, command(["true"])) == Succeeded()


def test_a_warden_serves_one_program_after_another(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    wardens = {
        json.dumps(outcome.output) if isinstance(outcome, Succeeded) else repr(outcome)
        for outcome in (operators.execute(command("echo $PPID", shell=True, attempt=n)) for n in range(1, 6))
    }
    assert len(wardens) == 1
