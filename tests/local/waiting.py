"""Real time, where a test cannot do without: wait for a condition, never for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

_LOOK_EVERY_S = 0.02


def until(condition: Callable[[], object], *, within_s: float, what: str) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        Event().wait(_LOOK_EVERY_S)
