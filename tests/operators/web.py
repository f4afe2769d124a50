"""A web server on loopback that does what a test says, and keeps what it was asked."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DRIPS_EVERY_S = 0.02


@dataclass(frozen=True)
class Asked:
    """A request, as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class Answering(BaseHTTPRequestHandler):
    """Answers one request, as its path is told to."""

    protocol_version = "HTTP/1.1"
    web: Web
    asked: Asked

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        setattr(self, f"do_{self.command}", self._answer)
        return True

    def answer(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """A whole answer; names of headers have underscores."""
        self.send_response(status)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in ({"Content-Length": str(len(body))} | given).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def drip(self, data: bytes = b"x") -> None:
        """Send bytes, one now and then, until nobody listens or the server ends."""
        while not self.web.closing.wait(DRIPS_EVERY_S):
            self.wfile.write(data)
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): ", ".join(self.headers.get_all(name, ())) for name in self.headers}
        self.asked = Asked(self.command, self.path, headers, body)
        self.web.asked.append(self.asked)
        try:
            self.web.routes.get(self.path.partition("?")[0], _not_found)(self)
        except OSError:
            self.web.hung_up.set()


Route = Callable[[Answering], None]


def _not_found(call: Answering) -> None:
    call.answer(404, b"nothing here")


class Web:
    """A running server."""

    def __init__(self, routes: Mapping[str, Route], host: str) -> None:
        self.routes = dict(routes)
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self.hung_up = threading.Event()
        """Set when a client went away while it was answered."""
        kind = type("Handler", (Answering,), {"web": self})
        self.server = _Server((host, 0), kind)
        self.host = host
        self.port: int = self.server.server_port

    def url(self, path: str = "/", *, host: str = "", scheme: str = "http") -> str:
        return f"{scheme}://{host or self.host}:{self.port}{path}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what these tests are about."""


@contextmanager
def serving(
    routes: Mapping[str, Route], *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[Web]:
    """A server in a thread, stopped at the end."""
    web = Web(routes, host)
    if tls is not None:
        web.server.socket = tls.wrap_socket(web.server.socket, server_side=True)
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.closing.set()
        web.server.shutdown()
        web.server.server_close()
        thread.join(10)


@contextmanager
def nobody(*, host: str = "127.0.0.1") -> Iterator[str]:
    """An address where nobody listens, and nobody else can begin to."""
    with socket.socket() as held:
        held.bind((host, 0))
        yield f"http://{host}:{held.getsockname()[1]}/"
