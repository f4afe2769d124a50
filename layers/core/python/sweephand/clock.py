"""The one place where real time and real chance come from."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from random import SystemRandom


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SystemDice:
    """The machine's randomness."""

    _random = SystemRandom()

    def nonce(self) -> str:
        return secrets.token_hex(8)

    def chance(self) -> float:
        return self._random.random()
