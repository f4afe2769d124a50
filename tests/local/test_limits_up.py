"""`sweephand up --task-limit`: what programs of any task may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.test_up import refused, up

GREEDY = "import threading; held = b'x' * 200_000_000; threading.Event().wait()"


def test_a_place_holds_every_task_to_its_limits(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-examples", "--task-limit", "memory=64") as place:
        run = {"command": ["python3", "-c", GREEDY], "limits": {"memory": 4096}}
        place.call("POST", "/jobs", json={"name": "greedy", "run": run, "retry": {"attempts": 3}})
        ended = place.await_state("greedy", place.trigger("greedy"), "failed")
        assert ended["error"]["error"] == "OutOfMemory"
        assert ended["error"]["message"] == "It had more than 64 MB in memory."
        assert ended["attempt"] == 1
        answer = place.client.post("/jobs", json={"name": "wrong", "run": run | {"limits": {"memroy": 1}}})
        assert answer.status_code == 400
        assert "run.limits.memroy" in answer.text


@pytest.mark.parametrize("wrong", ["memory", "disk=3", "memory=lots"])
def test_a_limit_that_means_nothing_is_refused_before_it_starts(tmp_path: Path, wrong: str) -> None:
    assert "memory" in refused(tmp_path / "data", "--task-limit", wrong)
