"""Group commit: whoever waits shares one transaction, and nobody pays for another's error."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any, TypeVar

import pytest

from sweephand.embedded import Stores
from sweephand.embedded.database import Database
from sweephand.errors import Defect, Unavailable
from tests.contract.embedded import PATIENCE_S, THREADS, at_once, insert, names
from tests.contract.samples import (
    NOW,
    SECOND,
    key_of,
    run_at,
)

T = TypeVar("T")


def behind_a_slow_leader(database: Database, works: list[Callable[[sqlite3.Connection], T]]) -> list[Future[T]]:
    """Every work waits while a first transaction is under way, so that all are in the next one together."""
    entered, go = Event(), Event()

    def slow(connection: sqlite3.Connection) -> None:
        entered.set()
        assert go.wait(PATIENCE_S)

    with ThreadPoolExecutor(len(works) + 1) as pool:
        pool.submit(database.write, slow)
        assert entered.wait(PATIENCE_S)
        futures = []
        for n, work in enumerate(works):
            futures.append(pool.submit(database.write, work))
            until(lambda n=n: database.waiting > n)  # type: ignore[misc]  # mypy cannot infer a default's type
        go.set()
    return futures


def until(condition: Callable[[], bool]) -> None:
    pause = Event()
    for _ in range(10_000):
        if condition():
            return
        pause.wait(0.001)
    pytest.fail("it never happened")


def test_a_lone_writer_commits_at_once(database: Database) -> None:
    for n in range(3):
        assert database.write(insert(f"n{n}")) == f"n{n}"
        assert database.commits == n + 1


def test_writers_that_wait_together_share_one_commit(database: Database) -> None:
    futures = behind_a_slow_leader(database, [insert(f"n{n}") for n in range(10)])
    assert [future.result() for future in futures] == [f"n{n}" for n in range(10)]
    assert database.commits == 2
    assert len(names(database)) == 10


def test_many_threads_need_fewer_commits_than_writes(embedded: Stores) -> None:
    before = embedded.database.commits

    def create(n: int) -> None:
        for k in range(30):
            assert embedded.runs.create([run_at(NOW + k * SECOND, key_of(f"job-{n}"))]) == [True]

    at_once(create)
    assert sum(len(embedded.runs.of_job(key_of(f"job-{n}"), limit=100)) for n in range(THREADS)) == THREADS * 30
    assert embedded.database.commits - before < THREADS * 30


def test_a_work_that_fails_harms_no_other_in_its_group(database: Database) -> None:
    def failing(connection: sqlite3.Connection) -> str:
        insert("half")(connection)
        raise ValueError("my own fault")

    futures = behind_a_slow_leader(database, [insert("a"), failing, insert("b"), failing, insert("c")])
    for future in (futures[1], futures[3]):
        with pytest.raises(ValueError, match="my own fault"):
            future.result()
    assert [futures[n].result() for n in (0, 2, 4)] == ["a", "b", "c"]
    assert names(database) == {"a", "b", "c"}


def test_a_statement_that_sqlite_refuses_is_a_defect(database: Database, tmp_path: Path) -> None:
    database.write(insert("a"))
    with pytest.raises(Defect, match="UNIQUE"):
        database.write(insert("a"))
    other = Database(tmp_path / "sweephand.db", busy_s=0.05)
    assert other.write(insert("theirs")) == "theirs"  # the failed transaction does not keep its lock
    other.close()
    assert database.write(insert("b")) == "b"


def test_a_cursor_cannot_leave_its_transaction(database: Database) -> None:
    with pytest.raises(Defect, match="cursor"):
        database.write(lambda connection: connection.execute("DELETE FROM slots"))


def test_a_transaction_has_the_file_to_itself_from_its_first_read_on(database: Database, tmp_path: Path) -> None:
    other = Database(tmp_path / "sweephand.db", busy_s=0.05)

    def read_then_write(connection: sqlite3.Connection) -> str:
        assert connection.execute("SELECT count(*) FROM slots").fetchone() == (0,)
        with pytest.raises(Unavailable, match="locked"):
            other.write(insert("theirs"))
        return insert("mine")(connection)

    assert database.write(read_then_write) == "mine"
    assert other.write(insert("theirs")) == "theirs"
    other.close()


def test_all_who_wait_are_told_when_the_file_stays_locked(database: Database, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "sweephand.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    def write(n: int) -> None:
        with pytest.raises(Unavailable, match="locked"):
            database.write(insert(f"n{n}"))

    at_once(write, 4)
    other.execute("ROLLBACK")
    other.close()
    assert names(database) == set()
    assert database.write(insert("later")) == "later"


def test_a_full_disk_is_unavailable_and_harms_nothing(database: Database) -> None:
    def limit(pages: int) -> Callable[[sqlite3.Connection], Any]:
        return lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()

    database.write(insert("before"))
    database.write(limit(1))  # SQLite keeps at least the present size
    with pytest.raises(Unavailable, match="full"):
        database.write(insert("x" * 100_000))
    database.write(limit(1_000_000))
    assert database.write(insert("after")) == "after"
    assert names(database) == {"before", "after"}


def test_a_writer_that_is_interrupted_in_the_queue_does_not_stop_the_others(database: Database) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise Interrupted

    entered, go = Event(), Event()

    def slow(connection: sqlite3.Connection) -> None:
        entered.set()
        assert go.wait(PATIENCE_S)

    usual = signal.signal(signal.SIGALRM, interrupt)
    try:
        with ThreadPoolExecutor(2) as pool:
            pool.submit(database.write, slow)
            assert entered.wait(PATIENCE_S)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Interrupted):
                database.write(insert("never"))
            patient = pool.submit(database.write, insert("patient"))
            go.set()
            assert patient.result(PATIENCE_S) == "patient"
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert names(database) == {"patient"}
