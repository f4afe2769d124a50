"""Tasks that call AWS in the function that has the rights to, through the real handlers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.domain.ids import DEFAULT
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud.account import ACCOUNT, REGION, AwsCall, Perform, refusal
from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.front import Front
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from tests.api.client import Callers
from tests.functions.test_execute import LONG, ROOT, SHORT, START
from tests.moto_world import timed_out
from tests.operators.aws.account import TARGETS, build, client, received

RETRIED = {"attempts": 2, "backoff": "fixed", "delay": "1m"}


class Place:
    """A deployment that may call its neighbours."""

    def __init__(self, tmp: Path) -> None:
        self.clock = VirtualClock(START)
        self.calls: list[tuple[str, str]] = []
        """Which function called which operation."""
        self.refused: dict[str, str] = {}
        """Operations that are refused to `call`, and with which code."""
        self.ended: dict[str, str] = {}
        """What DescribeExecution tells, where executions have ended."""
        self.is_lost = False
        """Whether nobody hears what `call` answers."""
        settings = Settings(shards=1, targets=" ".join(TARGETS))
        self.deployment = Deployment(
            ROOT, tmp=tmp, clock=self.clock, dice=SeededDice(1), settings=settings, around=self._around
        )

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        if call.service in {"lambda", "stepfunctions"} or call.function == "call":
            self.calls.append((call.function, call.operation))
        if call.function == "call" and call.operation in self.refused:
            raise refusal(self.refused[call.operation], call.operation)
        answer = perform(call.params)
        if self.is_lost and (call.function, call.operation) == ("attempt", "Invoke"):
            raise timed_out().error
        # moto's executions live by the machine's clock and never end.
        return {**answer, "startDate": START, **self.ended} if call.operation == "DescribeExecution" else answer

    def begin(self, run: Any, **more: Any) -> Run:
        document = {"name": "job", "run": run, "timeout": SHORT, **more}
        head = put(self.deployment.world, DEFAULT, document, actor="test", expected=None)
        started = trigger(self.deployment.world, head.key)
        self.deployment.step()
        return self.look(started)

    def look(self, run: Run) -> Run:
        found = self.deployment.world.runs.get(run.key)
        assert found is not None
        return found

    def pass_time(self, **parts: float) -> None:
        end = self.clock.now() + timedelta(**parts)
        while (following := self.deployment.step()) is not None and following <= end:
            self.clock.move(following)
        self.clock.move(end)
        self.deployment.step()

    def executions(self) -> list[str]:
        sfn = client("stepfunctions")
        machine = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:bake"
        return [one["status"] for one in sfn.list_executions(stateMachineArn=machine)["executions"]]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with place.deployment:
        build()
        place.calls.clear()
        yield place


@pytest.mark.parametrize(("timeout", "way"), [(SHORT, ("attempt", "Invoke")), (LONG, ("attempt", "StartExecution"))])
def test_a_function_is_invoked_and_its_answer_is_the_runs_output(place: Place, timeout: str, way: Any) -> None:
    place.deployment.neighbours["load-sales"] = lambda event: {"path": event["path"], "job": event["sweephand"]["job"]}
    run = place.begin({"lambda": "load-sales", "payload": {"path": "x"}}, timeout=timeout)
    assert (run.state, run.output) == (RunState.SUCCEEDED, {"path": "x", "job": "job"})
    assert place.calls == [way, ("call", "Invoke")]


def test_a_functions_error_fails_the_run_and_is_not_tried_again(place: Place) -> None:
    def fails(event: Any) -> Any:
        raise FunctionFailed("ValueError", "no such region")

    place.deployment.neighbours["load-sales"] = fails
    run = place.begin({"lambda": "load-sales"}, retry=RETRIED)
    assert (run.state, run.attempt) == (RunState.FAILED, 1)
    assert run.failure is not None
    assert (run.failure.error, run.failure.message) == ("ValueError", "no such region")


def test_a_message_is_sent_at_once_however_long_the_task_may_take(place: Place) -> None:
    place.refused["SendMessage"] = "ThrottlingException"
    run = place.begin({"sqs": "orders", "body": "x"}, timeout=LONG, retry=RETRIED)
    assert (run.state, run.attempt) == (RunState.RETRYING, 1)
    place.refused.clear()
    place.pass_time(minutes=2)
    after = place.look(run)
    assert (after.state, after.attempt) == (RunState.SUCCEEDED, 2)
    assert [message["Body"] for message in received("orders")] == ["x"]
    assert ("attempt", "StartExecution") not in place.calls


def test_a_machine_is_waited_for_by_looks_longer_than_any_function_may_run(place: Place) -> None:
    run = place.begin({"stateMachine": "bake"}, timeout="2h")
    assert (run.state, run.reason and run.reason.code) == (RunState.RETRYING, ReasonCode.WAITING)
    place.pass_time(minutes=90)
    assert place.look(run).state is RunState.RETRYING
    place.ended = {"status": "SUCCEEDED", "output": '{"loaves": 3}'}
    place.pass_time(minutes=3)
    after = place.look(run)
    assert (after.state, after.attempt, after.lost, after.output) == (RunState.SUCCEEDED, 1, 0, {"loaves": 3})
    assert place.calls.count(("call", "StartExecution")) == 1
    assert place.calls.count(("call", "DescribeExecution")) < 80


def test_a_machine_that_takes_longer_than_the_task_may_is_stopped(place: Place) -> None:
    run = place.begin({"stateMachine": "bake"}, timeout="20m")
    place.pass_time(minutes=21)
    after = place.look(run)
    assert (after.state, after.reason and after.reason.code) == (RunState.FAILED, ReasonCode.TIMEOUT)
    assert place.executions() == ["ABORTED"]


def test_a_run_that_is_cancelled_while_it_waits_has_its_execution_stopped(place: Place) -> None:
    run = place.begin({"stateMachine": "bake"}, timeout="2h")
    cancel(place.deployment.world, run.key, actor="test")
    place.pass_time(minutes=1)
    assert place.executions() == ["ABORTED"]
    assert place.look(run).state is RunState.CANCELLED


def test_a_worker_that_was_lost_in_a_look_is_followed_by_one_that_finds_the_execution(place: Place) -> None:
    run = place.begin({"stateMachine": "bake"}, timeout="2h")
    place.is_lost = True
    place.pass_time(seconds=3)
    assert place.look(run).state is RunState.RUNNING
    place.is_lost = False
    place.ended = {"status": "SUCCEEDED"}
    place.pass_time(minutes=4)
    after = place.look(run)
    assert (after.state, after.attempt, after.lost) == (RunState.SUCCEEDED, 2, 1)
    assert len(place.executions()) == 1


@pytest.mark.parametrize(
    "run",
    [{"lambda": "sweephand-attempt"}, {"sqs": "sweephand-normal"}, {"stateMachine": "sweephand-execute"}, {"sns": "x"}],
    ids=str,
)
def test_what_may_not_be_called_is_refused_when_it_is_saved_and_when_it_runs(place: Place, run: Any) -> None:
    callers = Callers(place.deployment.world, Front(place.deployment))
    answer = callers.platform().post("/jobs", {"name": "saved", "run": run}).expect(400)
    assert answer.json["errors"][0]["path"] == f"run.{next(iter(run))}"
    refused = place.begin(run)
    assert (refused.state, refused.failure and refused.failure.error) == (RunState.FAILED, "InvalidInput")
    assert {who for who, _ in place.calls} == {"attempt"}, "nobody was called"


def test_what_may_be_called_is_saved_and_described(place: Place) -> None:
    callers = Callers(place.deployment.world, Front(place.deployment))
    admin = callers.platform()
    for number, run in enumerate(
        [
            {"lambda": "load-sales", "payload": {"a": 1}, "async": True},
            {"sqs": "orders", "body": "x", "delay": "5m"},
            {"sns": "news", "subject": "s"},
            {"event": {"source": "s", "type": "t", "bus": "shop"}},
            {"stateMachine": "bake", "input": [1]},
        ]
    ):
        admin.post("/jobs", {"name": f"job-{number}", "run": run}).expect(201)
    admin.post("/jobs", {"name": "sdk", "run": {"awsSdk": {"service": "s3", "action": "GetObject"}}}).expect(400)
    steps = admin.get("/openapi.json").expect(200).json["components"]["schemas"]["Step"]["anyOf"]
    described = {kind for step in steps for kind in step["required"]}
    assert {"lambda", "sqs", "sns", "event", "stateMachine"} <= described
    assert "awsSdk" not in described


def test_where_nothing_is_listed_an_answer_says_what_to_do(tmp_path: Path) -> None:
    deployment = Deployment(ROOT, tmp=tmp_path, clock=VirtualClock(START), dice=SeededDice(1))
    with deployment:
        admin = Callers(deployment.world, Front(deployment)).platform()
        answer = admin.post("/jobs", {"name": "job", "run": {"sqs": "orders"}}).expect(400)
        assert "in the option targets of the deployment" in answer.json["detail"]
