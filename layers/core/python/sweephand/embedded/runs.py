"""Runs, the stretches of fires that became none, the auditor's pages, and remembered keys."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from sweephand.domain.ids import JobKey, Namespace, RunId, RunKey
from sweephand.domain.ledger import Dropped, FireStatus, LedgerPage
from sweephand.domain.output import decode_output, encode_output
from sweephand.domain.reasons import Reason
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import (
    from_json,
    instant,
    instant_or_none,
    json_or_none,
    micros,
    micros_or_none,
    span,
    to_json,
    value_or_none,
)
from sweephand.ports import Clock, Recent

_IDENTITY: Final = (
    "job, run_id, fire_at, start_at, trigger, created_at, params, rerun_of, rerun_from, parent, note, backfill,"
    " interval_start, marks"
)
_MOVING: Final = (
    "state, reason, changed_at, rev, nonce, version, epoch, attempt, lost, owner, lease_until, wake_at,"
    " started_at, ended_at, progress, output, failure"
)
COLUMNS: Final = f"{_IDENTITY}, {_MOVING}"
_NEXT_SEQ: Final = "(SELECT coalesce(max(seq), 0) + 1 FROM runs)"
"""The number of a write in the feed. Writers come one at a time, so the order of numbers is that of commits."""

_INSERT: Final = (
    f"INSERT INTO runs ({COLUMNS}, seq) VALUES ({'?,' * 31} {_NEXT_SEQ}) ON CONFLICT (job, run_id) DO NOTHING"
)
_UPDATE: Final = (
    f"UPDATE runs SET ({_MOVING}) = ({','.join('?' * 17)}), seq = {_NEXT_SEQ} WHERE job = ? AND run_id = ? AND rev = ?"
)
_IS_MINE: Final = "SELECT 1 FROM runs WHERE job = ? AND run_id = ? AND rev = ? AND nonce = ?"
_READ: Final = f"SELECT {COLUMNS} FROM runs WHERE job = ? AND run_id = ?"
_DROP: Final = """
    INSERT INTO dropped VALUES (?,?,?,?,?) ON CONFLICT (job, first)
    DO UPDATE SET last = excluded.last, count = excluded.count, reason = excluded.reason WHERE excluded.last >= last
"""
_ACTIVE: Final = (
    f"SELECT {COLUMNS} FROM runs INDEXED BY runs_active"
    " WHERE job = ? AND run_id < ? AND state IN ('running', 'retrying') ORDER BY run_id DESC LIMIT ?"
)
"""The states as in the index, word for word: SQLite would not recognise it otherwise."""
_LISTED: Final = (
    f"SELECT {COLUMNS} FROM runs WHERE job = ? AND run_id < ? AND state NOT IN ('planned', 'void')"
    " ORDER BY run_id DESC LIMIT ?"
)

_STATES: Final = {state.value: state for state in RunState}
_TRIGGERS: Final = {trigger.value: trigger for trigger in Trigger}
_DAY: Final = timedelta(days=1)
_FORGOTTEN_PER_CALL_MAX: Final = 10
_ACTIVE_MAX: Final = 100


class Runs:
    """The port over SQLite."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def create(self, runs: Sequence[Run]) -> list[bool]:
        rows = [(*_identity_row(run), *_moving_row(run)) for run in runs]

        def work(connection: sqlite3.Connection) -> list[bool]:
            return [
                connection.execute(_INSERT, row).rowcount == 1 or (run.rev == 0 and _is_mine(connection, run))
                for run, row in zip(runs, rows, strict=True)
            ]

        return self._database.write(work) if rows else []

    def get(self, key: RunKey) -> Run | None:
        row = self._database.row(_READ, key.place)
        return None if row is None else decode_run(row, key)

    def several(self, keys: Sequence[RunKey]) -> list[Run]:
        return [decode_run(row) for row in self._database.each(_READ, [key.place for key in keys])]

    def move(self, before: Run, after: Run) -> bool:
        key = before.key
        values = (*_moving_row(after), *key.place, before.rev)

        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute(_UPDATE, values).rowcount == 1 or _is_mine(connection, after)

        return self._database.write(work)

    def of_job(
        self,
        job: JobKey,
        *,
        since: RunId | None = None,
        until: RunId | None = None,
        newest_first: bool = True,
        limit: int,
    ) -> list[Run]:
        conditions, values = ["job = ?"], [str(job)]
        if since is not None:
            conditions.append("run_id >= ?")
            values.append(since)
        if until is not None:
            conditions.append("run_id < ?")
            values.append(until)
        rows = self._database.rows(
            f"SELECT {COLUMNS} FROM runs WHERE {' AND '.join(conditions)}"
            f" ORDER BY run_id {'DESC' if newest_first else 'ASC'} LIMIT ?",
            [*values, limit],
        )
        return [decode_run(row, RunKey(job, RunId(row[1]))) for row in rows]

    def tasks(self, run: RunKey, *, after: str = "", limit: int) -> list[Run]:
        rows = self._database.rows(
            f"SELECT {COLUMNS} FROM runs WHERE job = ? AND run_id > ? ORDER BY run_id LIMIT ?", (str(run), after, limit)
        )
        return [decode_run(row, run.of_task(row[1])) for row in rows]

    def active(self, job: JobKey, *, until: RunId) -> list[Run]:
        rows = self._database.rows(_ACTIVE, (str(job), until, _ACTIVE_MAX))
        return [decode_run(row, RunKey(job, RunId(row[1]))) for row in rows]

    def recent(self, jobs: Sequence[JobKey], *, until: RunId, limit: int) -> list[Recent]:
        listed = self._of_each(_LISTED, jobs if limit else (), until, limit)
        active = self._of_each(_ACTIVE, jobs, until, _ACTIVE_MAX)
        return [Recent(listed[job], active[job]) for job in jobs]

    def _of_each(self, query: str, jobs: Sequence[JobKey], *more: Any) -> defaultdict[JobKey, list[Run]]:
        found: defaultdict[JobKey, list[Run]] = defaultdict(list)
        for row in self._database.each(query, [(str(job), *more) for job in dict.fromkeys(jobs)]):
            run = decode_run(row)
            found[run.key.job].append(run)
        return found

    def drop(self, job: JobKey, dropped: Dropped) -> None:
        row = (str(job), micros(dropped.first), micros(dropped.last), dropped.count, str(dropped.reason))
        self._database.run(_DROP, row)

    def dropped(self, job: JobKey, *, since: datetime, until: datetime) -> list[Dropped]:
        rows = self._database.rows(
            "SELECT first, last, count, reason FROM dropped WHERE job = ? AND first < ? AND last >= ? ORDER BY first",
            (str(job), micros(until), micros(since)),
        )
        return [Dropped(instant(first), instant(last), count, Reason.of(reason)) for first, last, count, reason in rows]

    def write_page(self, page: LedgerPage) -> None:
        row = (str(page.job), _midnight(page.day), _encode_page(page))
        self._database.run("INSERT OR REPLACE INTO ledger_pages VALUES (?,?,?)", row)

    def pages(self, job: JobKey, *, since: datetime, until: datetime) -> list[LedgerPage]:
        rows = self._database.rows(
            "SELECT day_at, body FROM ledger_pages WHERE job = ? AND day_at > ? AND day_at < ? ORDER BY day_at",
            (str(job), micros(since) - span(_DAY), micros(until)),
        )
        return [_decode_page(job, instant(day_at).date(), from_json(body)) for day_at, body in rows]

    def remember(self, namespace: Namespace, key: str, value: str, *, until: datetime) -> str:
        now = micros(self._clock.now())

        def work(connection: sqlite3.Connection) -> str:
            connection.execute(
                "DELETE FROM remembered WHERE rowid IN (SELECT rowid FROM remembered WHERE until < ? LIMIT ?)",
                (now, _FORGOTTEN_PER_CALL_MAX),
            )
            connection.execute(
                "INSERT INTO remembered VALUES (?,?,?,?) ON CONFLICT DO UPDATE"
                " SET value = excluded.value, until = excluded.until WHERE remembered.until < ?",
                (namespace, key, value, micros(until), now),
            )
            first: str = connection.execute(
                "SELECT value FROM remembered WHERE namespace = ? AND key = ?", (namespace, key)
            ).fetchone()[0]
            return first

        return self._database.write(work)

    def note(self, namespace: Namespace, key: str, value: str, *, until: datetime) -> None:
        self._database.run(
            "INSERT INTO remembered VALUES (?,?,?,?) ON CONFLICT DO UPDATE"
            " SET value = excluded.value, until = excluded.until",
            (namespace, key, value, micros(until)),
        )

    def noted(self, namespace: Namespace, key: str) -> str | None:
        row = self._database.row(
            "SELECT value FROM remembered WHERE namespace = ? AND key = ? AND until >= ?",
            (namespace, key, micros(self._clock.now())),
        )
        return str(row[0]) if row else None


def _is_mine(connection: sqlite3.Connection, run: Run) -> bool:
    """Whether the run is there already as this caller wrote it, in a call that seemed to fail."""
    if not run.nonce:
        return False
    values = (*run.key.place, run.rev, run.nonce)
    return connection.execute(_IS_MINE, values).fetchone() is not None


def _identity_row(run: Run) -> Row:
    return (
        *run.key.place,
        micros(run.fire_at),
        micros(run.start_at),
        run.trigger.value,
        micros(run.created_at),
        to_json(dict(run.params)) if run.params else None,
        run.rerun_of,
        run.rerun_from,
        run.parent,
        run.note,
        run.backfill,
        micros_or_none(run.interval_start),
        to_json(dict(run.marks)) if run.marks else None,
    )


def _moving_row(run: Run) -> Row:
    return (
        run.state.value,
        None if run.reason is None else str(run.reason),
        micros(run.changed_at),
        run.rev,
        run.nonce,
        run.version,
        run.epoch,
        run.attempt,
        run.lost,
        run.owner,
        micros_or_none(run.lease_until),
        micros_or_none(run.wake_at),
        micros_or_none(run.started_at),
        micros_or_none(run.ended_at),
        run.progress,
        json_or_none(encode_output(run.output)),
        None if run.failure is None else to_json(run.failure.encode()),
    )


def decode_run(row: Row, key: RunKey | None = None) -> Run:
    """The run in these `COLUMNS`; a caller that knows its key spares the parsing."""
    return Run(
        key or RunKey.at(row[0], row[1]),
        instant(row[2]),
        instant(row[3]),
        instant(row[5]),
        instant(row[16]),
        _TRIGGERS[row[4]],
        params=value_or_none(row[6]) or {},
        rerun_of=row[7],
        rerun_from=row[8],
        parent=row[9],
        note=row[10],
        backfill=row[11],
        interval_start=instant_or_none(row[12]),
        marks=value_or_none(row[13]) or {},
        state=_STATES[row[14]],
        reason=None if row[15] is None else Reason.of(row[15]),
        rev=row[17],
        nonce=row[18],
        version=row[19],
        epoch=row[20],
        attempt=row[21],
        lost=row[22],
        owner=row[23],
        lease_until=instant_or_none(row[24]),
        wake_at=instant_or_none(row[25]),
        started_at=instant_or_none(row[26]),
        ended_at=instant_or_none(row[27]),
        progress=row[28],
        output=decode_output(value_or_none(row[29])),
        failure=None if row[30] is None else Failure.decode(from_json(row[30])),
    )


def _midnight(day: date) -> int:
    return micros(datetime.combine(day, time(), UTC))


def _encode_page(page: LedgerPage) -> str:
    return to_json(
        {
            "judged_at": micros(page.judged_at),
            "tzdata": page.tzdata,
            "counts": {status.value: count for status, count in page.counts.items()},
            "missing": [micros(fire_at) for fire_at in page.missing],
            "extra": list(page.extra),
        }
    )


def _decode_page(job: JobKey, day: date, stored: dict[str, Any]) -> LedgerPage:
    return LedgerPage(
        job,
        day,
        instant(stored["judged_at"]),
        stored["tzdata"],
        {FireStatus(status): count for status, count in stored["counts"].items()},
        tuple(instant(fire_at) for fire_at in stored["missing"]),
        tuple(RunId(run_id) for run_id in stored["extra"]),
    )
