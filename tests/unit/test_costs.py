"""The bars of what runs and idle months cost, kept on small worlds; `python -m bench costs` measures larger ones."""

from __future__ import annotations

import re

import pytest

from bench import costs, prices, writes
from bench.rig import For, Work
from bench.writes import BARS, PUBLISHED, Figures, Idle, surcharge

ONE_EACH = (For.PUT, For.CLAIM, For.COMPLETE)
JOBS, HOURS, MINUTES = 6, 2, 7


@pytest.fixture(scope="module")
def hourly() -> Figures:
    return writes.hourly(JOBS, HOURS)


@pytest.fixture(scope="module")
def per_minute() -> Figures:
    return writes.per_minute(3, MINUTES)


@pytest.fixture(scope="module")
def dearer() -> tuple[Figures, dict[str, Figures]]:
    return writes.dearer(hours=1)


@pytest.fixture(scope="module")
def idle() -> Idle:
    return writes.idle(costs.MONTH)


@pytest.fixture(scope="module")
def report(
    hourly: Figures, per_minute: Figures, dearer: tuple[Figures, dict[str, Figures]], idle: Idle
) -> costs.Report:
    return costs.Report({"hourly": hourly, "per minute": per_minute}, *dearer, idle)


def names_of(tables: str) -> list[str]:
    """The first cell of every line of every table."""
    return [line.split("|")[1].strip() for line in tables.splitlines() if line.startswith("|")]


def test_an_hourly_run_stays_within_its_write_units(hourly: Figures) -> None:
    assert hourly.runs == hourly.planned == hourly.executions == JOBS * HOURS
    assert [hourly.per_run([one]) for one in (*ONE_EACH, For.CURSOR, For.HINT)] == [1.0] * 5
    assert hourly.units[For.PAGE] == JOBS
    of_a_whole_day = hourly.writes - hourly.per_run([For.PAGE]) * (1 - HOURS / 24)
    assert of_a_whole_day <= BARS["hourly"]


def test_a_run_of_every_minute_stays_within_its_write_units(per_minute: Figures) -> None:
    assert per_minute.runs == 3 * MINUTES
    assert [per_minute.per_run([one]) for one in ONE_EACH] == [1.0] * 3
    assert per_minute.per_run([For.CURSOR, For.HINT]) <= 2 / 7
    assert per_minute.writes <= BARS["per minute"]


def test_no_run_writes_for_anything_that_no_line_names(hourly: Figures, per_minute: Figures) -> None:
    for figures in (hourly, per_minute):
        assert figures.writes == pytest.approx(figures.per_run(writes.PURPOSES))
        assert set(figures.reads) <= {*writes.READERS, "fixed"}
        assert {operation for _, operation in figures.requests} <= set(writes.OPERATIONS)


def test_a_run_whose_batch_nobody_shares_pays_for_its_page_of_the_view_and_its_hour(
    dearer: tuple[Figures, dict[str, Figures]],
) -> None:
    plain, _ = dearer
    assert plain.per_run([For.VIEWS]) <= 2


def test_what_a_run_pays_more_is_what_is_published(dearer: tuple[Figures, dict[str, Figures]]) -> None:
    plain, special = dearer
    measured = {name: surcharge(figures, plain)[0] for name, figures in special.items()}

    assert measured["a slot"] == PUBLISHED["a slot"]
    assert measured["a retry"] == PUBLISHED["a retry"]
    assert measured["a long timer"] <= PUBLISHED["a long timer"]
    assert measured["a retry after 20 minutes"] <= PUBLISHED["a retry"] + PUBLISHED["a long timer"]


def test_a_short_task_is_waited_for_and_a_long_one_has_a_machine(dearer: tuple[Figures, dict[str, Figures]]) -> None:
    plain, special = dearer
    assert (plain.machines, plain.work["attempt"].tasks) == (0, plain.runs)
    assert (special[writes.SLOW].machines, special[writes.SLOW].work["attempt"].tasks) == (plain.runs, 0)


def test_a_batch_of_runs_is_one_invocation_and_waits_for_their_tasks_side_by_side(hourly: Figures) -> None:
    attempt = hourly.work["attempt"]
    assert attempt.invocations == attempt.tasks == HOURS
    assert attempt.calls == JOBS * attempt.waits


def test_an_idle_month_stays_within_its_dollars(idle: Idle) -> None:
    assert sum(line.dollars for line in costs.idle_lines(idle)) <= costs.IDLE_MAX


def test_what_is_free_makes_no_line_dearer_and_none_negative(idle: Idle) -> None:
    for line in costs.idle_lines(idle):
        assert 0 <= line.after_free <= line.dollars, line


def test_a_month_of_sweeps_over_nothing_writes_two_units_a_shard_and_minute(idle: Idle) -> None:
    sweeps, rounds = 8 * 2 * 30 * 24 * 60, 30 * 24 * 4
    assert idle.write_units == sweeps + rounds
    assert idle.read_units / idle.write_units == pytest.approx(1.1, abs=0.1)


def test_schedules_call_as_often_as_they_should(idle: Idle) -> None:
    minutes = 30 * 24 * 60
    assert {name: work.invocations for name, work in idle.work.items()} == {
        "tick": minutes,
        "sweep": minutes,
        "audit": minutes / 5,
        "watch": minutes / 5,
    }


def test_more_memory_makes_a_call_quicker_and_waiting_dearer() -> None:
    calls, waits = Work(calls=100), Work(waits=100)
    assert costs.lambda_dollars("sweep", calls) == pytest.approx(costs.lambda_dollars("tick", calls), rel=0.01)
    assert costs.lambda_dollars("sweep", waits) > 1.9 * costs.lambda_dollars("tick", waits)


def test_volume_prices_go_tier_by_tier() -> None:
    """By the example of Temporal's own page: 11.25 million actions beyond those of the plan."""
    assert prices.temporal_month(11.25 + prices.TEMPORAL_INCLUDED) == 525 + prices.TEMPORAL_PLAN_MONTH
    assert prices.temporal_month(0) == prices.TEMPORAL_PLAN_MONTH


def test_the_page_has_the_lines_that_the_benchmark_writes(report: costs.Report) -> None:
    page = costs.PAGE.read_text()
    tables = page.partition(costs.BEGIN)[2].partition(costs.END)[0]

    assert names_of(tables) == names_of(costs.rendered(report))


def test_tables_take_the_place_of_older_ones_and_of_nothing_else(report: costs.Report) -> None:
    tables = costs.rendered(report)
    page = costs.written_into(f"# Costs\n\n{costs.BEGIN}\n| old | 1 |\n{costs.END}\n\nBelow.\n", tables)

    assert page == costs.written_into(page, tables)
    assert "| old |" not in page
    assert page.startswith("# Costs\n")
    assert page.endswith("\n\nBelow.\n")


def test_no_line_of_the_page_says_that_a_bar_is_broken_where_jobs_share_batches() -> None:
    bars = re.search(r"^\| the bar \|(.*)\|$", costs.PAGE.read_text(), re.MULTILINE)
    assert bars is not None
    assert [cell.strip() for cell in bars[1].split("|")][:2] == ["6: OK", "4: OK"]
