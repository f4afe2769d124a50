"""What the API behind the gateway sees and says is what API Gateway would hand on."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sweephand.api.app import PUBLIC
from sweephand.clock import SystemDice
from sweephand.errors import Defect
from sweephand.local.answers import Answer, Turned
from sweephand.local.gateway import REMEMBER_FOR, REMEMBER_MAX, Gateway, Request, allows, answer_of
from sweephand.testing import VirtualClock
from tests.local.serving import ALLOWED, DENIED, HEALTH, Echo

NOW = datetime(2026, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
ARN = "arn:aws:execute-api:local:000000000000:sweephand/api/GET/v1/jobs"


class Front:
    """A gateway with an echo behind it."""

    def __init__(self) -> None:
        self.clock = VirtualClock(NOW)
        self.echo = Echo()
        self.gateway = Gateway(self.echo, public=PUBLIC, clock=self.clock, dice=SystemDice())

    def answer(self, request: Request, body: bytes = b"") -> Answer:
        try:
            return self.gateway.handle(request, body, self.gateway.authorize(request))
        except Turned as turned:
            return turned.answer

    def event(self, request: Request, body: bytes = b"") -> dict[str, Any]:
        answer = self.answer(request, body)
        assert answer.status == 200, answer
        event: dict[str, Any] = json.loads(answer.body)
        return event


@pytest.fixture
def front() -> Front:
    return Front()


def asking(
    path: str = "/api/v1/jobs", *, method: str = "GET", query: str = "", token: str | None = ALLOWED, **headers: str
) -> Request:
    own = [("host", "localhost:8080"), *(("authorization", token) for token in [token] if token)]
    return Request(method, path, query, (*own, *((name.replace("_", "-"), value) for name, value in headers.items())))


def test_an_event_has_the_shape_of_a_rest_proxy_integration(front: Front) -> None:
    event = front.event(asking(method="POST", query="limit=5", user_agent="curl", x_many="1"), b'{"name": "j\xc3\xa4"}')
    context = event.pop("requestContext")
    assert event == {
        "resource": "/{proxy+}",
        "path": "/v1/jobs",
        "httpMethod": "POST",
        "headers": {"host": "localhost:8080", "authorization": ALLOWED, "user-agent": "curl", "x-many": "1"},
        "multiValueHeaders": {
            "host": ["localhost:8080"],
            "authorization": [ALLOWED],
            "user-agent": ["curl"],
            "x-many": ["1"],
        },
        "queryStringParameters": {"limit": "5"},
        "multiValueQueryStringParameters": {"limit": ["5"]},
        "pathParameters": {"proxy": "v1/jobs"},
        "stageVariables": None,
        "body": '{"name": "jä"}',
        "isBase64Encoded": False,
    }
    assert context.pop("requestId") == context.pop("extendedRequestId") != ""
    assert context == {
        "accountId": "000000000000",
        "apiId": "sweephand",
        "authorizer": {"principalId": "token:1", "role": "admin", "platform": "true", "number": "7"},
        "domainName": "localhost",
        "domainPrefix": "sweephand",
        "httpMethod": "POST",
        "identity": {"sourceIp": "127.0.0.1", "userAgent": "curl"},
        "path": "/api/v1/jobs",
        "protocol": "HTTP/1.1",
        "requestTime": "04/Mar/2026:05:06:07 +0000",
        "requestTimeEpoch": 1772600767890,
        "resourceId": "proxy",
        "resourcePath": "/{proxy+}",
        "stage": "api",
    }


def test_an_event_without_a_query_and_a_body_says_none(front: Front) -> None:
    event = front.event(asking())
    assert event["queryStringParameters"] is None
    assert event["multiValueQueryStringParameters"] is None
    assert event["body"] is None


def test_of_several_values_the_last_one_counts_and_all_are_there(front: Front) -> None:
    twice = (("host", "localhost"), ("authorization", ALLOWED), ("accept", "a"), ("accept", "b"))
    event = front.event(Request("GET", "/api/v1/jobs", "tag=a&tag=b%20%C3%A4&empty=&tag", twice))
    assert event["queryStringParameters"] == {"tag": "", "empty": ""}
    assert event["multiValueQueryStringParameters"] == {"tag": ["a", "b ä", ""], "empty": [""]}
    assert event["headers"]["accept"] == "b"
    assert event["multiValueHeaders"]["accept"] == ["a", "b"]


@pytest.mark.parametrize(
    "path", ["a%2Fb", "a%252Fb", "..%2f..", "../jobs", "/jobs", "JOBS", "jobs/", "%00", "%e2%80%a8"]
)
def test_a_path_stays_as_it_was_sent(front: Front, path: str) -> None:
    event = front.event(asking(f"/api/v1/{path}"))
    assert event["path"] == f"/v1/{path}"
    assert event["pathParameters"] == {"proxy": f"v1/{path}"}
    assert event["requestContext"]["path"] == f"/api/v1/{path}"


def test_a_body_that_is_no_text_comes_in_base64(front: Front) -> None:
    event = front.event(asking(method="POST"), b"\xff\x00")
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == b"\xff\x00"


def test_the_authorizer_gets_a_request_event_without_the_body(front: Front) -> None:
    front.event(asking("/api/v1/jobs/a%2Fb", method="PUT", query="x=1", x_namespace="team"), b"{}")
    (event,) = front.echo.authorized
    assert event["type"] == "REQUEST"
    assert event["methodArn"] == "arn:aws:execute-api:local:000000000000:sweephand/api/PUT/v1/jobs/a%2Fb"
    assert event["headers"]["x-namespace"] == "team"
    assert event["queryStringParameters"] == {"x": "1"}
    assert event["requestContext"]["stage"] == "api"
    assert not {"body", "isBase64Encoded"} & event.keys()


ODD_PATHS = (
    "/",
    "",
    "*",
    "/api",
    "/api//v1/health",
    "/api/api/v1/health",
    "/api/",
    "/api/v1",
    "/api/v1/health/",
    "/api/v1//health",
    "//api/v1/health",
    "/API/v1/health",
    "/api/v1/HEALTH",
    "/api/v1/%68ealth",
    "/api/v1/x/../health",
    "/api/v1/./health",
    "/api/v1/health%2F",
    "/api/v1/health;x",
    "/v1/health",
    "/api/v1/health%00",
    "/api/v1/%ff",
    "/api/v1/%",
    "http://localhost/api/v1/health",
    "/nothing/here",
)


@pytest.mark.parametrize("path", ODD_PATHS)
@pytest.mark.parametrize("method", ["GET", "OPTIONS", "HEAD", "POST", "TRACE", "BREW"])
def test_whatever_is_not_public_to_the_letter_needs_a_token(front: Front, method: str, path: str) -> None:
    answer = front.answer(asking(path, method=method, token=None))
    assert answer.status == 401
    assert dict(answer.headers)["www-authenticate"].startswith("Bearer")
    assert not front.echo.handled


@pytest.mark.parametrize("method", ["OPTIONS", "HEAD", "POST", "get"])
def test_another_method_of_a_public_path_needs_a_token(front: Front, method: str) -> None:
    assert front.answer(asking(HEALTH[1], method=method, token=None)).status == 401


def test_what_is_public_is_not_authorized_and_brings_nobody(front: Front) -> None:
    event = front.event(asking(HEALTH[1], token="Bearer nonsense"))
    assert "authorizer" not in event["requestContext"]
    assert not front.echo.authorized


def test_who_is_known_and_denied_hears_403(front: Front) -> None:
    assert front.answer(asking(token=DENIED)).status == 403
    assert not front.echo.handled


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/api", 404),
        ("/API/v1/jobs", 404),
        ("/apis/v1/jobs", 404),
        ("//api/v1/jobs", 404),
        ("*", 404),
        ("http://localhost/api/v1/jobs", 404),
        ("/api/v1/%ff", 400),
        ("/api/v1/%zz", 400),
        ("/api/v1/%", 400),
    ],
)
def test_paths_of_no_stage_and_broken_ones_do_not_reach_the_api(front: Front, path: str, status: int) -> None:
    answer = front.answer(asking(path))
    assert answer.status == status
    assert not front.echo.handled


def test_a_query_that_is_no_utf8_is_refused(front: Front) -> None:
    assert front.answer(asking(query="tag=%ff")).status == 400
    assert not front.echo.handled


def test_the_authorizer_is_asked_again_after_a_while_and_for_another_namespace(front: Front) -> None:
    for _ in range(3):
        front.event(asking())
    assert len(front.echo.authorized) == 1
    front.event(asking(x_namespace="team"))
    assert len(front.echo.authorized) == 2
    front.clock.move(NOW + REMEMBER_FOR)
    front.event(asking())
    assert len(front.echo.authorized) == 3
    assert timedelta(seconds=10) >= REMEMBER_FOR


def test_an_answer_remembered_for_one_token_is_not_given_to_another(front: Front) -> None:
    front.event(asking())
    assert front.answer(asking(token=None)).status == 401
    assert front.answer(asking(token=DENIED)).status == 403
    assert front.answer(asking(token=f"{ALLOWED} ")).status == 401
    twice = (("authorization", ALLOWED), ("authorization", DENIED))
    assert front.answer(Request("GET", "/api/v1/jobs", "", twice)).status == 403


def test_it_remembers_only_so_many(front: Front) -> None:
    for number in range(REMEMBER_MAX + 1):
        front.event(asking(x_namespace=f"n{number}"))
    asked = len(front.echo.authorized)
    front.event(asking(x_namespace=f"n{REMEMBER_MAX}"))
    assert len(front.echo.authorized) == asked
    front.event(asking(x_namespace="n0"))
    assert len(front.echo.authorized) == asked + 1


@pytest.mark.parametrize(
    ("statements", "allowed"),
    [
        ([], False),
        ([("Allow", "*")], True),
        ([("Allow", ["nothing", "arn:aws:execute-api:*:*:*/api/GET/*"])], True),
        ([("Allow", "arn:aws:execute-api:*:*:*/api/POST/*")], False),
        ([("Allow", "arn:aws:execute-api:local:000000000000:sweephand/api/GET/v1/job?")], True),
        ([("Allow", ARN[:-1])], False),
        ([("Allow", "*"), ("Deny", "*/v1/jobs")], False),
        ([("Allow", "*"), ("Deny", "*/v1/runs")], True),
        ([("Deny", "*")], False),
    ],
)
def test_a_policy_allows_what_something_allows_and_nothing_denies(
    statements: list[tuple[str, Any]], allowed: bool
) -> None:
    policy = {"Statement": [{"Effect": effect, "Resource": resource} for effect, resource in statements]}
    assert allows(policy, ARN) is allowed


def test_a_reply_becomes_an_answer_that_lets_no_other_origin_in() -> None:
    reply = {
        "statusCode": 201,
        "headers": {
            "Content-Type": "application/json",
            "ETag": '"1"',
            "Access-Control-Allow-Origin": "*",
            "Server": "x",
        },
        "multiValueHeaders": {"ETag": ['"2"'], "Link": ["a", "b"], "Transfer-Encoding": ["chunked"]},
        "body": "ä",
    }
    answer = answer_of(reply)
    expected = (("content-type", "application/json"), ("etag", '"2"'), ("link", "a"), ("link", "b"))
    assert (answer.status, answer.headers, answer.body) == (201, expected, "ä".encode())
    assert answer_of({"statusCode": 200, "body": "/w==", "isBase64Encoded": True}).body == b"\xff"
    assert answer_of({"statusCode": 204}).body == b""


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"statusCode": "200"},
        {"statusCode": 101},
        {"statusCode": 200, "headers": {"x": "a\r\nset-cookie: b"}},
        {"statusCode": 200, "headers": {"x y": "a"}},
        {"statusCode": 200, "headers": {"x": "\u2028"}},
        {"statusCode": 200, "body": "\ud800"},
        {"statusCode": 200, "body": "!", "isBase64Encoded": True},
    ],
)
def test_a_reply_that_cannot_be_sent_is_a_defect(reply: Mapping[str, Any]) -> None:
    with pytest.raises(Defect):
        answer_of(reply)
