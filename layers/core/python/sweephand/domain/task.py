"""A task run: one task within a run. In a run of one task, the run is the task."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sweephand.domain.lifecycle import Lifecycle


class TaskState(StrEnum):
    """Stored values: never renamed."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"


class TaskEvent(StrEnum):
    """What can happen to a task run; two events may share a target, so the event is kept as the reason."""

    RELEASED = "released"
    CLAIMED = "claimed"
    RECLAIMED = "reclaimed"
    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    FAILED = "failed"
    SKIPPED = "skipped"
    HELD_UP = "held_up"
    CANCELLED = "cancelled"


_S, _E = TaskState, TaskEvent

TASK_LIFECYCLE: Final = Lifecycle(
    name="Task run",
    states=TaskState,
    events=TaskEvent,
    arrows={
        (_S.WAITING, _E.RELEASED): _S.QUEUED,
        (_S.WAITING, _E.SUCCEEDED): _S.SUCCEEDED,
        (_S.WAITING, _E.FAILED): _S.FAILED,
        (_S.WAITING, _E.SKIPPED): _S.SKIPPED,
        (_S.WAITING, _E.HELD_UP): _S.UPSTREAM_FAILED,
        (_S.WAITING, _E.CANCELLED): _S.CANCELLED,
        (_S.QUEUED, _E.CLAIMED): _S.RUNNING,
        (_S.QUEUED, _E.SUCCEEDED): _S.SUCCEEDED,
        (_S.QUEUED, _E.FAILED): _S.FAILED,
        (_S.QUEUED, _E.SKIPPED): _S.SKIPPED,
        (_S.QUEUED, _E.CANCELLED): _S.CANCELLED,
        (_S.RUNNING, _E.RECLAIMED): _S.RUNNING,
        (_S.RUNNING, _E.SUCCEEDED): _S.SUCCEEDED,
        (_S.RUNNING, _E.RETRIED): _S.RETRYING,
        (_S.RUNNING, _E.FAILED): _S.FAILED,
        (_S.RUNNING, _E.SKIPPED): _S.SKIPPED,
        (_S.RUNNING, _E.CANCELLED): _S.CANCELLED,
        (_S.RETRYING, _E.CLAIMED): _S.RUNNING,
        (_S.RETRYING, _E.SUCCEEDED): _S.SUCCEEDED,
        (_S.RETRYING, _E.FAILED): _S.FAILED,
        (_S.RETRYING, _E.SKIPPED): _S.SKIPPED,
        (_S.RETRYING, _E.CANCELLED): _S.CANCELLED,
    },
    stuck={
        _S.WAITING: "a parent has not ended; the run's next wake looks again",
        _S.QUEUED: "its message is on the way or lost; the auditor sends it again",
        _S.RUNNING: "its worker died; the lease ends and the next delivery reclaims it",
        _S.RETRYING: "its delay runs; the auditor sends it again when overdue",
    },
)
