"""Sensors of a deployment: a bucket is looked at by `call`, a web address by `execute`, and nobody works in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.why import why_run
from tests.functions.test_call import Place
from tests.functions.test_execute import LONG
from tests.functions.test_http import place as http_place
from tests.operators.aws.account import build, client
from tests.operators.web import serving

FILE = {"sensor": {"s3": {"bucket": "inbox", "key": "orders/a.csv"}, "every": "2m", "timeout": "30m"}}
LOOK = [("attempt", "Invoke"), ("call", "ListObjectsV2")]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with place.deployment:
        build()
        place.calls.clear()
        yield place


def test_a_key_is_looked_for_until_it_is_there(place: Place) -> None:
    run = place.begin(FILE, timeout=LONG)
    assert (run.state, run.attempt, run.reason and run.reason.code) == (RunState.RETRYING, 0, ReasonCode.WAITING)
    place.pass_time(minutes=5)
    assert place.calls == LOOK * 3
    client("s3").put_object(Bucket="inbox", Key="orders/a.csv", Body=b"hello")
    place.pass_time(minutes=3)
    after = place.look(run)
    assert (after.state, after.attempt) == (RunState.SUCCEEDED, 1)
    assert (after.output["key"], after.output["size"]) == ("orders/a.csv", 5)


def test_a_throttled_look_is_no_failed_attempt_and_a_denied_one_ends_it(place: Place) -> None:
    place.refused["ListObjectsV2"] = "SlowDown"
    run = place.begin(FILE)
    (blocker,) = why_run(place.deployment.world, run.key).blockers
    assert "SlowDown" in blocker.detail
    place.refused["ListObjectsV2"] = "AccessDenied"
    place.pass_time(minutes=3)
    after = place.look(run)
    assert (after.state, after.attempt, after.failure and after.failure.error) == (RunState.FAILED, 1, "AccessDenied")


def test_a_look_whose_answer_is_lost_is_made_again(place: Place) -> None:
    client("s3").put_object(Bucket="inbox", Key="orders/a.csv", Body=b"hello")
    place.is_lost = True
    run = place.begin(FILE)
    assert (run.state, run.lost) == (RunState.RETRYING, 0)
    place.is_lost = False
    place.pass_time(minutes=3)
    assert place.look(run).state is RunState.SUCCEEDED


def test_looks_end_with_the_sensors_time_or_with_the_run(place: Place) -> None:
    late = place.begin(FILE)
    place.pass_time(minutes=32)
    after = place.look(late)
    assert (after.state, after.reason and after.reason.code) == (RunState.FAILED, ReasonCode.TIMEOUT)
    place.calls.clear()
    stopped = place.begin(FILE, name="other")
    cancel(place.deployment.world, stopped.key, actor="ann")
    place.pass_time(minutes=10)
    assert place.look(stopped).state is RunState.CANCELLED
    assert place.calls == LOOK


def test_a_web_address_is_asked_by_execute_and_where_it_may_not_go_nobody_is(tmp_path: Path) -> None:
    with serving({"/file": lambda call: call.answer(200, b"x")}) as web:
        sensor = {"sensor": {"http": {"url": web.url("/file")}}}
        with http_place(tmp_path, f"127.0.0.1:{web.port}") as there:
            there.admin.post("/jobs", {"name": "open", "run": sensor}).expect(201)
            assert there.run("open").output["status"] == 200
            inside = {"sensor": {"http": {"url": "http://169.254.169.254/latest"}}}
            refused = there.admin.post("/jobs", {"name": "inside", "run": inside}).expect(400)
            assert refused.json["errors"][0]["path"] == "run.sensor.http.url"
            unlisted = {"sensor": {"s3": {"bucket": "outbox", "key": "a"}}}
            refused = there.admin.post("/jobs", {"name": "unlisted", "run": unlisted}).expect(400)
            assert refused.json["errors"][0]["path"] == "run.sensor.s3"
