"""What became of a fire, all its runs together: by this a backfill chooses what it makes up for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from sweephand.domain.backfill import Only
from sweephand.domain.ids import RunId, run_id_of_fire, run_id_of_rerun
from sweephand.domain.ledger import FireStatus, LedgerRow
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState


class Fate(StrEnum):
    """What became of a fire."""

    MISSING = "missing"
    """No run of it did anything, and nothing says that none should have."""
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    """Its own task found nothing to do."""
    CANCELLED = "cancelled"
    """A person ended it, or a newer run of the job took its place."""
    ACTIVE = "active"
    """A run of it is under way, or about to be."""
    HELD = "held"
    """A pause holds it, and a resume decides about it."""
    CLOSED = "closed"
    """Its calendar, or a blackout, says that it should not run."""
    EXPIRED = "expired"
    """It became something, which is no longer known."""


CHOSEN: Final = {
    Only.MISSING: frozenset({Fate.MISSING}),
    Only.FAILED: frozenset({Fate.FAILED}),
    Only.ALL: frozenset(Fate) - {Fate.ACTIVE, Fate.CLOSED},
}
"""Which fates are made up for. None is where a run is under way, so that nothing is done twice at once."""

_OWN: Final = frozenset({ReasonCode.TASK, ReasonCode.CONDITION, ReasonCode.BRANCH})
_CLOSED: Final = frozenset({ReasonCode.CALENDAR, ReasonCode.BLACKOUT})


class FireFate(Struct, frozen=True):
    """A fire, what became of it, and the least generation of it that nobody has taken."""

    fire_at: datetime
    fate: Fate
    generation: int
    is_given_up: bool = False
    """Whether it is on record that no run of it starts by itself: it was skipped, or its run was."""

    @property
    def counts(self) -> bool:
        """Whether somebody who waits for the job's last fire waits for this one: what was skipped is passed over."""
        passed = self.fate in (Fate.CLOSED, Fate.SKIPPED) or (self.fate is Fate.MISSING and self.is_given_up)
        return not passed

    @property
    def next_id(self) -> RunId:
        """The id that its next run may have."""
        return run_id_of_rerun(run_id_of_fire(self.fire_at), self.generation)


def fate_of(row: LedgerRow, runs: Sequence[Run]) -> Fate:
    """What became of a fire, by its row of the ledger and all the runs of it.

    One success is enough, whichever run it was. A run that made up for it and was cancelled changes nothing.
    """
    runs = [run for run in runs if run.state is not RunState.VOID]
    under_way = [run for run in runs if not run.is_terminal]
    if under_way:
        return Fate.HELD if all(map(_is_held, under_way)) else Fate.ACTIVE
    states = {run.state for run in runs}
    if RunState.SUCCEEDED in states:
        return Fate.SUCCEEDED
    if RunState.FAILED in states:
        return Fate.FAILED
    if any(run.state is RunState.CANCELLED and run.is_scheduled for run in runs):
        return Fate.CANCELLED
    return _by_row(row)


def _by_row(row: LedgerRow) -> Fate:
    reason = Reason.of(row.reason) if row.reason else None
    match row.status:
        case FireStatus.FIRED:
            return Fate.SUCCEEDED  # in a run that stands for others too
        case FireStatus.PENDING:
            return Fate.HELD if reason is not None and reason.code is ReasonCode.PAUSED else Fate.ACTIVE
        case FireStatus.SKIPPED if reason is not None and reason.code in _CLOSED:
            return Fate.CLOSED
        case FireStatus.SKIPPED if reason is not None and reason.code in _OWN:
            return Fate.SKIPPED
        case FireStatus.EXPIRED:
            return Fate.EXPIRED
        case _:
            return Fate.MISSING


def _is_held(run: Run) -> bool:
    reason = run.reason
    return run.is_scheduled and reason is not None and reason.code is ReasonCode.PAUSED and run.wake_at is None
