"""What a failure means, and whether and when it is tried again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

_NUMBERED: Final = re.compile(r"(ExitCode)[0-9]{1,3}|Http([1-5])[0-9]{2}", re.ASCII)


class FailureClass(StrEnum):
    """Stored values."""

    TRANSIENT = "transient"
    """The same call may succeed later: network, throttling, time-out, a lost worker."""
    PERMANENT = "permanent"
    """The same call would fail again: invalid input, an error in the code."""


class Backoff(StrEnum):
    """How the wait before the next attempt grows."""

    FIXED = "fixed"
    """The same delay each time."""
    EXPONENTIAL = "exponential"
    """Any moment up to delay × 2ⁿ (full jitter), so that what failed together does not return together."""
    LIST = "list"
    """The delays that the job lists; the last one repeats."""


class Failure(Struct, frozen=True):
    """How an attempt failed: an outcome that is stored, not an exception."""

    error: str
    message: str
    kind: FailureClass = FailureClass.TRANSIENT

    @property
    def names(self) -> frozenset[str]:
        """What a job can call it by: its name, its class, and of numbered ones what they have in common."""
        numbered = _NUMBERED.fullmatch(self.error)
        common = {numbered[1] or f"Http{numbered[2]}xx"} if numbered else set()
        return frozenset({self.error, str(self.kind)} | common)

    def encode(self) -> dict[str, str]:
        return {"error": self.error, "message": self.message, "class": str(self.kind)}

    @classmethod
    def decode(cls, stored: Mapping[str, Any]) -> Failure:
        return cls(stored["error"], stored["message"], FailureClass(stored["class"]))


class Retry(Struct, frozen=True):
    """A job's retry policy; the first try counts as an attempt."""

    attempts: int = 1
    backoff: Backoff = Backoff.EXPONENTIAL
    delay: timedelta = timedelta(seconds=10)
    delay_max: timedelta = timedelta(minutes=10)
    delays: tuple[timedelta, ...] = ()
    on: tuple[str, ...] = (FailureClass.TRANSIENT,)
    never: tuple[str, ...] = ()

    def covers(self, failure: Failure) -> bool:
        """Whether this kind of failure may be tried again: names refine classes, and `never` wins."""
        return failure.names.isdisjoint(self.never) and not failure.names.isdisjoint(self.on)

    def wait(self, failures: int, *, chance: float) -> timedelta:
        """How long to wait after the n-th failure; `chance` in [0, 1) is the caller's dice."""
        if self.backoff is Backoff.LIST and self.delays:
            return self.delays[min(failures, len(self.delays)) - 1]
        if self.backoff is Backoff.FIXED:
            return self.delay
        # Doublings that reach the cap: beyond them timedelta would overflow.
        enough = (self.delay_max // self.delay).bit_length() if self.delay else 0
        doubled: int = 2 ** min(failures - 1, enough)
        return min(self.delay * doubled, self.delay_max) * chance

    def next_delay(self, failure: Failure, failures: int, *, chance: float) -> timedelta | None:
        """The wait before the next attempt, or None where this was the last."""
        if failures >= self.attempts or not self.covers(failure):
            return None
        return self.wait(failures, chance=chance)
