"""A request and its answer: sent to checked places only, followed through redirects, read up to a bound."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Final
from urllib.parse import urljoin

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.addresses import Url, parse_url
from sweephand.errors import InvalidInput
from sweephand.operators.addresses import Guard, Line

__all__ = ["Request", "Response", "TooLarge", "TooManyRedirects", "exchange"]

REDIRECTS_MAX: Final = 5
_CHUNK: Final = 65_536
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD: Final = frozenset({307, 308})
_TOLD_ELSEWHERE: Final = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
"""Which of a task's own headers another host may see: any other may be a credential."""


class Request(Struct, frozen=True):
    """What is sent; `own` are the task's headers, `ours` those that say which run it is."""

    method: str
    url: Url
    own: Mapping[str, str]
    ours: Mapping[str, str]
    body: bytes | None = None


class Response(Struct, frozen=True):
    """What came back: its headers by their names in lower case, and the beginning of its body."""

    url: Url
    status: int
    headers: Mapping[str, str]
    beginning: bytes
    size: int


class Limits(Struct, frozen=True):
    """How much is read of an answer, and how much of that is kept."""

    bytes_max: int
    kept_max: int


class TooLarge(HTTPException):
    """The body has more bytes than were asked for."""


class TooManyRedirects(HTTPException):
    """One place names another, and no end is in sight."""


def exchange(
    request: Request, guard: Guard, line: Line, *, limits: Limits, final: frozenset[int] = frozenset()
) -> Response:
    """The answer to a request, where it is not a redirect, or a status that the caller wants to see.

    Every redirect is checked as the first URL was. What is refused is `InvalidInput`; all else that goes wrong is an
    `OSError` or an `HTTPException`.
    """
    for _ in range(REDIRECTS_MAX + 1):
        with closing(HTTPConnection(request.url.host, request.url.port)) as connection:
            connection.sock = guard.connect(request.url, line)
            _send(connection, request)
            answer = connection.getresponse()
            to = answer.getheader("location")
            if answer.status in final or answer.status not in _REDIRECTS or not to:
                return _read(request.url, answer, limits)
        request = _redirected(request, answer.status, to)
    raise TooManyRedirects(f"there are more than {REDIRECTS_MAX} redirects")


def _send(connection: HTTPConnection, request: Request) -> None:
    connection.putrequest(request.method, request.url.target, skip_host=True, skip_accept_encoding=True)
    headers = {"Host": request.url.authority, **request.own, **request.ours, "Connection": "close"}
    if request.body is not None or request.method in {"POST", "PUT", "PATCH"}:
        headers["Content-Length"] = str(len(request.body or b""))
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(request.body)


def _redirected(request: Request, status: int, to: str) -> Request:
    """The next request: to another host go no credentials, and never from https to http."""
    where = to.encode("latin-1", "replace").decode(errors="replace")
    try:
        url = parse_url(urljoin(str(request.url), where), "location")
    except ValueError:
        raise InvalidInput(f"{request.url.host} leads to what is no URL.", "location") from None
    if request.url.scheme == "https" and url.scheme == "http":
        raise InvalidInput(f"{request.url.host} leads from https to http.", "location")
    if url.origin != request.url.origin:
        own = {name: value for name, value in request.own.items() if name.lower() in _TOLD_ELSEWHERE}
        request = replace(request, own=own)
    becomes_get = (request.method == "POST" or status == 303) and request.method != "HEAD"
    if status in _KEEP_METHOD or not becomes_get:
        return replace(request, url=url)
    own = {name: value for name, value in request.own.items() if not name.lower().startswith("content-")}
    return replace(request, url=url, method="GET", own=own, body=None)


def _read(url: Url, answer: HTTPResponse, limits: Limits) -> Response:
    if (answer.length or 0) > limits.bytes_max:
        raise TooLarge(f"the answer has {answer.length} bytes, and {limits.bytes_max} are the most")
    kept, size = bytearray(), 0
    while data := answer.read(min(_CHUNK, limits.bytes_max + 1 - size)):
        size += len(data)
        if size > limits.bytes_max:
            raise TooLarge(f"the answer has more than {limits.bytes_max} bytes")
        kept += data[: limits.kept_max - len(kept)]
    if answer.length:
        raise IncompleteRead(b"", answer.length)
    headers = {name.lower(): value for name, value in reversed(answer.getheaders())}
    return Response(url, answer.status, headers, bytes(kept), size)
