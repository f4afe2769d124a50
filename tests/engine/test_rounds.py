"""The audit of everything goes on where it ended."""

from __future__ import annotations

from datetime import timedelta

from sweephand.domain.ids import Namespace
from sweephand.domain.run import RunState
from sweephand.engine.audit import Audited
from sweephand.engine.put import put
from sweephand.engine.rounds import ROUND_EVERY, WHOLE_EVERY, go_on
from sweephand.ports import Lane
from tests.engine.world import Town, at

AN_HOUR = timedelta(hours=1)


def step(town: Town, seconds: float = 3600) -> Audited:
    return go_on(town.world, until=town.clock.at + timedelta(seconds=seconds))


def test_a_round_looks_at_every_job_of_every_namespace_and_then_rests(either: Town) -> None:
    for name in ("a", "b"):
        either.put(name, schedule=None)
        put(either.world, Namespace("bank"), {"name": name, "command": "true"}, actor="ann", expected=None)
    assert step(either).jobs == 4
    assert step(either).jobs == 0
    either.clock.at += ROUND_EVERY
    assert step(either).jobs == 4


def test_a_round_that_runs_out_of_time_goes_on_in_the_next_step(either: Town) -> None:
    for name in ("a", "b", "c"):
        either.put(name, schedule=None)
    assert [step(either, seconds=0).jobs for _ in range(5)] == [1, 1, 1, 0, 0]


def test_a_run_whose_message_was_lost_is_sent_again_by_a_round(town: Town) -> None:
    town.put(schedule="5 12 * * *")
    town.clock.at = at("12:05")
    town.stores.inbox.delete(town.stores.inbox.receive(Lane.NORMAL, most=10, hold=timedelta(0)))
    town.clock.at = at("12:11")
    assert step(town).resent == 1
    town.drive()
    assert town.run(at("12:05")).state is RunState.SUCCEEDED


def test_now_and_then_a_round_looks_back_over_a_whole_day(town: Town) -> None:
    """What was lost before the short rounds' reach is found by the whole one."""
    town.put(schedule="5 12 * * *")
    assert step(town).resent == 0
    town.clock.at = at("12:05")
    town.stores.inbox.delete(town.stores.inbox.receive(Lane.NORMAL, most=10, hold=timedelta(0)))
    found: list[int] = []
    town.clock.at = at("12:58")
    while town.clock.at < at("12:58") + 2 * WHOLE_EVERY and not (found and found[-1]):
        found.append(step(town).resent)
        town.clock.at += ROUND_EVERY
    assert found[-1] == 1
