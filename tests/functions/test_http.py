"""`http` tasks of a deployment: through the real functions, to where a setting allows, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.domain.ids import DEFAULT, JobKey, JobName
from sweephand.domain.run import Run, RunState
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud import Deployment, Front
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from tests.api.client import Callers, Client
from tests.operators.web import Web, serving

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 16, 6, 0, 30, tzinfo=UTC)


@pytest.fixture
def web() -> Iterator[Web]:
    def rows(call: Any) -> None:
        call.answer(503) if len(call.web.asked) < 2 else call.answer(
            200, b'{"rows": 3}', Content_Type="application/json"
        )

    with serving({"/rows": rows}) as server:
        yield server


class Place:
    """A deployment whose tasks may reach something besides public addresses."""

    def __init__(self, deployment: Deployment, clock: VirtualClock) -> None:
        self.deployment = deployment
        self.clock = clock
        self.admin: Client = Callers(deployment.world, Front(deployment)).platform()

    def run(self, job: str) -> Run:
        """Trigger a job, and let a minute pass."""
        key = trigger(self.deployment.world, JobKey(DEFAULT, JobName(job))).key
        end = self.clock.now() + timedelta(minutes=1)
        while (following := self.deployment.step()) is not None and following <= end:
            self.clock.move(following)
        found = self.deployment.world.runs.get(key)
        assert found is not None
        return found


@contextmanager
def place(tmp: Path, http_may_reach: str) -> Iterator[Place]:
    clock = VirtualClock(START)
    settings = Settings(shards=1, http_may_reach=http_may_reach)
    with Deployment(ROOT, tmp=tmp, clock=clock, dice=SeededDice(1), settings=settings) as deployment:
        yield Place(deployment, clock)


@pytest.mark.parametrize("timeout", ["30s", "10m"])
def test_a_request_to_what_is_allowed_is_retried_and_its_answer_is_the_output(
    tmp_path: Path, web: Web, timeout: str
) -> None:
    retry = {"attempts": 2, "backoff": "fixed", "delay": "1s"}
    definition = {"name": "rows", "run": {"http": {"url": web.url("/rows")}}, "retry": retry, "timeout": timeout}
    with place(tmp_path, f"10.1.0.0/16, 127.0.0.1:{web.port}") as there:
        there.admin.post("/jobs", definition).expect(201)
        run = there.run("rows")
    assert (run.state, run.attempt, run.output["body"]) == (RunState.SUCCEEDED, 2, {"rows": 3})
    assert {one.headers["idempotency-key"] for one in web.asked} == {f"rows/{run.key.run_id}/main"}


def test_without_the_setting_it_is_refused_when_it_is_saved_and_when_it_runs(tmp_path: Path, web: Web) -> None:
    definition = {"name": "rows", "run": {"http": {"url": web.url("/rows")}}, "timeout": "30s"}
    with place(tmp_path, "") as there:
        problem = there.admin.post("/jobs", definition).expect(400).json
        assert [one["path"] for one in problem["errors"]] == ["run.http.url"]
        hidden = {"url": "${params.url}"}
        there.admin.post(
            "/jobs", {**definition, "name": "hidden", "run": {"http": hidden}, "params": {"url": web.url("/rows")}}
        ).expect(201)
        # As if it had been saved while it was allowed.
        put(there.deployment.world, DEFAULT, definition, actor="test", expected=None)
        for job in ("hidden", "rows"):
            run = there.run(job)
            assert run.state is RunState.FAILED
            assert run.failure is not None
            assert run.failure.error == "TargetRefused"
    assert web.asked == []
