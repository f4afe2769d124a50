"""How much a namespace may retry: what fails together must not come back together, at the expense of others.

A retry costs one. A namespace earns a fifth of one with each run that it starts, and ten a minute whatever it does. One
that has nothing left is not refused: its retries wait longer, the more of them there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

SHARE: Final = 0.2
"""What a start earns."""
PER_MINUTE: Final = 10.0
"""What a minute earns."""
SAVED_MAX: Final = 1_000.0
"""What can be saved up for bad times."""
UNCOUNTED: Final = 2
"""Retries of a process and minute that are free: a lone one is not worth a write."""
HELD_MAX: Final = timedelta(minutes=15)
"""The longest that a retry waits for the budget."""
_MINUTE: Final = timedelta(minutes=1)
_OWED_MAX: Final = PER_MINUTE * (HELD_MAX / _MINUTE)


class RetryBudget(Struct, frozen=True):
    """What a namespace had left at a moment, and how many of its retries could not be afforded."""

    at: datetime
    saved: float = PER_MINUTE
    owed: float = 0.0
    is_held: bool = False
    """Whether the retry that was drawn last could not be afforded."""

    @property
    def held(self) -> timedelta:
        """How much longer than it would that retry waits at most."""
        return self.owed / PER_MINUTE * _MINUTE if self.is_held else timedelta(0)

    def drawn(self, *, starts: int, now: datetime) -> RetryBudget:
        """After one retry more, and what was earned since by time, which pays what is owed first, and by starts."""
        earned = max((now - self.at) / _MINUTE, 0.0) * PER_MINUTE
        owed = max(self.owed - earned, 0.0)
        saved = min(self.saved + max(earned - self.owed, 0.0) + starts * SHARE, SAVED_MAX)
        if saved >= 1:
            return RetryBudget(max(now, self.at), saved - 1, owed)
        return RetryBudget(max(now, self.at), saved, min(owed + 1, _OWED_MAX), is_held=True)

    def encode(self) -> dict[str, Any]:
        return {"at": self.at.isoformat(), "saved": round(self.saved, 3), "owed": round(self.owed, 3)}

    @classmethod
    def decode(cls, stored: Mapping[str, Any]) -> RetryBudget:
        return cls(datetime.fromisoformat(stored["at"]), float(stored["saved"]), float(stored["owed"]))


class Lately:
    """What this process began and retried within the last minute or two, by namespace.

    Kept in memory only, so that a run that does not fail costs nothing. A count that two threads lose to each other, or
    that goes with the process, makes a budget a little smaller or larger.
    """

    def __init__(self) -> None:
        self._starts: dict[str, tuple[datetime, int]] = {}
        self._retries: dict[str, tuple[datetime, int]] = {}

    def start(self, namespace: str, *, now: datetime) -> None:
        """One more run began."""
        since, count = self._starts.get(namespace, (now, 0))
        self._starts[namespace] = (since, count + 1) if now - since < 2 * _MINUTE else (now, 1)

    def starts(self, namespace: str, *, now: datetime) -> int:
        """Those that were counted since this was asked last; older ones have no say."""
        since, count = self._starts.pop(namespace, (now, 0))
        return count if now - since < 2 * _MINUTE else 0

    def retry(self, namespace: str, *, now: datetime) -> bool:
        """One more is retried; whether it is one of the few in a minute that nobody needs to count."""
        since, count = self._retries.get(namespace, (now, 0))
        self._retries[namespace] = since, count = (since, count + 1) if now - since < _MINUTE else (now, 1)
        return count <= UNCOUNTED
