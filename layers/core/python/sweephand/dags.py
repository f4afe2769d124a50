"""How far runs of several tasks are, who advances them, and who keeps backfills going: the ports for it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from sweephand.domain.backfill import BackfillKey
from sweephand.domain.ids import RunKey
from sweephand.domain.progress import Progress


class Dags(Protocol):
    """How far runs of several tasks are, and who sleeps until a task of theirs ends."""

    def get(self, run: RunKey) -> Progress | None: ...

    def begin(self, progress: Progress) -> Progress:
        """What is there: this, where there was nothing."""

    def absorb(self, before: Progress, after: Progress) -> Progress | None:
        """Move to what an advance has learnt, leaving in `changed` what came since it read `before`, and wake nobody.

        Answers what is there now; None where another advance moved it since.
        """

    def note(self, run: RunKey, tasks: Collection[str]) -> Progress | None:
        """Have these looked at by the next advance; None where none was ever begun. The same again does no harm."""

    def sleep(self, progress: Progress, token: str) -> bool:
        """Sleep under this token, unless something was noted or moved since; then False."""

    def waking(self, progress: Progress, *, until: datetime) -> bool:
        """Be the one who wakes the sleeper that was read; False where somebody else is, or nobody sleeps any more."""

    def woken(self, progress: Progress) -> None:
        """The sleeper that was read is awake: its token is of no use."""


class Machines(Protocol):
    """What keeps advancing runs of several tasks, in an execution of its own for each."""

    def start(self, run: RunKey, *, generation: int) -> None:
        """Have the run advanced from now on; the same generation again changes nothing."""

    def wake(self, token: str) -> None:
        """Let the sleeper go on; one that is gone needs nothing."""


class Fillers(Protocol):
    """What keeps going on with backfills, in an execution of its own for each."""

    def start(self, backfill: BackfillKey, *, generation: int) -> None:
        """Have the backfill gone on with from now on; the same generation again changes nothing."""
