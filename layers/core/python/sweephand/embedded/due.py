"""The due index and the leases of its shards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import instant, instant_or_none, micros, micros_or_none
from sweephand.ports import DueEntry, DueKind, ShardLease

_EVER: Final = -(1 << 62)
_LAST: Final = "\U0010ffff"
"""Sorts after every kind."""


class Due:
    """The port over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def arm(self, entries: Sequence[DueEntry]) -> None:
        if entries:
            self._database.write(lambda connection: insert(connection, entries))

    def read(
        self,
        shard: int,
        *,
        after: datetime | None,
        upto: datetime,
        limit: int,
        beyond: DueEntry | None = None,
    ) -> list[DueEntry]:
        begin: Row = (_EVER, "", "") if after is None else (micros(after), _LAST, "")
        if beyond is not None:
            begin = max(begin, (micros(beyond.at), beyond.kind.value, beyond.key))
        rows = self._database.rows(
            "SELECT at, kind, key FROM due WHERE shard = ? AND (at, kind, key) > (?, ?, ?) AND at <= ?"
            " ORDER BY at, kind, key LIMIT ?",
            (shard, *begin, micros(upto), limit),
        )
        return [DueEntry(instant(at), DueKind(kind), key, shard) for at, kind, key in rows]

    def done(self, entries: Sequence[DueEntry]) -> None:
        self._database.run_each(
            "DELETE FROM due WHERE shard = ? AND at = ? AND kind = ? AND key = ?", list(map(_row, entries))
        )


def insert(connection: sqlite3.Connection, entries: Iterable[DueEntry]) -> None:
    """Arm entries within a transaction; one that is there already is the same hint."""
    connection.executemany(
        "INSERT INTO due (shard, at, kind, key) VALUES (?,?,?,?) ON CONFLICT DO NOTHING", map(_row, entries)
    )


def _row(entry: DueEntry) -> Row:
    return (entry.shard, micros(entry.at), entry.kind.value, entry.key)


class Shards:
    """The port over SQLite. A released lease has no end; the watermark stays for the next owner.

    The watermark that a lease shows is never beyond an entry that still waits: one armed with a clock read before the
    last sweep's, but written after it, would lie behind the sweep's watermark for ever.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self) -> int:
        count: int = self._database.rows("SELECT count FROM shard_count")[0][0]
        return count

    def grow(self, count: int) -> None:
        self._database.run("UPDATE shard_count SET count = max(count, ?)", (count,))

    def take(self, shard: int, *, owner: str, now: datetime, until: datetime) -> ShardLease | None:
        def work(connection: sqlite3.Connection) -> Row | None:
            taken: Row | None = connection.execute(
                "INSERT INTO shards (shard, owner, until, rev) VALUES (?, ?, ?, 1)"
                " ON CONFLICT DO UPDATE SET owner = excluded.owner, until = excluded.until, rev = rev + 1"
                " WHERE shards.until IS NULL OR shards.until <= ? OR shards.owner = excluded.owner"
                " RETURNING watermark, rev",
                (shard, owner, micros(until), micros(now)),
            ).fetchone()
            if taken is None or taken[0] is None:
                return taken
            waiting = connection.execute("SELECT min(at) - 1 FROM due WHERE shard = ?", (shard,)).fetchone()[0]
            return (taken[0] if waiting is None else min(taken[0], waiting), taken[1])

        row = self._database.write(work)
        return None if row is None else ShardLease(shard, owner, until, instant_or_none(row[0]), row[1])

    def release(self, lease: ShardLease, *, watermark: datetime) -> bool:
        mark = micros_or_none(watermark)

        def work(connection: sqlite3.Connection) -> bool:
            released = connection.execute(
                "UPDATE shards SET until = NULL, watermark = ?, rev = rev + 1"
                " WHERE shard = ? AND owner = ? AND rev = ?",
                (mark, lease.shard, lease.owner, lease.rev),
            )
            if released.rowcount:
                return True
            mine = connection.execute(  # released already, in a call that seemed to fail
                "SELECT 1 FROM shards WHERE shard = ? AND owner = ? AND rev = ? AND until IS NULL AND watermark = ?",
                (lease.shard, lease.owner, lease.rev + 1, mark),
            )
            return mine.fetchone() is not None

        return self._database.write(work)
