"""Reading a request: its body as strict JSON, its headers, its query."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from sweephand.api.refusals import TooLarge, UnsupportedMedia
from sweephand.errors import InvalidInput
from sweephand.packs import PACK_BYTES_MAX

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Larger than the largest definition that is accepted, 10,000 tasks."""
CODE_BYTES_MAX: Final = 4 * (PACK_BYTES_MAX // 3 + 1) + 1_024
"""A pack as base64, and the field around it."""
SMALL_BYTES_MAX: Final = 256 * 1024
"""Of a call that carries no definition."""
_FIELDS_MAX: Final = 5_000
"""In one object: who is asked what is wrong with each of a million fields has no time for anybody else."""
_DEPTH_MAX: Final = 64
"""Deeper than a definition may be, and far from what the interpreter can stand."""
IDEMPOTENCY_KEY: Final = r"[!-~]([ -~]{0,253}[!-~])?"
VERSION: Final = r'\*|(W/)?"[0-9]{1,9}"|[0-9]{1,9}'
JSON: Final = "application/json"
_EXACT_MAX: Final = 2**53
"""Up to here, every whole number is exact as a float."""

_SLASH: Final = re.compile("%2f", re.IGNORECASE)

Event = Mapping[str, Any]


def header(event: Event, name: str) -> str | None:
    """A header's value, whatever the case of its name."""
    wanted = name.lower()
    headers: Mapping[str, str] = event.get("headers") or {}
    return next((value for key, value in headers.items() if key.lower() == wanted), None)


def path_of(event: Event) -> str:
    """The path, decoded; an encoded slash stays encoded, since it is part of a name and not between two."""
    return unquote(_SLASH.sub("%252F", str(event["path"])))


def body_of(event: Event, *, bytes_max: int = BODY_BYTES_MAX) -> Any:
    """The body as JSON says it; an empty one is an object without fields."""
    raw = _bytes_of(event, bytes_max)
    if not raw.strip():
        return {}
    media = (header(event, "content-type") or "").partition(";")[0].strip().lower()
    if media != JSON:
        raise UnsupportedMedia(f"The body must be {JSON}, not {media or 'of an unnamed type'}.")
    return strict_json(raw)


def strict_json(raw: bytes) -> Any:
    """JSON as RFC 8259 has it and nothing more: no duplicate keys, no NaN, no lone surrogates, no endless nesting."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The body is not UTF-8: byte {error.start} is wrong.", "") from None
    if text.startswith("\ufeff"):
        raise InvalidInput("The body begins with a byte order mark: leave it out.", "")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_number)
    except RecursionError:
        raise InvalidInput("The body is nested too deeply.", "") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except ValueError:
        raise InvalidInput("The body has a number with too many digits.") from None
    _check_depth(value)
    _check_characters(value)
    return value


def idempotency_key_of(event: Event) -> str | None:
    """The caller's Idempotency-Key."""
    key = header(event, "idempotency-key")
    if key is None:
        return None
    if not re.fullmatch(IDEMPOTENCY_KEY, key):
        raise InvalidInput("An Idempotency-Key is 1 to 255 printable ASCII characters.", "Idempotency-Key")
    return key


def version_of(text: str | None, name: str) -> int | None:
    """The version that an If-Match header names, with or without quotes; None where there is none, or any will do."""
    if text is None or text.strip() == "*":
        return None
    if not re.fullmatch(VERSION, text.strip()):
        raise InvalidInput(f"{name} names a version, such as 3.", name)
    return int(text.strip().removeprefix("W/").strip('"'))


def check_conditions(event: Event) -> None:
    """Refuse headers that name no version, which would else be ignored where another decides."""
    version_of(header(event, "if-match"), "If-Match")
    creating = header(event, "if-none-match")
    if creating is not None and creating.strip() != "*":
        raise InvalidInput("If-None-Match can be '*' only: the change creates, or does nothing.", "If-None-Match")


def _bytes_of(event: Event, bytes_max: int) -> bytes:
    body = event.get("body") or ""
    if len(body) > bytes_max * 4 // 3 + 4:
        raise TooLarge(f"The body is larger than {bytes_max} bytes.")
    if not event.get("isBase64Encoded"):
        raw: bytes = body.encode("utf-8", "surrogatepass")
    else:
        try:
            raw = base64.b64decode(body, validate=True)
        except binascii.Error:
            raise InvalidInput("The body is not base64 although the event says so.", "") from None
    if len(raw) > bytes_max:
        raise TooLarge(f"The body is larger than {bytes_max} bytes.")
    return raw


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _FIELDS_MAX:
        raise InvalidInput(f"An object has {len(pairs)} fields: at most {_FIELDS_MAX} are right.")
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidInput(f"The field '{twice[:64]}' is there twice.", twice[:64])
    return found


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEPTH_MAX):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inside(one)]
        if not level:
            return
    raise InvalidInput("The body is nested too deeply.", "")


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _check_characters(value: Any) -> None:
    """Escapes can spell half a surrogate pair, which nothing behind this could write down."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidInput("The body contains half a surrogate pair, which is no character.", "") from None


def _no_constant(text: str) -> NoReturn:
    raise InvalidInput(f"{text} is no JSON value.")


def _number(text: str) -> float:
    """A number with a point or an exponent; 3.0 is the whole number 3, as JSON Schema has it."""
    value = float(text)
    if not math.isfinite(value):
        raise InvalidInput(f"The number {text[:32]} is too large.")
    return int(value) if abs(value) <= _EXACT_MAX and value.is_integer() else value
