"""Finding what is due: watermarks, pages, shards, outages."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.ids import spread
from sweephand.domain.ledger import FireStatus
from sweephand.domain.limits import FIRES_PER_PASS_MAX
from sweephand.engine.sweep import HAND_ON_AFTER, PAGE, Swept, sweep
from sweephand.engine.tick import tick
from sweephand.engine.trigger import trigger
from sweephand.messages import SweepShards, decode
from sweephand.ports import DueEntry, DueKind, Lane
from tests.engine.world import START, Town, at, job

DUE = START + timedelta(minutes=5)


def crowd(town: Town, count: int, shard: int) -> None:
    """So many entries of one instant, about runs that are long gone."""
    entries = [DueEntry(DUE, DueKind.RUN, f"shop/gone/{number:05}", shard) for number in range(count)]
    town.stores.due.arm(entries)


def test_ticks_that_never_come_are_made_up_for_by_the_next(town: Town) -> None:
    town.put()
    for _ in range(6):
        town.advance(minutes=9, ticking=False)
        tick(town.world)
        town.drive()
    assert set(town.fates().values()) == {"fired"}
    assert not town.holes()


def test_a_tick_that_comes_twice_does_nothing_twice(town: Town) -> None:
    town.put()
    for _ in range(30):
        tick(town.world)
        town.advance(minutes=1)
    assert max(Counter(call.run for call in town.calls()).values()) == 1
    assert list(town.fates().values()) == ["fired"] * 6


def test_more_entries_of_one_instant_than_a_page_holds_are_all_dealt_with(town: Town) -> None:
    town.put(schedule=None)
    run = trigger(town.world, job())
    town.stores.database.run("DELETE FROM messages", ())
    town.stores.database.run("DELETE FROM due", ())
    shard = spread(str(job()), town.stores.shards.count())
    crowd(town, 2 * PAGE, shard)
    town.stores.due.arm([DueEntry(DUE, DueKind.RUN, str(run.key), shard)])
    town.clock.at = DUE
    assert town.sweep() == Swept(shards=8, entries=2 * PAGE + 1, woken=1)
    town.drive()
    assert town.run(run.key).is_terminal


def test_a_sweep_under_load_hands_the_other_shards_on(town: Town) -> None:
    crowd(town, HAND_ON_AFTER + 1, 0)
    town.clock.at = DUE
    assert town.sweep().handed_on == 7
    letters = town.stores.inbox.receive(Lane.SWEEP, most=10, hold=timedelta(minutes=1))
    assert [decode(one.body) for one in letters] == [SweepShards((shard,)) for shard in range(1, 8)]


def test_a_shard_that_another_sweeps_is_left_to_it_until_its_lease_ends(town: Town) -> None:
    town.stores.shards.take(3, owner="slow", now=START, until=START + timedelta(seconds=55))
    assert sweep(town.world, [3]).shards == 0
    town.clock.at += timedelta(seconds=55)
    assert sweep(town.world, [3]).shards == 1


def test_of_two_sweepers_of_one_shard_each_fire_becomes_one_run(town: Town) -> None:
    town.put()
    town.clock.at = town.head().plan_at or START
    for owner in ("one", "two"):
        town.stores.database.run("UPDATE shards SET until = NULL", ())
        town.sweep(town.another(owner))
    town.advance(minutes=20)
    assert max(Counter(call.run for call in town.calls()).values()) == 1
    assert not town.holes()


def test_a_watermark_never_goes_back_with_a_clock(town: Town) -> None:
    town.sweep(town.another("ahead", skew=timedelta(seconds=90)))
    town.sweep(town.another("behind", skew=timedelta(seconds=-90)))
    lease = town.stores.shards.take(0, owner="me", now=town.clock.at, until=town.clock.at)
    assert lease.watermark == START + timedelta(seconds=90)


def test_jobs_fire_on_through_a_growth_of_shards(town: Town) -> None:
    names = [f"job{number}" for number in range(12)]
    for name in names:
        town.put(name, "*/5 * * * *")
    town.advance(minutes=7)
    town.stores.shards.grow(31)
    town.advance(minutes=40)
    for name in names:
        assert list(town.fates(name).values()) == ["fired"] * 9


@pytest.mark.parametrize(
    ("catchup", "fired"),
    [
        ({"policy": "none"}, ["13:05"]),
        ({"policy": "latest"}, ["13:05"]),
        ({"policy": "all"}, None),
        ({"policy": "all", "max": 3}, ["12:55", "13:00", "13:05"]),
        ({"policy": "all", "window": "12m"}, ["12:55", "13:00", "13:05"]),
    ],
)
def test_after_an_outage_every_fire_ran_or_has_its_reason(
    town: Town, catchup: dict[str, Any], fired: list[str] | None
) -> None:
    town.put(catchup=catchup)
    town.advance(to=at("12:01"))
    town.sleep_through(seconds=(at("13:06") - at("12:01")).total_seconds())
    tick(town.world)
    town.advance(to=at("13:09"))
    missed = [f"{fire:%H:%M}" for fire in (at("12:15") + timedelta(minutes=5 * n) for n in range(11))]
    fates = town.fates()
    assert [fire for fire in missed if fates[fire] == "fired"] == (missed if fired is None else fired)
    assert {fates[fire] for fire in missed} <= {"fired", "skipped"}
    assert all(row.reason for row in town.ledger() if row.status is FireStatus.SKIPPED)
    assert [fates[fire] for fire in ("12:05", "12:10")] == ["fired", "fired"]  # planned before it


def test_the_messages_that_an_outage_held_back_start_their_runs_late(town: Town) -> None:
    town.put(catchup="none")
    town.sleep_through(minutes=12)
    town.advance(minutes=1)
    assert town.fates() == {"12:05": "fired", "12:10": "fired"}


def test_a_pass_that_is_cut_off_goes_on_in_the_next(town: Town) -> None:
    town.put(schedule="* * * * * *", catchup={"policy": "all", "max": 5000})
    town.sleep_through(minutes=40)
    assert town.sweep().created == FIRES_PER_PASS_MAX
    town.clock.at += timedelta(minutes=5)
    assert town.sweep().created == FIRES_PER_PASS_MAX
    town.clock.at += timedelta(minutes=5)
    town.sweep()
    assert {row.status for row in town.ledger()} == {FireStatus.PENDING}
    assert len(town.ledger()) == 50 * 60


def test_on_one_machine_a_pass_that_is_cut_off_goes_on_at_once(hamlet: Town) -> None:
    hamlet.put(schedule="* * * * * *", catchup={"policy": "all", "max": 5000})
    hamlet.sleep_through(seconds=1500)
    swept = hamlet.sweep()
    hamlet.drive()
    assert (swept.jobs, swept.created) == (2, 1500)
    assert {row.status for row in hamlet.ledger()} == {FireStatus.FIRED}


def test_the_local_pace_fires_to_the_second(hamlet: Town) -> None:
    hamlet.ticks_every = timedelta(seconds=1)
    hamlet.put(schedule="*/10 * * * * *")
    hamlet.advance(seconds=60)
    assert [(call.at - START).total_seconds() for call in hamlet.calls()] == [0, 10, 20, 30, 40, 50, 60]
