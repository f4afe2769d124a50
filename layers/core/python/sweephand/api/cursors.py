"""Where a list goes on: opaque to clients, and bound to the query that it came from."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, TypeVar

from sweephand.errors import InvalidInput

T = TypeVar("T")
_WRONG: Final = "The cursor is not from this list: leave it out to begin anew."


def encode_cursor(position: Sequence[Any], bound_to: Sequence[Any]) -> str:
    """A cursor for this position in the answer to this query."""
    text = json.dumps([_digest(bound_to), *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(
    cursor: str | None, bound_to: Sequence[Any], *, length: int, path: str = "cursor"
) -> list[Any] | None:
    """The position that a cursor holds; None where the list begins."""
    if cursor is None:
        return None
    try:
        position: list[Any]
        digest, *position = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        sound = digest == _digest(bound_to) and len(position) == length and all(map(_is_plain, position))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        sound, position = False, []
    if not sound:
        raise InvalidInput(_WRONG, path)
    return position


def cut(
    found: Sequence[T], name: Callable[[T], str], *, limit: int, cursor: str | None, bound_to: Sequence[Any]
) -> tuple[list[T], str | None]:
    """A page of a list that is at hand whole, in the order of names, and where it goes on."""
    position = decode_cursor(cursor, bound_to, length=1)
    rest = [one for one in found if position is None or name(one) > position[0]]
    shown = rest[:limit]
    return shown, encode_cursor([name(shown[-1])], bound_to) if len(rest) > limit else None


def instant_in_cursor(text: str) -> datetime:
    """A time that a cursor holds, as `isoformat` wrote it."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(_WRONG, "cursor") from None
    if found.tzinfo != UTC or not 1970 <= found.year < 9000:
        raise InvalidInput(_WRONG, "cursor")
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 512 and value.isprintable()


def _digest(bound_to: Sequence[Any]) -> str:
    return blake2b(json.dumps([str(part) for part in bound_to]).encode(), digest_size=9).hexdigest()
