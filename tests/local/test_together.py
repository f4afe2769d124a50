"""Writes that become one transaction: what the dispatcher's turns stand on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from sweephand.embedded.database import Database
from sweephand.errors import Defect, Unavailable

MIGRATIONS = (("CREATE TABLE things (name TEXT PRIMARY KEY)",),)
INSERT = "INSERT INTO things VALUES (?)"


@pytest.fixture(params=["file", "memory"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    path = tmp_path / "test.db" if request.param == "file" else None
    opened = Database(path, migrations=MIGRATIONS)
    yield opened
    opened.close()


def names(database: Database) -> list[str]:
    return [name for (name,) in database.rows("SELECT name FROM things ORDER BY name")]


def test_many_writes_are_one_commit_and_see_each_other(database: Database) -> None:
    def work() -> list[str]:
        database.run(INSERT, ("a",))
        database.together(lambda: database.run(INSERT, ("b",)))
        return names(database)

    before = database.commits
    assert database.together(work) == ["a", "b"]
    assert database.commits == before + 1
    assert names(database) == ["a", "b"]


def test_nothing_stays_where_the_code_raises(database: Database) -> None:
    def work() -> None:
        database.run(INSERT, ("a",))
        raise Defect("half way")

    with pytest.raises(Defect):
        database.together(work)
    assert names(database) == []
    database.run(INSERT, ("after",))
    assert names(database) == ["after"]


def test_nothing_stays_where_a_write_failed_and_the_code_went_on(database: Database) -> None:
    def work() -> str:
        database.run(INSERT, ("a",))
        with pytest.raises(Defect):
            database.run(INSERT, ("a",))
        with pytest.raises(Unavailable):
            database.run(INSERT, ("b",))
        return "as if nothing had happened"

    with pytest.raises(Defect):
        database.together(work)
    assert names(database) == []


def test_beside_other_writers_each_keeps_its_own(database: Database) -> None:
    at_once = Barrier(8)

    def write(number: int) -> None:
        at_once.wait(10)
        if number % 2:
            database.together(lambda: database.run_each(INSERT, [(f"{number}-{n}",) for n in range(10)]))
        elif number == 4:
            with pytest.raises(Defect):
                database.together(lambda: database.run_each(INSERT, [("twice",)] * 2))
        else:
            database.run(INSERT, (f"{number}",))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert len(names(database)) == 4 * 10 + 3
    assert "twice" not in names(database)


def test_others_read_meanwhile_what_was_committed(tmp_path: Path) -> None:
    database = Database(tmp_path / "test.db", migrations=MIGRATIONS)

    def work() -> list[tuple[str]]:
        database.run(INSERT, ("a",))
        with sqlite3.connect(tmp_path / "test.db") as other:
            return other.execute("SELECT name FROM things").fetchall()

    assert database.together(work) == []
    database.close()
