"""Answers kept for callers who repeat themselves."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Final

from sweephand.domain.ids import Namespace
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import instant, micros
from sweephand.ports import Reply

_REPLY: Final = "fingerprint, holder, held_until, answer"
_PUT: Final = (
    f"INSERT INTO replies (namespace, key, {_REPLY}, until) VALUES (?,?,?,?,?,?,?) ON CONFLICT DO UPDATE"
    f" SET ({_REPLY}, until) = (excluded.fingerprint, excluded.holder, excluded.held_until, excluded.answer,"
    " excluded.until)"
)
_FORGOTTEN: Final = "until < ?"
_ABANDONED: Final = "answer IS NULL AND held_until < ? AND fingerprint = excluded.fingerprint"
_MINE: Final = "holder = excluded.holder"
_FORGOTTEN_PER_CALL_MAX: Final = 10


class Replies:
    """The port over SQLite; every reservation also removes a few replies that are forgotten."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, namespace: Namespace, key: str, reply: Reply, *, now: datetime, until: datetime) -> Reply:
        at = micros(now)

        def work(connection: sqlite3.Connection) -> Row:
            connection.execute(
                f"DELETE FROM replies WHERE rowid IN (SELECT rowid FROM replies WHERE {_FORGOTTEN} LIMIT ?)",
                (at, _FORGOTTEN_PER_CALL_MAX),
            )
            connection.execute(
                f"{_PUT} WHERE {_FORGOTTEN} OR ({_ABANDONED})", (*_row(namespace, key, reply, until), at, at)
            )
            in_place: Row = connection.execute(
                f"SELECT {_REPLY} FROM replies WHERE namespace = ? AND key = ?", (namespace, key)
            ).fetchone()
            return in_place

        fingerprint, holder, held_until, answer = self._database.write(work)
        return Reply(fingerprint, holder, instant(held_until), answer)

    def settle(self, namespace: Namespace, key: str, reply: Reply, *, until: datetime) -> bool:
        row = _row(namespace, key, reply, until)
        return self._database.write(lambda connection: connection.execute(f"{_PUT} WHERE {_MINE}", row).rowcount == 1)

    def release(self, namespace: Namespace, key: str, reply: Reply) -> None:
        # An answer stays: it may be this holder's own, stored by a call that seemed to fail.
        self._database.run(
            "DELETE FROM replies WHERE namespace = ? AND key = ? AND holder = ? AND answer IS NULL",
            (namespace, key, reply.holder),
        )


def _row(namespace: Namespace, key: str, reply: Reply, until: datetime) -> Row:
    return (namespace, key, reply.fingerprint, reply.holder, micros(reply.held_until), reply.answer, micros(until))
