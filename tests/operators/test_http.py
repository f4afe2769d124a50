"""Requests of tasks: what is sent, what an answer means, where they never go, and that they end in time."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.embedded import open_stores
from sweephand.engine.cancel import cancel
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import InvalidInput
from sweephand.local import Runtime
from sweephand.operators import Attempt, Operators
from sweephand.operators.http import Http
from sweephand.operators.place import Place
from sweephand.secrets import Values
from tests.local.waiting import until
from tests.operators.calls import call
from tests.operators.web import Answering, Web, nobody, serving
from tests.unit.test_addresses import METADATA, NOBODYS, PRIVATE, REFUSED_V6, SPELLINGS

HERE = ("127.0.0.1",)
PERMANENT, TRANSIENT = FailureClass.PERMANENT, FailureClass.TRANSIENT
AT_ONCE_S = 2.0


def request(url: str, *, params: dict[str, Any] | None = None, timeout_s: float = 30, **options: Any) -> Call:
    return call("http", None, params=params, timeout_s=timeout_s, url=url, **options)


def send(
    call: Call, *, may_reach: Sequence[str] = HERE, addresses: Callable[[str], list[str]] | None = None
) -> Outcome:
    """Run it; `addresses` is the resolver."""
    attempt = Attempt(call, Place(Path("unused"), call), timedelta(seconds=1))
    if addresses is None:
        return Http(may_reach).execute(attempt)
    return Http(may_reach, resolve=lambda host, _port: addresses(host)).execute(attempt)


def output(outcome: Outcome) -> Any:
    assert isinstance(outcome, Succeeded), outcome
    return outcome.output


def failure(outcome: Outcome) -> Failure:
    assert isinstance(outcome, Failure), outcome
    return outcome


@pytest.fixture
def web() -> Iterator[Web]:
    with serving({"/": lambda call: call.answer(200, b"hello", Content_Type="text/plain")}) as server:
        yield server


# What is sent.


def test_a_get_says_which_run_it_is_and_its_answer_is_the_output(web: Web) -> None:
    outcome = send(request(web.url("/?q=${params.q}"), params={"q": "a b/é"}, attempt=2))
    assert output(outcome) == {"status": 200, "headers": {"content-type": "text/plain"}, "body": "hello"}
    (asked,) = web.asked
    assert (asked.method, asked.target, asked.body) == ("GET", "/?q=a%20b/%C3%A9", b"")
    version = asked.headers["user-agent"]
    assert version.startswith("Sweephand/")
    assert dict(asked.headers) == {
        "host": f"127.0.0.1:{web.port}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "user-agent": version,
        "idempotency-key": "team/report/20261003T233000Z/main",
        "sweephand-job": "report",
        "sweephand-namespace": "team",
        "sweephand-run-id": "20261003T233000Z",
        "sweephand-task-id": "main",
        "sweephand-attempt": "2",
        "sweephand-fire-at": "2026-10-03T23:30:00Z",
        "connection": "close",
    }


@pytest.mark.parametrize(
    ("options", "method", "kind", "sent"),
    [
        ({"body": {"a": ["${params.n}", "é"]}}, "POST", "application/json", b'{"a":[7,"\xc3\xa9"]}'),
        ({"body": "n is ${params.n}"}, "POST", "text/plain; charset=utf-8", b"n is 7"),
        ({"body": ""}, "POST", "text/plain; charset=utf-8", b""),
        ({"body": "${params.n}"}, "POST", "application/json", b"7"),
        ({"body": 0, "method": "PUT"}, "PUT", "application/json", b"0"),
        ({"body": "<a/>", "headers": {"content-TYPE": "application/xml"}}, "POST", "application/xml", b"<a/>"),
        (
            {"body": [1], "headers": {"Content-Type": "application/vnd.api+json"}},
            "POST",
            "application/vnd.api+json",
            b"[1]",
        ),
        ({"method": "DELETE"}, "DELETE", None, b""),
        ({"method": "POST"}, "POST", None, b""),
        ({"method": "HEAD"}, "HEAD", None, b""),
    ],
)
def test_bodies_are_text_or_json(web: Web, options: dict[str, Any], method: str, kind: str | None, sent: bytes) -> None:
    assert output(send(request(web.url(), params={"n": 7}, **options)))["status"] == 200
    (asked,) = web.asked
    assert (asked.method, asked.headers.get("content-type"), asked.body) == (method, kind, sent)
    assert asked.headers.get("content-length") == (str(len(sent)) if sent or method in {"POST", "PUT"} else None)


def test_headers_are_the_tasks_own_but_for_ours(web: Web) -> None:
    headers = {"X-Token": "${params.token}", "User-Agent": "mine", "Accept": "text/csv"}
    send(request(web.url(), params={"token": 12}, headers=headers))
    asked = web.asked[0].headers
    assert (asked["x-token"], asked["user-agent"], asked["accept"]) == ("12", "mine", "text/csv")
    for name in ("Host", "Idempotency-Key", "Sweephand-Run-Id", "Transfer-Encoding"):
        with pytest.raises(InvalidInput, match="set by Sweephand"):
            send(request(web.url(), headers={name: "other"}))
    assert len(web.asked) == 1


@pytest.mark.parametrize("value", ["a\r\nX-Injected: 1", "a\nb", "a\0b", "\u2028", "é"])
def test_values_of_parameters_break_no_lines(web: Web, value: str) -> None:
    with pytest.raises(InvalidInput, match="one line"):
        send(request(web.url(), params={"v": value}, headers={"X-Value": "${params.v}"}))
    assert web.asked == []


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "a\nb", "a\0b", "\u2028"])
def test_values_of_parameters_break_no_url(web: Web, value: str) -> None:
    with pytest.raises(InvalidInput, match="no line breaks"):
        send(request(web.url("/${params.v}"), params={"v": value}))
    assert web.asked == []


def test_a_task_gets_no_further_without_its_secrets(tmp_path: Path, web: Web) -> None:
    outcome = Operators(tmp_path, http_may_reach=HERE).execute(request(web.url(), secrets={"A": "b"}))
    assert (failure(outcome).error, failure(outcome).kind) == ("SecretNotFound", PERMANENT)
    assert web.asked == []


def test_a_secret_goes_out_in_a_header_and_does_not_come_back(tmp_path: Path) -> None:
    def says_it(call: Answering) -> None:
        call.answer(200, call.headers["Authorization"].encode(), Content_Type="text/plain")

    with serving({"/": says_it}) as web:
        headers = {"Authorization": "Bearer ${secrets.KEY}"}
        asked = request(web.url(), headers=headers, secrets={"KEY": "partner"})
        given = replace(asked, secrets=Values({"KEY": "hunter2-canary"}))
        outcome = Operators(tmp_path, http_may_reach=HERE).execute(given)
    assert web.asked[0].headers["authorization"] == "Bearer hunter2-canary"
    assert output(outcome)["body"] == "Bearer •••"


@pytest.mark.parametrize("status", [200, 500, 503])
def test_where_an_answer_is_cut_no_half_of_a_secret_is_left(tmp_path: Path, status: int) -> None:
    canary = "".join(f"{n:04x}" for n in range(100))

    def says_it(call: Answering) -> None:
        said = call.headers["Authorization"].encode()
        body = b"x" * 300 + said + b"x" * 2_200 + said + b"x" * 1_000
        cut = {"ETag": "x" * 230 + said.decode(), "Retry_After": "x" * 40 + said.decode()}
        call.answer(status, body, Content_Type="text/plain", **cut)

    with serving({"/": says_it}) as web:
        headers = {"Authorization": "${secrets.KEY}"}
        asked = replace(
            request(web.url(), headers=headers, secrets={"KEY": "partner"}), secrets=Values({"KEY": canary})
        )
        outcome = Operators(tmp_path, http_may_reach=HERE).execute(asked)
    assert canary[:20] not in repr(outcome)


# What an answer means.


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, PERMANENT),
        (401, PERMANENT),
        (404, PERMANENT),
        (409, PERMANENT),
        (304, PERMANENT),
        (408, TRANSIENT),
        (425, TRANSIENT),
        (429, TRANSIENT),
        (500, TRANSIENT),
        (503, TRANSIENT),
        (599, TRANSIENT),
        (999, PERMANENT),
    ],
)
def test_a_status_other_than_2xx_is_a_failure_of_its_name(web: Web, status: int, kind: FailureClass) -> None:
    web.routes["/"] = lambda call: call.answer(status, b"" if status == 304 else b"the reason", Retry_After="120")
    failed = failure(send(request(web.url("/?key=hidden"))))
    assert (failed.error, failed.kind) == (f"Http{status}", kind)
    assert f"GET 127.0.0.1 was answered with {status}" in failed.message
    assert ("after 120" in failed.message) == (status in {429, 503})
    assert ("the reason" in failed.message) == (status != 304)
    assert "hidden" not in failed.message


@pytest.mark.parametrize(
    ("status", "expected", "succeeds"), [(404, [200, 404], True), (200, [201], False), (302, [302], True)]
)
def test_a_task_may_say_which_statuses_are_good(web: Web, status: int, expected: list[int], succeeds: bool) -> None:
    web.routes["/"] = lambda call: call.answer(status, Location="http://169.254.169.254/")
    outcome = send(request(web.url(), expect=expected))
    assert isinstance(outcome, Succeeded) == succeeds
    assert isinstance(outcome, Succeeded) or (outcome.error, outcome.kind) == ("Http200", PERMANENT)  # type: ignore[union-attr]


JSON = "application/json"


@pytest.mark.parametrize(
    ("kind", "sent", "kept"),
    [
        (JSON, b'{"a": [1, 2.5, null, "\xc3\xa9"]}', {"a": [1, 2.5, None, "é"]}),
        ("application/problem+json; charset=utf-8", b"[1]", [1]),
        (JSON, b"null", None),
        (JSON, b"no json", "no json"),
        (JSON, b"", ""),
        (JSON, b"[NaN]", "[NaN]"),
        (JSON, b'["\\ud800"]', '["\\ud800"]'),
        (JSON, b"[" * 3000, "[" * 3000),
        (JSON, b"9" * 30, "9" * 30),
        ("text/plain", b'{"a": 1}', '{"a": 1}'),
        ("text/plain; charset=ISO-8859-1", b"caf\xe9", "café"),
        ("application/octet-stream", b"a\x00\xffb", "a\ufffd\ufffdb"),
    ],
)
def test_json_is_kept_as_json_and_all_else_as_text(web: Web, kind: str, sent: bytes, kept: Any) -> None:
    web.routes["/"] = lambda call: call.answer(200, sent, Content_Type=kind)
    assert output(send(request(web.url())))["body"] == kept


@pytest.mark.parametrize("body", [json.dumps(["é" * 50] * 100), "\x01" * 20_000, "é" * 20_000, '"\\' * 9_000])
def test_of_a_long_answer_the_beginning_is_kept(web: Web, body: str) -> None:
    ballast = dict.fromkeys(("ETag", "Location", "Retry_After", "X_Request_Id", "X_Other"), '"' * 5000)
    web.routes["/"] = lambda call: call.answer(200, body.encode(), Content_Type=JSON, **ballast)
    kept = output(send(request(web.url())))
    assert len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()) <= OUTPUT_BYTES_MAX
    assert body.startswith(kept["body"].rstrip("\ufffd"))
    assert kept["headers"].keys() == {"content-type", "etag", "location", "retry-after", "x-request-id"}
    assert kept["headers"]["etag"] == '"' * 256


def test_a_packed_answer_is_not_unpacked(web: Web) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    web.routes["/"] = lambda call: call.answer(200, bomb, Content_Type=JSON, Content_Encoding="gzip")
    assert output(send(request(web.url()))) == {
        "status": 200,
        "headers": {"content-type": JSON, "content-encoding": "gzip"},
        "body": "",
    }


def endless(call: Answering) -> None:
    call.send_response(200)
    call.end_headers()
    while not call.web.closing.is_set():
        call.wfile.write(b"x" * 65_536)


def chunked(call: Answering) -> None:
    call.send_response(200)
    call.send_header("Transfer-Encoding", "chunked")
    call.end_headers()
    while not call.web.closing.is_set():
        call.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")


@pytest.mark.parametrize(
    "route",
    [endless, chunked, lambda call: call.answer(200, b"", Content_Length="1048577")],
    ids=["endless", "chunked", "announced"],
)
def test_an_answer_that_is_too_large_fails_for_good(web: Web, route: Callable[[Answering], None]) -> None:
    web.routes["/"] = route
    failed = failure(send(request(web.url())))
    assert (failed.error, failed.kind) == ("ResponseTooLarge", PERMANENT)
    assert "1048576" in failed.message


def test_a_task_may_ask_for_more_or_less_and_memory_does_not_grow(web: Web) -> None:
    large = bytes(20_000_000)
    web.routes["/"] = lambda call: call.answer(200, large)
    assert failure(send(request(web.url(), maxBytes=len(large) - 1))).error == "ResponseTooLarge"
    Http(HERE)
    tracemalloc.start()
    try:
        assert output(send(request(web.url(), maxBytes=len(large))))["status"] == 200
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    web.routes["/"] = lambda call: call.answer(204)
    assert output(send(request(web.url(), maxBytes=0))) == {"status": 204, "headers": {}, "body": ""}


# Where there is no answer.


@contextmanager
def raw(say: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that speaks no HTTP of its own."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            with closing(listening.accept()[0]) as connection:
                connection.recv(65_536)
                say(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join(10)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def says(data: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(data)


@pytest.mark.parametrize(
    ("say", "error", "kind"),
    [
        (says(b""), "ConnectionReset", TRANSIENT),
        (reset, "ConnectionReset", TRANSIENT),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), "ConnectionReset", TRANSIENT),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), "ConnectionReset", TRANSIENT),
        (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "InvalidResponse", PERMANENT),
        (says(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1_000 + b"\r\n"), "InvalidResponse", PERMANENT),
        (says(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000 + b"\r\n\r\n"), "InvalidResponse", PERMANENT),
    ],
    ids=["closed", "reset", "half", "half a chunk", "ssh", "many headers", "long header"],
)
def test_an_answer_that_is_none_fails_by_its_cause(
    say: Callable[[socket.socket], None], error: str, kind: FailureClass
) -> None:
    with raw(say) as url:
        failed = failure(send(request(url)))
    assert (failed.error, failed.kind) == (error, kind)


def test_nobody_listens() -> None:
    with nobody() as url:
        failed = failure(send(request(url)))
    assert (failed.error, failed.kind) == ("ConnectionRefused", TRANSIENT)
    assert url.rstrip("/").rpartition(":")[2] in failed.message


def test_a_name_that_means_nothing_may_mean_something_later() -> None:
    def unknown(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def without(host: str) -> list[str]:
        return []

    for addresses in (unknown, without):
        failed = failure(send(request("http://nowhere.test/"), addresses=addresses))
        assert (failed.error, failed.kind) == ("NameNotResolved", TRANSIENT)
        assert "nowhere.test" in failed.message


def test_the_next_address_is_tried_where_one_does_not_answer(web: Web) -> None:
    url = web.url(host="two.test")
    outcome = send(request(url), may_reach=["127.0.0.0/8"], addresses=lambda host: ["127.0.0.9", "127.0.0.1"])
    assert output(outcome)["body"] == "hello"
    assert web.asked[0].headers["host"] == f"two.test:{web.port}"


# It ends in time, and when it is told to.


def never(call: Answering) -> None:
    call.web.closing.wait()


def drips_headers(call: Answering) -> None:
    call.send_response(200)
    call.flush_headers()
    call.drip(b"X-A: b\r\n")


def drips_body(call: Answering) -> None:
    call.send_response(200)
    call.send_header("Content-Length", "1000000")
    call.end_headers()
    call.drip()


def interim(call: Answering) -> None:
    call.drip(b"HTTP/1.1 100 Continue\r\n\r\n")


SLOW = [never, drips_headers, drips_body, interim]


@pytest.mark.parametrize("route", SLOW)
def test_a_slow_answer_times_out_and_the_connection_is_gone(web: Web, route: Callable[[Answering], None]) -> None:
    web.routes["/"] = route
    began = datetime.now(UTC)
    failed = failure(send(request(web.url(), timeout_s=0.3)))
    took = (datetime.now(UTC) - began).total_seconds()
    assert (failed.error, failed.kind) == ("Timeout", TRANSIENT)
    assert 0.3 <= took < 0.3 + AT_ONCE_S
    if route is not never:
        assert web.hung_up.wait(10)
    _no_errand_is_left()


@pytest.mark.parametrize("route", SLOW)
def test_a_cancel_from_another_thread_ends_it_at_once(
    tmp_path: Path, web: Web, route: Callable[[Answering], None]
) -> None:
    web.routes["/"] = route
    operators, asked = Operators(tmp_path, http_may_reach=HERE), request(web.url())
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(asked)))
    thread.start()
    until(lambda: web.asked, within_s=10, what="it was asked")
    operators.cancel(asked)
    thread.join(AT_ONCE_S)
    assert [failure(one).error for one in outcomes] == ["Cancelled"]
    _no_errand_is_left()


def test_a_name_that_is_never_resolved_and_a_silent_handshake_time_out(web: Web) -> None:
    stuck = threading.Event()

    def hangs(host: str) -> list[str]:
        stuck.wait(30)
        return ["127.0.0.1"]

    assert failure(send(request(web.url(host="slow.test"), timeout_s=0.2), addresses=hangs)).error == "Timeout"
    stuck.set()  # what comes now finds its line cut
    _no_errand_is_left()
    assert web.asked == []
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        assert failure(send(request(url, timeout_s=0.2))).error == "Timeout"
    _no_errand_is_left()


def test_an_answer_that_nobody_reads_does_not_hold_up_what_is_sent() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        outcome = send(request(url, timeout_s=0.3, body="x" * 30_000_000))
    assert failure(outcome).error == "Timeout"
    _no_errand_is_left()


def _no_errand_is_left() -> None:
    until(
        lambda: not [one for one in threading.enumerate() if one.name == "sweephand-errand"],
        within_s=10,
        what="no thread is left",
    )


# Where it never goes.


@pytest.mark.parametrize("host", [*METADATA, *NOBODYS, *PRIVATE, *(f"[{one}]" for one in REFUSED_V6)])
def test_an_address_that_is_not_public_is_refused_when_it_runs(tmp_path: Path, host: str) -> None:
    outcome = Operators(tmp_path).execute(request("${params.url}", params={"url": f"http://{host}/"}, timeout_s=5))
    failed = failure(outcome)
    assert (failed.error, failed.kind) == ("TargetRefused", PERMANENT)
    assert "may not go to" in failed.message


@pytest.mark.parametrize("authority", SPELLINGS)
def test_other_spellings_are_refused_when_it_runs(tmp_path: Path, authority: str) -> None:
    outcome = Operators(tmp_path).execute(request("http://${params.host}/", params={"host": authority}, timeout_s=5))
    assert (failure(outcome).error, failure(outcome).kind) in {
        ("InvalidInput", PERMANENT),
        ("TargetRefused", PERMANENT),
    }


@pytest.mark.parametrize("address", [*METADATA, *NOBODYS, *PRIVATE, *REFUSED_V6])
def test_a_name_is_judged_by_every_address_that_it_has(address: str) -> None:
    for addresses in ([address], ["93.184.215.14", address], [address, "93.184.215.14"]):
        has = {"rebound.test": addresses}
        failed = failure(send(request("http://rebound.test/"), may_reach=(), addresses=has.__getitem__))
        assert (failed.error, failed.kind) == ("TargetRefused", PERMANENT)
        assert f"rebound.test, which is {ip_address(address)}" in failed.message


@pytest.mark.parametrize("name", ["localhost", "a.localhost", "metadata.google.internal"])
def test_names_of_this_machine_are_judged_by_what_they_mean(name: str) -> None:
    failed = failure(send(request(f"http://{name}/"), may_reach=(), addresses=lambda _: ["::1", "127.0.0.1"]))
    assert failed.error == "TargetRefused"
    if name == "localhost":
        assert failure(send(request("http://localhost:1/"), may_reach=())).error == "TargetRefused"


def test_a_name_is_resolved_once_and_what_was_checked_is_connected() -> None:
    answers = iter([["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1"]])
    routes = {"/": lambda call: call.answer(200, b"checked"), "/on": lambda call: call.answer(302, Location="/")}
    with serving(routes, host="127.0.0.2") as web:
        url = web.url(host="rebinding.test")
        outcome = send(request(url), may_reach=["127.0.0.2"], addresses=lambda _: next(answers))
        assert output(outcome)["body"] == "checked"
        assert next(answers) == ["127.0.0.1"]  # the second answer was never asked for
        again = iter([["127.0.0.2"], ["127.0.0.1"]])
        failed = failure(send(request(f"{url}on"), may_reach=["127.0.0.2"], addresses=lambda _: next(again)))
        assert failed.error == "TargetRefused"  # a redirect is judged anew
        assert [one.target for one in web.asked] == ["/", "/on"]


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.2/",
        "http://[::1]/",
        "http://2130706433/",
        "//10.0.0.1/",
        "http://user:pw@127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/",
        "http://[::1",
        "http://127.0.0.1:0/",
    ],
)
def test_a_redirect_to_a_refused_place_is_not_followed(web: Web, location: str) -> None:
    web.routes["/"] = lambda call: call.answer(302, Location=location)
    failed = failure(send(request(web.url())))
    assert (failed.error, failed.kind) == ("TargetRefused", PERMANENT)
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    ("status", "method", "becomes", "carries"),
    [
        (301, "POST", "GET", False),
        (302, "POST", "GET", False),
        (303, "POST", "GET", False),
        (303, "PUT", "GET", False),
        (302, "PUT", "PUT", True),
        (307, "POST", "POST", True),
        (308, "PATCH", "PATCH", True),
        (302, "GET", "GET", False),
        (303, "HEAD", "HEAD", False),
    ],
)
def test_redirects_keep_the_method_and_the_body_or_become_a_get(
    web: Web, status: int, method: str, becomes: str, carries: bool
) -> None:
    web.routes["/from"] = lambda call: call.answer(status, Location="../?x=1#part")
    body = {"a": 1} if method not in {"GET", "HEAD"} else None
    headers = {"Authorization": "Bearer x"}
    assert output(send(request(web.url("/from"), method=method, headers=headers, body=body)))["status"] == 200
    first, second = web.asked
    assert (second.method, second.target) == (becomes, "/?x=1")
    assert second.body == (first.body if carries else b"")
    assert ("content-type" in second.headers) == carries
    assert second.headers["authorization"] == "Bearer x"
    assert second.headers["idempotency-key"] == first.headers["idempotency-key"]


def test_credentials_do_not_follow_to_another_host_or_port() -> None:
    headers = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "Accept": "text/csv"}
    with serving({"/": lambda call: call.answer(200)}) as other:
        routes = {
            "/port": lambda call: call.answer(307, Location=other.url(host="first.test")),
            "/host": lambda call: call.answer(307, Location=f"http://other.test:{call.web.port}/there"),
            "/there": lambda call: call.answer(200),
        }
        with serving(routes) as web:
            for path in ("/port", "/host"):
                asked = request(web.url(path, host="first.test"), headers=headers, body="b")
                output(send(asked, addresses=lambda _: ["127.0.0.1"]))
        for seen in (other.asked[0], web.asked[-1]):
            assert not {"authorization", "cookie", "x-api-key"} & seen.headers.keys()
            assert (seen.headers["accept"], seen.body) == ("text/csv", b"b")


def test_redirects_have_an_end(web: Web) -> None:
    def after(call: Answering) -> None:
        n = int(call.path.rpartition("=")[2])
        call.answer(302, Location=f"/after?n={n - 1}") if n else call.answer(200, b"arrived")

    web.routes["/after"] = after
    assert output(send(request(web.url("/after?n=5"))))["body"] == "arrived"
    failed = failure(send(request(web.url("/after?n=6"))))
    assert (failed.error, failed.kind) == ("TooManyRedirects", PERMANENT)


# TLS.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For good.test, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "good.test")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("good.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "good.pem"
    plain = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    path.write_bytes(made.public_bytes(plain[2]) + key.private_bytes(plain[2], plain[1], plain[0]))
    return path


@pytest.fixture
def secure(certificate: Path) -> Iterator[tuple[Web, list[str | None]]]:
    """A server with TLS, and the names that clients asked for."""
    context, names = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[str | None]()
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _connection, name, _context: names.append(name)
    down = {"/down": lambda call: call.answer(302, Location=f"http://good.test:{call.web.port}/")}
    with serving({"/": lambda call: call.answer(200, b"safe"), **down}, tls=context) as web:
        yield web, names


def test_https_is_checked_against_the_name_and_not_the_address(
    secure: tuple[Web, list[str | None]], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web, names = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    url = web.url(host="Good.Test.", scheme="https")
    assert output(send(request(url), addresses=lambda _: ["127.0.0.1"]))["body"] == "safe"
    assert names == ["good.test"]
    assert web.asked[0].headers["host"] == f"good.test:{web.port}"
    failed = failure(send(request(f"{url}down"), addresses=lambda _: ["127.0.0.1"]))
    assert (failed.error, failed.kind) == ("TargetRefused", PERMANENT)
    assert "from https to http" in failed.message
    failed = failure(send(request(web.url(host="other.test", scheme="https")), addresses=lambda _: ["127.0.0.1"]))
    assert (failed.error, failed.kind) == ("BadCertificate", PERMANENT)


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: tuple[Web, list[str | None]]) -> None:
    web, _ = secure
    failed = failure(send(request(web.url(host="good.test", scheme="https")), addresses=lambda _: ["127.0.0.1"]))
    assert (failed.error, failed.kind) == ("BadCertificate", PERMANENT)
    assert web.asked == []


def test_plain_http_where_tls_is_spoken_may_be_a_hiccup(web: Web) -> None:
    failed = failure(send(request(web.url(scheme="https"))))
    assert (failed.error, failed.kind) == ("TlsFailed", TRANSIENT)


# Through the engine.

DEFAULT = Namespace("default")


@contextmanager
def engine(folder: Path) -> Iterator[Runtime]:
    clock = SystemClock()
    with closing(open_stores(folder / "test.db", clock=clock)) as stores:
        target = Operators(folder / "work", http_may_reach=HERE)
        with Runtime(stores, target=target, clock=clock, dice=SystemDice(), workers=2) as runtime:
            yield runtime


def begin(runtime: Runtime, step: dict[str, Any], **more: Any) -> RunKey:
    put(runtime.world, DEFAULT, {"name": "call", "run": {"http": step}, **more}, actor="test", expected=None)
    return trigger(runtime.world, JobKey(DEFAULT, JobName("call")), params={"n": 3}).key


def await_state(runtime: Runtime, key: RunKey, state: RunState) -> Run:
    def look() -> Run:
        found = runtime.world.runs.get(key)
        assert found is not None
        return found

    until(lambda: look().state is state, within_s=20, what=f"{key} is {state}")
    return look()


def test_what_fails_for_a_while_is_tried_again_under_one_key_and_succeeds(tmp_path: Path, web: Web) -> None:
    def recovers(call: Answering) -> None:
        call.answer(503) if len(call.web.asked) < 3 else call.answer(200, b'{"rows": 3}', Content_Type=JSON)

    web.routes["/load"] = recovers
    with engine(tmp_path) as runtime:
        retry = {"attempts": 3, "backoff": "fixed", "delay": 0}
        key = begin(runtime, {"url": web.url("/load"), "body": {"n": "${params.n}"}}, retry=retry)
        run = await_state(runtime, key, RunState.SUCCEEDED)
    assert (run.attempt, run.output["body"]) == (3, {"rows": 3})
    assert {one.headers["idempotency-key"] for one in web.asked} == {f"call/{key.run_id}/main"}
    assert [one.headers["sweephand-attempt"] for one in web.asked] == ["1", "2", "3"]
    assert {one.body for one in web.asked} == {b'{"n":3}'}


@pytest.mark.parametrize(
    ("retry", "attempts"),
    [({}, 1), ({"on": ["Http404"]}, 3), ({"on": ["transient", "permanent"], "never": ["Http404"]}, 1)],
)
def test_a_permanent_failure_is_tried_again_only_by_its_name(
    tmp_path: Path, web: Web, retry: dict[str, Any], attempts: int
) -> None:
    with engine(tmp_path) as runtime:
        policy = {"attempts": 3, "backoff": "fixed", "delay": 0, **retry}
        run = await_state(runtime, begin(runtime, {"url": web.url("/absent")}, retry=policy), RunState.FAILED)
    assert run.failure is not None
    assert (run.failure.error, run.attempt, len(web.asked)) == ("Http404", attempts, attempts)


def test_a_run_that_takes_too_long_fails_with_its_reason(tmp_path: Path, web: Web) -> None:
    web.routes["/"] = drips_body
    with engine(tmp_path) as runtime:
        run = await_state(runtime, begin(runtime, {"url": web.url()}, timeout=0.3), RunState.FAILED)
    assert run.reason is not None
    assert run.reason.code is ReasonCode.TIMEOUT


def test_a_cancelled_run_hangs_up(tmp_path: Path, web: Web) -> None:
    web.routes["/"] = drips_body
    with engine(tmp_path) as runtime:
        key = begin(runtime, {"url": web.url()})
        until(lambda: web.asked, within_s=10, what="it was asked")
        cancel(runtime.world, key, actor="test")
        assert web.hung_up.wait(20)
        await_state(runtime, key, RunState.CANCELLED)
