"""Why something did not happen, or not yet: one short code that programs compare, one sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReasonCode(StrEnum):
    """Stored values: never renamed."""

    NOT_YET = "not_yet"
    PAUSED = "paused"
    RESUMING = "resuming"
    DELETED = "deleted"
    NOT_IN_FORCE = "not_in_force"
    CALENDAR = "calendar"
    BLACKOUT = "blackout"
    START_DEADLINE = "start_deadline"
    OVERLAP = "overlap"
    REPLACED = "replaced"
    CONCURRENCY = "concurrency"
    POOL = "pool"
    CATCHUP = "catchup"
    WORKER = "worker"
    ROOM = "room"
    TASK = "task"
    RETRY = "retry"
    TIMEOUT = "timeout"
    LOST = "lost"
    POISON = "poison"
    ERROR = "error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and its evidence in words."""

    code: ReasonCode
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else str(self.code)

    @classmethod
    def of(cls, text: str) -> Reason:
        """The reason that `str(reason)` was stored from."""
        code, _, detail = text.partition(": ")
        return cls(ReasonCode(code), detail)
