"""The real handlers behind API Gateway, on moto: who is let in, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sweephand.api.app import PUBLIC
from sweephand.domain.access import EVERYWHERE, Role
from sweephand.domain.ids import Namespace
from sweephand.engine.grant import put_namespace
from sweephand.engine.issue import issue
from sweephand.local.answers import Turned
from sweephand.local.cloud import Deployment, FunctionFailed
from sweephand.local.cloud.front import Front
from sweephand.local.gateway import Gateway, Request
from sweephand.ports import World
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock

ROOT = Path(__file__).parents[2]


class Place:
    """A deployment with API Gateway in front of it."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.world: World = deployment.world
        self._gateway = Gateway(Front(deployment), public=PUBLIC, clock=deployment.clock, dice=deployment.dice)

    def token(self, namespace: str = EVERYWHERE, role: Role = Role.ADMIN) -> str:
        return issue(self.world, namespace=Namespace(namespace), role=role, name="somebody", actor="test").text

    def call(
        self, token: str, method: str, path: str, body: object = None, *, namespace: str | None = None
    ) -> tuple[int, Any]:
        headers = [("host", "localhost"), ("content-type", "application/json")]
        headers += [("authorization", f"Bearer {token}")] if token else []
        headers += [("x-namespace", namespace)] if namespace else []
        request = Request(method, f"/api{path}", "", tuple(headers))
        try:
            context = self._gateway.authorize(request)
            answer = self._gateway.handle(request, json.dumps(body).encode() if body is not None else b"", context)
        except Turned as turned:
            answer = turned.answer
        return answer.status, json.loads(answer.body) if answer.body else None


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    clock = VirtualClock(datetime(2026, 11, 16, 6, tzinfo=UTC))
    settings = Settings(name="blue", issuer="https://people.invalid")
    with Deployment(ROOT, tmp=tmp_path, clock=clock, dice=SeededDice(1), settings=settings) as deployment:
        yield Place(deployment)


def test_a_job_is_created_and_triggered_through_the_handlers(place: Place) -> None:
    token = place.token()
    status, job = place.call(token, "POST", "/v1/jobs", {"name": "report", "command": "report"})
    assert (status, job["status"]) == (201, "scheduled")
    status, answer = place.call(token, "POST", "/v1/jobs/report/trigger")
    assert (status, answer["status"]) == (202, "queued")
    status, run = place.call(token, "GET", f"/v1/jobs/report/runs/{answer['runId']}")
    assert (status, run["state"]) == (200, "queued")


def test_who_is_not_known_or_asks_for_too_much_is_turned_away(place: Place) -> None:
    stranger = "swh_0123456789abcdef_" + "x" * 43
    with pytest.raises(FunctionFailed) as refused:
        place.deployment.invoke("authorize", {"methodArn": "", "headers": {"Authorization": f"Bearer {stranger}"}})
    assert refused.value.message == "Unauthorized"  # exactly this, or API Gateway answers 500
    assert place.call(stranger, "GET", "/v1/jobs")[0] == 401
    assert place.call("", "GET", "/v1/jobs")[0] == 401
    put_namespace(place.world, "team", {}, actor="test")
    narrow = place.token("team", Role.VIEWER)
    assert place.call(narrow, "GET", "/v1/jobs") == (200, {"items": [], "nextCursor": None})
    assert place.call(narrow, "GET", "/v1/jobs", namespace="default")[0] == 403
    assert place.call(narrow, "POST", "/v1/jobs", {"name": "a", "command": "x"})[0] == 403


def test_health_needs_nobody_and_nothing_else_is_answered_without_somebody(place: Place) -> None:
    assert place.call("", "GET", "/v1/health") == (200, {"status": "ok"})
    event = {"httpMethod": "GET", "path": "/v1/jobs", "headers": {}, "requestContext": {"authorizer": None}}
    assert place.deployment.invoke("api", event)["statusCode"] == 401


def test_settings_survive_their_environment_and_refuse_a_misspelt_variable() -> None:
    settings = Settings(name="blue", issuer="https://pool.test")
    assert Settings.from_environ({"PATH": "/bin", **settings.to_environ()}) == settings
    with pytest.raises(Exception, match="SWEEPHAND_ISUER means nothing"):
        Settings.from_environ({"SWEEPHAND_ISUER": "x"})
