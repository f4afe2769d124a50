"""A row of the status view: what lists and dashboards show of a run. Derived, never a truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState, Trigger

UNLISTED: Final = frozenset({RunState.PLANNED, RunState.VOID})
"""What lists do not show."""
_NAMED_FOR_THE_PAST: Final = frozenset({Trigger.BACKFILL, Trigger.RERUN})
_HELD: Final = frozenset(
    {
        ReasonCode.NOT_YET,
        ReasonCode.PAUSED,
        ReasonCode.RESUMING,
        ReasonCode.BLACKOUT,
        ReasonCode.WAITING,
        ReasonCode.APPROVAL,
    }
)
"""Why a run waits as it was told to; any other waits for room."""


class StatusRow(Struct, frozen=True):
    """A run at one revision, without what only its own page shows."""

    run: RunKey
    rev: int
    state: RunState
    trigger: Trigger
    fire_at: datetime
    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    reason: str | None

    @property
    def is_kept_waiting(self) -> bool:
        """Whether it has not begun although nobody said that it should wait; what makes up for a fire, or repeats one,
        is named for a time long before its own."""
        if self.state is not RunState.QUEUED or self.started_at is not None or self.trigger in _NAMED_FOR_THE_PAST:
            return False
        return self.reason is None or Reason.of(self.reason).code not in _HELD

    def encode(self) -> list[Any]:
        """A short JSON array: a page of many rows is paid by the kilobyte."""
        return [
            str(self.run.job.name),
            self.run.run_id,
            self.rev,
            str(self.state),
            str(self.trigger),
            self.fire_at.timestamp(),
            self.attempt,
            self.started_at.timestamp() if self.started_at else None,
            self.ended_at.timestamp() if self.ended_at else None,
            self.reason,
        ]

    @classmethod
    def decode(cls, namespace: Namespace, stored: Sequence[Any]) -> StatusRow:
        """The row that `encode` stored in a page of this namespace."""
        job, run_id, rev, state, trigger, fire_at, attempt, started_at, ended_at, reason = stored
        return cls(
            RunKey(JobKey(namespace, JobName(job)), RunId(run_id)),
            int(rev),
            RunState(state),
            Trigger(trigger),
            _instant(fire_at),
            int(attempt),
            None if started_at is None else _instant(started_at),
            None if ended_at is None else _instant(ended_at),
            reason,
        )


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


def listed(run: Run) -> StatusRow | None:
    """The row of a run; None for one that lists do not show."""
    if run.state in UNLISTED or run.key.task:
        return None
    return StatusRow(
        run.key,
        run.rev,
        run.state,
        run.trigger,
        run.fire_at,
        run.attempt,
        run.started_at,
        run.ended_at,
        str(run.reason) if run.reason else None,
    )


def latest(rows: Iterable[StatusRow]) -> list[StatusRow]:
    """The newest revision of each run, newest run first."""
    known: dict[RunKey, StatusRow] = {}
    for row in rows:
        seen = known.get(row.run)
        if seen is None or seen.rev < row.rev:
            known[row.run] = row
    return sorted(known.values(), key=lambda row: (row.run.run_id, row.run), reverse=True)


def tally(rows: Iterable[StatusRow]) -> Mapping[RunState, int]:
    """How many runs are in each state."""
    counts: dict[RunState, int] = {}
    for row in rows:
        counts[row.state] = counts.get(row.state, 0) + 1
    return counts


class Standing(Struct, frozen=True):
    """How the runs of some hours stand, each in the hour that its id begins with."""

    since: datetime
    """From when on all of them are counted."""
    hours: Mapping[datetime, Mapping[RunState, int]]
    """Only those that have runs."""
    late: int = 0
    """Runs that are kept waiting."""
    late_since: datetime | None = None
    """The time of the oldest of those."""

    @property
    def counts(self) -> Mapping[RunState, int]:
        """How many runs are in each state, over all hours."""
        total: Counter[RunState] = Counter()
        for counts in self.hours.values():
            total.update(counts)
        return total
