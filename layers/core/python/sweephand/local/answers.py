"""What the local server says back: a status, headers that keep browsers out of trouble, and problems as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

PROBLEM: Final = "application/problem+json"

SAFE: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""On every answer that does not say otherwise itself."""
_BODILESS: Final = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


class Answer(Struct, frozen=True):
    """A response, before it is written to a connection."""

    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in lower case."""
    body: bytes

    def wire_headers(self) -> list[tuple[bytes, bytes]]:
        """All headers as they are sent, the length and the safe ones among them."""
        own = {name for name, _ in self.headers}
        headers = [*self.headers, *((name, value) for name, value in SAFE.items() if name not in own)]
        if self.status not in _BODILESS:
            headers.append(("content-length", str(len(self.body))))
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


class Turned(Exception):
    """A request is turned away with an answer, wherever in its handling that becomes clear."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def problem(
    status: int, detail: str, *, headers: Iterable[tuple[str, str]] = (), instance: str | None = None
) -> Answer:
    """An answer that is not 2xx, as every one of ours looks (RFC 9457)."""
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    if instance is not None:
        document["instance"] = instance
    return Answer(status, (("content-type", PROBLEM), *headers), json.dumps(document).encode())


def busy(detail: str) -> Answer:
    """Too much at once; it passes."""
    return problem(503, detail, headers=[("retry-after", "1")])
