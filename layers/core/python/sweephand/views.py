"""What is derived from runs and can be derived again: what the engine needs of whoever keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from sweephand.domain.ids import Namespace, RunKey
from sweephand.domain.status import Standing, StatusRow

STANDING_ROWS_MAX: Final = 60_000
"""Some 20,000 runs, each of which is queued, begins and ends."""


class Views(Protocol):
    """Derived: can be cleared and rebuilt from the truths at any time."""

    def append(self, namespace: Namespace, batch: str, rows: Sequence[StatusRow]) -> None:
        """The newest revision of each run counts; the same batch again changes nothing. On AWS one write per hour and
        batch, which the batch's name lets a replay replace."""

    def rows(
        self,
        namespace: Namespace,
        *,
        since: datetime,
        until: datetime,
        before: RunKey | None = None,
        limit: int | None = None,
    ) -> list[StatusRow]:
        """The last known row of every run with since <= time < until, newest first by (run id, job's name), beginning
        below a run's place in that order, which need not be taken."""

    def standing(
        self,
        namespace: Namespace,
        *,
        since: datetime,
        until: datetime,
        late_before: datetime,
        rows_max: int = STANDING_ROWS_MAX,
    ) -> Standing:
        """How the runs of these whole hours stand; late are those kept waiting whose time was before `late_before`.

        SQLite counts them as they change. On AWS so many rows are summed up, the newest hours first: where there are
        more, the answer begins later than was asked for.
        """

    def clear(self, namespace: Namespace) -> None: ...
