"""Files: made, upgraded, refused, and read again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sweephand.clock import SystemClock
from sweephand.domain.ids import Namespace
from sweephand.domain.trail import deed_of
from sweephand.embedded import Stores, open_stores
from sweephand.embedded.database import Database
from sweephand.embedded.encoding import micros
from sweephand.embedded.schema import MIGRATIONS
from sweephand.errors import InvalidInput, Unavailable
from sweephand.messages import AttemptRun
from sweephand.ports import DueEntry, DueKind, Lane, Letter, Offer, Reply
from tests.contract.embedded import insert, names
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    JOB,
    MINUTE,
    NOW,
    SECOND,
    change_of,
    deed_at,
    head_of,
    key_of,
    run_at,
    version_of,
)
from tests.contract.world import VirtualClock


def test_an_old_file_is_upgraded_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "sweephand.db"
    old = Database(path)
    old.write(insert("kept"))
    old.close()

    newer = (*MIGRATIONS, ("ALTER TABLE slots ADD COLUMN colour TEXT", "UPDATE slots SET colour = 'blue'"))
    for _ in range(2):
        new = Database(path, migrations=newer)
        assert new.rows("SELECT name, colour FROM slots") == [("kept", "blue")]
        assert new.rows("PRAGMA user_version") == [(len(newer),)]
        new.close()


def test_a_file_from_before_the_audit_log_keeps_the_history_of_its_jobs(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "sweephand.db"
    old = Database(path, migrations=MIGRATIONS[:1])
    old.run_each(
        "INSERT INTO changes (namespace, name, at, event, version, actor, catchup, note) VALUES (?,?,?,?,?,?,?,?)",
        [
            ("default", "report", micros(NOW), "put", 1, "ada", None, 'naïve, "日本語"'),
            ("default", "report", micros(NOW + SECOND), "paused", 1, "bob", None, ""),
            ("default", "report", micros(NOW + MINUTE), "resumed", 1, "bob", "latest", ""),
            ("other", "report", micros(NOW + HOUR), "deleted", 7, "ada", None, "done"),
        ],
    )
    old.close()

    stores = open_stores(path, clock=clock)
    what = {"deed_id": "job-report", "subject": "jobs/report"}
    one = {"version": 1}
    assert stores.trail.deeds(DEFAULT, limit=10) == [
        deed_at(NOW + MINUTE, **what, action="job.resume", actor="bob", after=one | {"catchup": "latest"}),
        deed_at(NOW + SECOND, **what, action="job.pause", actor="bob", after=one),
        deed_at(NOW, **what, action="job.put", actor="ada", after=one, note='naïve, "日本語"'),
    ]
    assert stores.trail.deeds(Namespace("other"), limit=10) == [
        deed_at(NOW + HOUR, **what, namespace="other", action="job.delete", after={"version": 7}, note="done")
    ]
    assert [change.event for change in stores.jobs.timeline(JOB)] == ["put", "paused", "resumed"]
    stores.close()


def test_jobs_of_a_file_from_before_there_were_words_are_found(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "sweephand.db"
    stores = open_stores(path, clock=clock)
    plain = head_of(key_of("Plain"))
    assert stores.jobs.change(None, head_of(), change_of(head_of()), version_of(), None)
    assert stores.jobs.change(None, plain, change_of(plain), None, None)
    stores.close()
    with closing(sqlite3.connect(path)) as database, database:
        expected = database.execute("SELECT * FROM job_words").fetchall()
        database.execute("DROP TABLE job_words")
        database.execute("ALTER TABLE runs DROP COLUMN marks")
        database.execute("PRAGMA user_version = 5")
    stores = open_stores(path, clock=clock)
    for words in ("report", "version 1: naïve", "日本語", "plain"):
        assert len(stores.jobs.sought(DEFAULT, words, limit=10).heads) == 1, words
    stores.close()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT * FROM job_words").fetchall() == expected


def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "sweephand.db"
    Database(path, migrations=(*MIGRATIONS, ("CREATE TABLE later (x)",))).close()
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=rf"newer Sweephand: its schema is {len(MIGRATIONS) + 1}"):
        open_stores(path, clock=SystemClock())
    assert path.read_bytes() == before


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "sweephand.db"
    old = Database(path)
    old.write(insert("kept"))
    old.close()
    broken = (*MIGRATIONS, ("DELETE FROM slots", "INSERT INTO no_such_table VALUES (1)"))
    with pytest.raises(Unavailable, match="no such table"):
        Database(path, migrations=broken)
    again = Database(path)
    assert names(again) == {"kept"}
    assert again.rows("PRAGMA user_version") == [(len(MIGRATIONS),)]
    again.close()


def test_files_of_other_programs_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, foreign = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("Dear diary, today I opened a scheduler. " * 20)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    for path, words in ((text, "not a Sweephand file"), (foreign, "another program")):
        before = path.read_bytes()
        with pytest.raises(InvalidInput, match=words):
            open_stores(path, clock=SystemClock())
        assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="unable to open"):
        open_stores(tmp_path / "no" / "such" / "folder.db", clock=SystemClock())


def test_everything_is_there_after_reopening(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "sweephand.db"
    stores = open_stores(str(path), clock=clock)
    head, run = head_of(), run_at()
    stores.jobs.change(None, head, change_of(head), version_of(), DueEntry(NOW, DueKind.JOB, str(JOB), 0))
    stores.runs.create([run])
    stores.queue.send([Letter(AttemptRun(run.key))])
    stores.shards.grow(9)
    stores.offers.offer("gpu", Offer(NOW, run.key, "nonce"))
    stores.replies.reserve(DEFAULT, "k", Reply("asked", "me", NOW), now=NOW, until=NOW + HOUR)
    stores.close()

    again = open_stores(path, clock=clock)
    assert again.jobs.head(JOB) == head
    assert again.jobs.version(JOB, 1) == version_of()
    assert again.runs.get(run.key) == run
    assert len(again.inbox.receive(Lane.NORMAL, most=9, hold=MINUTE)) == 1
    assert again.shards.count() == 9
    assert again.trail.deeds(DEFAULT, limit=9) == [deed_of(change_of(head), None, head)]
    assert again.offers.open(DEFAULT, "gpu", limit=9) == [Offer(NOW, run.key, "nonce")]
    assert again.offers.open(DEFAULT, "gpu", limit=9)[0].nonce == "nonce"
    assert again.replies.reserve(DEFAULT, "k", Reply("a", "b", NOW), now=NOW, until=NOW).holder == "me"
    again.close()


def test_two_stores_in_memory_are_two_worlds(clock: VirtualClock) -> None:
    one, two = open_stores(None, clock=clock), open_stores(None, clock=clock)
    one.runs.create([run_at()])
    assert two.runs.get(run_at().key) is None
    one.close()
    two.close()


def test_forgotten_keys_are_removed(embedded: Stores, clock: VirtualClock) -> None:
    for n in range(30):
        embedded.runs.remember(DEFAULT, f"k{n}", "v", until=NOW + SECOND)
    clock.advance(MINUTE)
    for n in range(5):
        embedded.runs.remember(DEFAULT, f"new{n}", "v", until=NOW + HOUR)
    assert embedded.database.rows("SELECT count(*) FROM remembered") == [(5,)]


def test_forgotten_replies_are_removed(embedded: Stores) -> None:
    reply = Reply("asked", "me", NOW)
    for n in range(30):
        embedded.replies.reserve(DEFAULT, f"k{n}", reply, now=NOW, until=NOW + SECOND)
    for n in range(5):
        embedded.replies.reserve(DEFAULT, f"new{n}", reply, now=NOW + MINUTE, until=NOW + HOUR)
    assert embedded.database.rows("SELECT count(*) FROM replies") == [(5,)]


def test_a_file_is_synced_at_every_commit(database: Database) -> None:
    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    assert database.write(lambda connection: connection.execute("PRAGMA synchronous").fetchone()) == (2,)
