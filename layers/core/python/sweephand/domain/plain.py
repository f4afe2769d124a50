"""A user's document as plain JSON: bounded, without what JSON does not have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from sweephand.domain.fields import Errors, shown
from sweephand.errors import InvalidInput

__all__ = ["DEPTH_MAX", "plain"]

DEPTH_MAX: Final = 32
INTEGER_MAX: Final = 2**63 - 1

_KEY_SHOWN: Final = 64  # a path is written for every value: a long key must not be copied for each below it


def plain(document: Any, *, bytes_max: int) -> tuple[dict[str, Any], Errors]:
    """A copy made of what JSON has, and what had to be left out of it, as null, because JSON has no such thing.

    Too deep or too large a document is refused at once: nothing of it is worth reading on, and YAML's aliases make
    documents that are endless when they are written out.
    """
    copying = _Copying(bytes_max)
    if not isinstance(document, Mapping):
        raise InvalidInput("A definition is an object with fields, such as 'name'.")
    copied: dict[str, Any] = copying.copy(document, "", 1)
    return copied, tuple(copying.errors)


class _Copying:
    __slots__ = ("_bytes_left", "_bytes_max", "errors")

    def __init__(self, bytes_max: int) -> None:
        self.errors: list[tuple[str, str]] = []
        self._bytes_left = self._bytes_max = bytes_max

    def copy(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value, path)
        self._spend(2)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value, path)
        if isinstance(value, datetime) and value.utcoffset() is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        if isinstance(value, date):
            return value.isoformat()
        if not isinstance(value, Mapping | list | tuple):
            return self._leave_out(path, f"A {type(value).__name__} is nothing that JSON has.")
        if depth > DEPTH_MAX:
            raise InvalidInput(f"The nesting is deeper than {DEPTH_MAX} levels.", path)
        if not isinstance(value, Mapping):
            return [self.copy(item, f"{path}[{n}]", depth + 1) for n, item in enumerate(value)]
        return {
            key: self.copy(item, f"{path}.{key[:_KEY_SHOWN]}" if path else key[:_KEY_SHOWN], depth + 1)
            for key, item in value.items()
            if self._is_key(key, path)
        }

    def _is_key(self, key: object, path: str) -> bool:
        if isinstance(key, str):
            return self._text(key, path) is not None
        # YAML 1.1 reads `on:` as true.
        self._leave_out(path, f"The field name {shown(key)} is not text: put it in quotes.")
        return False

    def _text(self, value: str, path: str) -> Any:
        self._spend(len(value) + 3)
        if "\0" in value:
            return self._leave_out(path, "The text contains the character U+0000.")
        if not value.isascii():
            try:
                self._spend(len(value.encode()) - len(value))
            except UnicodeEncodeError:
                return self._leave_out(path, "The text contains half a surrogate pair, which is no character.")
        return str(value)

    def _number(self, value: float, path: str) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else self._leave_out(path, f"{value} is not a number in JSON.")
        if abs(value) > INTEGER_MAX:
            return self._leave_out(path, "The number is too large: whole numbers have 63 bits.")
        return value

    def _spend(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise InvalidInput(f"The definition takes more than {self._bytes_max} bytes.")

    def _leave_out(self, path: str, message: str) -> Any:
        self.errors.append((path, message))
        return None
