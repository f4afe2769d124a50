"""The text of the machine `dag_run`, as moto's own interpreter of Step Functions reads it: in real time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from zipfile import ZipFile

import boto3
import pytest
from moto import mock_aws
from moto.awslambda.models import LambdaFunction

from sweephand.local.cloud.account import CONFIG, ENVIRONMENT
from tests.local.waiting import until

ROOT: Final = Path(__file__).parents[2]
ROLE: Final = "arn:aws:iam::123456789012:role/any"
TRUST: Final = json.dumps({"Version": "2012-10-17", "Statement": []})


class Interpreted:
    """An execution of the machine; what `advance` does is a test's own."""

    def __init__(self, timeout_s: int) -> None:
        self.machines: Any = boto3.client("stepfunctions", config=CONFIG)
        self.heard: list[tuple[str, Any]] = []
        self.advance: Callable[[Any], None] = lambda _event: None
        called = {name: _function(name) for name in ("advance", "settle")}
        text = (ROOT / "statemachines" / "dag_run.asl.json").read_text()
        for name, arn in called.items():
            text = text.replace(f"${{{name}}}", arn)
        definition = json.loads(text)
        definition["States"]["Advance"]["TimeoutSeconds"] = timeout_s
        # moto takes a catcher that leads back to its own state for none: here it goes by way of another.
        (catcher,) = definition["States"]["Advance"]["Catch"]
        definition["States"]["Again"] = {"Type": "Pass", "Next": catcher["Next"]}
        catcher["Next"] = "Again"
        self._machine = self.machines.create_state_machine(
            name="dag_run", definition=json.dumps(definition), roleArn=ROLE
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
        boto3.client("iam", config=CONFIG).create_role(RoleName="any", AssumeRolePolicyDocument=TRUST)
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
