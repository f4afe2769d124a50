"""Walks through the status view: newest first, from a cursor's place, and of so many rows at the most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sweephand.api.asked import Asked
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.domain.ids import JobKey, JobName, RunId, RunKey, instant_of
from sweephand.domain.status import StatusRow
from sweephand.engine.lookup import present_job
from sweephand.errors import InvalidInput
from sweephand.ports import World

BACK: Final = timedelta(days=1)
"""How far back a walk goes where nothing is said."""
BACK_MAX: Final = timedelta(days=31)
LOOKED_AT_MAX: Final = 20_000
"""Rows that one call looks at, whatever it finds: where it stops, its cursor goes on."""
_PAGE: Final = 500
_GENERATIONS_MAX: Final = 100
_A_SECOND: Final = timedelta(seconds=1)


class Walk:
    """One call's walk. `bound_to` is what its cursors hold for."""

    def __init__(
        self,
        ask: Asked,
        bound_to: Sequence[Any] = (),
        *,
        cursor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        back: timedelta = BACK,
        looked_at_max: int = LOOKED_AT_MAX,
    ) -> None:
        self._ask = ask
        self._looked_at_max = looked_at_max
        self._bound_to = (*bound_to, ask.namespace, since, until)
        self._until = until or ask.now + _A_SECOND
        self._since = since or self._until - back
        if self._until - self._since > BACK_MAX:
            raise InvalidInput(f"At most {BACK_MAX.days} days can be looked at at once.", "from")
        position = decode_cursor(cursor, self._bound_to, length=2)
        self._place = self._key(*position) if position else None
        self._is_cut = False

    def rows(self) -> Iterator[StatusRow]:
        """The rows, for as long as there are some and the caller goes on."""
        looked_at, limit = 0, min(_PAGE, self._looked_at_max)
        while self._since < self._until:
            page = self._ask.world.views.rows(
                self._ask.namespace, since=self._since, until=self._until, before=self._place, limit=limit
            )
            for row in page:
                self._place, self._is_cut = row.run, True
                yield row
            looked_at += len(page)
            if len(page) < limit:
                self._is_cut = False
                return
            if looked_at >= self._looked_at_max:
                return

    def cursor(self, last: StatusRow | None = None) -> str | None:
        """Where to go on: after this row, or where the walk was cut; None where there is nothing more."""
        place = last.run if last is not None else (self._place if self._is_cut else None)
        return encode_cursor([place.run_id, place.job.name], self._bound_to) if place is not None else None

    def _key(self, run_id: str, job: str) -> RunKey:
        try:
            instant_of(run_id)
        except ValueError:
            raise InvalidInput("The cursor is not from this list: leave it out to begin anew.", "cursor") from None
        return RunKey(JobKey(self._ask.namespace, JobName(job)), RunId(run_id))


class Having:
    """Whether rows are of a state, of a job, of jobs with a tag; many rows belong to few jobs."""

    def __init__(self, ask: Asked, *, state: str | None = None, job: str | None = None, tag: str | None = None) -> None:
        self._ask = ask
        self._state = state
        self._job = job
        self._tag = tag
        self._tagged: dict[JobKey, bool] = {}

    def __call__(self, row: StatusRow) -> bool:
        if self._state not in (None, row.state) or self._job not in (None, row.run.job.name):
            return False
        return self._tag is None or self._has_tag(row.run.job)

    def _has_tag(self, key: JobKey) -> bool:
        if key not in self._tagged:
            defined = present_job(self._ask.world, key)
            self._tagged[key] = defined is not None and self._tag in defined.tags
        return self._tagged[key]


def is_superseded(world: World, key: RunKey) -> bool:
    """Whether the run was run again since: a later generation of its fire is there."""
    fire, _, _ = key.run_id.partition(".")
    later = world.runs.of_job(key.job, since=RunId(f"{fire}."), until=RunId(f"{fire}/"), limit=_GENERATIONS_MAX)
    return any(_generation(run.key.run_id) > _generation(key.run_id) for run in later)


def _generation(run_id: str) -> int:
    number = run_id.partition(".")[2]
    return int(number) if number.isdigit() else 0
