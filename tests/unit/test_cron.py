"""Which instants an expression names, judged by brute force, by croniter and by hand."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.cron import LATEST, Cron
from sweephand.domain.expression import parse
from sweephand.domain.schedule import Every
from sweephand.domain.zones import Fold, Gap, span_at, zone
from sweephand.errors import InvalidInput
from tests.unit.oracle import Meaning, Window, clock_changes, meanings

SECOND = timedelta(seconds=1)
POLICIES = [(gap, fold) for gap in Gap for fold in Fold]

RECENT = range(2024, 2031)
# Zones with something odd about them, and the years in which it shows.
ZONES = {
    "Africa/Cairo": RECENT,
    "Africa/Casablanca": RECENT,  # an hour back for Ramadan
    "Africa/El_Aaiun": RECENT,
    "America/Asuncion": RECENT,  # midnight, until 2024
    "America/Havana": RECENT,  # midnight
    "America/New_York": RECENT,
    "America/Nuuk": RECENT,  # on a Saturday evening
    "America/Santiago": RECENT,  # the fold begins at midnight
    "America/Sao_Paulo": range(2015, 2020),  # midnight, until 2019
    "America/St_Johns": RECENT,  # UTC-03:30
    "Antarctica/Casey": range(2018, 2031),  # changes of two and three hours
    "Antarctica/Troll": RECENT,  # two hours
    "Asia/Beirut": RECENT,  # midnight
    "Asia/Gaza": RECENT,
    "Asia/Kathmandu": RECENT,  # UTC+05:45
    "Asia/Kolkata": RECENT,  # UTC+05:30
    "Asia/Tehran": range(2020, 2024),  # midnight, until 2022
    "Australia/Lord_Howe": RECENT,  # half an hour
    "Europe/Berlin": RECENT,
    "Europe/Dublin": RECENT,  # negative DST
    "Europe/London": RECENT,
    "Pacific/Apia": range(2011, 2014),  # a day that never was
    "Pacific/Chatham": RECENT,  # UTC+12:45
    "Pacific/Norfolk": RECENT,
    "UTC": RECENT,
}


@cache
def generated() -> list[tuple[Meaning, Cron]]:
    # A generated day may never come (the 5th Friday and the 31st of a short month): those are refused.
    pairs = []
    for meaning in meanings(seed=2026, count=330):
        try:
            pairs.append((meaning, cron(meaning.text)))
        except InvalidInput:
            assert not any(meaning.names_day(date(2000, 1, 1) + timedelta(days=n)) for n in range(28 * 366))
    return pairs


def cron(text: str) -> Cron:
    parsed = parse(text, hash_id="job")
    assert isinstance(parsed, Cron)
    return parsed


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(fires: list[datetime], tz: str) -> list[str]:
    return [f"{fire.astimezone(ZoneInfo(tz)):%Y-%m-%d %H:%M %z}" for fire in fires]


def between(expression: str, tz: str, start: str, end: str, gap: Gap = Gap.SHIFT, fold: Fold = Fold.FIRST) -> list[str]:
    fires = cron(expression).fires(utc(start), zone(tz), gap, fold)
    return local(list(takewhile(utc(end).__ge__, fires)), tz)


def nexts(expression: str, start: str, n: int, tz: str = "UTC") -> list[str]:
    fires = cron(expression).fires(utc(start), zone(tz))
    return [f"{fire.astimezone(ZoneInfo(tz)):%Y-%m-%d %H:%M}" for fire in islice(fires, n)]


# Brute force ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ZONES)
def test_around_every_clock_change_fires_are_those_of_brute_force(name: str) -> None:
    tz = zone(name)
    # A zone without changes is compared in the middle of a year.
    middles = clock_changes(tz, ZONES[name]) or [utc("2027-01-01"), utc("2028-02-29T12:00:00")]
    for middle in middles:
        window = Window(tz, middle)
        start, end = window.start - SECOND, window.end - SECOND
        for meaning, compiled in generated():
            for (gap, fold), expected in window.fires(meaning).items():
                fires = compiled.fires(start, tz, Gap(gap), Fold(fold))
                found = list(takewhile(end.__ge__, fires))
                assert found == expected, (meaning.text, name, middle, gap, fold)


def test_the_generated_expressions_and_changes_are_many() -> None:
    assert len({meaning.text for meaning, _ in generated()}) >= 300
    assert len(clock_changes(zone("America/New_York"), range(2015, 2025))) == 20
    assert sum(meaning.follows_real_time for meaning, _ in generated()) >= 30


@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia"])
def test_counts_and_searches_backwards_agree_with_the_walk_near_clock_changes(name: str) -> None:
    tz = zone(name)
    for middle in clock_changes(tz, ZONES[name])[:2]:
        start, end = middle - timedelta(hours=30), middle + timedelta(hours=30)
        for _, compiled in generated()[::3]:
            for gap, fold in POLICIES:
                fires = list(takewhile(end.__ge__, compiled.fires(start, tz, gap, fold)))
                assert compiled.count(start, end, tz, gap, fold) == len(fires)
                assert compiled.last(start, end, 5, tz, gap, fold) == fires[-5:]
                if fires:
                    assert compiled.previous(end + SECOND, tz, gap, fold) == fires[-1]


def test_no_zone_changes_its_clocks_twice_within_a_block() -> None:
    """The walk compares offsets at noon: two changes that undo each other between noons would be missed."""
    samples = [datetime(2020, 1, 15, tzinfo=UTC) + n * timedelta(days=15) for n in range(12 * 24)]
    # Hundreds of names are aliases: one name per set of rules is enough.
    distinct = {
        tuple(at.astimezone(ZoneInfo(name)).utcoffset() for at in samples): name for name in available_timezones()
    }
    for name in distinct.values():
        tz = zone(name)
        changes = clock_changes(tz, range(2020, 2032))
        assert all(later - earlier > timedelta(days=4) for earlier, later in pairwise(changes))
        for change in changes:
            assert not span_at(tz, change.astimezone(tz).toordinal()).is_steady


# croniter, an independent library, where there are no clock changes ---------------------------------------


def test_in_utc_the_walk_agrees_with_croniter() -> None:
    compared = 0
    start = datetime(2027, 12, 30, 22, 17, 5, tzinfo=UTC)
    for meaning, compiled in generated():
        six = len(meaning.text.split()) == 6
        # croniter takes */1 for a restriction, and ? too.
        text = meaning.text.replace("*/1 ", "* ").replace("?", "*")
        # It joins an n-th weekday with the other day by `and`, does not know 7 in six fields nor 5L,
        # and takes 2-2 for the whole day.
        if "#" in text or "L" in text or (six and "7" in text.split()[-1]) or re.search(r"\b(\d+)-\1\b", text):
            continue
        theirs = croniter(text, start, ret_type=datetime, second_at_beginning=six)
        ours = list(islice(compiled.fires(start, zone("UTC")), 12))
        assert ours == [theirs.get_next() for _ in ours], text
        compared += 1
    assert compared > 100


# By hand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        (Gap.SHIFT, ["2025-03-09 03:30 -0400", "2025-03-10 02:30 -0400"]),
        (Gap.SKIP, ["2025-03-10 02:30 -0400"]),
    ],
)
def test_a_wall_time_in_a_gap_is_shifted_or_skipped(gap: Gap, expected: list[str]) -> None:
    assert between("30 2 * * *", "America/New_York", "2025-03-09", "2025-03-11", gap) == expected


def test_two_fires_that_meet_at_one_instant_are_one() -> None:
    fires = between("30 2,3 * * *", "America/New_York", "2025-03-09", "2025-03-10")
    assert fires == ["2025-03-09 03:30 -0400"]


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (Fold.FIRST, ["2025-11-02 01:30 -0400"]),
        (Fold.BOTH, ["2025-11-02 01:30 -0400", "2025-11-02 01:30 -0500"]),
    ],
)
def test_a_wall_time_in_a_fold_fires_once_or_twice(fold: Fold, expected: list[str]) -> None:
    assert between("30 1 * * *", "America/New_York", "2025-11-02", "2025-11-03", fold=fold) == expected


@pytest.mark.parametrize(("gap", "fold"), POLICIES)
def test_an_hourly_job_follows_real_time_through_every_change(gap: Gap, fold: Fold) -> None:
    compiled = cron("30 * * * *")
    for start in ("2025-03-08T12:00:30", "2025-11-01T12:00:30"):
        fires = list(islice(compiled.fires(utc(start), zone("America/New_York"), gap, fold), 48))
        assert {later - earlier for earlier, later in pairwise(fires)} == {timedelta(hours=1)}


def test_a_day_that_never_was_in_apia() -> None:
    shifted = between("0 9 * * *", "Pacific/Apia", "2011-12-29", "2011-12-31T12:00:00")
    skipped = between("0 9 30 12 *", "Pacific/Apia", "2011-12-01", "2012-06-01", Gap.SKIP)
    moved = between("0 9 30 12 *", "Pacific/Apia", "2011-12-01", "2012-06-01")
    assert shifted == ["2011-12-29 09:00 -1000", "2011-12-31 09:00 +1400"]  # the 30th meets the 31st
    assert skipped == []
    assert moved == ["2011-12-31 09:00 +1400"]


def test_a_day_that_never_was_at_the_end_of_a_year() -> None:
    """Kiritimati leapt over 1994-12-31, so the block around the change holds days of two years."""
    daily = between("0 9 * * *", "Pacific/Kiritimati", "1994-12-30", "1995-01-02T12:00:00")
    assert daily == ["1994-12-30 09:00 -1000", "1995-01-01 09:00 +1400", "1995-01-02 09:00 +1400"]


@pytest.mark.parametrize(
    ("expression", "name", "after", "expected"),
    [
        ("0 9 30 12 *", "Pacific/Apia", "2011-12-30T12:00:00", "2011-12-31 09:00 +1400"),
        ("0 9 31 12 *", "Pacific/Kiritimati", "1994-12-31T12:00:00", "1995-01-01 09:00 +1400"),
    ],
)
def test_a_moved_fire_is_found_from_within_the_day_it_moved_to(
    expression: str, name: str, after: str, expected: str
) -> None:
    found = list(islice(cron(expression).fires(utc(after), zone(name)), 1))
    assert local(found, name) == [expected]


def test_a_gap_at_midnight_shifts_into_the_same_day() -> None:
    assert between("0 0 * * *", "America/Havana", "2025-03-09", "2025-03-10T12:00:00") == [
        "2025-03-09 01:00 -0400",
        "2025-03-10 00:00 -0400",
    ]


def test_a_fold_over_midnight_fires_a_day_once() -> None:
    assert between("30 23 * * *", "Asia/Beirut", "2025-10-25", "2025-10-26T12:00:00") == ["2025-10-25 23:30 +0300"]


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        ("0 0 29 2 *", "2026-01-01", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 29 2 *", "2096-03-01", ["2104-02-29", "2108-02-29"]),  # 2100 is no leap year
        ("0 0 31 * *", "2026-01-31", ["2026-03-31", "2026-05-31", "2026-07-31", "2026-08-31"]),
        ("0 0 L * *", "2028-01-31", ["2028-02-29", "2028-03-31", "2028-04-30"]),
        ("0 0 L 2 *", "2026-01-01", ["2026-02-28", "2027-02-28", "2028-02-29"]),
        ("0 0 * 2 fri#5", "2026-01-01", ["2036-02-29", "2064-02-29", "2092-02-29"]),
        ("0 0 * * fri#2", "2026-01-01", ["2026-01-09", "2026-02-13", "2026-03-13"]),
        ("0 0 * * 5L", "2026-01-01", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 13 * fri", "2026-02-01", ["2026-02-06", "2026-02-13", "2026-02-20"]),  # either
        ("0 0 1-31 * mon", "2026-01-01", ["2026-01-02", "2026-01-03"]),  # 1-31 is a restriction
        ("0 0 */1 * mon", "2026-01-01", ["2026-01-05", "2026-01-12"]),  # */1 is none
        ("0 0 L * fri#1", "2026-01-01", ["2026-01-02", "2026-01-31", "2026-02-06"]),
        ("0 0 1 1 *", "2026-12-31", ["2027-01-01", "2028-01-01"]),
    ],
)
def test_days_of_the_calendar(expression: str, start: str, expected: list[str]) -> None:
    assert nexts(expression, start, len(expected)) == [f"{day} 00:00" for day in expected]


def test_fires_are_strictly_after() -> None:
    compiled = cron("* * * * * *")
    at = utc("2026-01-01T00:00:00")
    assert next(compiled.fires(at, zone("UTC"))) == at + SECOND
    assert next(compiled.fires(at - timedelta.resolution, zone("UTC"))) == at
    assert compiled.previous(at, zone("UTC")) == at - SECOND
    assert compiled.previous(at + timedelta.resolution, zone("UTC")) == at


@pytest.mark.parametrize("name", ["UTC", "Pacific/Kiritimati", "America/New_York"])
def test_time_ends_with_the_year_9998(name: str) -> None:
    compiled = cron("0 0 * * *")
    assert len(list(compiled.fires(LATEST - timedelta(days=2), zone(name)))) in (1, 2, 3)
    assert list(compiled.fires(LATEST, zone(name))) == []
    assert compiled.previous(datetime.max.replace(tzinfo=UTC), zone(name)) is not None


def test_years_bound_the_walk_in_both_directions() -> None:
    compiled = cron("cron(0 6 1 1 ? 2027,2030)")
    assert [fire.year for fire in compiled.fires(utc("2000-01-01"), zone("UTC"))] == [2027, 2030]
    assert compiled.previous(utc("2099-01-01"), zone("UTC")) == utc("2030-01-01T06:00:00")
    assert compiled.previous(utc("2027-01-01"), zone("UTC")) is None
    assert compiled.count(utc("2000-01-01"), utc("2100-01-01"), zone("UTC")) == 2


def test_a_year_of_seconds_is_counted_and_searched_without_enumerating() -> None:
    compiled = cron("* * * * * *")
    start, end = utc("2026-01-01"), utc("2027-01-01")
    assert compiled.count(start, end, zone("UTC")) == 365 * 86_400
    assert compiled.last(start, end, 3, zone("UTC")) == [end - 2 * SECOND, end - SECOND, end]


# Properties ----------------------------------------------------------------------------------------------

crons = (
    st.integers(0, 10_000)
    .map(lambda seed: meanings(seed, 1)[0])
    .filter(lambda meaning: meaning.days is None and "#5" not in meaning.text)
)
zones = st.sampled_from(sorted(ZONES))
moments = st.datetimes(datetime(2011, 6, 1), datetime(2040, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
policies = st.sampled_from(POLICIES)


@given(crons, zones, moments, policies)
def test_a_walk_ascends_and_each_fire_is_found_from_both_sides(
    meaning: Meaning, name: str, after: datetime, policy: tuple[Gap, Fold]
) -> None:
    compiled, tz = cron(meaning.text), zone(name)
    fires = list(islice(compiled.fires(after, tz, *policy), 30))
    assert fires[0] > after
    assert all(earlier < later for earlier, later in pairwise(fires))
    assert compiled.count(after, fires[-1], tz, *policy) == len(fires)
    assert compiled.last(after, fires[-1], 7, tz, *policy) == fires[-7:]
    for earlier, later in pairwise(fires):
        assert compiled.previous(later, tz, *policy) == earlier
        assert next(compiled.fires(earlier, tz, *policy)) == later


@given(crons)
def test_the_compiled_form_survives_storage_and_stays_small(meaning: Meaning) -> None:
    compiled = cron(meaning.text)
    assert Cron.decode(compiled.encode()) == compiled
    assert len(compiled.encode()) < 200


def test_years_survive_storage() -> None:
    compiled = cron("cron(0 6 15W * ? 2027-2030)")
    assert Cron.decode(compiled.encode()) == compiled
    assert not isinstance(compiled, Every)
