"""Words for JSON Schemas: the few shapes of which definitions are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from sweephand.domain.cron import EARLIEST, LATEST
from sweephand.domain.duration import DURATION_MAX, format_duration

Schema = dict[str, Any]

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_MINUTE: Final = r"-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}"
_OFFSET: Final = r"([Zz]|[+-][0-9]{2}:[0-9]{2})$"
_DEFINED_YEARS: Final = r"^(19[0-9]{2}|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])"
_ASKED_YEARS: Final = r"^(19[7-9][0-9]|[2-8][0-9]{3})"
_PERIOD: Final = r"^([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$"
_PERIOD_CHARS_MAX: Final = 64

NOTHING: Final[Schema] = {"type": "null"}
FLAG: Final[Schema] = {"type": "boolean"}
NAME: Final[Schema] = {"type": "string", "pattern": NAME_PATTERN}
INSTANT: Final[Schema] = {
    "type": "string",
    "format": "date-time",
    "pattern": rf"{_DEFINED_YEARS}{_MINUTE}(:[0-5][0-9](\.[0-9]{{1,6}})?)?{_OFFSET}",
    "description": f"RFC 3339, from {EARLIEST.year} to {LATEST.year} in UTC; there are no leap seconds.",
}
WHOLE_SECOND: Final[Schema] = {
    **INSTANT,
    "pattern": rf"{_DEFINED_YEARS}{_MINUTE}(:[0-5][0-9](\.0{{1,6}})?)?{_OFFSET}",
}
ASKED_INSTANT: Final[Schema] = {
    **INSTANT,
    "pattern": rf"{_ASKED_YEARS}{_MINUTE}(:[0-5][0-9](\.[0-9]{{1,6}})?)?{_OFFSET}",
    "description": "RFC 3339, from 1970 to 8999 in UTC; there are no leap seconds.",
}
"""What a call may ask about: there is room for what is added to it and taken from it."""
DATE: Final[Schema] = {"type": "string", "format": "date", "pattern": r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
TIMEZONE: Final[Schema] = {"type": "string", "format": "timezone", "description": "An IANA name."}


def ref(component: str) -> Schema:
    """What the document says elsewhere, under this name."""
    return {"$ref": f"#/components/schemas/{component}"}


def text(most: int, *, least: int = 1, **more: Any) -> Schema:
    """Text of so many characters."""
    return {"type": "string", "maxLength": most, **({"minLength": least} if least else {}), **more}


def whole(low: int, high: int) -> Schema:
    """A whole number."""
    return {"type": "integer", "minimum": low, "maximum": high}


def choice(options: type[StrEnum]) -> Schema:
    """One of an enum's values."""
    return {"type": "string", "enum": [str(option) for option in options]}


def period(least: timedelta = timedelta(0), most: timedelta = DURATION_MAX, *, kind: str = "number") -> Schema:
    """A duration: seconds, or text such as "1h30m", between two bounds."""
    seconds = {"type": kind, "minimum": _seconds(least), "maximum": _seconds(most)}
    written = text(_PERIOD_CHARS_MAX, least=2, format="period", pattern=_PERIOD)
    bounds = f"From {format_duration(least)} to {format_duration(most)}, as seconds or as text such as 1h30m."
    return {"anyOf": [seconds, written], "description": bounds}


def listed(item: Schema, most: int, *, least: int = 0, distinct: bool = False) -> Schema:
    """A list of so many."""
    return {
        "type": "array",
        "items": item,
        "maxItems": most,
        **({"minItems": least} if least else {}),
        **({"uniqueItems": True} if distinct else {}),
    }


def closed(properties: Mapping[str, Schema], *, required: Sequence[str] = (), **more: Any) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
        **more,
    }


def mapped(key: str, value: Schema, most: int) -> Schema:
    """An object whose field names are the user's own, of a form."""
    names = {"type": "string", "pattern": key}
    return {"type": "object", "propertyNames": names, "additionalProperties": value, "maxProperties": most}


def anything(bytes_max: int) -> Schema:
    """Any object up to a size, which only a description can state."""
    return {"type": "object", "description": f"Any JSON, up to {bytes_max} bytes of it."}


def optional(schema: Schema) -> Schema:
    """A field that may be null, which means that it is absent."""
    options = schema.get("anyOf", [schema])
    described = {"description": schema["description"]} if "anyOf" in schema and "description" in schema else {}
    return {"anyOf": [*options, NOTHING], **described}


def all_optional(fields: Mapping[str, Schema]) -> dict[str, Schema]:
    """Fields each of which may be null."""
    return {name: optional(schema) for name, schema in fields.items()}


def without(*fields: str) -> Schema:
    """That these fields are absent or null."""
    return {"properties": dict.fromkeys(fields, NOTHING)}


def only(given: str, shape: Schema, others: Iterable[str]) -> Schema:
    """That one field is given, and the others are absent or null."""
    absent = {other: NOTHING for other in others if other != given}
    return {"properties": {given: shape, **absent}, "required": [given]}


def _seconds(duration: timedelta) -> float:
    seconds = duration.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
