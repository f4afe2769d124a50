"""Ticks that are lost, doubled, early, late, or come all at once after an outage."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.domain.ids import JobKey
from sweephand.domain.ledger import FireStatus
from sweephand.domain.reasons import ReasonCode
from tests.faults.checker import assert_sound
from tests.faults.place import HOUR, MINUTE, SECOND, Place

LATE_MAX_MS = 120_000


def _assert_on_time(place: Place, name: str, *, fires: int) -> None:
    rows = place.ledger(name)
    assert [row.status for row in rows] == [FireStatus.FIRED] * fires
    assert all(row.skew_ms is not None and row.skew_ms <= LATE_MAX_MS for row in rows)
    assert len(place.target.of(name)) == fires
    assert_sound(place)


def _pass_until_planning(place: Place, key: JobKey) -> None:
    """Up to a moment before the tick that has the job planned."""
    head = place.world.jobs.head(key)
    assert head is not None
    assert head.plan_at is not None
    whole = head.plan_at.replace(second=0, microsecond=0)
    place.pass_until((whole if whole == head.plan_at else whole + MINUTE) - SECOND)


def test_a_tick_that_never_comes_is_made_up_for_by_the_next(place: Place) -> None:
    """Row 1: the one that would have planned."""
    place.only("tick", "sweep", "normal")
    key = place.put("report", "*/5 * * * *")
    _pass_until_planning(place, key)
    before = place.runs("report")
    place.lost.add("tick")
    place.pass_time(2 * SECOND)
    assert place.runs("report") == before
    place.lost.remove("tick")
    place.pass_time(MINUTE)
    assert len(place.runs("report")) > len(before)
    place.pass_time(20 * MINUTE)
    _assert_on_time(place, "report", fires=len(place.ledger("report")))


def test_a_tick_delivered_twice_at_once_makes_one_run_of_each_fire(place: Place) -> None:
    """Row 2: and each of its sweeps is delivered twice too."""
    place.only("tick", "sweep", "normal")
    place.twice = {"tick", "sweep"}
    place.put("report", "*/5 * * * *")
    place.pass_time(20 * MINUTE)
    assert len(place.deliveries["sweep"]) == 2 * len(place.deliveries["tick"])
    _assert_on_time(place, "report", fires=4)


@pytest.mark.parametrize("apart", [SECOND, 119 * SECOND])
def test_ticks_that_come_too_early_or_too_late_make_no_difference(place: Place, apart: timedelta) -> None:
    """Row 3."""
    place.only("sweep", "normal")
    place.put("report", "*/5 * * * *")
    for _ in range(10):
        place.tick()
        place.pass_time(apart)
        place.tick()
        place.pass_time(2 * MINUTE - apart)
    _assert_on_time(place, "report", fires=4)


def test_after_an_outage_of_three_hours_each_schedule_catches_up_as_it_says(place: Place) -> None:
    """Row 4: all ticks that waited arrive together."""
    place.only("tick", "sweep", "normal")
    place.put("none", "*/10 * * * *", catchup="none")
    place.put("latest", "*/10 * * * *", catchup="latest")
    place.put("all", "*/10 * * * *", catchup={"policy": "all", "max": 5})
    place.pass_time(MINUTE)
    place.clock.move(place.now + 3 * HOUR + 5 * MINUTE)
    back_at = place.now
    for _ in range(20):
        place.tick()
    place.pass_time(12 * MINUTE)
    for name, made_up in {"none": 0, "latest": 1, "all": 5}.items():
        # The first was planned before the outage, and its message waited.
        first, *missed = [row for row in place.ledger(name) if row.fire_at < back_at]
        assert first.status is FireStatus.FIRED
        given_up = len(missed) - made_up
        assert [row.status for row in missed] == [FireStatus.SKIPPED] * given_up + [FireStatus.FIRED] * made_up
        assert all(row.reason and row.reason.startswith(ReasonCode.CATCHUP) for row in missed[:given_up])
    assert_sound(place)
