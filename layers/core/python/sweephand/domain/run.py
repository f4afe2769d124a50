"""A run: one firing of a job. Its identity is written once; everything else moves by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.domain.ids import DEFAULT, RunKey
from sweephand.domain.lifecycle import Lifecycle
from sweephand.domain.reasons import Reason
from sweephand.domain.retry import Failure


class RunState(StrEnum):
    """Stored values: never renamed."""

    PLANNED = "planned"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    VOID = "void"


class RunEvent(StrEnum):
    """What can happen to a run; two events may share a target state, so the reason is kept beside it."""

    PARKED = "parked"
    FENCED = "fenced"
    CLAIMED = "claimed"
    RECLAIMED = "reclaimed"
    HEARTBEAT = "heartbeat"
    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    VOIDED = "voided"


class Trigger(StrEnum):
    """What made a run."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"
    EVENT = "event"
    DEPENDENCY = "dependency"
    RERUN = "rerun"


_S, _E = RunState, RunEvent

RUN_LIFECYCLE: Final = Lifecycle(
    name="Run",
    states=RunState,
    events=RunEvent,
    arrows={
        (_S.PLANNED, _E.PARKED): _S.QUEUED,
        (_S.PLANNED, _E.FENCED): _S.PLANNED,
        (_S.PLANNED, _E.CLAIMED): _S.RUNNING,
        (_S.PLANNED, _E.FAILED): _S.FAILED,
        (_S.PLANNED, _E.CANCELLED): _S.CANCELLED,
        (_S.PLANNED, _E.SKIPPED): _S.SKIPPED,
        (_S.PLANNED, _E.VOIDED): _S.VOID,
        (_S.QUEUED, _E.PARKED): _S.QUEUED,
        (_S.QUEUED, _E.FENCED): _S.QUEUED,
        (_S.QUEUED, _E.CLAIMED): _S.RUNNING,
        (_S.QUEUED, _E.SUCCEEDED): _S.SUCCEEDED,
        (_S.QUEUED, _E.FAILED): _S.FAILED,
        (_S.QUEUED, _E.CANCELLED): _S.CANCELLED,
        (_S.QUEUED, _E.SKIPPED): _S.SKIPPED,
        (_S.QUEUED, _E.VOIDED): _S.VOID,
        (_S.RUNNING, _E.RECLAIMED): _S.RUNNING,
        (_S.RUNNING, _E.HEARTBEAT): _S.RUNNING,
        (_S.RUNNING, _E.SUCCEEDED): _S.SUCCEEDED,
        (_S.RUNNING, _E.RETRIED): _S.RETRYING,
        (_S.RUNNING, _E.FAILED): _S.FAILED,
        (_S.RUNNING, _E.CANCELLED): _S.CANCELLED,
        (_S.RUNNING, _E.SKIPPED): _S.SKIPPED,
        (_S.RETRYING, _E.PARKED): _S.RETRYING,
        (_S.RETRYING, _E.FENCED): _S.RETRYING,
        (_S.RETRYING, _E.CLAIMED): _S.RUNNING,
        (_S.RETRYING, _E.SUCCEEDED): _S.SUCCEEDED,
        (_S.RETRYING, _E.FAILED): _S.FAILED,
        (_S.RETRYING, _E.CANCELLED): _S.CANCELLED,
        (_S.RETRYING, _E.SKIPPED): _S.SKIPPED,
    },
    stuck={
        _S.PLANNED: "its instant has not come, or its message was lost; the auditor sends it again when overdue",
        _S.QUEUED: "it waits for what its reason names; its timer or the auditor sends it again",
        _S.RUNNING: "its worker died; the lease ends and the next delivery reclaims it",
        _S.RETRYING: "its delay runs, or its message was lost; the auditor sends it again when overdue",
    },
)
TERMINAL: Final = RUN_LIFECYCLE.terminal
ACTIVE: Final = frozenset({_S.RUNNING, _S.RETRYING})
UNSTARTED: Final = frozenset({_S.PLANNED, _S.QUEUED})


class Run(Struct, frozen=True):
    """One firing. Up to `note` it is its identity, which no update names; `rev` and `nonce` guard every move."""

    key: RunKey
    fire_at: datetime
    start_at: datetime
    created_at: datetime
    changed_at: datetime
    """Beside the state, it moves; it is here since it has no default."""
    trigger: Trigger = Trigger.SCHEDULE
    params: Mapping[str, Any] = field(default_factory=dict)
    rerun_of: str | None = None
    """The run that this one repeats; of a task that was carried over, the run in which it was done."""
    rerun_from: str | None = None
    """Where a rerun begins: `failed`, or `task:` and the first task's id; anew where it is None."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Tasks of a rerun that are over by somebody's word, as `Marks` has them."""
    parent: str | None = None
    """The key of the task's run, in another job, that started this run and waits for it."""
    backfill: str | None = None
    """The id of the backfill that made it."""
    interval_start: datetime | None = None
    """Where the interval begins of a run that stands for several fires; that of any other begins at the fire before."""
    note: str | None = None

    state: RunState = RunState.PLANNED
    reason: Reason | None = None
    rev: int = 0
    nonce: str = ""
    version: int | None = None
    epoch: int = 0
    attempt: int = 0
    lost: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    wake_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    progress: int | None = None
    output: Any = None
    failure: Failure | None = None

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_scheduled(self) -> bool:
        """Whether the schedule owes this run, so that pause, edits and deadlines apply to it."""
        return self.trigger is Trigger.SCHEDULE

    @property
    def failures(self) -> int:
        """Attempts that reported a failure: what `retry.attempts` bounds. A lost worker is not the job's failure."""
        return self.attempt - self.lost

    def idempotency_key(self, task: str) -> str:
        """The key that every attempt hands to its target; jobs of one name in two namespaces must not share one."""
        job = self.key.job
        where = "" if job.namespace == DEFAULT else f"{job.namespace}/"
        return f"{where}{job.name}/{self.key.run_id}/{self.key.task or task}"

    def lease_is_live(self, now: datetime) -> bool:
        return self.state is RunState.RUNNING and self.lease_until is not None and now < self.lease_until

    def after(self, event: RunEvent, *, now: datetime, nonce: str, **changes: Any) -> Run:
        """The next revision of this run, or a refusal."""
        target = RUN_LIFECYCLE.after(self.state, event, what=f"Run {self.key}")
        return replace(self, state=target, changed_at=now, rev=self.rev + 1, nonce=nonce, **changes)

    def parked(self, reason: Reason, *, now: datetime, nonce: str, wake_at: datetime | None) -> Run:
        """Waiting for what the reason names, until `wake_at` or a wake."""
        return self.after(RunEvent.PARKED, now=now, nonce=nonce, reason=reason, wake_at=wake_at)

    def fenced(self, *, now: datetime, nonce: str) -> Run:
        """The same run at a new revision, so that a claim based on the old one loses."""
        return self.after(RunEvent.FENCED, now=now, nonce=nonce)

    def claimed(self, *, now: datetime, nonce: str, owner: str, lease: timedelta, version: int) -> Run:
        """Owned by one attempt under a new epoch; taking over a dead lease counts the loss."""
        lost = self.state is RunState.RUNNING
        return self.after(
            RunEvent.RECLAIMED if lost else RunEvent.CLAIMED,
            now=now,
            nonce=nonce,
            reason=None,
            owner=owner,
            version=version,
            epoch=self.epoch + 1,
            attempt=self.attempt + 1,
            lost=self.lost + lost,
            lease_until=now + lease,
            wake_at=None,
            started_at=self.started_at or now,
        )

    def beaten(self, *, now: datetime, nonce: str, lease: timedelta, progress: int | None) -> Run:
        """The lease extended by its owner."""
        kept = self.progress if progress is None else progress
        return self.after(RunEvent.HEARTBEAT, now=now, nonce=nonce, lease_until=now + lease, progress=kept)

    def succeeded(self, *, now: datetime, nonce: str, output: Any, reason: Reason | None = None) -> Run:
        """Ended well; a reason says why it did without having been run."""
        return self.after(
            RunEvent.SUCCEEDED,
            now=now,
            nonce=nonce,
            reason=reason,
            lease_until=None,
            wake_at=None,
            ended_at=now,
            output=output,
            progress=100,
            failure=None,
        )

    def retried(self, failure: Failure, reason: Reason, *, now: datetime, nonce: str, wake_at: datetime) -> Run:
        """Waiting for the next attempt."""
        return self.after(
            RunEvent.RETRIED,
            now=now,
            nonce=nonce,
            reason=reason,
            lease_until=None,
            wake_at=wake_at,
            failure=failure,
        )

    def postponed(self, reason: Reason, *, now: datetime, nonce: str, wake_at: datetime) -> Run:
        """Claimed, but nothing was begun: waiting to be claimed again, as if this attempt had not been."""
        began = self.started_at if self.attempt > 1 else None
        return self._put_off(reason, now=now, nonce=nonce, wake_at=wake_at, started_at=began)

    def looked(self, reason: Reason, *, now: datetime, nonce: str, wake_at: datetime) -> Run:
        """Begun, and what it waits for has not come: waiting for the next look, which goes on with this attempt."""
        return self._put_off(reason, now=now, nonce=nonce, wake_at=wake_at, started_at=self.started_at)

    def failed(self, failure: Failure, reason: Reason, *, now: datetime, nonce: str) -> Run:
        return self._ended(RunEvent.FAILED, reason, now=now, nonce=nonce, failure=failure)

    def cancelled(self, reason: Reason, *, now: datetime, nonce: str) -> Run:
        return self._ended(RunEvent.CANCELLED, reason, now=now, nonce=nonce)

    def skipped(self, reason: Reason, *, now: datetime, nonce: str) -> Run:
        """Not run, or begun and left by its own task: the reason says which."""
        return self._ended(RunEvent.SKIPPED, reason, now=now, nonce=nonce)

    def marked(self, event: RunEvent, reason: Reason, *, now: datetime, nonce: str, **changes: Any) -> Run:
        """Ended by a person's word, under an epoch of its own: whoever works on it is fenced."""
        return self._ended(event, reason, now=now, nonce=nonce, epoch=self.epoch + 1, **changes)

    def voided(self, reason: Reason, *, now: datetime, nonce: str) -> Run:
        return self.after(RunEvent.VOIDED, now=now, nonce=nonce, reason=reason, wake_at=None, ended_at=now)

    def _put_off(
        self, reason: Reason, *, now: datetime, nonce: str, wake_at: datetime, started_at: datetime | None
    ) -> Run:
        return self.after(
            RunEvent.RETRIED,
            now=now,
            nonce=nonce,
            reason=reason,
            lease_until=None,
            wake_at=wake_at,
            attempt=self.attempt - 1,
            started_at=started_at,
        )

    def _ended(self, event: RunEvent, reason: Reason, *, now: datetime, nonce: str, **changes: Any) -> Run:
        """Over, for this reason: nobody owns it any more, and nothing wakes it."""
        return self.after(
            event, now=now, nonce=nonce, reason=reason, lease_until=None, wake_at=None, ended_at=now, **changes
        )
