"""Every answer that is not a success: problem+json (RFC 9457), and which of our errors has which status."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from math import ceil
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from sweephand.api.refusals import MethodNotAllowed, TooLarge, Unauthorized, UnsupportedMedia, VersionNeeded
from sweephand.errors import (
    Conflict,
    Defect,
    InvalidInput,
    NotFound,
    Refused,
    StaleVersion,
    SweephandError,
    TooMany,
    Unavailable,
)

__all__ = ["PROBLEM", "problem", "problem_of"]

PROBLEM: Final = "application/problem+json"
ERRORS_SHOWN: Final = 100

logger: Final = logging.getLogger("sweephand.api")


_STATUS: Final[tuple[tuple[type[SweephandError], HTTPStatus], ...]] = (
    (InvalidInput, HTTPStatus.BAD_REQUEST),
    (Unauthorized, HTTPStatus.UNAUTHORIZED),
    (Refused, HTTPStatus.FORBIDDEN),
    (NotFound, HTTPStatus.NOT_FOUND),
    (MethodNotAllowed, HTTPStatus.METHOD_NOT_ALLOWED),
    (StaleVersion, HTTPStatus.PRECONDITION_FAILED),
    (Conflict, HTTPStatus.CONFLICT),
    (TooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (UnsupportedMedia, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (VersionNeeded, HTTPStatus.PRECONDITION_REQUIRED),
    (TooMany, HTTPStatus.TOO_MANY_REQUESTS),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)


def problem(
    status: HTTPStatus,
    detail: str,
    *,
    errors: Iterable[tuple[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response[Any]:
    """An answer that says what is wrong."""
    listed = [{"path": path, "message": message} for path, message in errors][:ERRORS_SHOWN]
    body = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    if listed:
        body["errors"] = listed
    return Response(int(status), PROBLEM, json.dumps(body), headers=dict(headers or {}))


def problem_of(error: Exception) -> Response[Any]:
    """The answer that an error becomes; what is not ours to explain becomes a plain 500, and a line in the log."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    if status is None or isinstance(error, Defect) or not isinstance(error, SweephandError):
        logger.error("A call failed in a way that must not happen.", exc_info=error)
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "Something is wrong on our side: it was recorded.")
    headers: dict[str, str] = {}
    match error:
        case InvalidInput():
            return problem(status, error.message, errors=error.errors)
        case Unauthorized():
            headers["WWW-Authenticate"] = 'Bearer realm="sweephand"'
        case MethodNotAllowed():
            headers["Allow"] = error.allowed
        case TooMany():
            headers["Retry-After"] = str(ceil(error.retry_after_s))
        case Unavailable():
            headers["Retry-After"] = "1"
        case _:
            pass
    return problem(status, error.message, headers=headers)
