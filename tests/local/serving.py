"""A real server on a free port, and clients that say exactly what they are told to."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sweephand.api.app import PUBLIC
from sweephand.api.asked import Patience
from sweephand.api.refusals import Unauthorized
from sweephand.clock import SystemClock, SystemDice
from sweephand.local.gateway import Event, Gateway
from sweephand.local.limits import Limits
from sweephand.local.polls import Match, Polls
from sweephand.local.server import App, Server, listen
from sweephand.local.site import Site
from sweephand.local.sockets import Sockets

HEALTH: Final = ("GET", "/api/v1/health")
ALLOWED: Final = "Bearer allowed"
DENIED: Final = "Bearer denied"
ANSWER_WITHIN_S: Final = 20.0


class Echo:
    """Behind the gateway: answers every call with its event, or as a path is told to."""

    def __init__(self, **paths: Callable[[Event], Mapping[str, Any]]) -> None:
        self._paths = paths
        self.authorized: list[Event] = []
        self.handled: list[Event] = []

    def authorize(self, event: Event) -> Mapping[str, Any]:
        self.authorized.append(event)
        token = event["headers"].get("authorization")
        if token not in {ALLOWED, DENIED}:
            raise Unauthorized("A token is needed.")
        effect = "Allow" if token == ALLOWED else "Deny"
        statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": "arn:aws:execute-api:*:*:*/api/*"}
        return {
            "principalId": "token:1",
            "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
            "context": {"role": "admin", "platform": True, "number": 7},
        }

    def handle(self, event: Event, *, patience: Patience | None = None) -> Mapping[str, Any]:
        self.handled.append(event)
        does = self._paths.get(event["path"].rpartition("/")[2])
        if does is not None:
            return does(event)
        headers = {"Content-Type": "application/json", "Access-Control-Allow-Origin": "*"}
        return {"statusCode": 200, "headers": headers, "body": json.dumps(event)}


@dataclass(frozen=True)
class Heard:
    """What a client heard: one response, as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def is_problem(self) -> bool:
        """Whether it is a problem as the contract has it."""
        return (
            self.headers.get("content-type") == "application/problem+json"
            and self.document["status"] == self.status
            and {"type", "title", "detail"} <= self.document.keys()
        )


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_WITHIN_S)
        self._file = self._socket.makefile("rb")

    def say(self, raw: bytes) -> bool:
        """Whether all of it was taken; if not, the answer may still be there to be read."""
        try:
            self._socket.sendall(raw)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def hear(self, *, bodiless: bool = False) -> Heard:
        """The next answer; that to a HEAD has a length and no body."""
        line = self._file.readline()
        status, headers = int(line.split()[1]), {}
        while (line := self._file.readline().strip()) != b"":
            name, _, value = line.decode("latin-1").partition(": ")
            headers[name.lower()] = value
        length = 0 if bodiless else int(headers.get("content-length", "0"))
        return Heard(status, headers, self._file.read(length))

    def is_closed(self) -> bool:
        """Waits for the end of the connection."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Serving:
    """A running server."""

    def __init__(self, server: Server, port: int, polls: Polls) -> None:
        self.server = server
        self.polls = polls
        self.port = port

    @contextmanager
    def connected(self) -> Iterator[Client]:
        client = Client(self.port)
        try:
            yield client
        finally:
            client.close()

    def raw(self, request: bytes) -> Heard:
        """The first answer to these bytes."""
        with self.connected() as client:
            client.say(request)
            return client.hear(bodiless=request.startswith(b"HEAD "))

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Heard:
        """The answer to a request; header names are written with underscores."""
        return self.raw(head(method, path, len(body), **headers) + body)


def head(method: str, path: str, length: int = 0, **headers: str) -> bytes:
    """A request's first line and headers."""
    given = {"host": "127.0.0.1", **({"content-length": str(length)} if length else {}), **headers}
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items()]
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()


@contextmanager
def serving(
    api: Any,
    *,
    public: frozenset[tuple[str, str]] = PUBLIC,
    site: Site | None = None,
    sockets: Sockets | None = None,
    match: Match | None = None,
    **limits: Any,
) -> Iterator[Serving]:
    """A server in a thread, stopped at the end."""
    dice, ready = SystemDice(), threading.Event()
    gateway = Gateway(api, public=public, clock=SystemClock(), dice=dice)
    with listen(0) as listening:
        app = App(gateway, dice, Limits(**limits), site=site, sockets=sockets, match=match)
        server = Server(app, ready=ready.set)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        assert ready.wait(ANSWER_WITHIN_S)
        try:
            yield Serving(server, listening.getsockname()[1], app.polls)
        finally:
            server.should_exit = True
            thread.join(ANSWER_WITHIN_S)
            assert not thread.is_alive()
