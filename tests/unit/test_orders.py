"""What crosses into the function where users' code runs, and what comes back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import Task
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.errors import InvalidInput
from sweephand.messages import Again, Unstarted
from sweephand.orders import decode_call, decode_outcome, encode_call, encode_outcome

FIRE = datetime(2026, 11, 16, 6, tzinfo=UTC)


def a_call() -> Call:
    key = RunKey(JobKey(Namespace("shop"), JobName("report")), RunId("20261116T060000Z"))
    run = Run(
        key,
        FIRE,
        FIRE,
        created_at=FIRE,
        changed_at=FIRE,
        state=RunState.RUNNING,
        epoch=7,
        attempt=3,
        owner="a-secret-of-the-control-plane",
        nonce="another",
    )
    task = Task("main", "command", {"value": ["echo", "${params.who}"], "env": {"A": "ä"}})
    return Call(run, task, {"who": "you"}, "shop/report/…/main", timedelta(seconds=90.5), {"id": "20261116T060000Z"})


def test_a_call_arrives_as_it_was_sent_without_what_is_the_control_planes_own() -> None:
    call = a_call()
    text = json.dumps(encode_call(call))
    arrived = decode_call(json.loads(text))
    assert "secret" not in text
    assert "another" not in text
    assert (arrived.run.key, arrived.run.epoch, arrived.run.attempt) == (call.run.key, 7, 3)
    assert arrived.run.fire_at == FIRE
    assert arrived.task == call.task
    assert (arrived.params, arrived.context) == (call.params, call.context)
    assert (arrived.idempotency_key, arrived.timeout) == (call.idempotency_key, call.timeout)


@pytest.mark.parametrize("broken", [{}, {"v": 2}, {**encode_call(a_call()), "run": "?"}, {"v": 1, "task": None}])
def test_a_call_that_is_none_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="call"):
        decode_call(broken)


@pytest.mark.parametrize(
    "outcome",
    [
        Succeeded({"rows": 3}),
        Succeeded(),
        Skipped("nothing to do"),
        Unstarted("no room"),
        Again(timedelta(seconds=90.5), "the file is not there"),
        Failure("Timeout", "too slow"),
        Failure("InvalidInput", "wrong", FailureClass.PERMANENT),
    ],
)
def test_an_outcome_arrives_as_it_was_sent(outcome: Outcome) -> None:
    assert decode_outcome(json.loads(json.dumps(encode_outcome(outcome)))) == outcome


@pytest.mark.parametrize("broken", [None, {}, [], {"done": {}}, {"failed": {}}, {"succeeded": {}, "skipped": {}}])
def test_an_outcome_that_is_none_is_refused(broken: Any) -> None:
    with pytest.raises(InvalidInput, match="outcome"):
        decode_outcome(broken)
