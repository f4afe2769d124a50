"""Runs that people ask for: the same idempotency key is the same run, and no key is another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from sweephand.domain.run import Run, RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.rerun import rerun
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_run
from sweephand.errors import Conflict, Unavailable
from sweephand.ports import World
from tests.engine.faults import Fault, Trap, trapped, with_another
from tests.engine.world import NS, Crash, Town, job

DAY = timedelta(days=1)


def ended(town: Town) -> Run:
    town.put(schedule=None)
    run = trigger(town.world, job())
    town.drive()
    return town.run(run.key)


Ask = Callable[[World, Run, str | None], Run]
ASKS: dict[str, Ask] = {
    "trigger": lambda world, _old, key: trigger(world, job(), idempotency_key=key),
    "rerun": lambda world, old, key: rerun(world, old.key, idempotency_key=key),
}


@pytest.fixture(params=ASKS)
def ask(request: pytest.FixtureRequest) -> Ask:
    return ASKS[request.param]


def test_one_key_is_one_run_and_two_are_two(either: Town, ask: Ask) -> None:
    old = ended(either)
    first = ask(either.world, old, "a")
    assert (first.state, ask(either.world, old, "a").key) == (RunState.QUEUED, first.key)
    either.drive()
    assert ask(either.world, old, "a").state is RunState.SUCCEEDED
    others = {ask(either.world, old, key).key for key in ("b", None, None)}
    assert len(others | {first.key, old.key}) == 5
    either.drive()
    assert len(either.calls()) == 5


def test_one_key_for_two_runs_is_two_reruns(town: Town) -> None:
    old, other = ended(town), trigger(town.world, job())
    town.drive()
    assert rerun(town.world, old.key, idempotency_key="a").rerun_of == old.key.run_id
    assert rerun(town.world, other.key, idempotency_key="a").rerun_of == other.key.run_id


@pytest.mark.parametrize("fault", [Fault.CRASH, Fault.REFUSED, Fault.UNHEARD])
def test_a_key_repeated_after_any_fault_is_one_run(town: Town, ask: Ask, fault: Fault) -> None:
    ended(town)
    calls, moment = 1, 0
    while moment < calls:
        town.clock.at += timedelta(seconds=1)
        old = trigger(town.world, job())
        town.drive()
        trap = Trap(moment, fault)
        first: Run | None = None
        try:
            first = ask(trapped(town.world, trap), old, f"key-{moment}")
        except (Crash, Unavailable):
            calls = max(calls, len(trap.calls) + 1)
        again = [ask(town.world, old, f"key-{moment}") for _ in range(2)]
        assert {run.key for run in (*again, first) if run is not None} == {again[0].key}
        moment += 1
    town.advance(minutes=6)
    assert calls > 5
    assert len(town.runs()) == len(town.calls()) == 1 + 2 * moment
    assert {run.state for run in town.runs()} == {RunState.SUCCEEDED}


@pytest.mark.parametrize("key", ["a", None])
@pytest.mark.parametrize("call", ["runs.get", "runs.remember", "due.arm", "runs.create"])
@pytest.mark.parametrize("nth", [1, 2])
def test_two_reruns_at_once_are_two_generations(town: Town, key: str | None, call: str, nth: int) -> None:
    """Were a generation that another just put taken for one's own, one of the two would be lost."""
    old = ended(town)
    others: list[Run] = []
    rival = with_another(
        town.world, call, lambda: others.append(rerun(town.another(), old.key, idempotency_key="b")), nth=nth
    )
    mine = rerun(rival, old.key, idempotency_key=key)
    assert mine.key not in {run.key for run in others}
    town.drive()
    assert len(town.runs()) == 2 + len(others)


def test_a_key_is_forgotten_after_a_day(either: Town) -> None:
    old = ended(either)
    first = trigger(either.world, job(), idempotency_key="a")
    either.drive()
    either.clock.at += DAY + timedelta(minutes=1)
    assert trigger(either.world, job(), idempotency_key="a").key != first.key
    assert old.key != first.key


def test_what_runs_is_not_run_again(town: Town) -> None:
    town.put(schedule=None)
    run = trigger(town.world, job())
    with pytest.raises(Conflict, match="queued"):
        rerun(town.world, run.key, idempotency_key="a")


def test_a_run_that_somebody_asked_for_is_queued_at_once_and_seen_to_as_any_other(either: Town) -> None:
    either.put(schedule=None, concurrency={"runs": 1})
    run = trigger(either.world, job())
    assert run.state is RunState.QUEUED
    assert "Nothing stands in the way" in why_run(either.world, run.key).summary
    cancel(either.world, run.key, actor="ann")
    either.drive()
    assert (either.run(run.key).state, either.calls()) == (RunState.CANCELLED, [])


def test_the_audit_sends_a_queued_run_whose_message_was_lost(town: Town) -> None:
    town.put(schedule=None)
    run = trigger(town.world, job())
    town.stores.database.run("DELETE FROM messages", ())
    town.stores.database.run("DELETE FROM due", ())
    town.sleep_through(minutes=6)
    assert town.audit().resent == 1
    town.drive()
    assert town.run(run.key).state is RunState.SUCCEEDED


def test_a_queued_run_is_not_held_by_a_pause_and_not_given_up_by_a_resume(either: Town) -> None:
    either.put()
    either.pause()
    run = trigger(either.world, job())
    either.resume(catchup="none")
    either.drive()
    assert either.run(run.key).state is RunState.SUCCEEDED
    assert {row.run_id for row in either.ledger()} == set()
    assert either.stores.jobs.head(job()).key.namespace == NS
