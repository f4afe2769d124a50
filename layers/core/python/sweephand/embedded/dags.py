"""How far runs of several tasks are."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from sweephand.domain.ids import RunKey
from sweephand.domain.progress import Progress
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import from_json, instant, instant_or_none, micros, micros_or_none, to_json

_MOVING: Final = "states, instances, looked_at, generation, waves, rev, nonce"
_READ: Final = f"SELECT {_MOVING}, noted, token, waking_until FROM progress WHERE run = ?"
_CHANGED: Final = "SELECT task FROM ended_tasks WHERE run = ?"


class Dags:
    """The port over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, run: RunKey) -> Progress | None:
        row = self._database.row(_READ, (str(run),))
        return None if row is None else _decode(run, row, self._database.rows(_CHANGED, (str(run),)))

    def begin(self, progress: Progress) -> Progress:
        def work(connection: sqlite3.Connection) -> Progress:
            connection.execute(
                f"INSERT INTO progress (run, {_MOVING}) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
                (str(progress.run), *_moving_row(progress)),
            )
            return _read(connection, progress.run) or progress

        return self._database.write(work)

    def absorb(self, before: Progress, after: Progress) -> Progress | None:
        run = str(before.run)
        taken = [(run, task) for task in before.changed - after.changed]

        def work(connection: sqlite3.Connection) -> Progress | None:
            moved = connection.execute(
                f"UPDATE progress SET ({_MOVING}) = (?,?,?,?,?,?,?), token = NULL, waking_until = NULL"
                " WHERE run = ? AND rev = ?",
                (*_moving_row(after), run, before.rev),
            )
            if moved.rowcount == 1:
                connection.executemany("DELETE FROM ended_tasks WHERE run = ? AND task = ?", taken)
            there = _read(connection, before.run)
            is_mine = there is not None and (there.rev, there.nonce) == (after.rev, after.nonce)
            return there if is_mine else None

        return self._database.write(work)

    def note(self, run: RunKey, tasks: Collection[str]) -> Progress | None:
        def work(connection: sqlite3.Connection) -> Progress | None:
            noted = connection.execute("UPDATE progress SET noted = noted + 1 WHERE run = ?", (str(run),))
            if noted.rowcount == 0:
                return None
            connection.executemany("INSERT OR IGNORE INTO ended_tasks VALUES (?,?)", [(str(run), one) for one in tasks])
            return _read(connection, run, with_changed=False)

        return self._database.write(work)

    def sleep(self, progress: Progress, token: str) -> bool:
        unmoved = "UPDATE progress SET token = ?, waking_until = NULL WHERE run = ? AND rev = ? AND noted = ?"
        return self._moves(unmoved, (token, str(progress.run), progress.rev, progress.noted))

    def waking(self, progress: Progress, *, until: datetime) -> bool:
        unmarked = "UPDATE progress SET waking_until = ? WHERE run = ? AND token = ? AND waking_until IS ?"
        values = (micros(until), str(progress.run), progress.token, micros_or_none(progress.waking_until))
        return self._moves(unmarked, values)

    def woken(self, progress: Progress) -> None:
        asleep = "UPDATE progress SET token = NULL, waking_until = NULL WHERE run = ? AND token = ?"
        self._moves(asleep, (str(progress.run), progress.token))

    def _moves(self, statement: str, values: Row) -> bool:
        return self._database.write(lambda connection: connection.execute(statement, values).rowcount == 1)


def _read(connection: sqlite3.Connection, run: RunKey, *, with_changed: bool = True) -> Progress | None:
    row = connection.execute(_READ, (str(run),)).fetchone()
    if row is None:
        return None
    return _decode(run, row, connection.execute(_CHANGED, (str(run),)).fetchall() if with_changed else ())


def _moving_row(progress: Progress) -> Row:
    return (
        progress.states,
        _encode_instances(progress.instances),
        micros(progress.looked_at),
        progress.generation,
        progress.waves,
        progress.rev,
        progress.nonce,
    )


def _decode(run: RunKey, row: Row, changed: Collection[Row]) -> Progress:
    progress = Progress(
        run,
        row[0],
        instant(row[2]),
        _decode_instances(row[1]),
        generation=row[3],
        waves=row[4],
        rev=row[5],
        nonce=row[6],
        noted=row[7],
        token=row[8],
        waking_until=instant_or_none(row[9]),
    )
    return replace(progress, changed=frozenset(task for (task,) in changed)) if changed else progress


def _encode_instances(instances: Mapping[int, bytes]) -> str | None:
    return to_json({str(place): states.hex() for place, states in instances.items()}) if instances else None


def _decode_instances(stored: str | None) -> Mapping[int, bytes]:
    return {int(place): bytes.fromhex(states) for place, states in from_json(stored).items()} if stored else {}
