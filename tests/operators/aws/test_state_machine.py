"""Machines: an execution is found again by every look, and comes to what it came to."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.engine.complete import TIMEOUT
from sweephand.local.cloud.account import ACCOUNT, REGION, refusal
from sweephand.messages import Again
from sweephand.operators import Operators
from sweephand.operators.aws.state_machine import LOOK_LEAST, LOOK_MOST, execution_name
from sweephand.testing.virtual import VirtualClock
from tests.moto_world import Fault, timed_out
from tests.operators.aws.account import Neighbourhood, a_call, client, output_of, permanent, transient

BAKE = {"stateMachine": "bake", "input": {"what": "${params.what}"}}
ARN = f"arn:aws:states:{REGION}:{ACCOUNT}"


def bake(**more: Any) -> Any:
    return a_call(BAKE, what="bread", **more)


def execution_of(**more: Any) -> str:
    return f"{ARN}:execution:bake:{execution_name(bake(**more))}"


def ended(place: Neighbourhood, status: str, **more: str) -> None:
    place.ended["bake"] = {"status": status, **more}


def test_an_execution_is_started_once_and_looked_at_until_it_has_ended(place: Neighbourhood, there: Operators) -> None:
    assert there.execute(bake()) == Again(LOOK_LEAST, "the execution has begun")
    assert there.execute(bake()) == Again(LOOK_LEAST, "the execution is running")
    assert place.named() == ["DescribeExecution", "StartExecution", "DescribeExecution"]
    assert json.loads(place.calls[1].params["input"]) == {"what": "bread"}
    ended(place, "SUCCEEDED", output='{"loaves": 3}')
    assert output_of(there.execute(bake())) == {"loaves": 3}


def test_looks_become_rarer_the_longer_it_takes(place: Neighbourhood, there: Operators, clock: VirtualClock) -> None:
    def after() -> timedelta:
        outcome = there.execute(bake(timeout_s=86_400))
        assert isinstance(outcome, Again)
        return outcome.after

    after()
    clock.move(place.began_at + timedelta(minutes=2))
    assert after() == timedelta(seconds=30)
    clock.move(place.began_at + timedelta(hours=20))
    assert after() == LOOK_MOST
    clock.move(place.began_at + timedelta(hours=24) - timedelta(seconds=9))
    assert after() == timedelta(seconds=9), "the time-out is not overslept"


def test_with_async_started_is_success(place: Neighbourhood, there: Operators) -> None:
    call = a_call({**BAKE, "async": True}, what="bread")
    assert output_of(there.execute(call)) == {"executionArn": execution_of()}
    assert output_of(there.execute(call)) == {"executionArn": execution_of()}
    assert place.named() == ["StartExecution", "StartExecution"]


def test_the_start_whose_answer_was_lost_finds_the_same_execution(place: Neighbourhood, there: Operators) -> None:
    place.faults = [None, timed_out()]
    assert transient(there.execute(bake()))[0] == TIMEOUT
    assert place.status_of(execution_of()) == "RUNNING"
    # A worker that was lost is no attempt that failed: the next one goes on with its execution.
    assert there.execute(bake(attempt=2, lost=1)) == Again(LOOK_LEAST, "the execution is running")
    assert place.named().count("StartExecution") == 1


def test_what_is_not_seen_yet_is_found_by_starting_it_again(place: Neighbourhood, there: Operators) -> None:
    unseen = Fault(refusal("ExecutionDoesNotExist", "DescribeExecution"))
    there.execute(bake())
    place.faults = [unseen]
    assert isinstance(there.execute(bake()), Again)
    place.faults = [unseen, Fault(refusal("ExecutionAlreadyExists", "StartExecution"))]
    assert isinstance(there.execute(bake()), Again)
    assert len(client("stepfunctions").list_executions(stateMachineArn=f"{ARN}:stateMachine:bake")["executions"]) == 1


def test_the_next_attempt_is_another_execution(place: Neighbourhood, there: Operators) -> None:
    there.execute(bake())
    there.execute(bake(attempt=2))
    assert execution_of() != execution_of(attempt=2)
    assert {place.status_of(execution_of(attempt=n)) for n in (1, 2)} == {"RUNNING"}


def test_a_name_is_no_longer_than_step_functions_takes() -> None:
    assert len(execution_name(bake(attempt=10**6))) <= 80


@pytest.mark.parametrize(
    ("status", "told", "expected", "judge"),
    [
        ("FAILED", {"error": "Oven.Cold", "cause": "no gas"}, ("Oven.Cold", "no gas"), permanent),
        ("FAILED", {}, ("ExecutionFailed", "The execution failed."), permanent),
        ("ABORTED", {}, ("Aborted", "The execution was stopped by somebody."), permanent),
        ("TIMED_OUT", {}, ("TimedOut", "The execution took longer than its machine allows."), transient),
    ],
)
def test_an_execution_that_fails_fails_its_task_with_its_own_words(
    place: Neighbourhood, there: Operators, status: str, told: Any, expected: Any, judge: Any
) -> None:
    there.execute(bake())
    ended(place, status, **told)
    assert judge(there.execute(bake())) == expected


def test_an_execution_that_takes_longer_than_its_task_may_is_stopped(
    place: Neighbourhood, there: Operators, clock: VirtualClock
) -> None:
    there.execute(bake(timeout_s=60))
    clock.move(place.began_at + timedelta(seconds=60))
    assert transient(there.execute(bake(timeout_s=60)))[0] == TIMEOUT
    assert place.status_of(execution_of()) == "ABORTED"


def test_a_long_output_stays_with_its_execution(place: Neighbourhood, there: Operators) -> None:
    there.execute(bake())
    ended(place, "SUCCEEDED", output=json.dumps("x" * OUTPUT_BYTES_MAX))
    assert output_of(there.execute(bake())) == {"executionArn": execution_of()}


def test_who_is_cancelled_in_the_middle_of_a_look_stops_the_execution(place: Neighbourhood, there: Operators) -> None:
    there.execute(bake())
    place.meanwhile = lambda: there.cancel(bake())
    assert transient(there.execute(bake()))[0] == "Cancelled"
    assert place.status_of(execution_of()) == "ABORTED"


def test_who_is_cancelled_between_two_looks_stops_the_execution_and_only_that(
    place: Neighbourhood, there: Operators
) -> None:
    there.stop(bake())
    there.execute(bake())
    there.execute(bake(attempt=2))
    there.stop(bake(attempt=2))
    assert [place.status_of(execution_of(attempt=n)) for n in (1, 2)] == ["RUNNING", "ABORTED"]
    handed_over = a_call({**BAKE, "async": True}, what="bread")
    there.execute(handed_over)
    there.stop(handed_over)
    assert place.status_of(execution_of()) == "RUNNING", "nobody waited for it"


def test_an_express_machine_is_not_waited_for(place: Neighbourhood, there: Operators) -> None:
    place.told["StartExecution"] = {"executionArn": f"{ARN}:express:bake:x:y"}
    error, message = permanent(there.execute(bake()))
    assert error == "ExpressMachine"
    assert "async: true" in message


def test_a_machine_has_versions_and_aliases_and_its_executions_have_not(place: Neighbourhood, there: Operators) -> None:
    place.told["StartExecution"] = {"executionArn": "x"}
    listed = a_call({"stateMachine": "bake:prod"})
    assert permanent(there.execute(listed))[0] == "InvalidInput", "it is another target than the machine itself"
