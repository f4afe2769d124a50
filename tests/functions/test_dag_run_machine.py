"""The text of the machine `dag_run`, as moto's own interpreter of Step Functions reads it: in real time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import boto3
import pytest
from moto import mock_aws
from moto.awslambda.models import LambdaFunction

from sweephand.local.cloud.account import CONFIG, ENVIRONMENT
from tests.dags.played import Played, misplaced
from tests.dags.reference import Reference
from tests.dags.scripts import script_of
from tests.functions.interpreter import ROLE, Interpreting, build_role, interpreting, text_of
from tests.local.waiting import until

SEEDS = (0, 2, 3)


class Interpreted:
    """An execution of the machine; what `advance` does is a test's own."""

    def __init__(self, timeout_s: int) -> None:
        self.machines: Any = boto3.client("stepfunctions", config=CONFIG)
        self.heard: list[tuple[str, Any]] = []
        self.advance: Callable[[Any], None] = lambda _event: None
        called = {name: _function(name) for name in ("advance", "settle")}
        self._machine = self.machines.create_state_machine(
            name="dag_run", definition=text_of(called, timeout_s=timeout_s), roleArn=ROLE
        )["stateMachineArn"]

    def invoked(self, function: LambdaFunction, event: Any) -> tuple[str, bool, str]:
        """In place of a container: moto has no other way to run a function."""
        given = json.loads(event) if isinstance(event, str) else event
        self.heard.append((function.function_name, given))
        if function.function_name == "advance":
            self.advance(given)
        return "null", False, ""

    def start(self) -> None:
        told = {"run": "default/job/1", "generation": 3, "came": {"step": "advance"}}
        self.execution = self.machines.start_execution(
            stateMachineArn=self._machine, name="one", input=json.dumps(told)
        )["executionArn"]

    def answer(self, token: str, step: str) -> None:
        self.machines.send_task_success(taskToken=token, output=json.dumps({"step": step}))

    def ended(self) -> bool:
        return bool(self.machines.describe_execution(executionArn=self.execution)["status"] == "SUCCEEDED")

    @property
    def called(self) -> list[str]:
        return [name for name, _ in self.heard]


def _function(name: str) -> str:
    code = BytesIO()
    with ZipFile(code, "w") as archive:
        archive.writestr("handler.py", "def handler(event, context): ...")
    made = boto3.client("lambda", config=CONFIG).create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=ROLE,
        Handler="handler.handler",
        Code={"ZipFile": code.getvalue()},
    )
    return str(made["FunctionArn"])


@pytest.fixture
def interpreted(request: pytest.FixtureRequest) -> Iterator[Interpreted]:
    with (
        patch.dict("os.environ", ENVIRONMENT),
        mock_aws(config={"stepfunctions": {"execute_state_machine": True}}),
    ):
        build_role()
        found = Interpreted(request.param)

        def invoke(function: LambdaFunction, event: Any) -> tuple[str, bool, str]:
            return found.invoked(function, event)

        with patch.object(LambdaFunction, "_invoke_lambda", invoke):
            yield found


@pytest.mark.parametrize("interpreted", [300], indirect=True)
def test_it_sleeps_until_it_is_woken_and_does_what_it_is_told(interpreted: Interpreted) -> None:
    interpreted.start()
    until(lambda: interpreted.called == ["advance"], within_s=30, what="the first advance")
    (_, first), *_ = interpreted.heard
    assert (first["run"], first["generation"], first["came"]) == ("default/job/1", 3, {"step": "advance"})
    interpreted.advance = lambda event: interpreted.answer(event["token"], "settle")
    interpreted.answer(first["token"], "advance")
    until(interpreted.ended, within_s=30, what="its end")
    assert interpreted.called == ["advance", "advance", "settle"]
    assert interpreted.heard[1][1]["token"] != first["token"]
    assert interpreted.heard[2][1] == {"run": "default/job/1"}


@pytest.mark.parametrize("interpreted", [1], indirect=True)
def test_where_nobody_wakes_it_it_comes_again_and_says_so(interpreted: Interpreted) -> None:
    def stop_then(event: Any) -> None:
        if "Error" in event["came"]:
            interpreted.answer(event["token"], "stop")

    interpreted.advance = stop_then
    interpreted.start()
    until(interpreted.ended, within_s=30, what="its end")
    assert interpreted.called == ["advance", "advance"]
    assert interpreted.heard[1][1]["came"]["Error"] == "States.Timeout"


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interpreting]:
    with interpreting(tmp_path_factory.mktemp("functions")) as found:
        yield found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_dag_ends_as_the_reference_says_in_two_transitions_a_wave(
    interpreter: Interpreting, seed: int
) -> None:
    script = script_of(seed, tasks_max=30)
    played = Played(interpreter, script)
    until(lambda: str(played.key) in interpreter.transitions(), within_s=60, what="the end of its execution")
    assert played.ends == Reference(script).ends
    assert list(misplaced(played)) == []
    transitions, waves = interpreter.transitions()[str(played.key)], interpreter.waves[str(played.key)]
    assert waves > 2, "this is no test of waves"
    assert transitions <= 2 * waves + 4
