"""The text of the machine `backfill`, as moto's own interpreter of Step Functions reads it: in real time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import boto3
from moto import mock_aws
from moto.awslambda.models import LambdaFunction

from sweephand.local.cloud.account import CONFIG, ENVIRONMENT
from tests.functions.interpreter import ROLE, build_role
from tests.functions.test_dag_run_machine import _function
from tests.local.waiting import until

ROOT: Final = Path(__file__).parents[2]
TOLD: Final = {"backfill": "default/job/1", "generation": 2, "came": {"looks": 0}}


def test_it_goes_on_as_often_as_it_is_told_and_waits_in_between() -> None:
    heard: list[Any] = []
    answers = [{"step": "wait", "seconds": 0, "looks": 1}, {"step": "stop", "seconds": 0, "looks": 1}]

    def invoke(_function: LambdaFunction, event: Any) -> tuple[str, bool, str]:
        heard.append(json.loads(event) if isinstance(event, str) else event)
        return json.dumps(answers[len(heard) - 1]), False, ""

    with (
        patch.dict("os.environ", ENVIRONMENT),
        mock_aws(config={"stepfunctions": {"execute_state_machine": True}}),
        patch.object(LambdaFunction, "_invoke_lambda", invoke),
    ):
        build_role()
        text = (ROOT / "statemachines" / "backfill.asl.json").read_text().replace("${backfill}", _function("backfill"))
        machines: Any = boto3.client("stepfunctions", config=CONFIG)
        machine = machines.create_state_machine(name="backfill", definition=text, roleArn=ROLE)["stateMachineArn"]
        started = machines.start_execution(stateMachineArn=machine, name="one", input=json.dumps(TOLD))
        execution = started["executionArn"]

        def is_over() -> bool:
            return bool(machines.describe_execution(executionArn=execution)["status"] == "SUCCEEDED")

        until(is_over, within_s=30, what="its end")
    assert [one["came"] for one in heard] == [TOLD["came"], answers[0]]
    assert {(one["backfill"], one["generation"]) for one in heard} == {("default/job/1", 2)}
