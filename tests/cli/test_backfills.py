"""`sweephand backfill` and `backfills`, against a server that answers what the test says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.scripted import Answer, scripted
from tests.cli.test_commands import EMPTY, asked, run

ESTIMATE = {
    "dryRun": True,
    "count": 30,
    "runs": 30,
    "undone": 35,
    "fires": {"failed": 5, "missing": 30, "succeeded": 330},
    "cost": {"dollars": 0.000512, "writeUnits": 240, "transitions": 10, "basis": "An estimate."},
}
WINDOW = ["--from", "2026-01-01T00:00:00Z", "--to", "2027-01-01T00:00:00Z"]


def told(state: str = "running", **more: Any) -> dict[str, Any]:
    counts = {"count": 30, "made": 4, "succeeded": 0, "failed": 0, "cancelled": 0, "skipped": 0, "progress": 0}
    return {"backfillId": "b1", "jobId": "daily", "state": state, "active": [], **counts, **more}


def test_a_dry_run_says_what_is_missing_what_runs_and_what_it_costs() -> None:
    with scripted(Answer(200, ESTIMATE)) as script:
        result = run(script, "backfill", "daily", *WINDOW, "--only", "missing", "--dry-run")
        assert json.loads(run(script, "backfill", "daily", *WINDOW, "--dry-run", "--json").stdout) == ESTIMATE
    assert result.stdout == (
        "Fires of the window: 30 missing, 5 failed, 330 succeeded.\n30 fires in 30 runs, for about $0.000512 on AWS.\n"
    )
    assert [json.loads(one.body)["dryRun"] for one in script.questions] == [True, True]


def test_a_dry_run_says_so_too_where_nothing_is_missing_or_failed() -> None:
    nothing = {**ESTIMATE, "count": 0, "runs": 0, "undone": 0, "fires": {"succeeded": 365}}
    with scripted(Answer(200, nothing)) as script:
        told = run(script, "backfill", "daily", *WINDOW, "--dry-run").stdout
    assert told.startswith("Fires of the window: 0 missing, 0 failed, 365 succeeded.\n0 fires in 0 runs")


def test_it_asks_for_what_is_said() -> None:
    with scripted(Answer(202, told())) as script:
        how = ["--only", "all", "--max-active", "7", "--order", "newest", "--collapse", "--note", "again"]
        result = run(script, "backfill", "daily", *WINDOW, *how, "--yes")
    assert result.stdout == "Backfill b1 of daily, 0 of 30 succeeded, 0 failed: running\n"
    assert asked(script) == ["POST /jobs/daily/backfills"]
    assert json.loads(script.questions[0].body) == {
        "from": "2026-01-01T00:00:00Z",
        "to": "2027-01-01T00:00:00Z",
        "only": "all",
        "order": "newest",
        "maxActive": 7,
        "collapse": True,
        "dryRun": False,
        "note": "again",
    }


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (told("done", succeeded=30, progress=100), 0),
        (told("done", succeeded=29, failed=1, progress=100), 1),
        (told("cancelled", succeeded=3), 1),
    ],
)
def test_waiting_ends_with_it_and_tells_how(end: dict[str, Any], code: int) -> None:
    under_way = Answer(200, told(active=["r1"], progress=10))
    ending = Answer(200, {**end, "active": ["r2"]})
    with scripted(Answer(200, ESTIMATE), Answer(202, told()), under_way, ending, Answer(200, end)) as script:
        result = run(script, "backfill", "daily", *WINDOW, "--wait")
    assert result.exit_code == code
    assert result.stdout.endswith(f"failed: {end['state']}\n")
    assert asked(script)[2:] == ["GET /jobs/daily/backfills/b1"] * 3, "until nothing of it is under way"


def test_they_are_listed_shown_paused_resumed_and_cancelled() -> None:
    with scripted(Answer(200, {"items": [told()], "nextCursor": None})) as script:
        assert run(script, "backfills", "list", "daily").stdout.splitlines()[1].startswith("b1        running")
    with scripted(EMPTY) as script:
        assert run(script, "backfills", "list", "daily").stdout == "There are no backfills.\n"
    with scripted(Answer(200, told("paused"))) as script:
        assert "state      paused\n" in run(script, "backfills", "show", "daily", "b1").stdout
        for words in (["pause", "--note", "n"], ["resume"], ["cancel"], ["cancel", "--running"]):
            result = run(script, "backfills", words[0], "daily", "b1", *words[1:])
            assert result.stdout == "Backfill b1 of daily, 0 of 30 succeeded, 0 failed: paused\n"
        assert json.loads(run(script, "backfills", "cancel", "daily", "b1", "--json").stdout) == told("paused")
    assert asked(script) == [
        "GET /jobs/daily/backfills/b1",
        *(f"POST /jobs/daily/backfills/b1/{verb}" for verb in ("pause", "resume", "cancel", "cancel", "cancel")),
    ]
    assert [json.loads(one.body).get("running") for one in script.questions[3:5]] == [False, True]


@pytest.mark.parametrize(
    "words",
    [[], ["--from", "1d"], [*WINDOW, "--only", "some"], [*WINDOW, "--max-active", "0"], [*WINDOW, "--order", "x"]],
)
def test_what_is_not_understood_asks_the_server_nothing(words: list[str]) -> None:
    with scripted(EMPTY) as script:
        assert run(script, "backfill", "daily", *words).exit_code == 64
    assert not script.questions


def test_a_time_that_is_none_is_named() -> None:
    with scripted(EMPTY) as script:
        result = run(script, "backfill", "daily", "--from", "soon", "--to", "1d")
    assert (result.exit_code, "Error: from: " in result.stderr) == (1, True)
