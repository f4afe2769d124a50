"""`http` tasks of `sweephand up`: where they may go, and that they end at its own door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.local.test_up import Up, refused, up
from tests.operators.web import Answering, serving

WITHIN_S = 60


@pytest.fixture(params=["sqlite", "moto"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Up]:
    """One that may reach itself."""
    options = ["--no-examples", "--engine", request.param, "--http-may-reach", "127.0.0.1"]
    with up(tmp_path / "data", *options) as running:
        yield running


def ended(place: Up, name: str, url: str) -> str:
    """How the only run of a job ends that asks for another of its own, with all rights."""
    asks = {"url": url, "method": "POST", "headers": {"Authorization": f"Bearer {place.token}"}}
    place.call("POST", "/jobs", json={"name": name, "run": {"http": asks}, "timeout": "30s"})
    run = place.await_state(name, place.trigger(name), "failed", within_s=WITHIN_S)
    assert [one["runId"] for one in place.call("GET", f"/jobs/{name}/runs")["items"]] == [run["runId"]]
    error: str = run["error"]["error"]
    return error


def test_a_job_cannot_start_itself_by_any_way(place: Up) -> None:
    def leads_on(asked: Answering) -> None:
        asked.answer(307, Location=f"{place.url}{asked.path.removeprefix('/leads-on')}")

    def passes_on(asked: Answering) -> None:
        headers = {name: value for name, value in asked.asked.headers.items() if name != "host"}
        url = f"{place.url}{asked.path.removeprefix('/passes-on')}"
        answer = httpx.request(asked.asked.method, url, headers=headers, content=asked.asked.body, trust_env=False)
        asked.answer(answer.status_code, answer.content)

    def trigger(name: str) -> str:
        return f"/api/v1/jobs/{name}/trigger"

    routes = {f"/leads-on{trigger('led')}": leads_on, f"/passes-on{trigger('passed')}": passes_on}
    with serving(routes) as web:
        assert ended(place, "straight", f"{place.url}{trigger('straight')}") == "Http403"
        # What is led to another address goes there without its credentials.
        assert ended(place, "led", web.url(f"/leads-on{trigger('led')}")) == "Http401"
        assert ended(place, "passed", web.url(f"/passes-on{trigger('passed')}")) == "Http403"
    assert [one.headers["sweephand-job"] for one in web.asked] == ["led", "passed"]


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
