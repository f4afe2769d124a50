"""The status view, and the feed of changed runs that it is derived from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sweephand.domain.ids import Namespace, RunKey, run_id_of_fire
from sweephand.domain.run import Run
from sweephand.domain.status import StatusRow
from sweephand.embedded.database import Database
from sweephand.embedded.encoding import from_json, to_json
from sweephand.embedded.runs import COLUMNS, decode_run

_PUT: Final = """
    INSERT INTO status_rows (namespace, run_id, job, rev, body) VALUES (?,?,?,?,?)
    ON CONFLICT DO UPDATE SET rev = excluded.rev, body = excluded.body WHERE excluded.rev > rev
"""
_READ: Final = (
    "SELECT body FROM status_rows WHERE namespace = ? AND run_id >= ? AND (run_id, job) < (?, ?)"
    " ORDER BY run_id DESC, job DESC LIMIT ?"
)
_NO_LIMIT: Final = -1


class Views:
    """The port over SQLite: a row for every run. Nothing is paid by the write here, so that there are no pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, namespace: Namespace, batch: str, rows: Sequence[StatusRow]) -> None:  # noqa: ARG002 - as above
        self._database.run_each(
            _PUT, [(namespace, row.run.run_id, row.run.job.name, row.rev, to_json(row.encode())) for row in rows]
        )

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

    def clear(self, namespace: Namespace) -> None:
        self._database.run("DELETE FROM status_rows WHERE namespace = ?", (namespace,))


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
