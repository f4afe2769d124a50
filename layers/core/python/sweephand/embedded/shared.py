"""Documents under revisions, which jobs and people refer to."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from sweephand.documents import SharedDocument
from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed
from sweephand.embedded import trail
from sweephand.embedded.database import Database
from sweephand.embedded.encoding import from_json, to_json


class Shared:
    """The port over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, namespace: Namespace, kind: str, name: str) -> tuple[int, Mapping[str, Any]] | None:
        row = self._database.row(
            "SELECT rev, document FROM shared WHERE namespace = ? AND kind = ? AND name = ?",
            (namespace, kind, name),
        )
        return None if row is None else (row[0], from_json(row[1]))

    def in_each(
        self, namespaces: Sequence[Namespace], kind: str, name: str
    ) -> list[tuple[int, Mapping[str, Any]] | None]:
        rows = self._database.each(
            "SELECT namespace, rev, document FROM shared WHERE namespace = ? AND kind = ? AND name = ?",
            [(namespace, kind, name) for namespace in dict.fromkeys(namespaces)],
        )
        found = {namespace: (rev, from_json(document)) for namespace, rev, document in rows}
        return [found.get(namespace) for namespace in namespaces]

    def listed(self, namespace: Namespace, kind: str, *, after: str | None = None, limit: int) -> list[SharedDocument]:
        rows = self._database.rows(
            "SELECT name, rev, document FROM shared WHERE namespace = ? AND kind = ? AND name >= ?"
            " ORDER BY name LIMIT ?",
            (namespace, kind, "" if after is None else f"{after}\x00", limit),
        )
        return [SharedDocument(name, rev, from_json(document)) for name, rev, document in rows]

    def put(
        self,
        namespace: Namespace,
        kind: str,
        name: str,
        document: Mapping[str, Any],
        *,
        expected: int,
        deed: Deed | None = None,
    ) -> bool:
        text = to_json(dict(document))

        def work(connection: sqlite3.Connection) -> bool:
            if expected == 0:
                written = connection.execute(
                    "INSERT INTO shared (namespace, kind, name, rev, document) VALUES (?,?,?,1,?)"
                    " ON CONFLICT DO NOTHING",
                    (namespace, kind, name, text),
                )
            else:
                written = connection.execute(
                    "UPDATE shared SET rev = rev + 1, document = ?"
                    " WHERE namespace = ? AND kind = ? AND name = ? AND rev = ?",
                    (text, namespace, kind, name, expected),
                )
            if written.rowcount:
                trail.insert(connection, deed)
            return written.rowcount == 1

        return self._database.write(work)

    def delete(self, namespace: Namespace, kind: str, name: str, *, expected: int, deed: Deed | None = None) -> bool:
        place = (namespace, kind, name)

        def work(connection: sqlite3.Connection) -> bool:
            deleted = connection.execute(
                "DELETE FROM shared WHERE namespace = ? AND kind = ? AND name = ? AND rev = ?", (*place, expected)
            )
            if deleted.rowcount:
                trail.insert(connection, deed)
                return True
            left = connection.execute("SELECT 1 FROM shared WHERE namespace = ? AND kind = ? AND name = ?", place)
            return left.fetchone() is None

        return self._database.write(work)
