"""Jobs: heads, versions, and the changes that are their timelines."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sweephand.domain import definition
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import CatchupPolicy, Change, Head, JobEvent, JobStatus, JobVersion
from sweephand.domain.trail import deed_of
from sweephand.domain.words import words_of
from sweephand.embedded import due, trail
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import from_json, instant, instant_or_none, micros, micros_or_none, to_json
from sweephand.ports import SOUGHT_MAX, DueEntry, Soonest, Sought

_HEAD: Final = (
    "namespace, name, status, version, created_at, in_force_since, changed_at, planned_upto,"
    " plan_at, paused_since, catchup, catchup_upto, rev, nonce"
)
_CHANGE: Final = "namespace, name, at, event, version, actor, catchup, note"

_READ_HEAD: Final = f"SELECT {_HEAD} FROM heads WHERE namespace = ? AND name = ?"
_INSERT_HEAD: Final = f"INSERT INTO heads ({_HEAD}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
_UPDATE_HEAD: Final = (
    f"UPDATE heads SET ({_HEAD}) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE namespace = ? AND name = ? AND rev = ?"
)
_NAMESPACES: Final = """
    WITH RECURSIVE found (name) AS (
        SELECT min(namespace) FROM heads
        UNION ALL
        SELECT (SELECT min(namespace) FROM heads WHERE namespace > found.name) FROM found WHERE found.name IS NOT NULL
    )
    SELECT name FROM found WHERE name IS NOT NULL
"""
"""Steps from one namespace to the next: DISTINCT would read every head."""
_PUT_WORDS: Final = "INSERT INTO job_words VALUES (?,?,?) ON CONFLICT DO UPDATE SET words = excluded.words"
_MAY_FIRE: Final = (
    "SELECT name, planned_upto, plan_at FROM heads"
    " WHERE namespace = ? AND status = 'active' AND (planned_upto > ? OR plan_at <= ?) LIMIT ?"
)
"""Not ordered here: an index for it would move with every cursor."""
_LOOKED_AT_MAX: Final = 20_000
_NAMES_BEHIND: Final = "SELECT name FROM job_words WHERE namespace = ? AND name > ? ORDER BY name LIMIT 2 OFFSET ?"
_SOUGHT: Final = (
    "SELECT name FROM job_words WHERE namespace = ? AND name > ? AND name <= ? AND instr(words, ?) > 0"
    " ORDER BY name LIMIT ?"
)
_VERSION: Final = "SELECT namespace, name, body FROM versions WHERE namespace = ? AND name = ? AND number = ?"
_LAST: Final = "~"
"""Behind every name, and in none."""
_HEAD_IS_MINE: Final = "SELECT 1 FROM heads WHERE namespace = ? AND name = ? AND rev = ? AND nonce = ?"


class Jobs:
    """The port over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def head(self, key: JobKey) -> Head | None:
        row = self._database.row(_READ_HEAD, (key.namespace, key.name))
        return None if row is None else _head(row)

    def heads_of(self, keys: Sequence[JobKey]) -> list[Head]:
        rows = self._database.each(_READ_HEAD, [(key.namespace, key.name) for key in keys])
        return [_head(row) for row in rows]

    def namespaces(self) -> list[Namespace]:
        return [Namespace(name) for (name,) in self._database.rows(_NAMESPACES)]

    def heads(self, namespace: Namespace, *, after: JobName | None = None, limit: int) -> list[Head]:
        rows = self._database.rows(
            f"SELECT {_HEAD} FROM heads WHERE namespace = ? AND name > ? ORDER BY name LIMIT ?",
            (namespace, after or "", limit),
        )
        return [_head(row) for row in rows]

    def sought(
        self,
        namespace: Namespace,
        words: str,
        *,
        after: JobName | None = None,
        limit: int,
        looked_at_max: int = SOUGHT_MAX,
    ) -> Sought:
        begin = after or ""
        last = self._database.rows(_NAMES_BEHIND, (namespace, begin, looked_at_max - 1))
        rows = self._database.rows(_SOUGHT, (namespace, begin, last[0][0] if last else _LAST, words, limit))
        found = [JobName(name) for (name,) in rows]
        heads = sorted(self.heads_of([JobKey(namespace, name) for name in found]), key=lambda head: head.key)
        if len(found) == limit:
            is_more = self._database.row(_NAMES_BEHIND, (namespace, found[-1], 0)) is not None
            return Sought(heads, found[-1] if is_more else None)
        return Sought(heads, JobName(last[0][0]) if len(last) > 1 else None)

    def soonest(self, namespace: Namespace, *, now: datetime, upto: datetime, limit: int) -> Soonest:
        at = micros(now)
        rows = self._database.rows(_MAY_FIRE, (namespace, at, micros(upto), _LOOKED_AT_MAX + 1))
        by_time = sorted((at if planned_upto > at else max(plan_at, at), name) for name, planned_upto, plan_at in rows)
        heads = self.heads_of([JobKey(namespace, JobName(name)) for _, name in by_time[:limit]])
        return Soonest(heads, len(rows) <= _LOOKED_AT_MAX)

    def version(self, key: JobKey, number: int) -> JobVersion | None:
        row = self._database.row(
            "SELECT body FROM versions WHERE namespace = ? AND name = ? AND number = ?",
            (key.namespace, key.name, number),
        )
        return None if row is None else _version(key, row[0])

    def each_version(self, wanted: Sequence[tuple[JobKey, int]]) -> list[JobVersion]:
        rows = self._database.each(_VERSION, [(key.namespace, key.name, number) for key, number in wanted])
        return [_version(JobKey(Namespace(namespace), JobName(name)), body) for namespace, name, body in rows]

    def versions(self, key: JobKey, *, before: int | None = None, limit: int) -> list[JobVersion]:
        rows = self._database.rows(
            "SELECT body FROM versions WHERE namespace = ? AND name = ?"
            " AND number < coalesce(?, 1 << 62) ORDER BY number DESC LIMIT ?",
            (key.namespace, key.name, before, limit),
        )
        return [_version(key, body) for (body,) in rows]

    def change(
        self,
        before: Head | None,
        after: Head,
        change: Change,
        version: JobVersion | None,
        entry: DueEntry | None,
    ) -> bool:
        body = None if version is None else to_json(definition.encode_version(version))
        words = words_of(after.key.name, version.job if version is not None else None)
        deed = deed_of(change, before, after)

        def work(connection: sqlite3.Connection) -> bool:
            if before is None:
                changed = connection.execute(_INSERT_HEAD, _head_row(after)).rowcount == 1
            else:
                changed = _update(connection, before, after)
            if not changed:
                return _is_mine(connection, after)  # the other rows came with the head, in one transaction
            connection.execute(f"INSERT INTO changes ({_CHANGE}) VALUES (?,?,?,?,?,?,?,?)", _change_row(change))
            trail.insert(connection, deed)
            if version is not None:
                key = version.key
                connection.execute(
                    "INSERT INTO versions (namespace, name, number, body) VALUES (?,?,?,?)",
                    (key.namespace, key.name, version.number, body),
                )
            if version is not None or before is None:
                connection.execute(_PUT_WORDS, (after.key.namespace, after.key.name, words))
            if entry is not None:
                due.insert(connection, [entry])
            return True

        return self._database.write(work)

    def advance(self, moves: Sequence[tuple[Head, Head]]) -> list[bool]:
        def work(connection: sqlite3.Connection) -> list[bool]:
            return [_update(connection, before, after) or _is_mine(connection, after) for before, after in moves]

        return self._database.write(work) if moves else []

    def timeline(self, key: JobKey, *, since: datetime | None = None) -> list[Change]:
        if since is None:
            rows = self._database.rows(
                f"SELECT {_CHANGE} FROM changes WHERE namespace = ? AND name = ? ORDER BY at",
                (key.namespace, key.name),
            )
        else:
            name, at = (key.namespace, key.name), micros(since)
            rows = self._database.rows(
                f"SELECT {_CHANGE} FROM changes WHERE namespace = ? AND name = ? AND at >= coalesce("
                "(SELECT max(at) FROM changes WHERE namespace = ? AND name = ? AND at <= ?), ?) ORDER BY at",
                (*name, *name, at, at),
            )
        return [_change(row) for row in rows]

    def count(self, namespace: Namespace) -> int:
        rows = self._database.rows(
            "SELECT count(*) FROM heads WHERE namespace = ? AND status <> ?", (namespace, JobStatus.DELETED.value)
        )
        count: int = rows[0][0]
        return count


def _version(key: JobKey, body: str) -> JobVersion:
    return definition.decode_version(key, from_json(body))


def _update(connection: sqlite3.Connection, before: Head, after: Head) -> bool:
    key = before.key
    values = (*_head_row(after), key.namespace, key.name, before.rev)
    return connection.execute(_UPDATE_HEAD, values).rowcount == 1


def _is_mine(connection: sqlite3.Connection, after: Head) -> bool:
    """Whether the head is there already as this caller wrote it, in a call that seemed to fail."""
    if not after.nonce:
        return False
    values = (after.key.namespace, after.key.name, after.rev, after.nonce)
    return connection.execute(_HEAD_IS_MINE, values).fetchone() is not None


def _head_row(head: Head) -> Row:
    return (
        head.key.namespace,
        head.key.name,
        head.status.value,
        head.version,
        micros(head.created_at),
        micros(head.in_force_since),
        micros(head.changed_at),
        micros(head.planned_upto),
        micros_or_none(head.plan_at),
        micros_or_none(head.paused_since),
        None if head.catchup is None else head.catchup.value,
        micros_or_none(head.catchup_upto),
        head.rev,
        head.nonce,
    )


def _head(row: Row) -> Head:
    return Head(
        JobKey(Namespace(row[0]), JobName(row[1])),
        JobStatus(row[2]),
        row[3],
        instant(row[4]),
        instant(row[5]),
        instant(row[6]),
        instant(row[7]),
        instant_or_none(row[8]),
        instant_or_none(row[9]),
        None if row[10] is None else CatchupPolicy(row[10]),
        instant_or_none(row[11]),
        row[12],
        row[13],
    )


def _change_row(change: Change) -> Row:
    return (
        change.key.namespace,
        change.key.name,
        micros(change.at),
        change.event.value,
        change.version,
        change.actor,
        None if change.catchup is None else change.catchup.value,
        change.note,
    )


def _change(row: Row) -> Change:
    namespace, name, at, event, version, actor, catchup, note = row
    return Change(
        JobKey(Namespace(namespace), JobName(name)),
        instant(at),
        JobEvent(event),
        version,
        actor,
        None if catchup is None else CatchupPolicy(catchup),
        note,
    )
