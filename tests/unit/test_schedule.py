"""Schedules: recurrences within bounds, with jitter, blackouts and notes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.expression import parse
from sweephand.domain.schedule import EPOCH, At, Blackout, Every, Fold, Gap, HoldPolicy, Schedule
from sweephand.domain.zones import TZDATA_VERSION, zone
from sweephand.errors import InvalidInput
from tests.unit.oracle import meanings

SECOND = timedelta(seconds=1)
NEW_YORK = "America/New_York"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(text: str, timezone: str = "UTC", gap: Gap = Gap.SHIFT, fold: Fold = Fold.FIRST) -> Schedule:
    return Schedule(parse(text, hash_id="job"), timezone=timezone, gap=gap, fold=fold)


# Bounds --------------------------------------------------------------------------------------------------


def test_the_start_is_included_and_the_end_is_not() -> None:
    recurrence = parse("0 * * * *", hash_id="job")
    schedule = Schedule(recurrence, start_at=utc("2026-01-01T01:00:00"), end_at=utc("2026-01-01T04:00:00"))
    hours = [fire.hour for fire in schedule.fires(utc("2025-01-01"))]
    assert hours == [1, 2, 3]
    assert schedule.count(utc("2025-01-01"), utc("2027-01-01")) == 3
    assert [fire.hour for fire in schedule.last(utc("2025-01-01"), utc("2027-01-01"), 2)] == [2, 3]
    assert schedule.next_after(utc("2026-01-01T03:00:00")) is None
    assert schedule.previous_before(utc("2026-01-01T01:00:00")) is None
    assert schedule.previous_before(utc("2030-01-01")) == utc("2026-01-01T03:00:00")
    assert not schedule.names(utc("2026-01-01T04:00:00"))
    assert schedule.names(utc("2026-01-01T01:00:00"))
    assert not schedule.names(utc("2026-01-01T01:00:00.5"))


def test_fires_lie_after_the_one_and_up_to_the_other() -> None:
    schedule = cron("0 * * * *")
    found = list(schedule.fires(utc("2026-01-01T01:00:00"), utc("2026-01-01T03:00:00")))
    assert found == [utc("2026-01-01T02:00:00"), utc("2026-01-01T03:00:00")]
    assert list(schedule.fires(utc("2026-01-02"), utc("2026-01-01"))) == []
    assert schedule.count(utc("2026-01-02"), utc("2026-01-01")) == 0
    assert schedule.last(utc("2026-01-02"), utc("2026-01-01"), 3) == []


# Intervals and one-shots ---------------------------------------------------------------------------------


def test_an_interval_counts_both_ways_from_its_anchor() -> None:
    schedule = Schedule(Every(timedelta(minutes=7), anchor=utc("2026-01-01T00:03:00")))
    assert list(islice(schedule.fires(utc("2025-12-31T23:50:00")), 3)) == [
        utc("2025-12-31T23:56:00"),
        utc("2026-01-01T00:03:00"),
        utc("2026-01-01T00:10:00"),
    ]
    assert schedule.previous_before(utc("2026-01-01T00:03:00")) == utc("2025-12-31T23:56:00")


def test_an_interval_of_seconds_is_counted_at_once_and_ends_with_time() -> None:
    schedule = Schedule(Every(SECOND))
    assert schedule.count(EPOCH, utc("2026-01-01")) == int(utc("2026-01-01").timestamp())
    assert schedule.last(EPOCH, utc("2026-01-01"), 2) == [utc("2026-01-01") - SECOND, utc("2026-01-01")]
    assert schedule.next_after(datetime.max.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize("period", [timedelta(0), timedelta(seconds=-5), timedelta(seconds=1.5), timedelta(days=367)])
def test_a_period_is_whole_seconds_within_bounds(period: timedelta) -> None:
    with pytest.raises(InvalidInput) as refused:
        Every(period)
    assert refused.value.path == "schedule.every"


def test_a_one_shot_fires_once() -> None:
    at = utc("2026-12-01")
    schedule = Schedule(At(at))
    assert list(schedule.fires(EPOCH)) == [at]
    assert schedule.next_after(at) is None
    assert schedule.next_after(at - SECOND) == at
    assert schedule.previous_before(at + SECOND) == at
    assert schedule.names(at)
    assert (schedule.count(EPOCH, at), schedule.count(at, utc("2099-01-01"))) == (1, 0)
    assert schedule.last(EPOCH, at, 5) == [at]
    assert schedule.last(EPOCH, at, 0) == []


# Refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"timezone": "Mars/Olympus"}, "schedule.timezone"),
        ({"timezone": "../../etc/passwd"}, "schedule.timezone"),
        ({"timezone": ""}, "schedule.timezone"),
        ({"timezone": "x" * 10_000}, "schedule.timezone"),
        ({"start_at": utc("2026-01-02"), "end_at": utc("2026-01-01")}, "schedule.endAt"),
        ({"start_at": utc("2026-01-01"), "end_at": utc("2026-01-01")}, "schedule.endAt"),
        ({"start_at": datetime(2026, 1, 1)}, "schedule.startAt"),  # noqa: DTZ001 - the mistake
        ({"end_at": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))}, "schedule.endAt"),
        ({"end_at": datetime(9999, 1, 1, tzinfo=UTC)}, "schedule.endAt"),
        ({"jitter": timedelta(seconds=-1)}, "schedule.jitter"),
        ({"jitter": timedelta(days=2)}, "schedule.jitter"),
        ({"jitter": timedelta(microseconds=1)}, "schedule.jitter"),
        ({"blackouts": (Blackout(utc("2026-01-01"), utc("2026-01-02")),) * 101}, "schedule.blackouts"),
    ],
)
def test_a_wrong_schedule_is_refused_at_its_field(wrong: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Schedule(Every(SECOND), **wrong)  # type: ignore[arg-type]
    assert refused.value.path == path
    assert len(refused.value.message) < 250


def test_an_unknown_zone_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(InvalidInput, match="America/New_York"):
        cron("0 0 * * *", "america/newyork")
    with pytest.raises(InvalidInput, match="Asia/Kolkata"):
        cron("0 0 * * *", "Asia/Kolkatta")


def test_a_one_shot_and_a_blackout_are_refused_where_they_make_no_sense() -> None:
    with pytest.raises(InvalidInput, match="whole second"):
        At(utc("2026-01-01T00:00:00.5"))
    with pytest.raises(InvalidInput, match="ends after"):
        Blackout(utc("2026-01-02"), utc("2026-01-02"))


# Zones ---------------------------------------------------------------------------------------------------


def test_zones_come_from_the_wheel_and_not_from_the_machine() -> None:
    import zoneinfo

    assert zoneinfo.TZPATH == ()
    assert TZDATA_VERSION[:4].isdigit()
    assert zone("Europe/Berlin") is zone("Europe/Berlin")


# Jitter --------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=20), st.integers(0, 10**9), st.integers(0, 86_400_000))
def test_a_delay_is_whole_milliseconds_up_to_the_jitter(job: str, at: int, jitter_ms: int) -> None:
    schedule = Schedule(Every(SECOND), jitter=timedelta(milliseconds=jitter_ms))
    fire_at = EPOCH + at * SECOND
    delay = schedule.delay_of(job, fire_at)
    assert timedelta(0) <= delay <= schedule.jitter
    assert delay % timedelta(milliseconds=1) == timedelta(0)
    assert delay == schedule.delay_of(job, fire_at)


def test_delays_spread_over_the_whole_jitter() -> None:
    schedule = Schedule(Every(SECOND), jitter=timedelta(milliseconds=3))
    delays = [schedule.delay_of(f"job-{n}", EPOCH) // timedelta(milliseconds=1) for n in range(400)]
    assert {delays.count(ms) > 60 for ms in range(4)} == {True}
    assert len({schedule.delay_of("job", EPOCH + n * SECOND) for n in range(50)}) == 4


# Blackouts -----------------------------------------------------------------------------------------------


def test_a_blackout_includes_its_beginning_and_not_its_end() -> None:
    short = Blackout(utc("2026-01-01"), utc("2026-01-02"))
    long = Blackout(utc("2026-01-01T12:00:00"), utc("2026-01-03"), HoldPolicy.HOLD)
    schedule = Schedule(Every(SECOND), blackouts=(long, short))
    assert schedule.blackout_at(utc("2025-12-31T23:59:59")) is None
    assert schedule.blackout_at(utc("2026-01-01")) is short
    assert schedule.blackout_at(utc("2026-01-01T13:00:00")) is long  # of two, the one that ends last
    assert schedule.blackout_at(utc("2026-01-03")) is None


# Notes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "after", "note"),
    [
        (
            cron("30 2 * * *", NEW_YORK),
            "2025-03-09",
            "02:30 does not exist on 2025-03-09 in America/New_York: moved to 03:30",
        ),
        (
            cron("30 2,3 * * *", NEW_YORK),
            "2025-03-09",
            "02:30 does not exist on 2025-03-09 in America/New_York: joined with 03:30",
        ),
        (cron("30 2 * * *", NEW_YORK, gap=Gap.SKIP), "2025-03-09", ""),
        (cron("30 3 * * *", NEW_YORK), "2025-03-09", ""),
        (cron("30 * * * *", NEW_YORK), "2025-03-09T07:00:00", ""),
        (
            cron("30 1 * * *", NEW_YORK),
            "2025-11-02T05:00:00",
            "01:30 comes twice on 2025-11-02 in America/New_York: first of the two",
        ),
        (
            cron("30 1 * * *", NEW_YORK, fold=Fold.BOTH),
            "2025-11-02T06:00:00",
            "01:30 comes twice on 2025-11-02 in America/New_York: second of the two",
        ),
        (cron("30 1 * * *", NEW_YORK), "2025-11-03T00:00:00", ""),
        (
            cron("0 9 30 12 *", "Pacific/Apia"),
            "2011-12-01",
            "09:00 does not exist on 2011-12-30 in Pacific/Apia: moved to 2011-12-31 09:00",
        ),
        (
            cron("0 23 30 12 *", "Pacific/Apia"),
            "2011-12-01",
            "23:00 does not exist on 2011-12-30 in Pacific/Apia: moved to 2011-12-31 23:00",
        ),
        (
            cron("15 30 2 * * *", "Australia/Lord_Howe"),
            "2025-10-04T12:00:00",
            "",
        ),
        (
            cron("15 10 2 * * *", "Australia/Lord_Howe"),
            "2025-10-04T12:00:00",
            "02:10:15 does not exist on 2025-10-05 in Australia/Lord_Howe: moved to 02:40:15",
        ),
        (Schedule(Every(timedelta(minutes=30)), timezone=NEW_YORK), "2025-11-02T05:00:00", ""),
    ],
)
def test_a_note_says_what_a_clock_change_did(schedule: Schedule, after: str, note: str) -> None:
    fire_at = schedule.next_after(utc(after))
    assert fire_at is not None
    assert schedule.note_of(fire_at) == note
    assert schedule.local(fire_at) == fire_at.astimezone(ZoneInfo(schedule.timezone))


def test_only_the_fires_that_a_change_touched_have_notes() -> None:
    schedule = cron("30 2 * * *", NEW_YORK)
    noted = [fire for fire in schedule.fires(utc("2015-01-01"), utc("2025-01-01")) if schedule.note_of(fire)]
    assert len(noted) == 10
    assert {schedule.local(fire).hour for fire in noted} == {3}


# Properties ----------------------------------------------------------------------------------------------

moments = st.integers(0, 2**31).map(lambda second: EPOCH + second * SECOND)
recurrences = st.one_of(
    st.integers(0, 10_000)
    .map(lambda seed: meanings(seed, 1)[0])
    .filter(lambda meaning: meaning.days is None and "#5" not in meaning.text)
    .map(lambda meaning: parse(meaning.text, hash_id="job")),
    st.builds(Every, st.integers(1, 366 * 86_400).map(lambda second: second * SECOND), moments),
    st.builds(At, moments),
)
blackouts = st.builds(
    lambda begin, length, policy: Blackout(begin, begin + length * SECOND, policy),
    moments,
    st.integers(1, 10**6),
    st.sampled_from(HoldPolicy),
)
schedules = st.builds(
    Schedule,
    recurrences,
    timezone=st.sampled_from(["UTC", NEW_YORK, "Australia/Lord_Howe", "America/Havana"]),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
    start_at=st.none() | moments,
    jitter=st.integers(0, 86_400_000).map(lambda ms: timedelta(milliseconds=ms)),
    calendar=st.none() | st.just("business-days"),
    blackouts=st.lists(blackouts, max_size=3).map(tuple),
)


@given(schedules, moments)
def test_walks_counts_and_searches_tell_the_same(schedule: Schedule, after: datetime) -> None:
    fires = list(islice(schedule.fires(after), 20))
    assert fires == sorted(set(fires))
    assert all(schedule.names(fire) for fire in fires)
    if fires:
        assert schedule.next_after(after) == fires[0]
        assert schedule.count(after, fires[-1]) == len(fires)
        assert schedule.last(after, fires[-1], 4) == fires[-4:]
    for earlier, later in pairwise(fires):
        assert schedule.previous_before(later) == earlier
        assert schedule.next_after(earlier) == later


@given(schedules)
def test_a_schedule_survives_storage(schedule: Schedule) -> None:
    stored = json.loads(json.dumps(schedule.encode()))
    assert Schedule.decode(stored) == schedule


def test_a_usual_schedule_is_stored_in_few_bytes() -> None:
    stored = cron("*/5 * * * 1-5", "Europe/Berlin").encode()
    assert set(stored) == {"c", "z"}
    assert len(json.dumps(stored)) < 200
