"""Time and chance that a test decides about."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import datetime
from random import Random

from sweephand.errors import InvalidInput


class VirtualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def move(self, to: datetime) -> None:
        """Let it be later."""
        if to < self._now:
            raise InvalidInput(f"It is {self._now.isoformat()}: {to.isoformat()} is over.", "to")
        self._now = to


class SeededDice:
    """Chance that repeats itself: the same seed, the same throws."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def nonce(self) -> str:
        return f"{self._random.getrandbits(64):016x}"

    def secret(self) -> str:
        return urlsafe_b64encode(self._random.randbytes(32)).decode().rstrip("=")

    def chance(self) -> float:
        return self._random.random()
