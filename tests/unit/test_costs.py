"""The bars of what a run costs, kept on a small world; `python -m bench writes` measures a larger one."""

from __future__ import annotations

import pytest

from bench.rig import For
from bench.writes import BARS, PUBLISHED, hourly, idle_month, per_minute, surcharges

ONE_EACH = (For.PUT, For.CLAIM, For.COMPLETE)


def test_an_hourly_run_stays_within_its_write_units() -> None:
    jobs, hours = 6, 3

    figures = hourly(jobs, hours)

    assert figures.runs == figures.planned == jobs * hours
    assert [figures.per_run([one]) for one in (*ONE_EACH, For.CURSOR, For.HINT)] == [1.0] * 5
    assert figures.units[For.PAGE] == jobs
    of_a_whole_day = figures.writes - figures.per_run([For.PAGE]) * (1 - hours / 24)
    assert of_a_whole_day <= BARS["hourly"]


def test_a_run_of_every_minute_stays_within_its_write_units() -> None:
    jobs, minutes = 3, 21

    figures = per_minute(jobs, minutes)

    assert figures.runs == jobs * minutes
    assert [figures.per_run([one]) for one in ONE_EACH] == [1.0] * 3
    assert figures.per_run([For.CURSOR, For.HINT]) <= 2 / 7
    assert figures.writes <= BARS["per minute"]


def test_a_run_whose_batch_nobody_shares_pays_for_its_page_of_the_view_and_its_hour() -> None:
    assert hourly(1, 1).per_run([For.VIEWS]) <= 2


def test_what_a_run_pays_more_is_what_is_published() -> None:
    measured = {name: units for name, (units, _) in surcharges(hours=1).items()}

    assert measured["a slot"] == PUBLISHED["a slot"]
    assert measured["a retry"] == PUBLISHED["a retry"]
    assert measured["a long timer"] <= PUBLISHED["a long timer"]
    assert measured["a retry after 20 minutes"] <= PUBLISHED["a retry"] + PUBLISHED["a long timer"]


def test_a_month_of_sweeps_over_nothing_writes_two_units_a_shard_and_minute() -> None:
    writes, reads, _ = idle_month()

    assert writes == 8 * 2 * 30 * 24 * 60
    assert reads / writes == pytest.approx(1.1, abs=0.1)
