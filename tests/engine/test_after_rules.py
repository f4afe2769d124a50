"""Jobs after several others: after any of them, and by the day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.delete import delete
from sweephand.engine.follow import follow
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.rollback import rollback
from sweephand.engine.trigger import trigger
from sweephand.errors import InvalidInput
from sweephand.ports import World
from tests.engine.faults import dying_before, with_another
from tests.engine.world import NS, Crash, Town, code_of, job

BERLIN = {"window": "sameDay", "timezone": "Europe/Berlin"}


def comes_after(town: Town, rule: Any, *, name: str = "job", expected: int | None = None, **schedule: Any) -> None:
    document = {"name": name, "command": "true", "schedule": {"after": rule, **schedule}}
    put(town.world, NS, document, actor="ann", expected=expected)


def upstreams(town: Town, *names: str) -> None:
    for name in names:
        town.put(name, None)


def succeed(town: Town, name: str) -> Run:
    """A success of the job, a second after the last; nobody has followed it."""
    town.clock.at += timedelta(seconds=1)
    key = trigger(town.world, job(name)).key
    town.drive()
    run = town.run(key)
    assert run.state is RunState.SUCCEEDED
    return run


def told(town: Town, *runs: Run, world: World | None = None) -> int:
    return follow(world or town.world, "batch", runs)


def used(town: Town, name: str = "job") -> list[dict[str, str]]:
    return [run.params["after"] for run in town.runs(name)]


def at_local(town: Town, *when: int) -> None:
    """Time goes on to a moment that clocks in UTC show."""
    town.clock.at = datetime(*when, tzinfo=UTC)  # type: ignore[misc,arg-type]


# Any of them.


def test_after_any_each_success_of_each_makes_one_run(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"any": ["left", "right"]})
    left, right, again = succeed(either, "left"), succeed(either, "right"), succeed(either, "left")
    assert told(either, right, left, again, left) == 3
    assert told(either, left, right, again) == 0
    ids = [("left", left), ("right", right), ("left", again)]
    assert used(either) == [{name: run.key.run_id} for name, run in ids]


def test_all_in_an_object_means_what_the_list_means(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"all": ["left", "right"], "window": "latest"})
    left, stale, right = succeed(either, "left"), succeed(either, "right"), succeed(either, "right")
    assert [told(either, stale), told(either, right), told(either, left)] == [0, 0, 1]
    assert used(either) == [{"left": left.key.run_id, "right": right.key.run_id}]


def test_an_edit_from_all_to_any_uses_no_success_twice(town: Town) -> None:
    upstreams(town, "left", "right")
    comes_after(town, ["left", "right"])
    left = succeed(town, "left")
    town.clock.at += timedelta(seconds=1)
    comes_after(town, {"any": ["left", "right"]}, expected=1)
    assert told(town, left) == 0  # it came while both were needed
    right = succeed(town, "right")
    assert told(town, right, left) == 1
    assert used(town) == [{"right": right.key.run_id}]


# By the day.


def test_a_day_is_run_once_all_have_succeeded_however_they_are_repeated(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"all": ["left", "right"], **BERLIN})
    left, again = succeed(either, "left"), succeed(either, "left")
    assert told(either, left, again) == 0
    right = succeed(either, "right")
    assert told(either, right) == 1
    more = [succeed(either, name) for name in ("right", "left", "right")]
    repeated = rerun(either.world, left.key)
    either.drive()
    assert told(either, *more, left, right, again, either.run(repeated.key)) == 0
    (run,) = either.runs()
    assert run.trigger is Trigger.DEPENDENCY
    assert run.state is RunState.SUCCEEDED
    assert run.params == {"after": {"left": left.key.run_id, "right": right.key.run_id}, "day": "2027-06-15"}
    assert run.fire_at == datetime(2027, 6, 14, 22, tzinfo=UTC)  # midnight in Berlin


def test_the_next_day_is_run_by_itself(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"all": ["left", "right"], **BERLIN})
    days = []
    for day in (15, 16, 17):
        at_local(either, 2027, 6, day, 20, 0, 0)
        days.append([succeed(either, "left"), succeed(either, "right")])
    assert told(either, *(run for day in reversed(days) for run in day)) == 3
    assert [run.params["day"] for run in either.runs()] == ["2027-06-15", "2027-06-16", "2027-06-17"]


def test_successes_of_two_days_do_not_meet(town: Town) -> None:
    upstreams(town, "left", "right")
    comes_after(town, {"all": ["left", "right"], **BERLIN})
    at_local(town, 2027, 6, 15, 21, 59, 0)  # a minute before midnight in Berlin
    left = succeed(town, "left")
    at_local(town, 2027, 6, 15, 22, 0, 30)
    right = succeed(town, "right")
    assert told(town, left, right) == 0
    assert told(town, succeed(town, "left")) == 1
    assert [run.params["day"] for run in town.runs()] == ["2027-06-16"]


def test_the_day_is_that_of_the_fire_not_of_the_end(town: Town) -> None:
    """A nightly load that ends past midnight belongs to the evening before."""
    town.put("left", "50 23 * * *")
    town.put("right", "55 23 * * *")
    comes_after(town, {"all": ["left", "right"], "window": "sameDay"})
    at_local(town, 2027, 6, 15, 23, 45, 0)
    town.advance(minutes=20, ticking=True)
    runs = [*town.runs("left"), *town.runs("right")]
    assert {run.fire_at.date().isoformat() for run in runs if run.is_terminal} == {"2027-06-15"}
    assert told(town, *runs) == 1
    assert [run.params["day"] for run in town.runs()] == ["2027-06-15"]


def test_the_days_of_a_rule_without_a_zone_are_the_schedules(town: Town) -> None:
    upstreams(town, "left", "right")
    comes_after(town, {"all": ["left", "right"], "window": "sameDay"}, timezone="Asia/Tokyo")
    at_local(town, 2027, 6, 15, 16, 0, 0)  # tomorrow in Tokyo
    assert told(town, succeed(town, "left"), succeed(town, "right")) == 1
    assert town.runs()[0].params["day"] == "2027-06-16"


def test_any_by_the_day_runs_with_the_first_of_the_day(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"any": ["left", "right"], **BERLIN})
    right = succeed(either, "right")
    assert told(either, right, succeed(either, "left"), succeed(either, "right")) == 1
    assert used(either) == [{"right": right.key.run_id}]


def test_any_by_the_day_is_one_run_though_its_follower_died_before_it_said_so(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"any": ["left", "right"], **BERLIN})
    left, right = succeed(either, "left"), succeed(either, "right")
    with pytest.raises(Crash):
        told(either, left, world=dying_before(either.world, "runs.remember", nth=2))
    assert told(either, right, left) == 0
    assert len(either.runs()) == 1


def test_a_chain_stays_on_its_day(town: Town) -> None:
    """What comes after a day's run is of that day, though it runs on the next."""
    upstreams(town, "left", "right", "other")
    comes_after(town, {"all": ["left", "right"], **BERLIN}, name="middle")
    comes_after(town, {"all": ["middle", "other"], **BERLIN})
    at_local(town, 2027, 6, 15, 21, 58, 0)
    pair = [succeed(town, "left"), succeed(town, "right")]
    other = succeed(town, "other")
    at_local(town, 2027, 6, 16, 3, 0, 0)
    told(town, *pair, other)
    town.drive()
    town.follow("middle")
    assert [run.params["day"] for run in town.runs()] == ["2027-06-15"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_day_is_run_once_in_whatever_order_it_is_told(town: Town, order: tuple[int, ...]) -> None:
    names = ("a", "b", "c")
    upstreams(town, *names)
    comes_after(town, {"all": list(names), **BERLIN})
    runs = [succeed(town, name) for name in names]
    assert sum(told(town, runs[place]) for place in (*order, *order)) == 1


@pytest.mark.parametrize("call", ["runs.noted", "runs.remember"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_two_followers_of_a_day_make_one_run_between_any_two_steps(either: Town, call: str, nth: int) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"all": ["left", "right"], **BERLIN})
    left, right = succeed(either, "left"), succeed(either, "right")
    rival = with_another(either.world, call, lambda: told(either, right, world=either.another("rival")), nth=nth)
    told(either, left, world=rival)
    told(either, right)
    assert len(either.runs()) == 1


@pytest.mark.parametrize("call", ["runs.remember", "due.arm", "runs.create", "queue.send"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_day_whose_follower_died_is_finished_by_the_next(either: Town, call: str, nth: int) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"all": ["left", "right"], **BERLIN})
    pair = [succeed(either, "left"), succeed(either, "right")]
    try:
        told(either, *pair, world=dying_before(either.world, call, nth=nth))
    except Crash:
        pass  # it died, as it should
    told(either, *pair)
    either.advance(minutes=6)
    assert [run.state for run in either.runs()] == [RunState.SUCCEEDED]


def test_a_day_is_not_run_again_once_runs_are_forgotten(town: Town) -> None:
    upstreams(town, "left", "right")
    comes_after(town, {"all": ["left", "right"], **BERLIN})
    pair = [succeed(town, "left"), succeed(town, "right")]
    assert told(town, *pair) == 1
    town.stores.database.run("DELETE FROM runs WHERE job = ?", (str(job()),))
    town.clock.at += timedelta(days=90)
    assert told(town, *pair) == 0
    assert town.runs() == []


def test_the_audit_finds_a_day_that_nobody_followed(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"all": ["left", "right"], **BERLIN})
    succeed(either, "left")
    succeed(either, "right")
    assert [either.audit().released, either.audit().released] == [1, 0]


def test_an_edit_that_adds_an_upstream_keeps_what_the_day_has_seen(town: Town) -> None:
    upstreams(town, "a", "b", "c")
    comes_after(town, {"all": ["a", "b"], **BERLIN})
    first = succeed(town, "a")
    told(town, first)
    town.clock.at += timedelta(seconds=1)
    comes_after(town, {"all": ["a", "b", "c"], **BERLIN}, expected=1)
    assert told(town, succeed(town, "b")) == 0
    assert told(town, succeed(town, "c")) == 1
    assert town.runs()[0].params["after"]["a"] == first.key.run_id


def test_a_rollback_to_another_rule_goes_by_that_rule(town: Town) -> None:
    upstreams(town, "left", "right")
    comes_after(town, {"any": ["left", "right"]})
    comes_after(town, {"all": ["left", "right"], **BERLIN}, expected=1)
    rollback(town.world, job(), 1, actor="ann")
    assert told(town, succeed(town, "left"), succeed(town, "left")) == 2


def test_a_job_created_again_has_its_days_before_it(town: Town) -> None:
    upstreams(town, "left", "right")
    comes_after(town, {"all": ["left", "right"], **BERLIN})
    told(town, succeed(town, "left"))
    town.clock.at += timedelta(seconds=1)
    delete(town.world, job(), actor="ann")
    town.clock.at += timedelta(seconds=1)
    comes_after(town, {"all": ["left", "right"], **BERLIN})
    assert told(town, succeed(town, "right")) == 0
    assert told(town, succeed(town, "left")) == 1


def test_a_paused_job_gets_a_skipped_run_of_the_day(either: Town) -> None:
    upstreams(either, "left", "right")
    comes_after(either, {"all": ["left", "right"], **BERLIN})
    either.pause()
    told(either, succeed(either, "left"), succeed(either, "right"))
    either.drive()
    assert [(run.state, code_of(run)) for run in either.runs()] == [(RunState.SKIPPED, ReasonCode.PAUSED)]


@pytest.mark.parametrize("rule", [{"any": ["b"]}, {"all": ["b", "other"], "window": "sameDay"}])
def test_a_cycle_is_refused_under_every_rule(town: Town, rule: Any) -> None:
    upstreams(town, "a", "other")
    comes_after(town, ["a"], name="b")
    with pytest.raises(InvalidInput, match="a → b → a"):
        comes_after(town, rule, name="a", expected=1)
