"""Who is next: priority with ageing, then shares of the workers by weight, then who came first."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

import pytest

from sweephand.domain.job import Priority
from sweephand.domain.shares import AGEING, OVERTAKEN_EVERY, Shares, Waiting, ageing_of

NOW = datetime(2027, 6, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def waits(namespace: str, priority: str = "normal", *, for_: timedelta = SECOND) -> Waiting:
    return Waiting(priority, namespace, NOW - for_)


def order(shares: Shares, waiting: list[Waiting], count: int, **more: dict[str, int]) -> list[str]:
    """Who gets each of so many workers that become free one by one, and are kept."""
    in_use, found = Counter(more.get("in_use", {})), []
    for _ in range(count):
        allotted = shares.allot(waiting, 1, in_use=in_use, weights=more.get("weights", {}), now=NOW)
        (chosen,) = allotted
        found.append(f"{chosen.namespace} {chosen.priority}")
        in_use[chosen.namespace] += 1
        shares.handed_out(1)
    return found


def test_where_nothing_waits_nobody_gets_anything() -> None:
    assert Shares().allot([], 8, in_use={"a": 1}, weights={}, now=NOW) == Counter()


def test_a_higher_priority_comes_first() -> None:
    waiting = [waits("a", "low"), waits("b"), waits("c", "high")]
    assert order(Shares(), waiting, 5) == ["c high"] * 5
    assert order(Shares(), waiting[:2], 5) == ["b normal"] * 5


@pytest.mark.parametrize(("priority", "steps"), [("normal", 1), ("low", 2)])
def test_what_waited_long_enough_overtakes_the_priorities_above_it(priority: str, steps: int) -> None:
    fresh = waits("a", "high", for_=timedelta(0))
    too_young = waits("a", priority, for_=steps * AGEING - SECOND)
    assert order(Shares(), [fresh, too_young], 2 * OVERTAKEN_EVERY) == ["a high"] * 2 * OVERTAKEN_EVERY
    old = waits("a", priority, for_=steps * AGEING)
    turns = ["a high"] * (OVERTAKEN_EVERY - 1) + [f"a {priority}"]
    assert order(Shares(), [fresh, old], 2 * OVERTAKEN_EVERY) == 2 * turns


def test_a_long_backlog_of_low_priority_gets_one_worker_in_four_while_a_higher_one_waits() -> None:
    waiting = [waits("a", "low", for_=1_000 * AGEING), waits("b", "high")]
    counted = Counter(order(Shares(), waiting, 40))
    assert counted["a low"] == 40 // OVERTAKEN_EVERY


def test_ageing_by_time_puts_a_priority_behind_those_that_came_within_its_wait() -> None:
    assert [ageing_of(priority) for priority in Priority] == [0 * AGEING, AGEING, 2 * AGEING]


def test_within_a_namespace_who_came_first_is_first_among_the_aged() -> None:
    old, older = waits("a", for_=3 * AGEING), waits("a", "low", for_=4 * AGEING)
    fresh = waits("a", "high", for_=timedelta(0))
    assert order(Shares(), [fresh, old, older], OVERTAKEN_EVERY)[-1] == "a low"


def test_namespaces_share_equally_whatever_waits_in_them_and_since_when() -> None:
    waiting = [waits("a", for_=timedelta(hours=1)), waits("b"), waits("c")]
    assert Counter(order(Shares(), waiting, 9)) == {"a normal": 3, "b normal": 3, "c normal": 3}


def test_who_keeps_workers_already_gets_fewer_of_those_that_become_free() -> None:
    assert order(Shares(), [waits("a"), waits("b")], 4, in_use={"a": 6, "b": 3}) == ["b normal"] * 3 + ["a normal"]


def test_one_call_allots_as_many_calls_would() -> None:
    waiting = [waits("a"), waits("b"), waits("c", "high")]
    for room in (1, 4, 9):
        at_once = Shares().allot(waiting[:2], room, in_use={"b": 2}, weights={"a": 3}, now=NOW)
        one_by_one = Counter(order(Shares(), waiting[:2], room, in_use={"b": 2}, weights={"a": 3}))
        assert {f"{one.namespace} normal": count for one, count in at_once.items()} == one_by_one


def test_asking_changes_nothing() -> None:
    shares = Shares()
    shares.spend({"a": 2, "b": 1}, {}, now=NOW)
    shares.spend({"a": 2, "b": 1}, {}, now=NOW + SECOND)
    asked = [shares.allot([waits("a"), waits("b")], 3, in_use={}, weights={}, now=NOW) for _ in range(3)]
    assert asked[0] == asked[1] == asked[2]


def saturated(workers: int, weights: dict[str, int], tasks_s: dict[str, float], rounds: int = 100) -> dict[str, float]:
    """Workers' seconds of each namespace, all of which have more work than can ever be done."""
    shares, clock = Shares(), NOW
    running: list[tuple[datetime, str]] = []
    in_use: Counter[str] = Counter()
    had: defaultdict[str, float] = defaultdict(float)
    while sum(had.values()) < rounds * workers * sum(tasks_s.values()):
        waiting = [Waiting("normal", namespace, NOW) for namespace in tasks_s]
        room = workers - len(running)
        for one, count in shares.allot(waiting, room, in_use=in_use, weights=weights, now=clock).items():
            for _ in range(count):
                heappush(running, (clock + timedelta(seconds=tasks_s[one.namespace]), one.namespace))
            in_use[one.namespace] += count
        shares.handed_out(room)
        clock, ended = heappop(running)
        shares.spend(in_use, weights, now=clock)
        shares.ended(ended, timedelta(seconds=tasks_s[ended]))
        in_use[ended] -= 1
        had[ended] += tasks_s[ended]
    return {namespace: seconds / sum(had.values()) for namespace, seconds in had.items()}


@pytest.mark.parametrize("workers", [1, 3, 8])
@pytest.mark.parametrize("tasks_s", [{"a": 0.05, "b": 0.05}, {"a": 0.5, "b": 0.05}, {"a": 0.05, "b": 1.0}])
@pytest.mark.parametrize("weight", [1, 3])
def test_under_saturation_workers_time_is_shared_by_weight(
    workers: int, tasks_s: dict[str, float], weight: int
) -> None:
    shares = saturated(workers, {"a": weight}, tasks_s)
    assert shares["a"] == pytest.approx(weight / (weight + 1), rel=0.1)


def test_a_hundred_namespaces_share_two_workers() -> None:
    shares = saturated(2, {}, {f"n{n:02}": 0.1 for n in range(100)}, rounds=10)
    assert max(shares.values()) < 1.2 * min(shares.values())


def test_a_small_weight_does_not_starve_beside_a_great_one() -> None:
    shares = saturated(1, {"great": 100}, {"great": 0.05, "small": 0.05}, rounds=1_000)
    assert shares["small"] == pytest.approx(1 / 101, rel=0.2)


def test_who_was_away_saves_nothing_up_and_owes_nothing() -> None:
    shares, busy = Shares(), {"a": 8}
    shares.spend(busy, {}, now=NOW)
    shares.spend(busy, {}, now=NOW + timedelta(hours=1))
    assert Counter(order(shares, [waits("a"), waits("b")], 8)) == {"a normal": 4, "b normal": 4}


def test_a_namespace_that_was_behind_is_not_paid_back_with_every_worker() -> None:
    shares, weights = Shares(), dict[str, int]()
    waiting = [waits("a"), waits("b")]
    shares.allot(waiting, 0, in_use={}, weights=weights, now=NOW)
    shares.spend({"a": 7, "b": 1}, weights, now=NOW)
    shares.spend({"a": 7, "b": 1}, weights, now=NOW + timedelta(hours=1))
    counted = Counter(order(shares, waiting, 16))
    assert counted["a normal"] >= 4


def test_a_clock_that_goes_back_charges_nobody() -> None:
    shares = Shares()
    for at in (NOW, NOW - timedelta(hours=1), NOW - timedelta(hours=1)):
        shares.spend({"a": 8, "b": 1}, {}, now=at)
    assert Counter(order(shares, [waits("a"), waits("b")], 8)) == {"a normal": 4, "b normal": 4}
