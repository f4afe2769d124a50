"""Commands about the tasks of a run: what they ask the server, and what they show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.scripted import Answer, scripted
from tests.cli.test_commands import asked, run

TASKS: list[dict[str, Any]] = [
    {"id": "extract", "needs": [], "state": "succeeded", "reason": None, "attempt": 1},
    {"id": "load", "needs": ["extract"], "state": "running", "reason": None, "attempt": 0},
    {"id": "load[0]", "needs": ["extract"], "state": "running", "reason": None, "attempt": 1},
    {"id": "gate", "needs": ["load"], "state": "retrying", "reason": "approval: an operator is asked", "attempt": 0},
]
RUN: dict[str, Any] = {"runId": "r", "jobId": "etl", "state": "running", "tasks": TASKS, "moreTasks": True}
WHERE = "/jobs/etl/runs/r"


def test_a_run_is_shown_with_its_tasks_as_a_tree() -> None:
    with scripted(Answer(200, RUN)) as script:
        lines = run(script, "run", "show", "etl", "r").stdout.splitlines()
    table = lines[lines.index("") + 1 :]
    assert [line.partition("  ")[0].split()[0] for line in table[1:2]] == ["extract"]
    assert [len(line) - len(line.lstrip()) for line in table[1:5]] == [0, 2, 4, 4]
    assert table[-1] == "There are more tasks: sweephand run tasks etl r"


def grouped(name: str, group: str | None, *needs: str, state: str = "succeeded") -> dict[str, Any]:
    told = {"id": name, "needs": list(needs), "state": state, "reason": None, "attempt": 1}
    return told | ({"group": group} if group else {})


def test_tasks_are_shown_under_their_groups() -> None:
    tasks = [
        grouped("list", None),
        grouped("load", "ingest.raw", "list", state="failed"),
        grouped("load[0]", "ingest.raw", "list", state="failed"),
        grouped("tell", None, "list"),
        grouped("check", "ingest", "load", state="upstream_failed"),
        grouped("clean", "ingest.raw", "load"),
    ]
    with scripted(Answer(200, {"items": tasks, "nextCursor": None})) as script:
        table = run(script, "run", "tasks", "etl", "r").stdout.splitlines()
        told = json.loads(run(script, "run", "tasks", "etl", "r", "--json").stdout)
    assert [line[: table[0].index("NEEDS")].rstrip() for line in table[1:]] == [
        "list",
        "  ingest:",
        "    raw:",
        "      load",
        "        load[0]",
        "        clean",
        "      check",
        "  tell",
    ]
    assert table[2].split(maxsplit=2)[2].startswith("2 failed, 1 succeeded, 1 upstream_failed")
    assert told == tasks


@pytest.mark.parametrize(
    ("words", "call", "body"),
    [
        (
            ["mark", "etl", "r", "load[0]", "skipped", "--note", "n"],
            "load%5B0%5D/mark",
            {"state": "skipped", "note": "n"},
        ),
        (["retry", "etl", "r", "load"], "load/retry", {"note": ""}),
        (["cancel", "etl", "r", "--task", "load"], "load/cancel", {"note": ""}),
        (["approve", "etl", "r", "gate", "--note", "ok"], "gate/approve", {"note": "ok"}),
        (["reject", "etl", "r", "gate"], "gate/reject", {"note": ""}),
    ],
)
def test_a_word_about_a_task_is_one_call(words: list[str], call: str, body: dict[str, Any]) -> None:
    with scripted(Answer(200, {"id": "x", "state": "skipped"})) as script:
        assert run(script, "run", *words).exit_code == 0
    assert asked(script) == [f"POST {WHERE}/tasks/{call}"]
    assert json.loads(script.questions[0].body) == body


def test_the_only_task_that_asks_need_not_be_named() -> None:
    listed = Answer(200, {"items": TASKS, "nextCursor": None})
    with scripted(listed, Answer(200, {"id": "gate", "state": "succeeded"})) as script:
        assert run(script, "run", "approve", "etl", "r").stdout == "gate succeeded\n"
    assert asked(script)[1] == f"POST {WHERE}/tasks/gate/approve"
    with scripted(Answer(200, {"items": TASKS[:2], "nextCursor": None})) as script:
        assert run(script, "run", "reject", "etl", "r").exit_code == 1


def test_a_rerun_says_which_tasks_count_as_done() -> None:
    words = ["--from", "failed", "--mark", "load=succeeded", "--mark", "each[3]=skipped", "--note", "by hand"]
    with scripted(Answer(202, {"runId": "r.1"})) as script:
        assert run(script, "run", "rerun", "etl", "r", *words).exit_code == 0
    marks = {"load": "succeeded", "each[3]": "skipped"}
    assert json.loads(script.questions[0].body) == {"from": "failed", "mark": marks, "note": "by hand"}


@pytest.mark.parametrize("words", [("etl", "r", "--mark", "load"), ("etl", "--mark", "load=skipped", "--since", "2h")])
def test_a_mark_is_a_task_and_a_state_of_one_run(words: tuple[str, ...]) -> None:
    with scripted(Answer(500)) as script:
        assert run(script, "run", "rerun", *words).exit_code == 64
    assert script.questions == []


@pytest.mark.parametrize(
    ("start", "body"),
    [("failed", {"from": "failed"}), ("load", {"from": "task", "task": "load"}), ("all", {"from": "all"})],
)
def test_a_rerun_begins_where_it_is_told(start: str, body: dict[str, Any]) -> None:
    with scripted(Answer(202, {"runId": "r.1"})) as script:
        assert run(script, "run", "rerun", "etl", "r", "--from", start).exit_code == 0
    assert json.loads(script.questions[0].body) == body
