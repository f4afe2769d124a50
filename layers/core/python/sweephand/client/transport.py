"""Requests over httpx: repeated where that is safe, and errors as `sweephand.errors` names them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx

from sweephand.client.connection import Connection
from sweephand.clock import SystemDice
from sweephand.errors import (
    Conflict,
    Defect,
    InvalidInput,
    NotFound,
    Refused,
    SweephandError,
    TooMany,
    Unavailable,
)

if TYPE_CHECKING:
    from sweephand.ports import Dice

__all__ = ["TRIES_MAX", "Document", "Transport", "moment", "segments"]

Document = dict[str, Any]
"""A JSON object of the API."""

TRIES_MAX: Final = 4
FIRST_WAIT_S: Final = 0.2
UPLOAD_WITHIN_S: Final = 600.0
WAIT_MAX_S: Final = 30.0
"""A server that wants more patience than this is reported instead."""

_SAFE: Final = frozenset({"GET", "HEAD"})


def segments(*names: str) -> str:
    """A path of names, none of which can leave its place in it."""
    for name in names:
        if not name or set(name) == {"."} or not _is_text(name):
            raise InvalidInput(f"{name!r} is no name.")
    # What a segment may contain as it is stays so: ids of members and dead letters have these.
    return "".join("/" + quote(name, safe=":@+") for name in names)


def _is_text(name: str) -> bool:
    """Whether UTF-8 has it: what is no UTF-8 on a command line becomes half a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def moment(at: datetime | None) -> str | None:
    """RFC 3339 in UTC; a time without a zone is the caller's own."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


class _Later(Unavailable):
    """Unavailable, and the server says for how long."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Transport:
    """One connection pool to one server. Every unsafe call has a key of its own: a lost answer is safe to repeat."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeout_s: float,
        tries_max: int = TRIES_MAX,
        dice: Dice | None = None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._tries_max = tries_max
        self._dice = dice or SystemDice()
        self._wait = wait or Event().wait
        headers = {"Accept": "application/json, application/problem+json", "User-Agent": "sweephand"}
        if connection.token:
            headers["Authorization"] = f"Bearer {connection.token}"
        if connection.namespace:
            headers["X-Namespace"] = connection.namespace
        self._http = httpx.Client(
            base_url=f"{connection.url}/api/v1",
            headers=headers,
            timeout=timeout_s,
            # A proxy would read what goes to this machine; elsewhere TLS goes through it, end to end.
            trust_env=not connection.is_here,
        )

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def pause(self, seconds: float) -> None:
        """Wait as long as the server wants."""
        self._wait(seconds)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        patience_s: float = 0,
    ) -> Any:
        """The answer's JSON, None where it has none; `patience_s` is how long the server may hold the call."""
        sent = dict(headers or {})
        if method not in _SAFE:
            sent["Idempotency-Key"] = self._dice.nonce() + self._dice.nonce()
        try:
            request = self._http.build_request(
                method,
                path.removeprefix("/"),
                json=body,
                params=_plain(query or {}),
                headers=sent,
                timeout=self._timeout_s + patience_s,
            )
        except (ValueError, TypeError, RecursionError) as error:
            # NaN, half a surrogate pair, a value that is no JSON, one within itself.
            raise InvalidInput(f"This cannot be sent as JSON: {error}.") from None
        for tries in range(1, self._tries_max):
            try:
                return self._once(request)
            except (Unavailable, TooMany) as trouble:
                wait_s = self._wait_s(trouble, tries)
                if wait_s > WAIT_MAX_S:
                    raise
                self._wait(wait_s)
        return self._once(request)

    def upload(self, url: str, content: bytes, headers: Mapping[str, str]) -> None:
        """Bytes to an address that the server gave, which is its own proof: no token goes there."""
        request = httpx.Request("PUT", url, content=content, headers=dict(headers))
        for tries in range(1, self._tries_max + 1):
            try:
                with httpx.Client(timeout=UPLOAD_WITHIN_S) as http:
                    response = http.send(request)
            except httpx.HTTPError as error:
                trouble = Unavailable(f"The upload broke off: {type(error).__name__}.")
            else:
                if response.is_success:
                    return
                trouble = Unavailable(f"The upload was answered with {response.status_code}: {response.text[:300]}")
                if response.status_code < 500:
                    raise InvalidInput(trouble.message)
            if tries == self._tries_max:
                raise trouble
            self._wait(self._wait_s(trouble, tries))

    def pages(self, path: str, query: Mapping[str, object] | None = None) -> Iterator[Document]:
        """Every item of a list, page after page, fetched as they are needed."""
        cursor = None
        while True:
            page = self.send("GET", path, query={**(query or {}), "cursor": cursor})
            if not isinstance(page, dict) or not isinstance(page.get("items"), list):
                raise InvalidInput(f"{self._connection.url} does not answer as Sweephand does.", "url")
            yield from page["items"]
            cursor = page.get("nextCursor")
            if not cursor:
                return

    def _wait_s(self, trouble: Unavailable | TooMany, tries: int) -> float:
        if isinstance(trouble, TooMany | _Later):
            return trouble.retry_after_s
        doubled: int = 2 ** (tries - 1)
        return FIRST_WAIT_S * doubled * (0.5 + self._dice.chance() / 2)

    def _once(self, request: httpx.Request) -> Any:
        url = self._connection.url
        try:
            response = self._http.send(request)
        except httpx.ConnectError as error:
            if "CERTIFICATE" in str(error).upper():
                raise Refused(f"{url} cannot prove who it is: {error}.") from None
            raise Unavailable(_unreachable(self._connection)) from None
        except httpx.TimeoutException:
            raise Unavailable(f"{url} did not answer in time.") from None
        except httpx.HTTPError as error:
            raise Unavailable(f"{url} broke the connection off: {type(error).__name__}.") from None
        if response.is_success:
            return self._content(response)
        raise _refusal(response, url, has_token=self._connection.token is not None)

    def _content(self, response: httpx.Response) -> Any:
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise InvalidInput(f"{self._connection.url} does not answer as Sweephand does.", "url") from None


def _plain(query: Mapping[str, object]) -> dict[str, str]:
    said = {name: value for name, value in query.items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in said.items()}


def _unreachable(connection: Connection) -> str:
    if connection.is_here:
        return f"Nothing answers at {connection.url}: start it with `sweephand up`, or set SWEEPHAND_URL."
    return f"Nothing answers at {connection.url}: check SWEEPHAND_URL and the network."


def _refusal(response: httpx.Response, url: str, *, has_token: bool) -> SweephandError:
    """The error that a problem document stands for."""
    problem = _problem(response)
    status = response.status_code
    detail = str(problem.get("detail") or problem.get("message") or problem.get("title") or f"{url} answered {status}.")
    match status:
        case 401 if not has_token:
            return Refused(f"{url} wants a token: run `sweephand login`, or set SWEEPHAND_TOKEN.")
        case 401 | 403:
            return Refused(detail)
        case 404:
            return NotFound(detail)
        case 409 | 412 | 428:
            return Conflict(detail)
        case 429:
            return TooMany(detail, _retry_after_s(response))
        case 502 | 503 | 504:
            return (
                _Later(detail, _retry_after_s(response)) if "Retry-After" in response.headers else Unavailable(detail)
            )
        case _ if 400 <= status < 500:
            return InvalidInput(detail, errors=_field_errors(problem))
        case _ if 300 <= status < 400:
            return InvalidInput(f"{url} points elsewhere, and a token is not sent on: set the right address.", "url")
        case _:
            return Defect(f"The server failed: {detail}")


def _problem(response: httpx.Response) -> Document:
    try:
        content = response.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _field_errors(problem: Document) -> tuple[tuple[str, str], ...]:
    listed = problem.get("errors")
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple((str(one.get("path", "")), str(one.get("message", ""))) for one in found)


def _retry_after_s(response: httpx.Response) -> float:
    """Seconds, as our server says it; a date, which a proxy may say, counts as one second."""
    try:
        seconds = float(response.headers.get("Retry-After", "1"))
    except ValueError:
        return 1.0
    return max(0.0, seconds) if math.isfinite(seconds) else 1.0
