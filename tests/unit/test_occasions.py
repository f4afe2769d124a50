"""What makes a job run beside the clock, and whose days are meant."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.definition import parse
from sweephand.domain.occasions import AfterRule, Quantity, Window, beginning_of, local_day
from sweephand.domain.schedule import Schedule
from sweephand.domain.templates import run_facts
from tests.contract.samples import run_at

NOW = datetime(2027, 6, 15, 12, tzinfo=UTC)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Apia", "America/Sao_Paulo", "Asia/Beirut")


def parsed(schedule: Any) -> Any:
    return parse({"name": "job", "command": "true", "schedule": schedule}, namespace="shop", now=NOW)


@pytest.mark.parametrize(
    ("after", "names", "rule"),
    [
        (["a", "b"], ("a", "b"), AfterRule()),
        ({"all": ["a", "b"]}, ("a", "b"), AfterRule()),
        ({"all": ["a"], "window": "latest"}, ("a",), AfterRule()),
        ({"any": ["a", "b"]}, ("a", "b"), AfterRule(Quantity.ANY)),
        ({"all": ["a"], "any": None, "window": "sameDay"}, ("a",), AfterRule(window=Window.SAME_DAY)),
        (
            {"any": ["a"], "window": "sameDay", "timezone": "Asia/Tokyo"},
            ("a",),
            AfterRule(Quantity.ANY, Window.SAME_DAY, "Asia/Tokyo"),
        ),
    ],
)
def test_after_is_a_list_or_says_how_many_and_of_when(after: Any, names: Any, rule: AfterRule) -> None:
    job = parsed({"after": after})
    assert (job.after, job.after_rule, job.schedule) == (names, rule, None)


def test_days_without_a_zone_are_those_of_the_schedule() -> None:
    daily = {"all": ["a"], "window": "sameDay"}
    job = parsed({"cron": "@daily", "timezone": "Europe/Berlin", "after": daily})
    assert job.after_rule.timezone == "Europe/Berlin"
    assert isinstance(job.schedule, Schedule)
    own = parsed({"after": {**daily, "timezone": "Asia/Tokyo"}, "timezone": "Europe/Berlin"})
    assert own.after_rule.timezone == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("datasets", "names", "quantity"),
    [
        (["a", "b"], ("a", "b"), Quantity.ALL),
        ({"all": ["a", "b"]}, ("a", "b"), Quantity.ALL),
        ({"any": ["a", "b"], "all": None}, ("a", "b"), Quantity.ANY),
    ],
)
def test_datasets_are_a_list_or_say_how_many(datasets: Any, names: Any, quantity: Quantity) -> None:
    job = parsed({"datasets": datasets})
    assert (job.datasets, job.datasets_quantity) == (names, quantity)


def test_what_a_success_updates_is_said_by_the_job_and_by_its_only_task() -> None:
    task = {"id": "one", "command": "true", "publishes": ["rows", "both"]}
    single = parse({"name": "job", "tasks": [task], "publishes": ["both", "all"]}, namespace="shop", now=NOW)
    assert single.updates == ("both", "all", "rows")
    several = {"name": "job", "tasks": [task, {"id": "two", "command": "true"}], "publishes": ["all"]}
    dag = parse(several, namespace="shop", now=NOW)
    assert dag.updates == ("all",)
    assert [dag.of_task(one).updates for one in dag.tasks] == [("rows", "both"), ()]


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),  # noqa: DTZ001
)
def test_a_day_begins_on_that_day_and_not_after_any_instant_of_it(zone: str, instant: datetime) -> None:
    day = local_day(instant, zone)
    first = beginning_of(day, zone)
    assert local_day(first, zone) == day
    assert first <= instant
    assert local_day(first - timedelta(seconds=1), zone) < day


def test_a_day_without_a_midnight_begins_an_hour_later() -> None:
    gap = date(2018, 11, 4)  # in São Paulo, clocks went from 00:00 to 01:00
    assert beginning_of(gap, "America/Sao_Paulo") == datetime(2018, 11, 4, 3, tzinfo=UTC)


def test_templates_know_the_day_in_the_zone_of_the_rule() -> None:
    job = parsed({"after": {"all": ["a"], "window": "sameDay", "timezone": "Europe/Berlin"}})
    midnight = beginning_of(date(2027, 6, 15), "Europe/Berlin")
    facts = run_facts(run_at(midnight), job, job.tasks[0])
    assert facts["localDate"] == "2027-06-15"
