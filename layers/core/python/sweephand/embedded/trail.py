"""The audit log."""

from __future__ import annotations

import sqlite3
from typing import Final

from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import from_json, instant, micros, to_json
from sweephand.errors import Defect

_NEVER: Final = (1 << 62, "")
"""Later than every deed."""

# The clause is true where the same deed is there: it changes nothing then, and still counts as written.
_INSERT: Final = (
    "INSERT INTO audit (namespace, at, id, body) VALUES (?,?,?,?)"
    " ON CONFLICT DO UPDATE SET body = excluded.body WHERE audit.body = excluded.body"
)


class Trail:
    """The port over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, deed: Deed) -> None:
        self._database.write(lambda connection: insert(connection, deed))

    def deeds(self, namespace: Namespace, *, before: Deed | None = None, limit: int) -> list[Deed]:
        rows = self._database.rows(
            "SELECT at, id, body FROM audit WHERE namespace = ? AND (at, id) < (?, ?)"
            " ORDER BY at DESC, id DESC LIMIT ?",
            (namespace, *(_NEVER if before is None else (micros(before.at), before.id)), limit),
        )
        return [Deed.decode(namespace, instant(at), deed_id, from_json(body)) for at, deed_id, body in rows]


def insert(connection: sqlite3.Connection, deed: Deed | None) -> None:
    """Write a deed, if there is one, within the transaction of what was done."""
    if deed is None:
        return
    row: Row = (deed.namespace, micros(deed.at), deed.id, to_json(deed.encode()))
    if not connection.execute(_INSERT, row).rowcount:
        raise Defect(f"The audit log of {deed.namespace} has another deed {deed.id} at {deed.at.isoformat()}.")
