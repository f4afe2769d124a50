"""The types of parameters, and what routes say of themselves in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from sweephand.api import vocabulary
from sweephand.domain import fields
from sweephand.errors import InvalidInput

NAME_PATTERN: Final = vocabulary.NAME_PATTERN
CURSOR_PATTERN: Final = "^[A-Za-z0-9_-]{1,2000}$"
PARAMS_BYTES_MAX: Final = 32_768
_YEARS: Final = range(1970, 9000)


def _instant(value: Any) -> datetime:
    try:
        found = fields.instant(value, "")
    except InvalidInput as refused:
        raise ValueError(refused.message) from None
    if found.year not in _YEARS:  # there must be room for what is added to a time and taken from it
        raise ValueError(f"A time lies in the years {_YEARS[0]} to {_YEARS[-1]}.")
    return found


def bounded(value: Any) -> Any:
    if fields.json_bytes(value) > PARAMS_BYTES_MAX:
        raise ValueError(f"It takes more than {PARAMS_BYTES_MAX} bytes as JSON.")
    return value


Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(vocabulary.ASKED_INSTANT, mode="validation")]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Params = Annotated[dict[str, Any], BeforeValidator(bounded)]
Note = Annotated[str, Field(max_length=200)]
Calendar = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("Calendar"))]
Template = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("JobTemplate"))]
Definition = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("JobDefinition"))]
Change = Annotated[dict[str, Any], WithJsonSchema(vocabulary.ref("JobChange"))]

InPath = Annotated[str, Path(pattern=NAME_PATTERN)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(pattern=CURSOR_PATTERN)]
Since = Annotated[Instant | None, Query(alias="from")]
Until = Annotated[Instant | None, Query(alias="to")]


class Told(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True, defer_build=True)


def page_of(item: type[BaseModel]) -> type[BaseModel]:
    """A page of a list."""
    return type(
        f"{item.__name__}Page",
        (Told,),
        {"__annotations__": {"items": list[item], "next_cursor": str | None}, "__module__": __name__},  # type: ignore[valid-type]
    )


def says(
    call: str, summary: str, answers: Mapping[int, type[BaseModel] | None], *, tag: str, public: bool = False
) -> dict[str, Any]:
    """A route's words in the OpenAPI document."""
    responses = {
        status: {
            "description": summary,
            **({"content": {"application/json": {"model": model}}} if model is not None else {}),
        }
        for status, model in answers.items()
    }
    return {
        "operation_id": call,
        "summary": summary,
        "responses": responses,
        "tags": [tag],
        "security": [] if public else [{"bearer": []}],
    }
