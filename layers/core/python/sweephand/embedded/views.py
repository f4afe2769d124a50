"""The status view, and the feed of changed runs that it is derived from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sweephand.domain.ids import Namespace, instant_of
from sweephand.domain.run import Run
from sweephand.domain.status import StatusRow, latest
from sweephand.embedded.database import Database
from sweephand.embedded.encoding import from_json, micros, span, to_json
from sweephand.embedded.runs import COLUMNS, decode_run

_HOUR: Final = span(timedelta(hours=1))


class Views:
    """The port over SQLite: a page of rows for every hour of a batch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, namespace: Namespace, batch: str, rows: Sequence[StatusRow]) -> None:
        hours: dict[int, list[list[Any]]] = {}
        for row in rows:
            hours.setdefault(micros(instant_of(row.run.run_id)) // _HOUR, []).append(row.encode())
        self._database.run_each(
            "INSERT OR REPLACE INTO view_pages (namespace, hour, batch, body) VALUES (?,?,?,?)",
            [(namespace, hour, batch, to_json(encoded)) for hour, encoded in hours.items()],
        )

    def rows(self, namespace: Namespace, *, since: datetime, until: datetime) -> list[StatusRow]:
        pages = self._database.rows(
            "SELECT body FROM view_pages WHERE namespace = ? AND hour >= ? AND hour * ? < ?",
            (namespace, micros(since) // _HOUR, _HOUR, micros(until)),
        )
        rows = (StatusRow.decode(namespace, stored) for (body,) in pages for stored in from_json(body))
        return latest(row for row in rows if since <= instant_of(row.run.run_id) < until)

    def clear(self, namespace: Namespace) -> None:
        self._database.run("DELETE FROM view_pages WHERE namespace = ?", (namespace,))


class Feed:
    """Runs in the order of their last write: what DynamoDB's stream is on AWS, but with the state of now."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, after: int, limit: int) -> list[tuple[int, Run]]:
        """Runs written since, each once, with the number to go on from; every write gives its run a new number."""
        rows = self._database.rows(
            f"SELECT {COLUMNS}, seq FROM runs WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
        )
        return [(row[-1], decode_run(row)) for row in rows]
