"""A task that finds nothing to do, and what a call tells its target."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import RunState
from sweephand.engine.complete import complete
from tests.engine.world import Town, at, code_of, dies, run_key

SKIP = Skipped("the task said so: exit code 99")


def test_a_task_may_skip_its_run_which_frees_its_place_and_is_not_tried_again(town: Town) -> None:
    town.target.answers("job", dies)
    town.put(schedule="5,10 12 * * *", timeout="1h", overlap="queue", retry={"attempts": 3})
    town.advance(to=at("12:11"))
    assert town.run(at("12:10")).state is RunState.QUEUED
    first = complete(town.world, run_key(at("12:05")), epoch=1, outcome=SKIP)
    assert (first.state, code_of(first), first.lease_until) == (RunState.SKIPPED, ReasonCode.TASK, None)
    assert first.ended_at is not None
    assert complete(town.world, run_key(at("12:05")), epoch=1, outcome=SKIP) == first
    town.drive()
    assert town.run(at("12:10")).state is RunState.SUCCEEDED
    assert town.fates() == {"12:05": "skipped", "12:10": "fired"}
    assert first.reason is not None
    assert first.reason.detail == SKIP.reason


def test_a_call_tells_its_target_about_the_run(town: Town) -> None:
    told: list[Call] = []

    def listens(call: Call) -> Outcome:
        told.append(call)
        return Succeeded()

    town.target.rules["job"] = listens
    town.put(schedule="5,10 12 * * *", command="echo ${run.intervalStart}")
    town.advance(to=at("12:11"))
    assert [call.context["intervalStart"] for call in told] == [
        _text(at("12:05") - timedelta(hours=23, minutes=55)),
        _text(at("12:05")),
    ]
    assert [call.context["intervalEnd"] for call in told] == [_text(at("12:05")), _text(at("12:10"))]
    assert [call.context["attempt"] for call in told] == [1, 1]


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
