"""Slots: who holds how much of a resource, and who waits for it."""

from __future__ import annotations

import sqlite3

from sweephand.domain.slots import Slot, decode_slot, encode_slot
from sweephand.embedded.database import Database
from sweephand.embedded.encoding import from_json, to_json


class Slots:
    """The port over SQLite. A slot that nobody ever held has no row and revision 0."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> Slot:
        row = self._database.row("SELECT body, rev, nonce FROM slots WHERE name = ?", (name,))
        return Slot(name) if row is None else decode_slot(name, from_json(row[0]), rev=row[1], nonce=row[2])

    def swap(self, before: Slot, after: Slot) -> bool:
        body = to_json(encode_slot(after))

        def work(connection: sqlite3.Connection) -> bool:
            if before.rev == 0:
                swapped = connection.execute(
                    "INSERT INTO slots (name, rev, nonce, body) VALUES (?,?,?,?) ON CONFLICT DO NOTHING",
                    (after.name, after.rev, after.nonce, body),
                )
            else:
                swapped = connection.execute(
                    "UPDATE slots SET rev = ?, nonce = ?, body = ? WHERE name = ? AND rev = ?",
                    (after.rev, after.nonce, body, before.name, before.rev),
                )
            return swapped.rowcount == 1 or _is_mine(connection, after)

        return self._database.write(work)


def _is_mine(connection: sqlite3.Connection, after: Slot) -> bool:
    """Whether the slot is there already as this caller wrote it, in a call that seemed to fail."""
    if not after.nonce:
        return False
    found = connection.execute(
        "SELECT 1 FROM slots WHERE name = ? AND rev = ? AND nonce = ?", (after.name, after.rev, after.nonce)
    )
    return found.fetchone() is not None
