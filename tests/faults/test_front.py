"""Callers who repeat themselves because they heard nothing, and an issuer of tokens that is down."""

from __future__ import annotations

import http.client
import io
import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.response import addinfourl

import pytest

from sweephand.api.sessions import Issuer
from sweephand.clock import SystemClock
from sweephand.domain.access import Role
from sweephand.domain.ids import DEFAULT
from sweephand.domain.run import RunState
from sweephand.engine.grant import put_member
from sweephand.local.cloud.account import AwsCall
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.settings import Settings
from tests.faults.place import MINUTE, SECOND, Place, Trap, opened

POOL = "https://pool.test"
HELD = 31 * SECOND
"""How long a call under a key is its first caller's."""


class Cut(io.BytesIO):
    """An answer of which only the beginning arrives."""

    def read(self, *_size: int | None) -> bytes:
        raise http.client.IncompleteRead(b"{")


class Pool(urllib.request.BaseHandler):
    """The issuer's address: it publishes keys, or fails in some way."""

    handler_order = 100

    def __init__(self) -> None:
        self.issuer = Issuer(Issuer.new_key(), url=POOL, clock=SystemClock())
        self.fails = ""

    def https_open(self, request: urllib.request.Request) -> addinfourl:
        if self.fails == "unreachable":
            raise URLError("no route to it")
        keys = b"<html>" if self.fails == "nonsense" else json.dumps(self.issuer.jwks()).encode()
        body = Cut() if self.fails == "cut" else io.BytesIO(keys)
        answer = addinfourl(body, Message(), request.full_url, 503 if self.fails == "broken" else 200)
        answer.msg = "as it is"  # type: ignore[attr-defined]  # what urllib looks at
        return answer

    def token(self) -> str:
        """Of Ann, in force by the clock on the wall: that is the one that tokens are held against."""
        return self.issuer.issue("ann", client_id="client")[0]


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    found = Pool()
    monkeypatch.setattr(urllib.request, "_opener", urllib.request.build_opener(found))
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    settings = Settings(shards=1, issuer=POOL, audience="client")
    with opened(tmp_path, settings=settings) as found:
        found.only("normal")
        yield found


def _is_let_in(place: Place, token: str) -> bool:
    """What API Gateway makes of the authorizer's answer; any other error of it would be a 500."""
    event = {"type": "REQUEST", "methodArn": "arn:aws:execute-api:us-east-1:123456789012:a/api/GET/v1/jobs"}
    try:
        policy = place.deployment.invoke("authorize", {**event, "headers": {"Authorization": f"Bearer {token}"}})
    except FunctionFailed as failed:
        if failed.message != "Unauthorized":
            raise
        return False
    (statement,) = policy["policyDocument"]["Statement"]
    return bool(statement["Effect"] == "Allow")


@pytest.mark.parametrize("way", ["unreachable", "broken", "nonsense", "cut"])
def test_while_the_issuer_is_down_known_keys_hold_and_others_are_refused(place: Place, pool: Pool, way: str) -> None:
    """Row 67: and the scheduler goes on."""
    put_member(place.world, DEFAULT, "ann", Role.EDITOR, actor="test", self_id="test")
    pool.fails = way
    old = pool.token()
    assert not _is_let_in(place, old)
    pool.fails = ""
    place.pass_time(2 * MINUTE)
    assert _is_let_in(place, old)
    pool.issuer = Issuer(Issuer.new_key(), url=POOL, clock=SystemClock())
    new = pool.token()
    pool.fails = way
    place.pass_time(2 * MINUTE)
    assert not _is_let_in(place, new)
    assert _is_let_in(place, old)
    place.put("report")
    run = place.run("report")
    place.step()
    assert place.look(run).state is RunState.SUCCEEDED
    pool.fails = ""
    place.pass_time(2 * MINUTE)
    assert _is_let_in(place, new)
    assert not _is_let_in(place, old)


def test_a_trigger_sent_five_times_at_once_under_one_key_is_one_run(place: Place) -> None:
    """Row 69."""
    place.put("report")
    with ThreadPoolExecutor(5) as threads:
        asked = [threads.submit(place.api, "POST", "/v1/jobs/report/trigger", {}, key="once") for _ in range(5)]
        answers = [one.result() for one in asked]
    assert {status for status, _ in answers} == {202}
    assert len({answer["runId"] for _, answer in answers}) == 1
    place.step()
    assert len(place.runs("report")) == len(place.target.effects) == 1


def test_a_trigger_whose_answer_was_lost_anywhere_is_answered_again_with_the_same_run(place: Place) -> None:
    """Row 70: the function dies after each of its calls in turn."""
    place.put("report")
    place.silent.add("normal")
    nth = 1
    while _dies(place, nth, "POST", "/v1/jobs/report/trigger", {}, key=f"key-{nth}"):
        made = {run.key.run_id for run in place.runs("report")}
        place.pass_time(HELD)
        status, answer = place.api("POST", "/v1/jobs/report/trigger", {}, key=f"key-{nth}")
        assert (status, len(place.runs("report"))) == (202, nth)
        assert len(made) < nth or answer["runId"] in made
        nth += 1
    assert nth > 5
    place.silent.remove("normal")
    place.step()
    assert len(place.target.effects) == len(place.runs("report")) == nth


def test_a_job_whose_creation_was_not_heard_of_is_created_once(place: Place) -> None:
    """Row 70: its answer is kept, and given again; where the function died before that, the job is there."""
    document = {"name": "report", "command": "report", "timeout": "30s", "schedule": "5 6 * * *"}
    first = place.api("POST", "/v1/jobs", document, key="heard")
    assert first[0] == 201
    assert place.api("POST", "/v1/jobs", document, key="heard") == first
    place.die_after("api", "TransactWriteItems")
    with pytest.raises(FunctionFailed):
        place.api("POST", "/v1/jobs", {**document, "name": "other"}, key="unheard")
    place.pass_time(HELD)
    assert place.api("POST", "/v1/jobs", {**document, "name": "other"}, key="unheard")[0] == 409
    for name in ("report", "other"):
        assert place.api("GET", f"/v1/jobs/{name}")[1]["version"] == 1
    place.only("normal", "tick", "sweep")
    place.pass_time(6 * MINUTE)
    assert sorted(effect.job for effect in place.target.effects) == ["other", "report"]


def _dies(place: Place, nth: int, *asked: Any, **more: Any) -> bool:
    """Whether the function that is called dies after its n-th call, having made so many."""
    seen: list[AwsCall] = []

    def fits(call: AwsCall) -> bool:
        seen.append(call)
        return len(seen) == nth

    place.traps = [Trap(fits, after=True)]
    try:
        place.api(*asked, **more)
    except FunctionFailed:
        return True
    finally:
        place.traps.clear()
    return False
