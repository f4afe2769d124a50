"""The status view, and the feed of changed runs that it is derived from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from sweephand.domain.ids import Namespace, RunKey, run_id_of_fire
from sweephand.domain.run import Run, RunState
from sweephand.domain.status import Standing, StatusRow
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import from_json, instant_or_none, micros, to_json
from sweephand.embedded.runs import COLUMNS, decode_run
from sweephand.views import STANDING_ROWS_MAX

_PUT: Final = """
    INSERT INTO status_rows (namespace, run_id, job, rev, body, state, waits_at) VALUES (?,?,?,?,?,?,?)
    ON CONFLICT DO UPDATE SET
        rev = excluded.rev, body = excluded.body, state = excluded.state, waits_at = excluded.waits_at
    WHERE excluded.rev > rev
"""
_READ: Final = (
    "SELECT body FROM status_rows WHERE namespace = ? AND run_id >= ? AND (run_id, job) < (?, ?)"
    " ORDER BY run_id DESC, job DESC LIMIT ?"
)
_NO_LIMIT: Final = -1
_HOURS: Final = (
    "SELECT hour, state, count FROM status_hours WHERE namespace = ? AND hour >= ? AND hour < ? AND count > 0"
)
_LATE: Final = "SELECT count(*), min(waits_at) FROM status_rows WHERE namespace = ? AND waits_at >= ? AND waits_at < ?"
_HOUR: Final = "%Y%m%dT%H"
"""What the ids of an hour begin with."""


class Views:
    """The port over SQLite: a row for every run. Nothing is paid by the write here, so that there are no pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, namespace: Namespace, batch: str, rows: Sequence[StatusRow]) -> None:  # noqa: ARG002 - as above
        self._database.run_each(_PUT, [_stored(namespace, row) for row in rows])

    def rows(
        self,
        namespace: Namespace,
        *,
        since: datetime,
        until: datetime,
        before: RunKey | None = None,
        limit: int | None = None,
    ) -> list[StatusRow]:
        low = run_id_of_fire(_whole(since))
        high = (run_id_of_fire(_whole(until)), "")  # no job's name is below the empty one
        if before is not None:
            high = min(high, (before.run_id, before.job.name))
        found = self._database.rows(_READ, (namespace, low, *high, _NO_LIMIT if limit is None else limit))
        return [StatusRow.decode(namespace, from_json(body)) for (body,) in found]

    def standing(
        self,
        namespace: Namespace,
        *,
        since: datetime,
        until: datetime,
        late_before: datetime,
        rows_max: int = STANDING_ROWS_MAX,  # noqa: ARG002 - nothing is summed up here
    ) -> Standing:
        first, last = since.astimezone(UTC).strftime(_HOUR), until.astimezone(UTC).strftime(_HOUR)
        hours: defaultdict[datetime, dict[RunState, int]] = defaultdict(dict)
        for hour, state, count in self._database.rows(_HOURS, (namespace, first, last)):
            hours[datetime.strptime(hour, _HOUR).replace(tzinfo=UTC)][RunState(state)] = count
        bounds = (micros(since), micros(min(until, late_before)))
        ((late, late_since),) = self._database.rows(_LATE, (namespace, *bounds))
        return Standing(since, hours, late, instant_or_none(late_since))

    def clear(self, namespace: Namespace) -> None:
        self._database.run("DELETE FROM status_rows WHERE namespace = ?", (namespace,))


def _stored(namespace: Namespace, row: StatusRow) -> Row:
    waits_at = micros(row.fire_at) if row.is_kept_waiting else None
    key = (namespace, row.run.run_id, row.run.job.name)
    return (*key, row.rev, to_json(row.encode()), row.state.value, waits_at)


def _whole(instant: datetime) -> datetime:
    """The first whole second that is not before the instant: run ids begin with whole seconds."""
    return instant + timedelta(microseconds=-instant.microsecond % 1_000_000)


class Feed:
    """Runs in the order of their last write: what DynamoDB's stream is on AWS, but with the state of now."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self) -> int:
        """The number of the last write; 0 where there was none."""
        rows = self._database.rows("SELECT coalesce(max(seq), 0) FROM runs")
        number: int = rows[0][0]
        return number

    def read(self, after: int, limit: int) -> list[tuple[int, Run]]:
        """Runs written since, each once, with the number to go on from; every write gives its run a new number."""
        rows = self._database.rows(
            f"SELECT {COLUMNS}, seq FROM runs WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
        )
        return [(row[-1], decode_run(row)) for row in rows]
