"""Who gets what external workers come for: priority with ageing, who came first, and a head start for a warm worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.ids import RunKey
from sweephand.domain.shares import AGEING
from sweephand.engine.offer import HEAD_START
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import InvalidInput
from tests.engine.test_pull import A_SECOND, says
from tests.engine.world import NS, TRANSIENT, Town, job


def put_warm(town: Town, **more: Any) -> None:
    step = {"external": {"queue": "default", "prefer": "warm"}}
    put(town.world, NS, {"name": "job", "run": step, **more}, actor="ann", expected=None)


def triggered(town: Town, names: Sequence[str] = ("job",)) -> list[RunKey]:
    keys = [trigger(town.world, job(name)).key for name in names]
    town.drive()
    return keys


def leased(town: Town, worker: str) -> list[RunKey]:
    return [one.lease.run.key for one in town.lease(worker=worker)]


def run_by(town: Town, worker: str) -> None:
    """A run of the job, from beginning to end."""
    triggered(town)
    (one,) = town.lease(worker=worker)
    says(town, one, Succeeded())
    town.clock.at += HEAD_START


def test_a_higher_priority_is_pulled_first(either: Town) -> None:
    names = ("low", "normal", "high")
    for name in names:
        either.put_external(name, schedule=None, priority=name)
    keys = triggered(either, names)
    assert leased(either, "wanda") == keys[::-1]


@pytest.mark.parametrize(("priority", "steps"), [("normal", 1), ("low", 2)])
@pytest.mark.parametrize("is_old", [True, False])
def test_what_waited_long_enough_is_pulled_before_a_higher_priority(
    town: Town, priority: str, steps: int, is_old: bool
) -> None:
    town.put_external(schedule=None, priority=priority)
    town.put_external("high", schedule=None, priority="high")
    waiting = triggered(town)
    town.clock.at += steps * AGEING + (A_SECOND if is_old else -A_SECOND)
    fresh = triggered(town, ["high"])
    assert leased(town, "wanda") == (waiting + fresh if is_old else fresh + waiting)


def test_a_job_that_prefers_a_warm_worker_waits_a_moment_for_the_one_that_ran_it_last(either: Town) -> None:
    put_warm(either)
    run_by(either, "wanda")
    keys = triggered(either)
    assert leased(either, "walter") == []
    assert leased(either, "wanda") == keys

    keys = triggered(either)
    assert leased(either, "walter") == []
    either.clock.at += HEAD_START
    assert leased(either, "walter") == keys


def test_its_first_run_is_for_everybody(town: Town) -> None:
    put_warm(town)
    keys = triggered(town)
    assert leased(town, "walter") == keys


def test_a_retry_is_for_everybody(town: Town) -> None:
    put_warm(town, retry={"attempts": 2, "backoff": "fixed", "delay": "5s"})
    run_by(town, "wanda")
    keys = triggered(town)
    (one,) = town.lease(worker="wanda")
    says(town, one, TRANSIENT)
    town.advance(seconds=6)
    assert leased(town, "walter") == keys


def test_a_job_that_prefers_nobody_is_for_everybody(town: Town) -> None:
    town.put_external(schedule=None)
    run_by(town, "wanda")
    keys = triggered(town)
    assert leased(town, "walter") == keys


def test_a_preference_that_is_not_known_is_refused(town: Town) -> None:
    with pytest.raises(InvalidInput, match="warm") as refused:
        put(town.world, NS, {"name": "job", "run": {"external": {"prefer": "hot"}}}, actor="ann", expected=None)
    assert refused.value.path == "run.external.prefer"
