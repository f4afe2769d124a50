"""Sensors that look at a web address: what they find, what is not yet, what never comes, and where they never look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import DEFAULT, JobKey, JobName
from sweephand.domain.job import Task
from sweephand.domain.kinds import read_step
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import RunState
from sweephand.embedded import open_stores
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_run
from sweephand.errors import InvalidInput
from sweephand.local import Runtime
from sweephand.messages import Again
from sweephand.operators import Operators, steps_within
from sweephand.secrets import Values
from tests.local.waiting import until
from tests.operators.calls import call
from tests.operators.web import Web, nobody, serving

HERE = ("127.0.0.1",)
CLOCK = SystemClock()


@pytest.fixture
def web() -> Iterator[Web]:
    def ready(asked: Any) -> None:
        asked.answer(200, b"state: READY\n", ETag='"v7"', Content_Type="text/plain")

    def secret(asked: Any) -> None:
        asked.answer(200 if asked.headers.get("authorization") == "Bearer open-sesame" else 401, b"open-sesame")

    routes = {f"/{status}": lambda asked, status=status: asked.answer(status) for status in (204, 301, 401, 403, 500)}
    routes |= {f"/{status}": lambda asked, status=status: asked.answer(status) for status in (400, 405, 409, 410, 429)}
    with serving({"/ready": ready, "/secret": secret, **routes}) as server:
        yield server


def a_look(url: str, *, params: dict[str, Any] | None = None, **options: Any) -> Call:
    written = {"sensor": {"http": {"url": url, **options}}}
    return replace(call("sensor", None, params=params), task=Task("main", *read_step(written, "run")))


def look(folder: Path, call: Call, *, may_reach: tuple[str, ...] = HERE) -> Outcome:
    return Operators(folder, http_may_reach=may_reach).execute(call)


def test_it_says_what_it_found(tmp_path: Path, web: Web) -> None:
    found = look(tmp_path, a_look(web.url("/ready")))
    headers = {"etag": '"v7"', "content-type": "text/plain"}
    assert found == Succeeded({"status": 200, "size": 13, "headers": headers})
    assert [(one.method, one.target) for one in web.asked] == [("GET", "/ready")]


def test_it_can_ask_for_the_head_only_and_expect_another_status(tmp_path: Path, web: Web) -> None:
    found = look(tmp_path, a_look(web.url("/${params.what}"), params={"what": "204"}, method="HEAD", expect=[204]))
    assert found == Succeeded({"status": 204, "size": 0, "headers": {}})
    assert web.asked[0].method == "HEAD"


@pytest.mark.parametrize("path", ["/nothing-here", "/204", "/301", "/409", "/410", "/429", "/500"])
def test_what_may_pass_is_looked_at_again(tmp_path: Path, web: Web, path: str) -> None:
    seen = look(tmp_path, a_look(web.url(path)))
    assert isinstance(seen, Again), seen
    assert "127.0.0.1 was answered with" in seen.reason


@pytest.mark.parametrize("status", [400, 401, 403, 405])
def test_a_wrong_question_fails_at_once(tmp_path: Path, web: Web, status: int) -> None:
    seen = look(tmp_path, a_look(web.url(f"/{status}")))
    assert isinstance(seen, Failure)
    assert (seen.error, seen.kind) == (f"Http{status}", FailureClass.PERMANENT)
    assert f"answered with {status}" in seen.message


@pytest.mark.parametrize(("wanted", "comes"), [("READY", True), ("${params.state}", True), ("DONE", False)])
def test_an_answer_can_be_asked_for_what_it_contains(tmp_path: Path, web: Web, wanted: str, comes: bool) -> None:
    seen = look(tmp_path, a_look(web.url("/ready"), contains=wanted, params={"state": "state: READY"}))
    assert isinstance(seen, Succeeded if comes else Again), seen


def test_a_secret_goes_into_a_header_and_into_nothing_that_is_kept(tmp_path: Path, web: Web) -> None:
    asked = a_look(web.url("/secret"), headers={"Authorization": "Bearer ${secrets.KEY}"}, secrets={"KEY": "the-key"})
    assert isinstance(look(tmp_path, replace(asked, secrets=Values({"KEY": "open-sesame"}))), Succeeded)
    missed = look(tmp_path, replace(asked, secrets=Values({"KEY": "wrong-sesame"})))
    assert isinstance(missed, Failure)
    assert "sesame" not in str(missed)
    assert isinstance(look(tmp_path, asked), Failure)  # without its value nobody is asked
    assert len(web.asked) == 2


def test_nobody_at_the_address_is_a_transient_failure(tmp_path: Path) -> None:
    with nobody() as url:
        seen = look(tmp_path, a_look(url))
    assert isinstance(seen, Failure)
    assert (seen.error, seen.kind) == ("ConnectionRefused", FailureClass.TRANSIENT)


def test_an_address_inside_is_refused_when_it_is_saved_and_when_it_runs(tmp_path: Path, web: Web) -> None:
    written = {"sensor": {"http": {"url": web.url("/ready")}}}
    with pytest.raises(InvalidInput) as refused:
        read_step(written, "run", operators=steps_within(()))
    assert refused.value.path == "run.sensor.http.url"
    read_step(written, "run", operators=steps_within(HERE))
    seen = look(tmp_path, a_look("http://${params.host}/", params={"host": f"127.0.0.1:{web.port}"}), may_reach=())
    assert isinstance(seen, Failure)
    assert (seen.error, seen.kind) == ("TargetRefused", FailureClass.PERMANENT)
    assert web.asked == []


@pytest.mark.parametrize(
    ("sensor", "path"),
    [
        ({}, "run.sensor"),
        ({"job": "a", "http": {"url": "https://example.org"}}, "run.sensor"),
        ({"http": {}}, "run.sensor.http.url"),
        ({"http": {"url": "ftp://example.org"}}, "run.sensor.http.url"),
        ({"http": {"url": "https://example.org", "method": "POST"}}, "run.sensor.http.method"),
        ({"http": {"url": "https://example.org", "method": "HEAD", "contains": "x"}}, "run.sensor.http.contains"),
        ({"http": {"url": "https://example.org", "headers": {"Host": "x"}}}, "run.sensor.http.headers.Host"),
        ({"http": {"url": "https://example.org", "body": "x"}}, "run.sensor.http.body"),
        ({"http": {"url": "https://example.org"}, "state": "failed"}, "run.sensor.state"),
        ({"http": {"url": "https://example.org"}, "within": "1h"}, "run.sensor.within"),
        ({"http": {"url": "https://example.org?${secrets.KEY}"}}, "run.sensor.http.url"),
        ({"s3": {"bucket": "inbox"}}, "run.sensor.s3"),
        ({"s3": {"bucket": "inbox", "key": "a", "prefix": "a"}}, "run.sensor.s3"),
        ({"s3": {"bucket": "In Box", "key": "a"}}, "run.sensor.s3.bucket"),
        ({"s3": {"bucket": "inbox", "key": "a", "minBytes": -1}}, "run.sensor.s3.minBytes"),
        ({"s3": {"bucket": "inbox", "key": "${secrets.KEY}"}}, "run.sensor.s3.key"),
    ],
)
def test_a_wrong_sensor_is_refused_at_its_field(sensor: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_step({"sensor": sensor}, "run")
    assert refused.value.path == path


def test_on_one_machine_it_looks_until_it_comes_and_says_meanwhile_what_it_saw(tmp_path: Path, web: Web) -> None:
    stores = open_stores(tmp_path / "test.db", clock=CLOCK)
    operators = Operators(tmp_path, http_may_reach=HERE)
    web.routes["/file"] = web.routes["/500"]
    with Runtime(stores, target=operators, clock=CLOCK, dice=SystemDice(), workers=1) as runtime:
        world = runtime.world
        document = {"name": "job", "run": {"sensor": {"http": {"url": web.url("/file")}, "every": "1s"}}}
        put(world, DEFAULT, document, actor="test", expected=None)
        key = trigger(world, JobKey(DEFAULT, JobName("job"))).key

        def waits() -> bool:
            run = world.runs.get(key)
            return run is not None and run.reason is not None and run.reason.code is ReasonCode.WAITING

        until(waits, within_s=20, what="the sensor has looked once")
        (blocker,) = why_run(world, key).blockers
        assert "answered with 500" in blocker.detail
        web.routes["/file"] = web.routes["/ready"]

        def ended() -> bool:
            run = world.runs.get(key)
            return run is not None and run.is_terminal

        until(ended, within_s=20, what="the sensor has found it")
        run = world.runs.get(key)
    stores.close()
    assert run is not None
    assert (run.state, run.attempt, run.output["status"]) == (RunState.SUCCEEDED, 1, 200)
