"""`http` tasks of `sweephand up`: where they may go, and that they end at its own door."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.test_up import refused, up
from tests.operators.web import serving


def test_it_reaches_what_it_is_told_and_a_job_cannot_start_itself(tmp_path: Path) -> None:
    with (
        serving({"/": lambda call: call.answer(200, b"hello")}) as web,
        up(
            tmp_path / "data", "--no-examples", "--http-may-reach", "127.0.0.1", "--http-may-reach", "a.internal"
        ) as place,
    ):
        place.call("POST", "/jobs", json={"name": "hello", "run": {"http": {"url": web.url()}}})
        assert place.await_state("hello", place.trigger("hello"), "succeeded")["output"]["body"] == "hello"
        headers = {"Authorization": f"Bearer {place.token}"}
        own = {"url": f"{place.url}/api/v1/jobs/loop/trigger", "method": "POST", "headers": headers}
        place.call("POST", "/jobs", json={"name": "loop", "run": {"http": own}})
        run = place.await_state("loop", place.trigger("loop"), "failed")
        assert run["error"]["error"] == "Http403"
        assert len(place.call("GET", "/jobs/loop/runs")["items"]) == 1
        reading = {"url": f"{place.url}/api/v1/jobs/loop", "headers": headers}
        place.call("POST", "/jobs", json={"name": "reads", "run": {"http": reading}})
        assert place.await_state("reads", place.trigger("reads"), "succeeded")["output"]["body"]["name"] == "loop"
        answer = place.client.post("/jobs", json={"name": "other", "run": {"http": {"url": "http://127.0.0.2/"}}})
        assert answer.status_code == 400


@pytest.mark.parametrize("wrong", ["169.254.169.254", "10.0.0.1/8", "not a host"])
def test_a_place_that_means_nothing_is_refused_before_it_starts(tmp_path: Path, wrong: str) -> None:
    assert wrong in refused(tmp_path / "data", "--http-may-reach", wrong)
