"""Why something did not happen, or not yet: one short code that programs compare, one sentence for people."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


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
    WAITING = "waiting"
    APPROVAL = "approval"
    TASK = "task"
    UPSTREAM = "upstream"
    NEEDS = "needs"
    CONDITION = "condition"
    BRANCH = "branch"
    MAP = "map"
    STOPPED = "stopped"
    RETRY = "retry"
    RETRY_BUDGET = "retry_budget"
    TIMEOUT = "timeout"
    LOST = "lost"
    POISON = "poison"
    ERROR = "error"
    CANCELLED = "cancelled"
    CACHED = "cached"
    COLLAPSED = "collapsed"
    PARTIAL = "partial"
    MARKED = "marked"


class Reason(Struct, frozen=True):
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
