"""The one place where real time and real chance come from."""

from __future__ import annotations

from datetime import UTC, datetime
from os import urandom
from random import SystemRandom
from secrets import token_urlsafe


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SystemDice:
    """The machine's randomness."""

    _random = SystemRandom()

    def nonce(self) -> str:
        return urandom(8).hex()

    def secret(self) -> str:
        return token_urlsafe(32)

    def chance(self) -> float:
        return self._random.random()
