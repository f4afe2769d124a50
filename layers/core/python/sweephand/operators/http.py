"""`http`: a request to a public address, or to one that this place allows.

It succeeds by its status. The whole attempt, from the host's name to the last byte, is bound by its time-out.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http.client import HTTPException, IncompleteRead, responses
from socket import gaierror
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from sweephand import __version__
from sweephand.calls import Outcome, Succeeded
from sweephand.domain.addresses import Allowed, Url, parse_url
from sweephand.domain.duration import format_duration
from sweephand.domain.fields import json_bytes
from sweephand.domain.headers import header_name, header_value
from sweephand.domain.kinds import Installed, http_within, sensor_within
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.plain import plain
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.sensor import SENSOR
from sweephand.domain.templates import as_text
from sweephand.engine.complete import TIMEOUT
from sweephand.errors import InvalidInput
from sweephand.operators.addresses import CONNECT_WITHIN_S, Guard, Line, Resolve, resolved
from sweephand.operators.errand import Errand
from sweephand.operators.exchange import Limits, Request, Response, TooLarge, TooManyRedirects, exchange
from sweephand.operators.operator import Attempt
from sweephand.operators.process import Cause
from sweephand.secrets import Redactor

__all__ = ["BYTES_MAX", "Http", "answered", "shown_headers"]

_USUAL: Final = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": f"Sweephand/{__version__}"}
BYTES_MAX: Final = 1_048_576
"""The largest answer that is read, unless the task says otherwise."""
_SHOWN_HEADERS: Final = (
    "content-type",
    "content-encoding",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "x-request-id",
)
_HEADER_CHARS_MAX: Final = 256
_UNFIT: Final = re.compile(r"[^\x20-\x7e]")
_QUOTED_CHARS_MAX: Final = 400
_AGAIN: Final = frozenset({408, 425, 429})
_WAITED: Final = frozenset({429, 503})
_PERMANENT: Final = FailureClass.PERMANENT
_TRANSIENT: Final = FailureClass.TRANSIENT


Judge = Callable[[Request, Response], Outcome]
"""What an answer means."""


class Http:
    """Sends requests. `allowed` are networks and hosts, such as 10.1.0.0/16 or billing.internal:8443."""

    def __init__(self, allowed: Iterable[str] = (), *, resolve: Resolve = resolved) -> None:
        within = Allowed.parse(allowed, "allowed")
        self.offers: Final[Installed] = {"http": http_within(within), SENSOR: sensor_within(within)}
        """What is checked when a task is saved."""
        self._guard = Guard(within, resolve)

    def execute(self, attempt: Attempt) -> Outcome:
        expected = frozenset(attempt.option("expect", ()))
        judge = partial(_outcome, expected, attempt.redact)
        return self.ask(attempt, judge, final=expected, kept_max=OUTPUT_BYTES_MAX + 1)

    def ask(self, attempt: Attempt, judge: Judge, *, final: frozenset[int], kept_max: int) -> Outcome:
        """Send what the task says, and judge the answer; why there is none is said in the same way for all."""
        request, line = _request(attempt), Line()
        bytes_max = attempt.option("maxBytes", BYTES_MAX)

        def work() -> Outcome:
            try:
                response = exchange(request, self._guard, line, limits=Limits(bytes_max, kept_max), final=final)
            except InvalidInput as refused:
                return Failure("TargetRefused", refused.message, _PERMANENT)
            except (OSError, HTTPException) as error:
                return _unanswered(request.url, error)
            finally:
                line.close()
            return judge(request, _without_values(response, attempt.redact))

        errand = Errand(work, leave=line.cut)
        attempt.cancellation.stops_by(errand.stop)
        came = errand.wait(attempt.call.timeout)
        if came is Cause.TIMED_OUT:
            return Failure(TIMEOUT, f"The attempt took longer than {format_duration(attempt.call.timeout)}.")
        if isinstance(came, Cause):
            return Failure("Cancelled", "The attempt was told to stop.")
        return came


# What is sent.


def _request(attempt: Attempt) -> Request:
    url = parse_url(as_text(attempt.option("url", "")))
    content, body = _body(attempt.option("body"))
    given = {
        header_name(name, f"headers.{name}"): header_value(as_text(value), f"headers.{name}")
        for name, value in attempt.option("headers", {}).items()
    }
    said = {name.lower() for name in given}
    own = {name: value for name, value in {**_USUAL, **content}.items() if name.lower() not in said} | given
    method = attempt.option("method") or ("GET" if body is None else "POST")
    return Request(method, url, own, _promised(attempt), body)


def _body(body: Any) -> tuple[Mapping[str, str], bytes | None]:
    if body is None:
        return {}, None
    kind = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
    return {"Content-Type": kind}, as_text(body).encode()


def _promised(attempt: Attempt) -> dict[str, str]:
    """Headers that say which run it is, so that a target can recognise a repetition."""
    call = attempt.call
    return {
        "Idempotency-Key": call.idempotency_key,
        "Sweephand-Job": call.run.key.job.name,
        "Sweephand-Namespace": call.run.key.job.namespace,
        "Sweephand-Run-Id": call.run.key.run_id,
        "Sweephand-Task-Id": call.task.id,
        "Sweephand-Attempt": str(call.run.attempt),
        "Sweephand-Fire-At": call.run.fire_at.isoformat().replace("+00:00", "Z"),
    }


# What came of it.


def _without_values(response: Response, redact: Redactor) -> Response:
    """Its headers are cut where they are shown, and half a value would not be recognised; the body comes later."""
    if not redact:
        return response
    return replace(response, headers={name: redact(value) for name, value in response.headers.items()})


def _unanswered(url: Url, error: OSError | HTTPException) -> Failure:
    """No answer, or none that can be used. The order matters: some errors are of several kinds."""
    match error:
        case TooLarge():
            name, what, kind = "ResponseTooLarge", f"{error}; see maxBytes", _PERMANENT
        case TooManyRedirects():
            name, what, kind = "TooManyRedirects", str(error), _PERMANENT
        case ssl.SSLCertVerificationError():
            name, what, kind = "BadCertificate", f"its certificate is wrong: {error.verify_message}", _PERMANENT
        case ssl.SSLError():
            name, what, kind = "TlsFailed", f"TLS failed: {error.reason or error}", _TRANSIENT
        case gaierror():
            name, what, kind = "NameNotResolved", f"the name cannot be resolved: {error.strerror}", _TRANSIENT
        case ConnectionRefusedError():
            name, what, kind = "ConnectionRefused", f"nobody listens at port {url.port}", _TRANSIENT
        case ConnectionError() | IncompleteRead():
            name, what, kind = "ConnectionReset", "the connection was lost before the answer was complete", _TRANSIENT
        case TimeoutError():
            name, what, kind = "Unreachable", f"no connection within {CONNECT_WITHIN_S:.0f} seconds", _TRANSIENT
        case OSError():
            name, what, kind = "Unreachable", f"it cannot be reached: {error.strerror or error}", _TRANSIENT
        case _:
            name, what, kind = "InvalidResponse", f"the answer is not HTTP: {type(error).__name__}", _PERMANENT
    return Failure(name, f"{url.host}: {what}.", kind)


def answered(request: Request, response: Response) -> str:
    """What an answer says that was not hoped for."""
    status = response.status
    message = f"{request.method} {response.url.host} was answered with {status} {responses.get(status, '')}".rstrip()
    if status in _WAITED and (after := response.headers.get("retry-after")):
        message += f", and with the wish to come back after {after[:64]}"
    return message


def _outcome(expected: frozenset[int], redact: Redactor, request: Request, response: Response) -> Outcome:
    status = response.status
    if status in expected or (not expected and 200 <= status < 300):
        return Succeeded(_output(response, redact))
    message = answered(request, response)
    quoted = _text(response, redact).strip()[:_QUOTED_CHARS_MAX]
    kind = _TRANSIENT if status in _AGAIN or 500 <= status < 600 else _PERMANENT
    return Failure(f"Http{status}", f"{message}: {quoted}" if quoted else f"{message}.", kind)


def _output(response: Response, redact: Redactor) -> dict[str, Any]:
    """The status, a few headers and the body: as JSON where it is small JSON, else the beginning of its text."""
    document = _document(response)
    output = {"status": response.status, "headers": shown_headers(response), "body": document}
    if document is UNSET or json_bytes(output) > OUTPUT_BYTES_MAX:
        output["body"] = text = _text(response, redact)
        while json_bytes(output) > OUTPUT_BYTES_MAX:  # the headers alone are always less
            output["body"] = text = text[: len(text) * 3 // 4]
    return output


def shown_headers(response: Response) -> dict[str, str]:
    """The headers of an answer that an output has."""
    return {
        name: _UNFIT.sub("?", response.headers[name][:_HEADER_CHARS_MAX])
        for name in _SHOWN_HEADERS
        if name in response.headers
    }


def _document(response: Response) -> Any:
    """The body as JSON, or UNSET where it is none, or none that can be kept."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.size > OUTPUT_BYTES_MAX or not (kind == "application/json" or kind.endswith("+json")):
        return UNSET
    try:
        copied, errors = plain({"body": json.loads(response.beginning)}, bytes_max=4 * OUTPUT_BYTES_MAX)
    except (ValueError, RecursionError, InvalidInput):
        return UNSET  # then it is text
    return UNSET if errors else copied["body"]


def _text(response: Response, redact: Redactor) -> str:
    """The beginning of the body; nothing of one that is packed, which was not asked for.

    Redacted before more is cut from it: half a value would not be recognised.
    """
    if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        return ""
    is_latin = "charset=iso-8859-1" in response.headers.get("content-type", "").lower().replace('"', "")
    text = response.beginning[:OUTPUT_BYTES_MAX].decode("latin-1" if is_latin else "utf-8", errors="replace")
    return redact(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), cut_after=response.size > OUTPUT_BYTES_MAX)
