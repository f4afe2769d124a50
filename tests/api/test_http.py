"""`http` steps at the API: what could only fail later is refused when it is saved, and tasks change nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from sweephand.api.app import Api
from sweephand.clock import SystemClock, SystemDice
from sweephand.embedded import PACE, open_stores
from sweephand.operators import steps_within
from sweephand.ports import World
from tests.api.client import Callers, Client, Served, Tasks
from tests.api.test_bad_input import digest, refused
from tests.unit.test_addresses import METADATA, NOBODYS, PRIVATE, REFUSED_V6, SPELLINGS

HOSTS = [*METADATA, *NOBODYS, *PRIVATE, *(f"[{one}]" for one in REFUSED_V6)]
SCHEMES = [
    "file:///etc/passwd",
    "gopher://a:70/",
    "ftp://a/",
    "data:,a",
    "http://user:pw@example.org/",
    "//example.org/",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("http")) as served:
        yield served


@pytest.fixture
def unchanged(place: Served) -> Iterator[Client]:
    before = digest(place)
    yield place.admin
    assert digest(place) == before


@pytest.mark.parametrize("url", [*(f"http://{host}/" for host in [*HOSTS, *SPELLINGS]), *SCHEMES])
def test_a_literal_url_that_may_not_be_reached_is_refused_wherever_it_is_saved(unchanged: Client, url: str) -> None:
    step = {"run": {"http": {"url": url}}}
    for answer in (
        unchanged.post("/jobs", {"name": "new", **step}),
        unchanged.put("/jobs/new", step, If_None_Match="*"),
        unchanged.post("/jobs", {"name": "new", "tasks": [{"id": "a", **step}]}),
        unchanged.post("/plan", {"name": "new", **step}),
        unchanged.put("/templates/new", step, If_None_Match="*"),
    ):
        paths = [one["path"] for one in refused(answer)["errors"]]
        assert [path for path in paths if path.endswith("run.http.url")], paths


def test_what_a_place_allows_is_taken_there() -> None:
    clock = SystemClock()
    with closing(open_stores(None, clock=clock)) as stores:
        world = World.over(stores, clock=clock, dice=SystemDice(), target=Tasks(), pace=PACE, owner="test")
        admin = Callers(world, Api(world, operators=steps_within(["10.1.0.0/16:8080"]))).platform()
        step: dict[str, Any] = {"http": {"url": "http://10.1.2.3:8080/a"}}
        admin.post("/jobs", {"name": "inside", "run": step}).expect(201)
        assert admin.get("/jobs/inside").json["tasks"][0]["run"] == step
        admin.post("/jobs", {"name": "other", "run": {"http": {"url": "http://10.1.2.3/a"}}}).expect(400)
        admin.post("/jobs", {"name": "other", "run": {"http": {"url": "http://169.254.169.254/"}}}).expect(400)


def test_a_request_of_a_task_reads_and_changes_nothing(unchanged: Client) -> None:
    for name in ("Sweephand_Run_Id", "sweephand_run_id"):
        told = {name: "20261116T060000Z"}
        for method, path in (("POST", "/jobs"), ("POST", "/events"), ("PUT", "/pools/a"), ("DELETE", "/jobs/a")):
            problem = refused(unchanged.call(method, path, {}, headers=told), 403)
            assert "20261116T060000Z" in problem["detail"]
        unchanged.get("/jobs", **told).expect(200)
