"""A namespace whose runs fail together retries more slowly, and nobody else notices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import Namespace
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.budget import BUDGET, draw
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_run
from tests.engine.faults import Fault, failing_at
from tests.engine.world import NS, TRANSIENT, Town, code_of, job

DELAY = timedelta(seconds=30)


def fails_once(call: Call) -> Outcome:
    return TRANSIENT if call.run.attempt == 1 else Succeeded()


def failed_together(town: Town, count: int, **more: Any) -> list[Run]:
    """So many runs after their first attempts, in the order in which they failed."""
    town.target.rules["job"] = fails_once
    town.put(schedule=None, retry={"attempts": 2, "backoff": "fixed", "delay": "30s"}, **more)
    keys = [trigger(town.world, job()).key for _ in range(count)]
    town.drive()
    return sorted((town.run(key) for key in keys), key=lambda run: run.wake_at or run.changed_at)


def waits(runs: list[Run]) -> list[timedelta]:
    return [run.wake_at - run.changed_at for run in runs if run.wake_at]


def test_retries_beyond_the_budget_wait_longer_and_say_why(either: Town) -> None:
    runs = failed_together(either, 17)
    codes = [code_of(run) for run in runs]
    # The first two, ten, and a fifth of what was started.
    assert codes == [ReasonCode.RETRY] * 15 + [ReasonCode.RETRY_BUDGET] * 2
    held = [timedelta(seconds=3), timedelta(seconds=6)]  # half of 6 and 12, by the dice
    assert waits(runs) == [DELAY] * 15 + [DELAY + one for one in held]
    (blocker,) = why_run(either.world, runs[-1].key).blockers
    assert (blocker.code, "came back empty" in blocker.detail) == (ReasonCode.RETRY_BUDGET, True)
    assert "namespace" in blocker.remedy


def test_none_is_dropped(either: Town) -> None:
    runs = failed_together(either, 17)
    either.advance(minutes=3)
    assert {either.run(run.key).state for run in runs} == {RunState.SUCCEEDED}


def test_another_namespace_has_its_own(either: Town) -> None:
    failed_together(either, 17)
    now = either.clock.now()
    assert draw(either.world, NS, now=now) > timedelta(0)
    assert [draw(either.world, Namespace("other"), now=now) for _ in range(10)] == [timedelta(0)] * 10


@pytest.mark.parametrize("failing", [0, 2])
def test_where_next_to_nothing_is_retried_nothing_is_written(either: Town, failing: int) -> None:
    failed_together(either, failing)
    either.put("fine", schedule=None)
    for _ in range(3):
        trigger(either.world, job("fine"))
    either.drive()
    assert either.stores.shared.get(NS, BUDGET, BUDGET) is None


def test_the_budget_never_fails_a_run_for_want_of_time(town: Town) -> None:
    runs = failed_together(town, 30, runTimeout="31s")
    assert {code_of(run) for run in runs} == {ReasonCode.RETRY}
    assert set(waits(runs)) == {DELAY}


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNHEARD])
def test_a_budget_that_cannot_be_reached_delays_nobody(town: Town, fault: Fault) -> None:
    for _ in range(50):
        draw(town.world, NS, now=town.clock.now())
    held = draw(failing_at(town.world, "shared.put", fault), NS, now=town.clock.now())
    assert held == timedelta(0)
