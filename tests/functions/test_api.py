"""The real handlers behind API Gateway, on moto: who is let in, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from sweephand import entrypoint
from sweephand.clock import SystemClock
from sweephand.domain.access import EVERYWHERE, Role
from sweephand.domain.ids import Namespace
from sweephand.engine.grant import put_namespace
from sweephand.engine.issue import issue
from sweephand.settings import Settings
from tests.moto_world import NAMES, moto_world

ARN = "arn:aws:execute-api:us-east-1:123456789012:abcdef/api/GET/v1/jobs"


class Deployment:
    """What API Gateway does: it asks the authorizer, and hands on what that says."""

    def __init__(self, api: ModuleType, authorize: ModuleType) -> None:
        self._api = api
        self._authorize = authorize

    def policy(self, token: str, namespace: str | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"} | ({"X-Namespace": namespace} if namespace else {})
        event = {"type": "REQUEST", "methodArn": ARN, "path": "/v1/jobs", "httpMethod": "GET", "headers": headers}
        found: dict[str, Any] = self._authorize.handler(event, None)
        return found

    def call(self, token: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        event = {
            "resource": "/{proxy+}",
            "path": path,
            "httpMethod": method,
            "headers": {"content-type": "application/json"},
            "multiValueHeaders": {"content-type": ["application/json"]},
            "queryStringParameters": None,
            "multiValueQueryStringParameters": None,
            "pathParameters": {"proxy": path.removeprefix("/")},
            "requestContext": {
                "stage": "api",
                "path": f"/api{path}",
                "authorizer": self.policy(token)["context"] if token else None,
            },
            "body": json.dumps(body) if body is not None else None,
            "isBase64Encoded": False,
        }
        answer = self._api.handler(event, None)
        return answer["statusCode"], json.loads(answer["body"]) if answer["body"] else None


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.delenv("SWEEPHAND_SOAK", raising=False)
    for name, value in Settings(name=NAMES.prefix, issuer="https://pool.test", audience="client").to_environ().items():
        monkeypatch.setenv(name, value)
    with moto_world(SystemClock()):
        entrypoint.settings.cache_clear()
        entrypoint.deployed.cache_clear()
        yield Deployment(import_module("functions.api.handler"), import_module("functions.authorize.handler"))
    entrypoint.settings.cache_clear()
    entrypoint.deployed.cache_clear()


def test_a_job_is_created_and_triggered_through_the_handlers(deployment: Deployment) -> None:
    world = entrypoint.deployed()
    token = issue(world, namespace=EVERYWHERE, role=Role.ADMIN, name="ops", actor="test").text
    status, job = deployment.call(token, "POST", "/v1/jobs", {"name": "report", "command": "report"})
    assert (status, job["status"]) == (201, "scheduled")
    status, answer = deployment.call(token, "POST", "/v1/jobs/report/trigger")
    assert (status, answer["status"]) == (202, "queued")
    status, run = deployment.call(token, "GET", f"/v1/jobs/report/runs/{answer['runId']}")
    assert (status, run["state"]) == (200, "queued")

    # Whom the authorizer does not know it refuses in API Gateway's own way, and one who asks for too much is denied.
    with pytest.raises(RuntimeError, match=r"^Unauthorized$"):
        deployment.policy("swh_0123456789abcdef_" + "x" * 43)
    put_namespace(world, "team", {}, actor="test")
    narrow = issue(world, namespace=Namespace("team"), role=Role.VIEWER, name="n", actor="test").text
    assert deployment.policy(narrow)["context"]["namespace"] == "team"
    (statement,) = deployment.policy(narrow, "default")["policyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert deployment.call(narrow, "POST", "/v1/jobs/report/trigger")[0] == 403
    assert deployment.call(narrow, "GET", "/v1/jobs/report")[0] == 404

    # Health needs no authorizer; nothing else is answered without one.
    assert deployment.call("", "GET", "/v1/health") == (200, {"status": "ok"})
    assert deployment.call("", "GET", "/v1/jobs")[0] == 401


def test_settings_survive_their_environment_and_refuse_a_misspelt_variable() -> None:
    settings = Settings(name="blue", issuer="https://pool.test")
    assert Settings.from_environ({"PATH": "/bin", **settings.to_environ()}) == settings
    with pytest.raises(Exception, match="SWEEPHAND_ISUER means nothing"):
        Settings.from_environ({"SWEEPHAND_ISUER": "x"})
