"""What texts mean, and which are refused."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.cron import Cron, bits
from sweephand.domain.expression import TEXT_MAX, parse
from sweephand.domain.schedule import Every
from sweephand.domain.zones import zone
from sweephand.errors import InvalidInput


def cron(text: str, hash_id: str = "job") -> Cron:
    parsed = parse(text, hash_id=hash_id)
    assert isinstance(parsed, Cron)
    return parsed


def nexts(text: str, n: int = 3, start: str = "2026-01-01") -> list[str]:
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC) - timedelta(seconds=1)
    return [f"{fire:%Y-%m-%d %H:%M:%S}" for fire in islice(cron(text).fires(begin, zone("UTC")), n)]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@HOURLY", "0 * * * *"),
        ("0 0 * jan MON", "0 0 * 1 1"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 0 * * 7", "0 0 * * sun"),  # croniter refuses 7 where there are six fields
        ("0 0 * * 5-7", "0 0 * * fri,sat,sun"),
        ("0 0 * * 7-2", "0 0 * * 0-2"),
        ("0 0 * * 7-7", "0 0 * * 0"),  # croniter: every day
        ("0 0 * * 7-0", "0 0 * * 0"),
        ("0 0 * * 0-7/2", "0 0 * * 0,2,4,6"),
        ("5-5 * * * *", "5 * * * *"),  # croniter: every minute
        ("50-10/5 0 * * *", "50,55,0,5,10 0 * * *"),
        ("0 22-3/2 * * *", "0 22,0,2 * * *"),
        ("0 0 * nov-feb *", "0 0 * 11,12,1,2 *"),
        ("10/20 0 * * *", "10,30,50 0 * * *"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("00 06 * * 01", "0 6 * * 1"),
        ("  0\t0 *\n* *\n", "0 0 * * *"),
        ("0 0 1 * *", "0 0 0 1 * *"),
        ("0 */24 * * *", "0 */24 * * *"),
        ("0 0 * * Lfri", "0 0 * * 5L"),
        ("0 0 * * friL", "0 0 * * L5"),
        ("0 0 l * *", "0 0 L * *"),
        ("0 0 1,1,1 * *", "0 0 1 * *"),
    ],
)
def test_texts_that_mean_the_same(text: str, same: str) -> None:
    assert cron(text) == cron(same)


@given(st.sampled_from([(0, 59, 0), (0, 23, 1), (1, 31, 2), (1, 12, 3), (0, 7, 4)]), st.data())
def test_a_range_with_a_step_is_what_counting_gives_even_where_it_wraps(
    field: tuple[int, int, int], data: st.DataObject
) -> None:
    low, high, column = field
    first, last = data.draw(st.integers(low, high)), data.draw(st.integers(low, high))
    size = 7 if column == 4 else high - low + 1
    step = data.draw(st.integers(1, size))
    begin = 0 if (column, first) == (4, 7) else first
    end = last % 7 if (column, first) == (4, 7) else last
    expected = {low + (value - low) % size for value in range(begin, end + 1 + size * (end < begin), step)}
    texts = ["*"] * 5
    texts[column] = f"{first}-{last}/{step}"
    if column == 2:  # so that a short month cannot make it impossible
        texts[3] = "1"
    compiled = cron(" ".join(texts))
    found = (compiled.minutes, compiled.hours, compiled.days, compiled.months, compiled.weekdays)[column]
    assert set(bits(found)) == expected


def test_seconds_come_first() -> None:
    assert nexts("*/20 30 6 * * *") == ["2026-01-01 06:30:00", "2026-01-01 06:30:20", "2026-01-01 06:30:40"]


@pytest.mark.parametrize(
    ("text", "days", "weekdays", "real_time"),
    [
        ("0 0 * * *", False, False, False),
        ("0 0 ? * ?", False, False, False),
        ("0 0 */1 * *", False, False, False),
        ("0 0 */2 * 1", True, True, False),
        ("0 0 1-31 * 0-6", True, True, False),
        ("0 * L * *", True, False, True),
        ("0 */2 * * fri#1", False, True, True),
        ("0 0-23 * * *", False, False, False),
        ("0 H * * *", False, False, False),
    ],
)
def test_what_counts_as_a_restriction_and_as_real_time(text: str, days: bool, weekdays: bool, real_time: bool) -> None:
    compiled = cron(text)
    assert (compiled.days_restricted, compiled.weekdays_restricted) == (days, weekdays)
    assert compiled.follows_real_time is real_time


# H -------------------------------------------------------------------------------------------------------


def test_a_hash_is_stable_and_differs_between_jobs() -> None:
    minutes = {cron("H * * * *", hash_id=f"job-{n}").minutes for n in range(200)}
    assert cron("H H H * *", "a") == cron("H H H * *", "a")
    assert len(minutes) > 40


@pytest.mark.parametrize("n", range(40))
def test_a_hash_stays_within_its_bounds(n: int) -> None:
    job = f"job-{n}"
    assert set(bits(cron("H(10-19) * * * *", job).minutes)) <= set(range(10, 20))
    assert len(bits(cron("H/15 * * * *", job).minutes)) == 4
    assert max(bits(cron("0 0 H * *", job).days)) <= 28  # a day that every month has
    # croniter reads 1-1/2, its own expansion of this, as every other minute of the hour.
    assert set(bits(cron("H(0-1)/2 * * * *", job).minutes)) <= {0, 1}
    assert len(bits(cron("H(0-29)/10 * * * *", job).minutes)) == 3
    assert len(bits(cron("H/60 * * * *", job).minutes)) == 1
    assert len(bits(cron("H,H(30-59) * * * *", job).minutes)) in (1, 2)
    assert bits(cron("H H * * * *", job).seconds) != ()
    assert set(bits(cron("0 0 * * H", job).weekdays)) <= set(range(7))


# EventBridge ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cron(0 10 * * ? *)", ["2026-01-01 10:00:00", "2026-01-02 10:00:00", "2026-01-03 10:00:00"]),
        ("cron(15 12 ? * 2 *)", ["2026-01-05 12:15:00", "2026-01-12 12:15:00"]),  # 2 is Monday
        ("cron(0 18 ? * MON-FRI *)", ["2026-01-01 18:00:00", "2026-01-02 18:00:00", "2026-01-05 18:00:00"]),
        ("cron(0 18 ? * 2-6 *)", ["2026-01-01 18:00:00", "2026-01-02 18:00:00", "2026-01-05 18:00:00"]),
        ("cron(0 8 1 * ? *)", ["2026-01-01 08:00:00", "2026-02-01 08:00:00"]),
        ("cron(0/15 * * * ? *)", ["2026-01-01 00:00:00", "2026-01-01 00:15:00", "2026-01-01 00:30:00"]),
        ("cron(0 0 L * ? *)", ["2026-01-31 00:00:00", "2026-02-28 00:00:00"]),
        ("cron(0 0 ? * L *)", ["2026-01-03 00:00:00", "2026-01-10 00:00:00"]),  # the week ends on Saturday
        ("cron(0 10 ? * 6L 2026-2027)", ["2026-01-30 10:00:00", "2026-02-27 10:00:00"]),  # last Friday
        ("cron(0 0 ? * 3#2 *)", ["2026-01-13 00:00:00", "2026-02-10 00:00:00"]),  # second Tuesday
        ("cron(0 0 ? * TUE#2 *)", ["2026-01-13 00:00:00", "2026-02-10 00:00:00"]),
        ("cron(0 0 3W * ? *)", ["2026-01-02 00:00:00", "2026-02-03 00:00:00", "2026-03-03 00:00:00"]),
        ("cron(0 0 1W * ? *)", ["2026-01-01 00:00:00", "2026-02-02 00:00:00", "2026-03-02 00:00:00"]),
        ("cron(0 0 31W * ? *)", ["2026-01-30 00:00:00", "2026-03-31 00:00:00", "2026-05-29 00:00:00"]),
        ("cron(0 0 29W 2 ? *)", ["2028-02-29 00:00:00", "2032-02-27 00:00:00"]),  # never in a short February
        ("cron(0 0 LW * ? *)", ["2026-01-30 00:00:00", "2026-02-27 00:00:00", "2026-03-31 00:00:00"]),
        ("cron(0 6 1 1 ? 2030/2)", ["2030-01-01 06:00:00", "2032-01-01 06:00:00"]),
        ("cron(0 6 1 1 ? 2198,2199)", ["2198-01-01 06:00:00", "2199-01-01 06:00:00"]),
        ("CRON( 0 6 29 2 ? 2028-2032 )", ["2028-02-29 06:00:00", "2032-02-29 06:00:00"]),
    ],
)
def test_eventbridge_has_its_own_meaning(text: str, expected: list[str]) -> None:
    assert nexts(text, len(expected)) == expected


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("rate(1 minute)", timedelta(minutes=1)),
        ("rate(5 minutes)", timedelta(minutes=5)),
        ("rate(1 hour)", timedelta(hours=1)),
        ("rate(12 Hours)", timedelta(hours=12)),
        ("rate( 7  days )", timedelta(days=7)),
    ],
)
def test_a_rate_is_an_interval(text: str, period: timedelta) -> None:
    assert parse(text, hash_id="job") == Every(period)


# Refusals ------------------------------------------------------------------------------------------------

REFUSED = [
    # text, what the message must name
    ("60 * * * *", "minute field '60'"),
    ("0 24 * * *", "hour field '24'"),
    ("0 0 0 * *", "day-of-month field '0'"),
    ("0 0 32 * *", "day-of-month field '32'"),
    ("0 0 0 0 * *", "day-of-month field '0'"),  # croniter reads it as 1 where there are six fields
    ("0 0 1 0 *", "month field '0'"),
    ("0 0 1 13 *", "month field '13'"),
    ("0 0 * * 8", "day-of-week field '8'"),
    ("60 0 0 * * *", "second field '60'"),
    ("*/0 * * * *", "minute field '*/0'"),
    ("*/61 * * * *", "minute field '*/61'"),
    ("5-70 * * * *", "minute field '5-70'"),
    ("1,,2 * * * *", "minute field '1,,2'"),
    (", * * * *", "minute field ','"),
    ("1- * * * *", "minute field '1-'"),
    ("-1 * * * *", "minute field '-1'"),
    ("+5 * * * *", "minute field '+5'"),
    ("1.5 * * * *", "minute field '1.5'"),
    ("1_0 * * * *", "minute field '1_0'"),
    ("0x5 * * * *", "minute field '0x5'"),
    ("*,5 * * * *", "minute field '*,5'"),
    ("*-5 * * * *", "minute field '*-5'"),
    ("5/ * * * *", "minute field '5/'"),
    ("99999999999 * * * *", "minute field '99999999999'"),
    ("*/99999999999 * * * *", "minute field '*/99999999999'"),
    ("? * * * *", "minute field '?'"),
    ("0 mon * * *", "hour field 'mon'"),
    ("0 0 * foo *", "month field 'foo'"),
    ("0 0 * * jan", "day-of-week field 'jan'"),
    ("0 0 * * monday", "day-of-week field 'monday'"),
    ("0 0 * * fri#0", "day-of-week field 'fri#0'"),
    ("0 0 * * fri#6", "day-of-week field 'fri#6'"),
    ("0 0 * * 5#-1", "day-of-week field '5#-1'"),
    ("0 0 * * mon-fri#2", "day-of-week field 'mon-fri#2'"),
    ("0 0 * * L", "day-of-week field 'l'"),
    ("0 0 * * L8", "day-of-week field 'l8'"),
    ("0 0 L-3 * *", "day-of-month field 'l-3'"),
    ("0 0 15-L * *", "day-of-month field '15-l'"),
    ("0 0 15W * *", "day-of-month field '15w'"),
    ("0 0 LW * *", "day-of-month field 'lw'"),
    ("R * * * *", "minute field 'r'"),
    ("R/5 * * * *", "minute field 'r/5'"),
    ("R(0-29) * * * *", "minute field 'r(0-29)'"),
    ("H(50-70) * * * *", "minute field 'h(50-70)'"),
    ("H(29-0) * * * *", "minute field 'h(29-0)'"),
    ("H/0 * * * *", "minute field 'h/0'"),
    ("H/100 * * * *", "minute field 'h/100'"),
    ("H(0-5)/10 * * * *", "minute field 'h(0-5)/10'"),
    ("0 0 31 2 *", "day-of-month, month"),
    ("0 0 30 2 *", "day-of-month, month"),
    ("0 0 31 apr,jun,sep,nov *", "day-of-month, month"),
    ("cron(0 0 29 2 ? 2026-2027)", "day-of-month, month"),
    ("", "0 fields"),
    ("*", "1 field:"),
    ("* * * *", "4 fields"),
    ("* * * * * * *", "7 fields"),
    ("@reboot", "@reboot"),
    ("@every 5m", "@every 5m"),
    ("@", "@"),
    ("٥ * * * *", "ASCII"),
    ("\x1f* * * * *", "ASCII"),
    ("0 0 * * *\x00", "ASCII"),
    ("0," * 5000 + "0 * * * *", "256"),
    (",".join(["1"] * 1000) + " * * * *", "256"),
    ("cron(0 10 * * * *)", "day-of-week field '*'"),
    ("cron(0 10 ? * ? *)", "exactly one"),
    ("cron(0 10 * * ?)", "6 fields"),
    ("cron(0 10 * * ? *", "6 fields"),
    ("cron 0 10 * * ? *", "6 fields"),
    ("cron(0 10 ? * 0 *)", "day-of-week field '0'"),
    ("cron(0 10 ? * 8 *)", "day-of-week field '8'"),
    ("cron(0 10 * * ? 1969)", "year field '1969'"),
    ("cron(0 10 * * ? 2200)", "year field '2200'"),
    ("cron(0 10 * * ? 9999)", "year field '9999'"),
    ("cron(0 10 * * ? 2030-2026)", "year field '2030-2026'"),
    ("cron(H 10 * * ? *)", "minute field 'h'"),
    ("cron(0 10 32W * ? *)", "day-of-month field '32w'"),
    ("rate(0 minutes)", "rate value '0'"),
    ("rate(1 minutes)", "rate unit 'minutes'"),
    ("rate(5 minute)", "rate unit 'minute'"),
    ("rate(5 seconds)", "rate unit 'seconds'"),
    ("rate(367 days)", "rate value '367'"),
    ("rate(999999999 days)", "rate value '999999999'"),
    ("rate(-5 minutes)", "rate"),
    ("rate(1.5 hours)", "rate"),
    ("rate(5 minutes", "rate"),
]


def best_of_five(text: str) -> float:
    """The quickest of five readings, in seconds: the others met a busy machine."""
    rounds = []
    for _ in range(5):
        begun = time.perf_counter()
        with contextlib.suppress(InvalidInput):
            parse(text, hash_id="job")
        rounds.append(time.perf_counter() - begun)
    return min(rounds)


@pytest.mark.parametrize(("text", "named"), REFUSED, ids=[text[:30] for text, _ in REFUSED])
def test_a_refusal_names_the_field_and_is_quick(text: str, named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text, hash_id="job", path="tasks[0].schedule")
    assert named in refused.value.message
    assert refused.value.path == "tasks[0].schedule"
    assert len(refused.value.message) < 400
    assert best_of_five(text) < 0.005


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", ["* * * * *"], {}])
def test_what_is_not_text_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput, match="text"):
        parse(text, hash_id="job")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "0," * 122 + "{} * * * *",
        ",".join(f"{n}-59/1" for n in range(30)) + ",{} * * * *",
        ",".join(f"59-{n}" for n in range(40)) + ",{} * * * *",
        "H," * 110 + "{} * * * *",
        ",".join(f"H({n}-59)" for n in range(25)) + ",{} * * * *",
        "*/2,*/3 */2,*/3 */2,*/3 */2,*/3 * {}#1",
    ],
)
def test_the_longest_texts_are_read_and_refused_quickly(text: str) -> None:
    assert len(text) < TEXT_MAX
    assert best_of_five(text.format(5)) < 0.01
    assert best_of_five(text.format(60)) < 0.005


@given(st.text(alphabet="0123456789*/,-#?LWHR() @acdefijmnoprstuvy\n", max_size=60))
def test_any_text_is_either_compiled_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert isinstance(parse(text, hash_id="job"), Cron | Every)


def test_croniter_is_not_loaded_by_what_only_steps() -> None:
    program = (
        "import sys; from sweephand.domain import calendars, duration, expression, schedule; "
        "schedule.Schedule.decode({'c': '1.1.1.fffffffe.1ffe.7f.0.0.0.0'}); "
        "sys.exit('croniter' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": ":".join(sys.path)})
