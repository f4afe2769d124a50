"""Tasks that call AWS on the engine of one machine: retries, waits, time-outs, and what people cancel."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import DEFAULT, JobKey, JobName, RunKey
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.embedded import open_stores
from sweephand.engine.cancel import cancel
from sweephand.engine.complete import TIMEOUT
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local import Runtime
from sweephand.local.cloud.account import ENVIRONMENT, refusal
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.operators import Operators
from tests.local.waiting import until
from tests.moto_world import Fault
from tests.operators.aws.account import Neighbourhood, a_call, client, neighbourhood, operators, received, transient

CLOCK = SystemClock()
SOON = {"backoff": "fixed", "delay": "1s"}


class Machine:
    """One machine in a neighbourhood: the scheduler with the operators, in real time."""

    def __init__(self, place: Neighbourhood, runtime: Runtime) -> None:
        self.place = place
        self.runtime = runtime

    def begin(self, run: Any, name: str = "job", **more: Any) -> RunKey:
        document = {"name": name, "run": run, "timeout": "30s", **more}
        put(self.runtime.world, DEFAULT, document, actor="test", expected=None)
        return trigger(self.runtime.world, JobKey(DEFAULT, JobName(name))).key

    def look(self, key: RunKey) -> Run:
        run = self.runtime.world.runs.get(key)
        assert run is not None
        return run

    def ended(self, key: RunKey) -> Run:
        until(lambda: self.look(key).is_terminal, within_s=20, what="the run has ended")
        return self.look(key)

    def waits(self, key: RunKey) -> Run:
        """The run, once it waits for what goes on elsewhere."""

        def is_waiting() -> bool:
            reason = self.look(key).reason
            return reason is not None and reason.code is ReasonCode.WAITING

        until(is_waiting, within_s=20, what="the run waits")
        return self.look(key)

    def executions(self) -> list[str]:
        """How the executions of the machine are doing."""
        sfn = client("stepfunctions")
        (machine,) = sfn.list_state_machines()["stateMachines"]
        found = sfn.list_executions(stateMachineArn=machine["stateMachineArn"])["executions"]
        return [one["status"] for one in found]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    stores = open_stores(tmp_path / "test.db", clock=CLOCK)
    try:
        with neighbourhood(CLOCK) as place:
            target = operators(tmp_path, CLOCK)
            with Runtime(stores, target=target, clock=CLOCK, dice=SystemDice(), workers=2) as runtime:
                yield Machine(place, runtime)
    finally:
        stores.close()


def test_a_queue_that_is_throttled_gets_the_message_of_the_next_attempt(machine: Machine) -> None:
    machine.place.faults = [Fault(refusal("ThrottlingException", "SendMessage"))]
    run = machine.ended(machine.begin({"sqs": "orders", "body": "x"}, retry={"attempts": 2, **SOON}))
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 2)
    assert [message["Body"] for message in received("orders")] == ["x"]


def test_a_functions_own_error_is_tried_again_only_where_the_job_names_it(machine: Machine) -> None:
    def fails_once(event: Any) -> Any:
        if event["sweephand"]["attempt"] == 1:
            raise FunctionFailed("Locked", "somebody else loads")
        return event["sweephand"]["idempotencyKey"]

    machine.place.functions["load-sales"] = fails_once
    named = machine.begin({"lambda": "load-sales"}, name="named", retry={"attempts": 2, "on": ["Locked"], **SOON})
    other = machine.begin({"lambda": "load-sales"}, name="other", retry={"attempts": 2, **SOON})
    assert (machine.ended(named).state, machine.ended(named).output) == (
        RunState.SUCCEEDED,
        machine.ended(named).idempotency_key("main"),
    )
    failed = machine.ended(other)
    assert (failed.state, failed.attempt, failed.failure and failed.failure.error) == (RunState.FAILED, 1, "Locked")


def test_a_machine_is_waited_for_without_a_worker_and_its_output_is_the_runs(machine: Machine) -> None:
    key = machine.begin({"stateMachine": "bake"})
    waiting = machine.waits(key)
    assert (waiting.state, waiting.attempt) == (RunState.RETRYING, 0)
    machine.place.ended["bake"] = {"status": "SUCCEEDED", "output": '{"loaves": 3}'}
    run = machine.ended(key)
    assert (run.state, run.attempt, run.output) == (RunState.SUCCEEDED, 1, {"loaves": 3})
    assert machine.place.named().count("StartExecution") == 1


def test_a_machine_that_fails_is_started_again_only_where_the_job_names_its_error(machine: Machine) -> None:
    machine.place.ended["bake"] = {"status": "FAILED", "error": "Oven.Cold"}
    key = machine.begin({"stateMachine": "bake"}, retry={"attempts": 2, "on": ["Oven.Cold"], **SOON})
    run = machine.ended(key)
    assert (run.state, run.attempt) == (RunState.FAILED, 2)
    assert run.failure is not None
    assert run.failure.error == "Oven.Cold"
    assert machine.place.named().count("StartExecution") == 2


def test_who_is_cancelled_while_waiting_has_its_execution_stopped(machine: Machine) -> None:
    key = machine.begin({"stateMachine": "bake"})
    machine.waits(key)
    cancel(machine.runtime.world, key, actor="test")
    until(lambda: machine.executions() == ["ABORTED"], within_s=20, what="the execution is stopped")
    assert machine.look(key).state is RunState.CANCELLED


def test_a_run_whose_time_is_up_has_its_execution_stopped(machine: Machine) -> None:
    run = machine.ended(machine.begin({"stateMachine": "bake"}, runTimeout="3s"))
    assert (run.state, run.failure and run.failure.error) == (RunState.FAILED, TIMEOUT)
    until(lambda: machine.executions() == ["ABORTED"], within_s=20, what="the execution is stopped")


def test_an_execution_that_outlasts_its_tasks_time_out_is_stopped(machine: Machine) -> None:
    key = machine.begin({"stateMachine": "bake"}, timeout="3s")
    run = machine.ended(key)
    assert (run.state, run.failure and run.failure.error) == (RunState.FAILED, TIMEOUT)
    assert machine.executions() == ["ABORTED"]


def test_what_may_not_be_called_fails_its_run_and_says_what_to_do(machine: Machine) -> None:
    run = machine.ended(machine.begin({"sns": "other"}, retry={"attempts": 5}))
    assert (run.state, run.attempt) == (RunState.FAILED, 1)
    assert run.failure is not None
    assert "List arn:aws:sns:REGION:ACCOUNT:other in the option targets" in run.failure.message


def test_a_call_waits_for_its_answer_as_long_as_the_task_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that takes every call and answers none."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        held: list[socket.socket] = []

        def hold() -> None:
            with suppress(OSError):  # the server is closed
                while True:
                    held.append(silent.accept()[0])

        threading.Thread(target=hold, daemon=True).start()
        began = CLOCK.now()
        error, _ = transient(operators(tmp_path, CLOCK).execute(a_call({"lambda": "load-sales"}, timeout_s=0.4)))
        assert error == TIMEOUT
        assert timedelta(seconds=0.4) <= CLOCK.now() - began < timedelta(seconds=10)
        assert len(held) == 1, "no client tries again by itself"
        held[0].close()


def test_a_place_that_calls_nobody_does_not_import_boto3(tmp_path: Path) -> None:
    line = (
        "import sys; from pathlib import Path; from sweephand.clock import SystemClock; "
        "from sweephand.domain.targets import Targets; from sweephand.operators import Operators; "
        "from sweephand.operators.aws import aws_operators; "
        "Operators(Path('.'), also=aws_operators(Targets(), clock=SystemClock())); "
        "print([name for name in sys.modules if name.startswith('boto')])"
    )
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert "sqs" not in Operators(tmp_path).kinds
