"""What the tests of the embedded store share: threads that begin together, rows to write, conditions to wait for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final, TypeVar

from sweephand.embedded.database import Database

T = TypeVar("T")
PATIENCE_S: Final = 30.0
THREADS: Final = 16


def at_once(work: Callable[[int], T], threads: int = THREADS) -> list[T]:
    """What each thread's work answers, all begun together."""
    barrier = Barrier(threads)

    def begin(n: int) -> T:
        barrier.wait(PATIENCE_S)
        return work(n)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def insert(name: str) -> Callable[[sqlite3.Connection], str]:
    def work(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO slots VALUES (?, 1, '', '{}')", (name,))
        return name

    return work


def names(database: Database) -> set[str]:
    return {name for (name,) in database.rows("SELECT name FROM slots")}
