"""The types of parameters, and what routes say of themselves in the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Path, Query
from pydantic import BeforeValidator, Field, WithJsonSchema

from sweephand.api import vocabulary
from sweephand.domain import fields
from sweephand.domain.duration import parse_duration
from sweephand.domain.limits import OUTPUT_KEPT_MAX
from sweephand.errors import InvalidInput

NAME_PATTERN: Final = vocabulary.NAME_PATTERN
CURSOR_PATTERN: Final = "^[A-Za-z0-9_-]{1,2000}$"
PERIOD_PATTERN: Final = (
    "^([1-9][0-9]{0,5}|[1-9][0-9]{0,4}s|[1-9][0-9]{0,3}m([1-9][0-9]?s)?|[1-9][0-9]{0,2}h([1-9][0-9]?m)?|[1-9][0-9]?d)$"
)
"""Bounded by its digits, so that what a schema says of it is all that there is to say."""
PARAMS_BYTES_MAX: Final = 32_768
ANSWER: Final = "answer"
"""Where a response names its model: only the document needs it, and a cold start must not pay for it."""
_YEARS: Final = range(1970, 9000)


def _instant(value: Any) -> datetime:
    try:
        found = fields.instant(value, "")
    except InvalidInput as refused:
        raise ValueError(refused.message) from None
    if found.year not in _YEARS:  # there must be room for what is added to a time and taken from it
        raise ValueError(f"A time lies in the years {_YEARS[0]} to {_YEARS[-1]}.")
    return found


def _period(value: Any) -> timedelta:
    """A duration in a query, where every value is a text."""
    if not isinstance(value, str) or not re.fullmatch(PERIOD_PATTERN, value):
        raise ValueError('Write seconds, up to six digits, or text such as "90s", "5m", "1h30m" or "7d".')
    return parse_duration(int(value) if value.isdigit() else value, path="")


def bounded(value: Any) -> Any:
    return _within(value, PARAMS_BYTES_MAX)


def small_enough_to_keep(output: Any) -> Any:
    return _within(output, OUTPUT_KEPT_MAX)


def _within(value: Any, bytes_max: int) -> Any:
    if fields.json_bytes(value) > bytes_max:
        raise ValueError(f"It takes more than {bytes_max} bytes as JSON.")
    return value


Period = Annotated[
    timedelta,
    BeforeValidator(_period),
    WithJsonSchema({"type": "string", "pattern": PERIOD_PATTERN}, mode="validation"),
]
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(vocabulary.ASKED_INSTANT, mode="validation")]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Params = Annotated[dict[str, Any], BeforeValidator(bounded)]
Note = Annotated[str, Field(max_length=200)]
Calendar = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("Calendar"))]
Template = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("JobTemplate"))]
Definition = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("JobDefinition"))]
Change = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("JobChange"))]

TASK_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(\[(0|[1-9][0-9]{0,8})\])?$"
"""A task, or an instance of a mapped one, such as load[3]."""
TaskInPath = Annotated[str, Path(pattern=TASK_PATTERN)]
InPath = Annotated[str, Path(pattern=NAME_PATTERN)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(pattern=CURSOR_PATTERN)]
Since = Annotated[Instant | None, Query(alias="from")]
Ahead = Annotated[Period | None, Query()]
Until = Annotated[Instant | None, Query(alias="to")]


def says(
    call: str, summary: str, answers: Mapping[int, str | None], *, tag: str, public: bool = False
) -> dict[str, Any]:
    """A route's words in the OpenAPI document; its answers by the names of their models in `answers`."""
    responses = {status: {"description": summary, ANSWER: name} for status, name in answers.items()}
    return {
        "operation_id": call,
        "summary": summary,
        "responses": responses,
        "tags": [tag],
        "security": [] if public else [{"bearer": []}],
    }
