"""Reading a user's document: a reader takes a value and its path, and gives what it means or a refusal.

Refusals are collected: an object reports all its wrong fields at once, each with its path and what would be right.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Final, TypeVar

from sweephand.domain.duration import DURATION_MAX, parse_duration
from sweephand.domain.ids import check_name
from sweephand.errors import InvalidInput

__all__ = [
    "ERRORS_MAX",
    "Errors",
    "Fields",
    "Reader",
    "anything",
    "choice",
    "duration",
    "flag",
    "instant",
    "json_bytes",
    "listed",
    "mapped",
    "name",
    "nearest",
    "object_of",
    "one_of",
    "refusal",
    "shown",
    "text",
    "whole",
]

T = TypeVar("T")
D = TypeVar("D")
E = TypeVar("E", bound=StrEnum)

Reader = Callable[[Any, str], T]
Errors = tuple[tuple[str, str], ...]

ERRORS_MAX: Final = 100

_SHOWN_MAX: Final = 64
_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def refusal(errors: Iterable[tuple[str, str]]) -> InvalidInput:
    """One refusal for all errors, up to a bound."""
    found = tuple(dict.fromkeys(errors))
    path, message = found[0]
    if len(found) == 1:
        return InvalidInput(message, path)
    count = str(len(found))
    if len(found) > ERRORS_MAX:
        count = f"more than {ERRORS_MAX}"
        found = (*found[:ERRORS_MAX], ("", "There are more errors, which are not listed."))
    first = f"{path}: {message}" if path else message
    return InvalidInput(f"There are {count} errors. The first: {first}", path, errors=found)


def shown(value: object) -> str:
    """A value as a message quotes it."""
    as_text = repr(value)
    return as_text if len(as_text) <= _SHOWN_MAX else as_text[:_SHOWN_MAX] + "…"


def nearest(word: str, known: Collection[str]) -> str:
    """A hint at the name that was probably meant, or at all of them; empty where there are too many."""
    close = difflib.get_close_matches(word[:_SHOWN_MAX], known, n=1) if len(known) <= 200 else []
    if close:
        return f": did you mean '{close[0]}'?"
    return f": use {', '.join(sorted(known))}." if 0 < len(known) <= 40 else "."


class Fields:
    """One object of a document. Each field is asked for once, and what nobody asked for is unknown."""

    __slots__ = ("_errors", "_known", "_object", "_path")

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{shown(value)} is not an object with fields.", path)
        self._object = value
        self._path = path
        self._known: list[str] = []
        self._errors: list[tuple[str, str]] = []

    def path(self, field: str) -> str:
        return f"{self._path}.{field}" if self._path else field

    def get(self, field: str, read: Reader[T], default: D, *, required: bool = False) -> T | D:
        """What a field means; the default where it is absent, null or, until `done` refuses, wrong."""
        self._known.append(field)
        value = self._object.get(field)
        if value is None:
            if required:
                self.refuse(field, f"'{field}' is required.")
            return default
        try:
            return read(value, self.path(field))
        except InvalidInput as refused:
            self._errors += refused.errors
            return default

    def given(self, *names: str) -> list[str]:
        """Which of these fields are present."""
        return [one for one in names if self._object.get(one) is not None]

    def at_most_one(self, *names: str) -> None:
        """Refuse all but one of these fields."""
        present = self.given(*names)
        for extra in present[1:]:
            self.refuse(extra, f"'{extra}' and '{present[0]}' exclude each other: give one of them.")

    def refuse(self, field: str, message: str) -> None:
        self._errors.append((self.path(field) if field else self._path, message))

    def done(self, elsewhere: Mapping[str, str] | None = None, *, others: bool = False) -> None:
        """Raise whatever was wrong; `elsewhere` says where fields that are often misplaced belong. With `others`, those
        that nobody asked for are right."""
        known = set(self._known)
        if not others and not self._object.keys() <= known:
            unknown = (field for field in self._object if field not in known)
            # Looking for the nearest name takes time, which nobody should be able to make long.
            for field in islice(unknown, ERRORS_MAX + 1):
                place = (elsewhere or {}).get(field)
                hint = f": write it as '{place}'." if place else nearest(field, self._known)
                self.refuse(field[:_SHOWN_MAX], f"There is no field '{field[:_SHOWN_MAX]}' here{hint}")
        if self._errors:
            raise refusal(self._errors)


# Readers of single values.


def anything(value: Any, path: str) -> Any:  # noqa: ARG001 - a reader
    return value


def name(value: Any, path: str) -> str:
    return check_name(value, path=path)


def flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{shown(value)} is neither true nor false.", path)
    return value


def text(most: int, *, least: int = 1, pattern: str = "", right: str = "") -> Reader[str]:
    """Text of a length, in characters, and of a form that `right` describes."""
    form = re.compile(pattern) if pattern else None

    def read(value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise InvalidInput(f"{shown(value)} is not text{right and f': {right}'}.", path)
        if not least <= len(value) <= most:
            raise InvalidInput(f"The text has {len(value)} characters: {least} to {most} are right.", path)
        if form is not None and not form.fullmatch(value):
            raise InvalidInput(f"{shown(value)} is not right: {right}.", path)
        return value

    return read


def whole(low: int, high: int) -> Reader[int]:
    """A whole number; true and false are none, although Python thinks so."""

    def read(value: Any, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InvalidInput(f"{shown(value)} is not a whole number from {low} to {high}.", path)
        return value

    return read


def duration(least: timedelta = timedelta(0), most: timedelta = DURATION_MAX) -> Reader[timedelta]:
    def read(value: Any, path: str) -> timedelta:
        return parse_duration(value, path=path, at_least=least, at_most=most)

    return read


def choice(options: type[E]) -> Reader[E]:
    """A member of an enum by its exact value."""
    by_value = {str(option): option for option in options}

    def read(value: Any, path: str) -> E:
        found = by_value.get(value) if isinstance(value, str) else None
        if found is None:
            raise InvalidInput(f"{shown(value)} is unknown: use {', '.join(by_value)}.", path)
        return found

    return read


def one_of(*options: str) -> Reader[str]:
    """One of some words, exactly."""

    def read(value: Any, path: str) -> str:
        if value not in options:
            raise InvalidInput(f"{shown(value)} is unknown: use {', '.join(options)}.", path)
        return str(value)

    return read


def instant(value: Any, path: str) -> datetime:
    """An RFC 3339 time, in UTC."""
    if isinstance(value, str) and _INSTANT.fullmatch(value):
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # a day or an hour that does not exist is refused like any other text
    raise InvalidInput(f"{shown(value)} is not a time: write it as 2026-12-01T00:00:00Z, with a Z or an offset.", path)


# Readers of collections.


def listed(read: Reader[T], most: int, *, least: int = 0, distinct: bool = False) -> Reader[tuple[T, ...]]:
    """A list of so many of something."""

    def read_all(value: Any, path: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise InvalidInput(f"{shown(value)} is not a list.", path)
        if not least <= len(value) <= most:
            raise InvalidInput(f"The list has {len(value)} items: {least} to {most} are right.", path)
        found: list[T] = []
        errors: list[tuple[str, str]] = []
        seen: set[T] = set()
        for n, item in enumerate(value):
            if len(errors) > ERRORS_MAX:
                break
            try:
                one = read(item, f"{path}[{n}]")
            except InvalidInput as refused:
                errors += refused.errors
                continue
            if distinct and one in seen:
                errors.append((f"{path}[{n}]", f"{shown(item)} is listed twice."))
            if distinct:
                seen.add(one)
            found.append(one)
        if errors:
            raise refusal(errors)
        return tuple(found)

    return read_all


def mapped(key: Reader[str], read: Reader[T], most: int) -> Reader[dict[str, T]]:
    """An object whose field names are the user's own."""

    def read_all(value: Any, path: str) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{shown(value)} is not an object with fields.", path)
        if len(value) > most:
            raise InvalidInput(f"The object has {len(value)} fields: at most {most} are right.", path)
        found: dict[str, T] = {}
        errors: list[tuple[str, str]] = []
        for field, item in value.items():
            at = f"{path}.{field[:_SHOWN_MAX]}"
            try:
                found[key(field, at)] = read(item, at)
            except InvalidInput as refused:
                errors += refused.errors
        if errors:
            raise refusal(errors)
        return found

    return read_all


def object_of(bytes_max: int) -> Reader[dict[str, Any]]:
    """Any JSON object up to a size."""

    def read(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{shown(value)} is not an object with fields.", path)
        size = json_bytes(value)
        if size > bytes_max:
            raise InvalidInput(f"It takes {size} bytes as JSON: at most {bytes_max} are right.", path)
        return dict(value)

    return read


def json_bytes(value: Any) -> int:
    """The size of a value as compact JSON in UTF-8."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
