"""What changed between two versions, in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.changes import LINES_MAX, in_words, schedule_in_words
from sweephand.domain.definition import document_of

BASE = {
    "name": "report",
    "schedule": {"cron": "0 6 * * *", "timezone": "Europe/Berlin"},
    "tasks": [
        {"id": "load", "run": {"command": ["load"]}, "timeout": "10m"},
        {"id": "send", "run": {"command": ["send", "--all"]}, "needs": ["load"]},
    ],
}


def edited(**fields: Any) -> dict[str, Any]:
    return document_of({**BASE, **fields})


def task(id_: str, **fields: Any) -> dict[str, Any]:
    known: list[dict[str, Any]] = BASE["tasks"]  # type: ignore[assignment]
    return {**next((one for one in known if one["id"] == id_), {"id": id_, "run": {"command": [id_]}}), **fields}


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (
            {"schedule": {"cron": "0 7 * * *", "timezone": "Europe/Berlin"}},
            ["schedule: every day at 06:00 Europe/Berlin → every day at 07:00 Europe/Berlin"],
        ),
        ({"schedule": None}, ["schedule: every day at 06:00 Europe/Berlin → no schedule"]),
        (
            {"schedule": {"cron": "0 6 * * *", "timezone": "Europe/Berlin", "jitter": 30}},
            ["schedule.jitter: none → 30s"],
        ),
        (
            {"schedule": {"cron": "0 6 * * *", "timezone": "Europe/Berlin", "dst": {"fold": "both"}}},
            ["schedule.dst.fold: first → both"],
        ),
        ({"retry": {"attempts": 4}}, ["retry.attempts: 1 → 4"]),
        ({"retries": 3}, ["retry.attempts: 1 → 4"]),
        ({"timeout": "2h", "overlap": "skip"}, ["timeout: 1h → 2h", "overlap: allow → skip"]),
        ({"tags": ["a", "b"]}, ["tags: none → a, b"]),
        ({"params": {"region": "eu", "n": 1}}, ["params.region: none → eu", "params.n: none → 1"]),
        ({"description": "x" * 200}, [f"description: none → {'x' * 79}…"]),
        ({"pauseAfterFailures": 5}, ["pauseAfterFailures: none → 5"]),
        ({"tasks": [task("load", timeout="20m"), task("send")]}, ["task load: timeout 10m → 20m"]),
        ({"tasks": [task("load"), task("send"), task("check", needs=["load"])]}, ["task check added, needs load"]),
        ({"tasks": [task("load"), task("send"), task("other")]}, ["task other added"]),
        ({"tasks": [task("load"), task("send", needs=[])]}, ["task send: needs load → []"]),
        ({"tasks": [task("load")]}, ["task send removed"]),
        ({"tasks": [task("send"), task("load")]}, ["the order of the tasks"]),
        (
            {"tasks": [task("load"), task("send", run={"command": ["send", "one"], "env": {"A": "b"}})]},
            ["task send: run.command send --all → send one", "task send: run.env.A none → b"],
        ),
        (
            {"tasks": [task("load", when="all_done", retries=1), task("send")]},
            ["task load: when all_success → all_done", "task load: retry.attempts none → 2"],
        ),
        ({"tasks": [task("load", timeout=600), task("send")]}, ["written in another way, with the same meaning"]),
        ({"overlap": "allow"}, ["written in another way, with the same meaning"]),
        ({}, []),
    ],
)
def test_an_edit_is_told_by_what_it_changed(change: dict[str, Any], lines: list[str]) -> None:
    told = in_words(document_of(BASE), edited(**change))
    assert told == lines


def test_a_job_is_created_deleted_and_created_again() -> None:
    assert in_words(None, document_of(BASE)) == ["created: every day at 06:00 Europe/Berlin; 2 tasks: load, send"]
    assert in_words(document_of(BASE), None) == ["deleted"]
    assert in_words(None, document_of({"name": "a", "command": "x"})) == ["created: no schedule; task main"]


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", 'cron "*/7 * * * *"'),
        ("30 * * * *", "every hour at minute 30"),
        ("@daily", "every day at 00:00"),
        ("@hourly", "every hour at minute 0"),
        ("0 0 6 * * *", "every day at 06:00"),
        ("30 0 6 * * *", 'cron "30 0 6 * * *"'),
        ("0 6 * * 1-5", "Monday to Friday at 06:00"),
        ("0 6 * * mon,thu", "every Monday and Thursday at 06:00"),
        ("0 6 * * 0", "every Sunday at 06:00"),
        ("0 6 * * 7", "every Sunday at 06:00"),
        ("0 6 1 * *", "on day 1 of every month at 06:00"),
        ("5 6 L * *", "on the last day of every month at 06:05"),
        ("0 6 1 1 *", 'cron "0 6 1 1 *"'),
        ("0 6,18 * * *", 'cron "0 6,18 * * *"'),
        ("0 6 * * mon#1", 'cron "0 6 * * mon#1"'),
        ("H H * * *", 'cron "H H * * *"'),
        ("cron(0 6 ? * MON-FRI *)", 'cron "cron(0 6 ? * MON-FRI *)"'),
        ({"every": 300}, "every 5m"),
        ({"at": "2026-12-01T00:00:00Z"}, "once at 2026-12-01T00:00:00Z"),
        ({"after": ["a", "b"]}, "after a, b"),
        ({"after": {"any": ["a", "b"]}}, "after any of a, b"),
        (
            {"after": {"all": ["a"], "window": "sameDay", "timezone": "Asia/Tokyo"}},
            "after a, once a day in Asia/Tokyo",
        ),
        ({"datasets": {"any": ["x", "y"]}}, "on updates of any of x, y"),
        ({"cron": "@daily", "needs": ["a", "b"]}, "every day at 00:00, waiting for a, b"),
        (
            {"every": 60, "needs": {"jobs": ["a"], "window": "sameDay", "timezone": "Asia/Tokyo", "timeout": 7200}},
            "every 1m, waiting for a of the same day in Asia/Tokyo for at most 2h",
        ),
        (
            {"cron": "@daily", "events": [{"source": "shop", "type": "order"}]},
            "every day at 00:00 and on events shop order",
        ),
        ({"events": [{"source": "shop", "match": {"a": 1}}]}, "on events shop that match"),
        (None, "no schedule"),
    ],
)
def test_a_schedule_is_said_as_a_person_would(schedule: Any, words: str) -> None:
    assert schedule_in_words(schedule) == words


def test_very_many_changes_are_cut_short() -> None:
    told = in_words(document_of(BASE), edited(params={f"p{n}": n for n in range(500)}))
    assert len(told) == LINES_MAX + 1
    assert told[-1] == "and more"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_whatever_differs_is_told(before: dict[str, Any], after: dict[str, Any]) -> None:
    one, other = {**BASE, "params": before}, {**BASE, "params": after}
    told = in_words(one, other)
    assert bool(told) == (one != other)
