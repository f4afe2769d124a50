"""Durations as people write them: seconds, or text such as "1h30m"."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

from sweephand.errors import InvalidInput

__all__ = ["DURATION_MAX", "format_duration", "parse_duration"]

DURATION_MAX: Final = timedelta(days=366)

_TEXT_MAX: Final = 64
_MILLISECONDS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
# Each unit at most once, the largest first; ASCII digits only, few enough to stay exact.
_PATTERN: Final = re.compile(
    r"(?:(?P<d>[0-9]{1,9})d)?(?:(?P<h>[0-9]{1,9})h)?(?:(?P<m>[0-9]{1,9})m(?!s))?"
    r"(?:(?P<s>[0-9]{1,9})s)?(?:(?P<ms>[0-9]{1,12})ms)?"
)
_RIGHT: Final = 'write seconds, or text such as "90s", "5m" or "1h30m"'


def parse_duration(
    value: object,
    *,
    path: str,
    at_least: timedelta = timedelta(0),
    at_most: timedelta = DURATION_MAX,
) -> timedelta:
    """A duration in whole milliseconds within the bounds, which are inclusive."""
    duration = _of_text(value, path) if isinstance(value, str) else _of_number(value, path)
    if not at_least <= duration <= at_most:
        bounds = f"from {format_duration(at_least)} to {format_duration(at_most)}"
        raise InvalidInput(f"{_shown(value)} is out of bounds: {bounds}.", path=path)
    return duration


def _of_number(value: object, path: str) -> timedelta:
    # bool is an int in Python, but `timeout: yes` is a mistake, not one second.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{_shown(value)} is not a duration: {_RIGHT}.", path=path)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{value} is not a duration: {_RIGHT}.", path=path)
    # Far beyond any bound, and beyond what a timedelta holds.
    if abs(value) > 1e10:
        raise InvalidInput(f"{_shown(value)} seconds is out of bounds.", path=path)
    return timedelta(milliseconds=round(value * 1000))


def _of_text(text: str, path: str) -> timedelta:
    matched = _PATTERN.fullmatch(text) if 0 < len(text) <= _TEXT_MAX else None
    if matched is None:
        raise InvalidInput(f"{_shown(text)} is not a duration: {_RIGHT}.", path=path)
    parts = matched.groupdict(default="0")
    milliseconds = sum(int(parts[unit]) * size for unit, size in _MILLISECONDS.items())
    return timedelta(milliseconds=milliseconds)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int of thousands of digits refuses to be printed
        return "The number"
    return text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "…"


def format_duration(duration: timedelta) -> str:
    """The shortest text that `parse_duration` reads back as this many milliseconds."""
    left = round(duration / timedelta(milliseconds=1))
    if left < 0:
        return "-" + format_duration(-duration)
    parts = []
    for unit, size in _MILLISECONDS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
