"""Jobs follow the files of a folder: put as they change, removed with them, and never another's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from hashlib import blake2b

import pytest

from sweephand.api.filing import ApiFiling, is_job_file
from sweephand.domain.job import Head, JobStatus
from sweephand.engine.put import put
from sweephand.engine.scan import RETRY_AFTER, FileState, Found, Scanned, file_states, scan
from sweephand.engine.share import put_pool
from sweephand.errors import Unavailable
from sweephand.ports import World
from tests.engine.faults import Fault, Trap, trapped
from tests.engine.world import NS, Crash, Town, job, town_of

DAILY = "name: daily\nschedule: '0 6 * * *'\ncommand: report\n"
KINDS = frozenset({"command", "python", "http", "external"})


class Files:
    """A folder of files in memory, which counts what is read of it."""

    def __init__(self, **texts: str) -> None:
        self.texts = {f"{name}.yaml": text for name, text in texts.items()}
        self.reads: list[str] = []

    def listed(self) -> Sequence[Found]:
        return [Found(path, blake2b(text.encode()).hexdigest()[:16]) for path, text in self.texts.items()]

    def read(self, path: str) -> bytes | None:
        self.reads.append(path)
        return self.texts[path].encode() if path in self.texts else None


def scanned(town: Town, files: Files, *, world: World | None = None, removes: bool = True) -> Scanned:
    where = world or town.world
    return scan(where, NS, files, ApiFiling(where, kinds=KINDS, operators={}), removes=removes)


def state(town: Town, path: str) -> FileState:
    return next(one for one in file_states(town.world, NS) if one.path == path)


def is_there(town: Town, name: str) -> bool:
    head: Head | None = town.stores.jobs.head(job(name))
    return head is not None and head.status is not JobStatus.DELETED


def test_a_file_becomes_a_job_and_its_change_a_version(either: Town) -> None:
    files = Files(daily=DAILY)
    assert scanned(either, files) == Scanned(files=1, changed=1)
    assert state(either, "daily.yaml").jobs == {"daily": 1}
    files.texts["daily.yaml"] = DAILY.replace("6", "7")
    assert scanned(either, files).changed == 1
    version = either.stores.jobs.version(job("daily"), 2)
    assert (version.document["schedule"], version.created_by) == ({"cron": "0 7 * * *"}, "file:daily.yaml")
    assert state(either, "daily.yaml").jobs == {"daily": 2}


def test_a_file_that_has_not_changed_is_not_read_again(town: Town) -> None:
    files = Files(daily=DAILY)
    for _ in range(3):
        scanned(town, files)
        town.clock.at += timedelta(hours=1)
    assert files.reads == ["daily.yaml"]
    assert town.head("daily").version == 1


def test_a_change_that_changes_no_definition_makes_no_version(town: Town) -> None:
    files = Files(daily=DAILY)
    scanned(town, files)
    files.texts["daily.yaml"] = f"# a comment\n{DAILY}"
    assert scanned(town, files).changed == 1
    assert town.head("daily").version == 1


def test_a_removed_file_takes_its_job_with_it_unless_jobs_stay(either: Town) -> None:
    files = Files(daily=DAILY, other=DAILY.replace("daily", "other"))
    scanned(either, files)
    del files.texts["daily.yaml"]
    assert scanned(either, files).removed == 1
    assert not is_there(either, "daily")
    del files.texts["other.yaml"]
    assert scanned(either, files, removes=False).removed == 0
    assert is_there(either, "other")
    assert list(file_states(either.world, NS)) == []


def test_a_job_that_somebody_edited_since_stays(town: Town) -> None:
    files = Files(daily=DAILY)
    scanned(town, files)
    put(town.world, NS, {"name": "daily", "command": "mine"}, actor="ann", expected=1)
    assert scanned(town, files).changed == 0
    files.texts.clear()
    assert scanned(town, files).removed == 0
    assert is_there(town, "daily")


def test_a_file_takes_over_a_job_that_is_there_and_it_is_kept_where_nothing_changed(town: Town) -> None:
    put(town.world, NS, {"name": "daily", "schedule": "0 6 * * *", "command": "report"}, actor="ann", expected=None)
    files = Files(daily=DAILY)
    scanned(town, files)
    assert (town.head("daily").version, state(town, "daily.yaml").errors) == (1, ())
    files.texts.clear()
    assert scanned(town, files).removed == 0  # it was never this file's
    assert is_there(town, "daily")


def test_a_renamed_file_keeps_its_job(either: Town) -> None:
    files = Files(daily=DAILY)
    scanned(either, files)
    files.texts = {"better.yaml": files.texts["daily.yaml"]}
    assert scanned(either, files).removed == 0
    assert is_there(either, "daily")
    files.texts.clear()
    assert scanned(either, files).removed == 1
    assert not is_there(either, "daily")


def test_two_files_with_one_job_are_an_error_of_the_second(town: Town) -> None:
    files = Files(a=DAILY, b=DAILY.replace("report", "other"))
    assert scanned(town, files).wrong == 1
    assert state(town, "b.yaml").errors == (("name", "The job 'daily' comes from a.yaml already."),)
    assert town.head("daily").version == 1
    del files.texts["b.yaml"]
    assert scanned(town, files).removed == 0
    assert is_there(town, "daily")


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        (DAILY.replace("command", "comand"), "comand", "did you mean 'command'"),
        (DAILY.replace("0 6", "0 99"), "schedule", "99"),
        (f"{DAILY}concurrency: {{pool: few}}\n", "concurrency.pool", "create it first"),
        (f"{DAILY}template: none\n", "template", "no template"),
        ("name: [", "", "Line 1 is not YAML"),
        ("name: a\nname: b\n", "", "not YAML"),
        ("a: &x [1]\nb: *x\n", "", "Line 2 has an alias"),
        ("[" * 40 + "]" * 40, "", "nested"),
        ("", "", "nothing in the file"),
        ("just text", "", "an object with fields"),
        ("command: x\n", "name", "required"),
    ],
)
def test_what_is_wrong_with_a_file_is_kept_with_it_and_changes_nothing(
    town: Town, text: str, path: str, words: str
) -> None:
    files = Files(daily=DAILY)
    scanned(town, files)
    files.texts["daily.yaml"] = text
    assert scanned(town, files).wrong == 1
    found = state(town, "daily.yaml")
    assert path in dict(found.errors)
    assert words in dict(found.errors)[path]
    assert is_there(town, "daily")
    assert town.head("daily").version == 1
    files.texts["daily.yaml"] = DAILY
    assert scanned(town, files).wrong == 0
    assert state(town, "daily.yaml").errors == ()


def test_a_file_that_lacked_something_is_tried_again_after_a_while(town: Town) -> None:
    files = Files(daily=f"{DAILY}concurrency: {{pool: few}}\n")
    assert scanned(town, files).wrong == 1
    put_pool(town.world, NS, "few", 1, expected=0)
    assert scanned(town, files).changed == 0
    town.clock.at += RETRY_AFTER
    assert scanned(town, files) == Scanned(files=1, changed=1)
    assert is_there(town, "daily")


def test_a_file_may_hold_several_jobs_and_lose_one(town: Town) -> None:
    files = Files(many=f"{DAILY}---\n{DAILY.replace('daily', 'weekly')}---\nname: wrong\n")
    assert scanned(town, files).wrong == 1
    found = state(town, "many.yaml")
    assert found.jobs == {"daily": 1, "weekly": 1}
    assert [path for path, _ in found.errors] == ["[2].tasks"]
    files.texts["many.yaml"] = DAILY
    assert scanned(town, files).removed == 1
    assert (is_there(town, "daily"), is_there(town, "weekly")) == (True, False)


def test_a_folder_that_cannot_be_listed_removes_nothing(town: Town) -> None:
    files = Files(daily=DAILY)
    scanned(town, files)

    class Gone(Files):
        def listed(self) -> Sequence[Found]:
            raise Unavailable("The folder is gone.")

    with pytest.raises(Unavailable):
        scanned(town, Gone())
    assert is_there(town, "daily")


@pytest.mark.parametrize(
    ("path", "is_scanned"),
    [
        ("a.yaml", True),
        ("b/c.YML", True),
        ("b/c.json", True),
        ("jobs.py", False),
        (".git/a.yaml", False),
        ("b/.hidden.yaml", False),
        ("readme.md", False),
    ],
)
def test_only_yaml_and_json_are_scanned(path: str, is_scanned: bool) -> None:
    assert is_job_file(path) is is_scanned


def _change(town: Town, files: Files) -> None:
    """One file is new, one changed, one renamed, one is gone."""
    files.texts = {
        "new.yaml": DAILY.replace("daily", "new"),
        "changed.yaml": DAILY.replace("daily", "changed").replace("6", "7"),
        "renamed-again.yaml": DAILY.replace("daily", "renamed"),
    }
    town.clock.at += timedelta(minutes=5)


@contextmanager
def _begun() -> Iterator[tuple[Town, Files]]:
    with town_of() as town:
        names = ("changed", "renamed", "gone")
        files = Files(**{name: DAILY.replace("daily", name) for name in names})
        scanned(town, files)
        _change(town, files)
        yield town, files


def _end(town: Town) -> tuple[object, ...]:
    heads = town.stores.jobs.heads(NS, limit=100)
    states = [(one.path, dict(one.jobs), one.errors) for one in file_states(town.world, NS)]
    return [(head.key.name, str(head.status), head.version) for head in heads], states


@pytest.mark.parametrize("fault", [Fault.CRASH, Fault.REFUSED, Fault.UNHEARD, Fault.RIVAL])
def test_a_scan_that_goes_wrong_anywhere_and_is_repeated_comes_to_the_same_end(fault: Fault) -> None:
    with _begun() as (town, files):
        trap = Trap(None, fault)
        scanned(town, files, world=trapped(town.world, trap))
        right, places = _end(town), trap.places()
    assert len(places) > 10
    for at, call in places:
        with _begun() as (town, files):
            trap = Trap(at, fault, partial(scanned, town, files, world=town.another("rival")))
            try:
                scanned(town, files, world=trapped(town.world, trap))
            except (Crash, Unavailable):
                pass  # as it should
            town.clock.at += RETRY_AFTER
            scanned(town, files)
            assert _end(town) == right, f"{fault} at call {at}, {call}"
