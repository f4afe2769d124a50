"""What keeps a fire from starting at its time: deadlines, calendars, blackouts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.reasons import ReasonCode
from sweephand.engine.share import put_calendar
from sweephand.errors import StaleVersion
from tests.engine.world import NS, START, Town, at, code_of

TODAY = f"{START:%Y-%m-%d}"
EVERY_DAY = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def blackout(begin: str, end: str, policy: str) -> dict[str, Any]:
    return {"from": at(begin).isoformat(), "to": at(end).isoformat(), "policy": policy}


@pytest.mark.parametrize(("late", "fate"), [(60, "fired"), (61, "skipped")])
def test_a_fire_later_than_its_start_deadline_is_skipped(town: Town, late: int, fate: str) -> None:
    town.put(schedule="5 12 * * *", startDeadline="60s", catchup="all")
    town.sleep_through(seconds=(at("12:05") - START).total_seconds() + late)
    town.advance(minutes=1)
    assert town.fates() == {"12:05": fate}
    if fate == "skipped":
        assert code_of(town.run(at("12:05"))) is ReasonCode.START_DEADLINE


def test_a_closed_day_is_skipped_with_its_reason(town: Town) -> None:
    put_calendar(town.world, NS, "bank", {"weekdays": EVERY_DAY, "closed": [TODAY]}, expected=0)
    town.put(schedule={"cron": "5 12 * * *", "calendar": "bank"})
    town.advance(minutes=6)
    assert code_of(town.run(at("12:05"))) is ReasonCode.CALENDAR
    assert town.fates() == {"12:05": "skipped"}


def test_a_change_of_a_calendar_takes_effect_after_the_look_ahead(town: Town) -> None:
    put_calendar(town.world, NS, "bank", {"weekdays": EVERY_DAY}, expected=0)
    town.put(schedule={"cron": "10,20 12 * * *", "calendar": "bank"})
    put_calendar(town.world, NS, "bank", {"weekdays": EVERY_DAY, "closed": [TODAY]}, expected=1)
    town.advance(minutes=21)
    assert town.fates() == {"12:10": "fired", "12:20": "skipped"}
    with pytest.raises(StaleVersion):
        put_calendar(town.world, NS, "bank", {"weekdays": EVERY_DAY}, expected=1)


@pytest.mark.parametrize("catchup", ["none", "latest", "all"])
def test_a_blackout_that_skips_skips_whatever_the_catch_up(town: Town, catchup: str) -> None:
    town.put(schedule={"cron": "*/5 * * * *", "blackouts": [blackout("12:04", "12:12", "skip")]}, catchup=catchup)
    town.advance(minutes=16)
    assert town.fates() == {"12:05": "skipped", "12:10": "skipped", "12:15": "fired"}
    assert code_of(town.run(at("12:05"))) is ReasonCode.BLACKOUT


@pytest.mark.parametrize(
    ("catchup", "held"),
    [
        ({"policy": "none"}, []),
        ({"policy": "latest"}, ["12:10"]),
        ({"policy": "all"}, ["12:02", "12:05", "12:10"]),
        ({"policy": "all", "max": 2}, ["12:05", "12:10"]),
    ],
)
def test_a_blackout_that_holds_lets_run_at_its_end_what_the_catch_up_names(
    town: Town, catchup: dict[str, Any], held: list[str]
) -> None:
    cron = {"cron": "2,5,10,15 12 * * *", "blackouts": [blackout("12:01", "12:13", "hold")]}
    town.put(schedule=cron, catchup=catchup, startDeadline="30s")
    town.advance(to=at("12:12:30"))
    assert not town.calls()
    town.advance(to=at("12:16"))
    fired = [fire for fire, fate in town.fates().items() if fate == "fired"]
    assert fired == [*held, "12:15"]
    assert [call.at for call in town.calls()[:-1]] == [at("12:13")] * len(held)
    assert not town.holes()


def test_a_held_fire_of_a_long_blackout_starts_at_its_end(either: Town) -> None:
    either.ticks_every = timedelta(minutes=3)
    either.put(schedule={"cron": "5 12 * * *", "blackouts": [blackout("12:04", "12:25", "hold")]})
    either.advance(to=at("12:24"))
    assert code_of(either.run(at("12:05"))) is ReasonCode.BLACKOUT
    either.advance(to=at("12:29"))
    (call,) = either.calls()
    assert at("12:25") <= call.at <= at("12:28:30")


def test_jitter_moves_the_start_and_not_the_identity(town: Town) -> None:
    town.put(schedule={"cron": "5 12 * * *", "jitter": "3m"})
    town.advance(to=at("12:08:01"))
    (call,), run = town.calls(), town.run(at("12:05"))
    assert at("12:05") < call.at == run.start_at <= at("12:08")
    assert run.fire_at == at("12:05")


@pytest.mark.parametrize("skew", [-90, 90])
def test_a_worker_whose_clock_is_off_starts_nothing_before_its_own_time_has_come(town: Town, skew: int) -> None:
    town.put(schedule="5 12 * * *")
    town.advance(to=at("12:05") - timedelta(seconds=1), ticking=False)
    town.clock.at = at("12:05")
    town.drive(town.another("off", skew=timedelta(seconds=skew)))
    assert len(town.calls()) == (1 if skew > 0 else 0)
    moments: list[datetime] = []
    while not town.calls():
        town.clock.at = town.next_visible() or at("13:00")
        moments.append(town.clock.at)
        town.drive(town.another("off", skew=timedelta(seconds=skew)))
    assert moments in ([], [at("12:06:30")])
