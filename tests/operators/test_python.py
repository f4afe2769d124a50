"""Functions in a process of their own."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.retry import Failure, FailureClass
from sweephand.operators import Operators
from tests.local.waiting import until
from tests.operators.calls import call, is_alive

TASKS = '''
"""A user's tasks."""
import os, signal, sys, threading

class Permanent(Exception): ...
class Hopeless(Permanent): ...
class Group:
    @staticmethod
    def inner(): return "inner"

def add(a, b=1): print("adding"); return a + b
def echo(**given): return given
def nothing(): print("only printed")
def raises(kind="ValueError"): raise {**globals(), **vars(__import__("builtins"))}[kind]("on \\ud800 purpose")
def returns_a_set(): return {1}
def returns_nan(): return float("nan")
def returns_itself():
    a = []; a.append(a); return a
def returns_much(): return "x" * 10_000
async def later(): ...
def exits(code): sys.exit(code)
def tells_badly(left):
    output = os.environ["SWEEPHAND_OUTPUT"]
    open(os.path.join(os.path.dirname(output), "failure.json"), "w").write(left)
    sys.exit(3)
def dies(): os.kill(os.getpid(), signal.SIGSEGV)
def writes(): open(os.environ["SWEEPHAND_OUTPUT"], "w").write("[1]")
def waits(path):
    open(path, "w").write(str(os.getpid()))
    threading.Event().wait()
def imported(): return sorted(name for name in sys.modules if name.startswith("sweephand"))
constant = 1
'''


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "tasks.py").write_text(TASKS)
    (folder / "broken.py").write_text("import no_such_module_at_all")
    # What the runner itself needs must not be the user's.
    (folder / "sweephand.py").write_text("raise RuntimeError('shadowed')")
    return folder


@pytest.fixture
def operators(tmp_path: Path) -> Operators:
    return Operators(tmp_path / "area")


def python(home: Path, function: str, *args: Any, **options: Any) -> Call:
    return call("python", function, args=list(args), cwd=str(home), **options)


def run(operators: Operators, home: Path, function: str, *args: Any, **options: Any) -> Outcome:
    return operators.execute(python(home, f"tasks:{function}", *args, **options))


def test_a_function_is_called_and_what_it_returns_is_the_output(operators: Operators, home: Path) -> None:
    assert run(operators, home, "add", 2) == Succeeded(3)
    assert run(operators, home, "add", 2, kwargs={"b": 5}) == Succeeded(7)
    assert run(operators, home, "Group.inner") == Succeeded("inner")
    assert run(operators, home, "nothing") == Succeeded(None)
    assert run(operators, home, "writes") == Succeeded([1])


def test_values_of_templates_keep_their_types(operators: Operators, home: Path) -> None:
    kwargs = {"n": "${params.n}", "o": {"deep": ["${params.o}"]}, "text": "n=${params.n}", "at": "${run.fireAt}"}
    outcome = run(operators, home, "echo", kwargs=kwargs, params={"n": 3, "o": {"a": None}})
    expected = {"n": 3, "o": {"deep": [{"a": None}]}, "text": "n=3", "at": "2026-10-03T23:30:00Z"}
    assert outcome == Succeeded(expected)


def test_modules_are_found_by_the_tasks_own_path_too(operators: Operators, home: Path, tmp_path: Path) -> None:
    absent = operators.execute(call("python", "tasks:add", args=[1]))
    assert isinstance(absent, Failure)
    assert (absent.error, absent.kind) == ("ModuleNotFoundError", FailureClass.PERMANENT)
    assert operators.execute(call("python", "tasks:add", args=[1], env={"PYTHONPATH": str(home)})) == Succeeded(2)


def test_nothing_of_ours_is_imported_into_a_users_process(operators: Operators, home: Path) -> None:
    assert run(operators, home, "imported") == Succeeded([])


@pytest.mark.parametrize(
    ("function", "error", "is_permanent"),
    [
        ("tasks:raises", "ValueError", False),
        ("tasks:add", "TypeError", False),
        ("broken:main", "ModuleNotFoundError", True),
        ("nowhere:main", "ModuleNotFoundError", True),
        ("tasks:absent", "NotFound", True),
        ("tasks:constant", "NotFound", True),
        ("tasks", "InvalidInput", True),
        ("tasks:returns_a_set", "InvalidOutput", True),
        ("tasks:returns_nan", "InvalidOutput", True),
        ("tasks:returns_itself", "InvalidOutput", True),
        ("tasks:returns_much", "OutputTooLarge", True),
        ("tasks:later", "InvalidOutput", True),
        ("tasks:dies", "Signal", False),
    ],
)
def test_a_failure_has_the_errors_name(
    operators: Operators, home: Path, function: str, error: str, is_permanent: bool
) -> None:
    outcome = operators.execute(python(home, function))
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind is FailureClass.PERMANENT) == (error, is_permanent), outcome.message


def test_an_error_is_permanent_if_it_or_a_base_of_it_is_named_so(operators: Operators, home: Path) -> None:
    for kind, is_permanent in {"Permanent": True, "Hopeless": True, "KeyboardInterrupt": False}.items():
        outcome = run(operators, home, "raises", kind)
        assert outcome == Failure(
            kind, "on ? purpose", FailureClass.PERMANENT if is_permanent else FailureClass.TRANSIENT
        )


@pytest.mark.parametrize("left", ["", "[]", '{"error": "E"', '"x"', '{"error": 1}'])
def test_a_failure_that_was_not_told_to_the_end_is_known_by_its_exit_code(
    operators: Operators, home: Path, left: str
) -> None:
    """As where the disk is full, or the file is larger than the task's limits allow."""
    outcome = operators.execute(call("python", "tasks:tells_badly", args=[left], cwd=str(home)))
    assert isinstance(outcome, Failure)
    assert outcome.error == "ExitCode3"


def test_a_function_may_exit(operators: Operators, home: Path) -> None:
    assert run(operators, home, "exits", 0) == Succeeded(None)
    assert run(operators, home, "exits", 99) == Skipped("the task said so: exit code 99")
    assert run(operators, home, "exits", "no table") == Failure("ExitCode1", "It ended with exit code 1: no table")


def test_a_place_without_packs_refuses_their_functions_for_good(operators: Operators) -> None:
    outcome = operators.execute(call("python", "tasks:add", code="0" * 64))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, "code" in outcome.message) == (FailureClass.PERMANENT, True)


def test_a_function_can_be_timed_out(operators: Operators, home: Path, tmp_path: Path) -> None:
    outcome = run(operators, home, "waits", str(tmp_path / "pid"), timeout_s=1.5)
    assert isinstance(outcome, Failure)
    assert outcome.error == "Timeout"


def test_a_function_can_be_cancelled(operators: Operators, home: Path, tmp_path: Path) -> None:
    pid, outcomes = tmp_path / "pid", list[Outcome]()
    given = python(home, "tasks:waits", str(pid))
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(given)))
    thread.start()
    until(lambda: pid.exists() and pid.read_text(), within_s=20, what="it runs")
    operators.cancel(given)
    thread.join(20)
    assert outcomes == [Failure("Cancelled", "The attempt was told to stop.")]
    assert not is_alive(int(pid.read_text()))
    assert int(pid.read_text()) != os.getpid()
