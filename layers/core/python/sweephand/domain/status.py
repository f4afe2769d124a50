"""A row of the status view: what lists and dashboards show of a run. Derived, never a truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.run import Run, RunState, Trigger

UNLISTED: Final = frozenset({RunState.PLANNED, RunState.VOID})
"""What lists do not show."""


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
