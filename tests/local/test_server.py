"""A real server on a real socket: what it refuses, how it says so, and that nobody can take it from the others."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from sweephand.errors import TooMany, Unavailable
from sweephand.local.gateway import Event
from sweephand.local.limits import Limits
from tests.local.serving import ALLOWED, DENIED, HEALTH, Echo, Serving, head, serving
from tests.local.waiting import until

SECRET = "the reason is nobody's business"
JOBS = "/api/v1/jobs"
HOST = b"Host: 127.0.0.1\r\n"
AUTHORIZED = f"Authorization: {ALLOWED}\r\n".encode()


def fail(_event: Event) -> dict[str, Any]:
    raise RuntimeError(SECRET)


def inject(_event: Event) -> dict[str, Any]:
    return {"statusCode": 200, "headers": {"x": "a\r\nset-cookie: b=c"}}


def too_many(_event: Event) -> dict[str, Any]:
    raise TooMany("Slow down.", 2.4)


def unavailable(_event: Event) -> dict[str, Any]:
    raise Unavailable("The store did not answer.")


@pytest.fixture(scope="module")
def shared() -> Iterator[Serving]:
    with serving(Echo(fail=fail, inject=inject, toomany=too_many, unavailable=unavailable)) as server:
        yield server


SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def assert_safe(headers: Any) -> None:
    """The headers of every answer."""
    assert {name: headers.get(name) for name in SAFE} == SAFE
    assert "server" not in headers
    assert not [name for name in headers if name.startswith("access-control-")]


def test_it_listens_on_this_machine_only(shared: Serving) -> None:
    (listening,) = (name for server in shared.server.servers for name in (one.getsockname() for one in server.sockets))
    assert listening == ("127.0.0.1", shared.port)


def test_answers_do_not_wait_for_the_client_to_acknowledge_their_heads(shared: Serving) -> None:
    (connection,) = shared.server.servers[0].sockets
    assert connection.proto == socket.IPPROTO_TCP  # by which asyncio knows whose delay it can switch off


def test_a_call_is_answered_and_every_answer_has_safe_headers(shared: Serving) -> None:
    heard = shared.ask("GET", JOBS, authorization=ALLOWED, origin="https://elsewhere.example")
    assert heard.status == 200
    assert heard.document["path"] == "/v1/jobs"
    assert_safe(heard.headers)
    assert shared.ask(*HEALTH).status == 200


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD", "TRACE", "CONNECT", "BREW"])
@pytest.mark.parametrize(
    "path",
    ["/", "*", "//", JOBS, f"{JOBS}/", "/API/V1/JOBS", "//api/v1/health", "/api/v1/../v1/health", "/api%2fv1%2fhealth"],
)
def test_without_a_token_everything_is_401(shared: Serving, method: str, path: str) -> None:
    heard = shared.ask(method, path, origin="null", access_control_request_method="GET")
    assert heard.status == 401
    assert heard.headers["www-authenticate"].startswith("Bearer")
    assert_safe(heard.headers)
    if method != "HEAD":
        assert heard.is_problem


def test_a_websocket_without_a_token_is_401_like_everything(shared: Serving) -> None:
    for path in ("/live", "/api/v1/live", "/api/live"):
        heard = shared.ask("GET", path, connection="Upgrade", upgrade="websocket", sec_websocket_version="13")
        assert heard.status == 401
        assert heard.is_problem


def test_one_who_is_denied_hears_403(shared: Serving) -> None:
    heard = shared.ask("GET", JOBS, authorization=DENIED)
    assert heard.status == 403
    assert heard.is_problem


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost", "LOCALHOST:65535"])
def test_this_machine_has_two_names(shared: Serving, host: str) -> None:
    assert shared.ask(*HEALTH, host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "elsewhere.example",
        "127.0.0.1.elsewhere.example",
        "localhost.",
        "localhost@elsewhere",
        "[::1]",
        "0.0.0.0",
        "",
        "x:y",
    ],
)
def test_another_host_is_refused_even_where_no_token_is_needed(shared: Serving, host: str) -> None:
    heard = shared.ask(*HEALTH, host=host)
    assert heard.status == 403
    assert heard.is_problem
    assert_safe(heard.headers)


BROKEN = {
    "no http": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "no host": (b"GET /api/v1/health HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET /api/v1/health HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "an old version without a host": (b"GET /api/v1/health HTTP/1.0\r\n\r\n", 403),
    "a version to come": (b"PRI * HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    "a header without a colon": (b"GET / HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n", 400),
    "a space before the colon": (b"GET / HTTP/1.1\r\n" + HOST + b"X : 1\r\n\r\n", 400),
    "a NUL in a header": (b"GET / HTTP/1.1\r\n" + HOST + b"X: \0\r\n\r\n", 400),
    "a space in the path": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a length that is none": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400),
    "two lengths": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "another encoding": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "a broken chunk": (
        b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + AUTHORIZED + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        400,
    ),
    "a long url": (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    "a long query": (b"GET /?" + b"a" * 9_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    "a url without end": (b"GET /" + b"a" * 100_000, 414),
    "a long header": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 17_000 + b"\r\n\r\n", 431),
    "a header without end": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 100_000, 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + HOST + b"X: 1\r\n" * 101 + b"\r\n", 431),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_proper_request_hears_why(shared: Serving, case: str) -> None:
    request, status = BROKEN[case]
    heard = shared.raw(request)
    assert heard.status == status
    assert heard.is_problem
    assert_safe(heard.headers)


def test_a_body_may_be_as_large_as_a_definition_and_no_larger(shared: Serving) -> None:
    most = Limits().body_bytes
    assert shared.ask("POST", JOBS, b"a" * most, authorization=ALLOWED).status == 200
    heard = shared.ask("POST", JOBS, b"a" * (most + 1), authorization=ALLOWED)
    assert heard.status == 413
    assert heard.is_problem


def test_an_announced_flood_is_refused_before_it_comes(shared: Serving) -> None:
    with shared.connected() as client:
        client.say(head("POST", JOBS, 10**12, authorization=ALLOWED))
        assert client.hear().status == 413
        assert client.is_closed()
    with shared.connected() as client:
        client.say(head("POST", JOBS, 10**12, authorization=ALLOWED, expect="100-continue"))
        assert client.hear().status == 413
        assert client.is_closed()


def test_an_unannounced_flood_is_refused_where_it_becomes_one(shared: Serving) -> None:
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    with shared.connected() as client:
        client.say(head("POST", JOBS, authorization=ALLOWED, transfer_encoding="chunked"))
        client.say(chunk * (Limits().body_bytes // 0x10000 + 1))  # and no end
        assert client.hear().status == 413
        client.say(chunk * 10)  # still dropped, so that the answer is not
        assert client.is_closed()


def test_a_client_that_talks_before_it_listens_hears_the_refusal_too(shared: Serving) -> None:
    length = 2 * Limits().body_bytes
    with shared.connected() as client:
        assert client.say(head("POST", JOBS, length, authorization=ALLOWED) + b"a" * length)
        assert client.hear().status == 413


def test_strangers_are_refused_before_their_body_comes(shared: Serving) -> None:
    with shared.connected() as client:
        client.say(head("POST", JOBS, 1_000_000))
        assert client.hear().status == 401
        assert client.is_closed()


def test_a_connection_serves_one_request_after_the_other(shared: Serving) -> None:
    with shared.connected() as client:
        for _ in range(2):
            client.say(head("POST", JOBS, 2, authorization=ALLOWED) + b"{}")
            assert client.hear().document["body"] == "{}"
        client.say(head(*HEALTH) * 3)
        assert [client.hear().status for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("path", ["/api/v1/fail", "/api/v1/inject"])
def test_a_defect_is_told_with_a_number_and_nothing_else(
    shared: Serving, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "sweephand.local"):
        heard = shared.ask("GET", path, authorization=ALLOWED)
    assert heard.status == 500
    assert heard.is_problem
    assert_safe(heard.headers)
    incident = heard.document["instance"].removeprefix("urn:")
    assert incident in heard.document["detail"]
    assert incident in caplog.text
    assert "Traceback" in caplog.text
    assert not any(word in heard.body for word in (SECRET.encode(), b"Traceback", b"set-cookie"))
    assert "set-cookie" not in heard.headers


def test_what_passes_says_when_to_come_back(shared: Serving) -> None:
    heard = shared.ask("GET", "/api/v1/toomany", authorization=ALLOWED)
    assert (heard.status, heard.headers["retry-after"], heard.is_problem) == (429, "3", True)
    heard = shared.ask("GET", "/api/v1/unavailable", authorization=ALLOWED)
    assert (heard.status, heard.headers["retry-after"], heard.is_problem) == (503, "1", True)


class Held:
    """Calls that wait until they are let go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._let_go = threading.Event()
        self.waiting = 0

    def __call__(self, _event: Event) -> dict[str, Any]:
        with self._lock:
            self.waiting += 1
        self._let_go.wait(30)
        return {"statusCode": 200, "body": "{}"}

    def let_go(self) -> None:
        self._let_go.set()


def test_one_connection_too_many_is_told_to_come_back() -> None:
    with serving(Echo(), connections=3) as server, ExitStack() as connections:
        first = [connections.enter_context(server.connected()) for _ in range(3)]
        for client in first:
            client.say(head(*HEALTH))
            assert client.hear().status == 200
        with server.connected() as client:
            heard = client.hear()
            assert (heard.status, heard.headers["retry-after"], heard.is_problem) == (503, "1", True)
            assert_safe(heard.headers)
            assert client.is_closed()
        first[0].say(head(*HEALTH))
        assert first[0].hear().status == 200


def test_a_head_and_a_body_must_come_in_time() -> None:
    with serving(Echo(), head_within_s=0.2, body_within_s=0.2) as server, ExitStack() as connections:
        silent, slow, later, idle = (connections.enter_context(server.connected()) for _ in range(4))
        slow.say(b"GET / HTTP/1.1\r\n")
        later.say(head("POST", JOBS, 10, authorization=ALLOWED) + b"{")
        idle.say(head(*HEALTH))
        assert idle.hear().status == 200
        assert silent.is_closed()
        for client in (slow, later):
            heard = client.hear()
            assert (heard.status, heard.is_problem) == (408, True)
            assert client.is_closed()
        idle.say(b"GET / HT")
        assert idle.hear().status == 408


def test_stopping_lets_a_request_finish() -> None:
    held = Held()
    with ThreadPoolExecutor(1) as one:
        with serving(Echo(held=held)) as server:
            asked = one.submit(server.ask, "GET", "/api/v1/held", authorization=ALLOWED)
            until(lambda: held.waiting == 1, within_s=10, what="a call at work")
            server.server.should_exit = True
            until(lambda: not any(one.is_serving() for one in server.server.servers), within_s=10, what="closed doors")
            held.let_go()
        assert asked.result().status == 200


def test_stopping_does_not_wait_for_ever_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    with ThreadPoolExecutor(1) as one:
        with serving(Echo(held=held), finish_within_s=1) as server:
            asked = one.submit(server.ask, "GET", "/api/v1/held", authorization=ALLOWED)
            until(lambda: held.waiting == 1, within_s=10, what="a call at work")
        heard = asked.result()
        held.let_go()
    assert (heard.status, heard.headers["retry-after"], heard.is_problem) == (503, "1", True)
    assert "Traceback" not in caplog.text
