"""The tables, as the ordered migrations that make them, and how a file comes to have them.

A migration that was released is never edited: the next change is the next migration.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Final

from sweephand.errors import InvalidInput

Migration = tuple[str, ...]

_FIRST: Final[Migration] = (
    # Keys are ordered by namespace, then name: one text 'a/x' would sort after 'a-b/x'.
    """
    CREATE TABLE heads (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        in_force_since INTEGER NOT NULL,
        changed_at INTEGER NOT NULL,
        planned_upto INTEGER NOT NULL,
        plan_at INTEGER,
        paused_since INTEGER,
        catchup TEXT,
        catchup_upto INTEGER,
        rev INTEGER NOT NULL,
        nonce TEXT NOT NULL,
        PRIMARY KEY (namespace, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE versions (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        number INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (namespace, name, number)
    )
    """,
    # Timeline and audit log at once: a change is one row, found by its job or by its namespace.
    """
    CREATE TABLE changes (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        at INTEGER NOT NULL,
        event TEXT NOT NULL,
        version INTEGER NOT NULL,
        actor TEXT NOT NULL,
        catchup TEXT,
        note TEXT NOT NULL,
        PRIMARY KEY (namespace, name, at)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX changes_by_namespace ON changes (namespace, at)",
    # A rowid table: runs that were made together lie together, so a group of moves dirties few pages.
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        job TEXT NOT NULL,
        run_id TEXT NOT NULL,
        fire_at INTEGER NOT NULL,
        start_at INTEGER NOT NULL,
        trigger TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        params TEXT,
        rerun_of TEXT,
        note TEXT,
        state TEXT NOT NULL,
        reason TEXT,
        changed_at INTEGER NOT NULL,
        rev INTEGER NOT NULL,
        nonce TEXT NOT NULL,
        version INTEGER,
        epoch INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        owner TEXT,
        lease_until INTEGER,
        wake_at INTEGER,
        started_at INTEGER,
        ended_at INTEGER,
        progress INTEGER,
        output TEXT,
        failure TEXT,
        seq INTEGER NOT NULL,
        UNIQUE (job, run_id)
    )
    """,
    "CREATE UNIQUE INDEX runs_by_seq ON runs (seq)",
    """
    CREATE TABLE dropped (
        job TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        count INTEGER NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (job, first)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE ledger_pages (
        job TEXT NOT NULL,
        day_at INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (job, day_at)
    )
    """,
    """
    CREATE TABLE remembered (
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (namespace, key)
    )
    """,
    "CREATE INDEX remembered_by_end ON remembered (until)",
    """
    CREATE TABLE due (
        shard INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        PRIMARY KEY (shard, at, kind, key)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE shards (
        shard INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        until INTEGER,
        watermark INTEGER,
        rev INTEGER NOT NULL
    )
    """,
    "CREATE TABLE shard_count (only INTEGER PRIMARY KEY CHECK (only = 1), count INTEGER NOT NULL)",
    "INSERT INTO shard_count VALUES (1, 8)",
    """
    CREATE TABLE slots (
        name TEXT PRIMARY KEY,
        rev INTEGER NOT NULL,
        nonce TEXT NOT NULL,
        body TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE shared (
        namespace TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        rev INTEGER NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (namespace, kind, name)
    )
    """,
    # AUTOINCREMENT: an id that came back would let a stale receipt delete somebody else's message.
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        lane TEXT NOT NULL,
        visible_at INTEGER NOT NULL,
        namespace TEXT NOT NULL,
        body TEXT NOT NULL,
        receives INTEGER NOT NULL
    )
    """,
    "CREATE INDEX messages_by_time ON messages (lane, visible_at)",
    """
    CREATE TABLE dead_letters (
        id INTEGER PRIMARY KEY,
        lane TEXT NOT NULL,
        body TEXT NOT NULL,
        dead_at INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE view_pages (
        namespace TEXT NOT NULL,
        hour INTEGER NOT NULL,
        batch TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (namespace, hour, batch)
    )
    """,
)

_SECOND: Final[Migration] = (
    """
    CREATE TABLE audit (
        namespace TEXT NOT NULL,
        at INTEGER NOT NULL,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (namespace, at, id)
    )
    """,
    # What is known of the changes so far: nobody wrote down what was before them.
    """
    INSERT INTO audit
    SELECT namespace, at, 'job-' || name, json_object(
        'actor', actor,
        'action', CASE event
            WHEN 'paused' THEN 'job.pause' WHEN 'resumed' THEN 'job.resume' WHEN 'deleted' THEN 'job.delete'
            ELSE 'job.put' END,
        'subject', 'jobs/' || name,
        'before', NULL,
        'after', CASE WHEN catchup IS NULL THEN json_object('version', version)
            ELSE json_object('version', version, 'catchup', catchup) END,
        'note', note
    ) FROM changes
    """,
    "DROP INDEX changes_by_namespace",
    """
    CREATE TABLE replies (
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        holder TEXT NOT NULL,
        held_until INTEGER NOT NULL,
        answer TEXT,
        until INTEGER NOT NULL,
        PRIMARY KEY (namespace, key)
    )
    """,
    "CREATE INDEX replies_by_end ON replies (until)",
    """
    CREATE TABLE offers (
        namespace TEXT NOT NULL,
        queue TEXT NOT NULL,
        at INTEGER NOT NULL,
        name TEXT NOT NULL,
        run_id TEXT NOT NULL,
        nonce TEXT NOT NULL,
        PRIMARY KEY (namespace, queue, at, name, run_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX runs_active ON runs (job, run_id) WHERE state IN ('running', 'retrying')",
    # The view is derived: its new table is filled again from the beginning of the feed.
    "DROP TABLE view_pages",
    "DELETE FROM shared WHERE kind = 'position'",
    """
    CREATE TABLE status_rows (
        namespace TEXT NOT NULL,
        run_id TEXT NOT NULL,
        job TEXT NOT NULL,
        rev INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (namespace, run_id, job)
    ) WITHOUT ROWID
    """,
)

_THIRD: Final[Migration] = (
    # Who is next is decided by namespace: one with a long backlog must not be walked through to find another.
    "CREATE INDEX messages_by_namespace ON messages (lane, namespace, visible_at)",
    "ALTER TABLE offers ADD COLUMN first TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE offers ADD COLUMN first_until INTEGER",
)

_FOURTH: Final[Migration] = (
    # A run's tasks are rows of the table of runs, with the run in the place of the job: these say how far they are.
    """
    CREATE TABLE progress (
        run TEXT PRIMARY KEY,
        states BLOB NOT NULL,
        instances TEXT,
        looked_at INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        waves INTEGER NOT NULL,
        rev INTEGER NOT NULL,
        nonce TEXT NOT NULL,
        noted INTEGER NOT NULL DEFAULT 0,
        token TEXT,
        waking_until INTEGER
    ) WITHOUT ROWID
    """,
    "CREATE TABLE ended_tasks (run TEXT NOT NULL, task TEXT NOT NULL, PRIMARY KEY (run, task)) WITHOUT ROWID",
    "ALTER TABLE runs ADD COLUMN rerun_from TEXT",
    "ALTER TABLE runs ADD COLUMN parent TEXT",
)

_FIFTH: Final[Migration] = (
    # Runs that make up for fires know which backfill they are of, and where the interval begins that several share.
    "ALTER TABLE runs ADD COLUMN backfill TEXT",
    "ALTER TABLE runs ADD COLUMN interval_start INTEGER",
)

_SIXTH: Final[Migration] = (
    # Beside the heads, which move with every pass of planning and would take it along.
    """
    CREATE TABLE job_words (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        words TEXT NOT NULL,
        PRIMARY KEY (namespace, name)
    ) WITHOUT ROWID
    """,
    # Of the jobs that are there, letters outside ASCII keep their case until their next version.
    """
    INSERT INTO job_words
    SELECT heads.namespace, heads.name, substr(lower(
        heads.name
        || coalesce((SELECT group_concat(char(10) || value, '') FROM json_each(body, '$.document.tags')), '')
        || CASE WHEN body IS NULL THEN '' ELSE char(10) END
        || replace(substr(coalesce(json_extract(body, '$.document.description'), ''), 1, 300), char(10), ' ')
    ), 1, 1000)
    FROM heads LEFT JOIN versions
        ON versions.namespace = heads.namespace AND versions.name = heads.name AND number = heads.version
    """,
)

_SEVENTH: Final[Migration] = (
    # How many runs of an hour are in which state is counted as rows come, change and go: nobody reads a day of them.
    "ALTER TABLE status_rows ADD COLUMN state TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE status_rows ADD COLUMN waits_at INTEGER",
    "UPDATE status_rows SET state = json_extract(body, '$[3]')",
    """
    UPDATE status_rows SET waits_at = CAST(round(json_extract(body, '$[5]') * 1000000) AS INTEGER)
    WHERE state = 'queued' AND json_extract(body, '$[7]') IS NULL
        AND json_extract(body, '$[4]') NOT IN ('backfill', 'rerun')
        AND coalesce(substr(json_extract(body, '$[9]'), 1, instr(json_extract(body, '$[9]') || ':', ':') - 1), '')
            NOT IN ('not_yet', 'paused', 'resuming', 'blackout', 'waiting', 'approval')
    """,
    "CREATE INDEX status_waiting ON status_rows (namespace, waits_at) WHERE waits_at IS NOT NULL",
    """
    CREATE TABLE status_hours (
        namespace TEXT NOT NULL,
        hour TEXT NOT NULL,
        state TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (namespace, hour, state)
    ) WITHOUT ROWID
    """,
    """
    INSERT INTO status_hours
    SELECT namespace, substr(run_id, 1, 11), state, count(*) FROM status_rows GROUP BY 1, 2, 3
    """,
    """
    CREATE TRIGGER status_row_came AFTER INSERT ON status_rows BEGIN
        INSERT INTO status_hours VALUES (new.namespace, substr(new.run_id, 1, 11), new.state, 1)
            ON CONFLICT DO UPDATE SET count = count + 1;
    END
    """,
    """
    CREATE TRIGGER status_row_went AFTER DELETE ON status_rows BEGIN
        UPDATE status_hours SET count = count - 1
            WHERE namespace = old.namespace AND hour = substr(old.run_id, 1, 11) AND state = old.state;
    END
    """,
    """
    CREATE TRIGGER status_row_changed AFTER UPDATE OF state ON status_rows WHEN old.state <> new.state BEGIN
        UPDATE status_hours SET count = count - 1
            WHERE namespace = old.namespace AND hour = substr(old.run_id, 1, 11) AND state = old.state;
        INSERT INTO status_hours VALUES (new.namespace, substr(new.run_id, 1, 11), new.state, 1)
            ON CONFLICT DO UPDATE SET count = count + 1;
    END
    """,
)

_EIGHTH: Final[Migration] = (
    # Which tasks of a rerun are over by somebody's word.
    "ALTER TABLE runs ADD COLUMN marks TEXT",
)

MIGRATIONS: Final[tuple[Migration, ...]] = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH)

_SWITCH_TRIES: Final = 200
_SWITCH_PAUSE_S: Final = 0.05


def prepare(connection: sqlite3.Connection, path: Path | None, migrations: Sequence[Migration]) -> None:
    """Bring the file up to the last migration, or refuse it."""
    if path is not None:
        _check(connection, path, migrations)
        _switch_to_wal(connection)
    if _version(connection) == len(migrations):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        # Read again: another process may have migrated the file while this one waited for the lock.
        for migration in migrations[_version(connection) :]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Refuse a file that is not ours to change, before anything in it is changed."""
    # In one statement: another process may be creating the file right now.
    version, tables = connection.execute(
        "SELECT (SELECT user_version FROM pragma_user_version), count(*) FROM sqlite_schema"
    ).fetchone()
    if version > len(migrations):
        raise InvalidInput(
            f"{path} was written by a newer Sweephand: its schema is {version}, the newest known here is"
            f" {len(migrations)}. Upgrade Sweephand, or name another file.",
            "path",
        )
    if version == 0 and tables:
        raise InvalidInput(f"{path} is a database of another program: name another file.", "path")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """The mode is the file's: once switched it stays. SQLite does not wait for others here, so we do."""
    for tries_left in reversed(range(_SWITCH_TRIES)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if not tries_left:
                raise
            Event().wait(_SWITCH_PAUSE_S)
        else:
            return
