"""A web server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One answer; no status: the connection is dropped."""

    status: int | None
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """One request, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


class Scripted:
    """The answers to come, the last of which repeats, and the questions that came."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = [*answers]
        self.questions: list[Question] = []
        self.url = ""

    def next(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def scripted(*answers: Answer) -> Iterator[Scripted]:
    """Such a server, on a free port, while the test runs."""
    script = Scripted(*answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.questions.append(Question(self.command, self.path, headers, body))
            answer = script.next()
            if answer.status is None:
                self.close_connection = True
                return
            content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            if answer.status == 204:
                content = b""
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  # so the base class calls them

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
