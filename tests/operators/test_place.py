"""The folder of an attempt: gone afterwards, but for the checkpoint that the next attempt begins with."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.clock import SystemClock
from sweephand.domain.ids import RunId, RunKey
from sweephand.domain.retry import Failure
from sweephand.operators import Operators
from sweephand.operators.place import Place, beginning_of
from tests.local.waiting import until
from tests.operators.calls import command

SAVES = 'mkdir -p junk; cat "$SWEEPHAND_CHECKPOINT"; printf %s "$SWEEPHAND_ATTEMPT" >> "$SWEEPHAND_CHECKPOINT"; '


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_checkpoint_outlives_failures_and_nothing_else_does(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    for attempt in (1, 2):
        assert isinstance(operators.execute(command(SAVES + "exit 1", shell=True, attempt=attempt)), Failure)
        assert left(tmp_path) == ["checkpoint"]
        assert not list(tmp_path.rglob("junk"))
    assert operators.execute(command(SAVES, shell=True, attempt=3)) == Succeeded({"stdout": "12"})
    assert not list(tmp_path.iterdir())


def test_an_attempt_that_saves_nothing_keeps_what_it_was_given(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    operators.execute(command(SAVES + "exit 1", shell=True, attempt=1))
    operators.execute(command(["false"], attempt=2))
    assert operators.execute(command(SAVES, shell=True, attempt=3)) == Succeeded({"stdout": "1"})


def test_the_newest_checkpoint_counts_although_a_lost_attempt_saves_later(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    for attempt in (2, 1):
        operators.execute(command(SAVES + "exit 1", shell=True, attempt=attempt))
    assert operators.execute(command(SAVES, shell=True, attempt=3)) == Succeeded({"stdout": "2"})


def test_what_a_killed_attempt_left_goes_with_the_next_one_however_that_ends(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    killed = Place(tmp_path, command(["true"], attempt=1))
    killed.make()
    (killed.root / "call.json").write_text("what it was told")
    killed.checkpoint.write_text("7")
    operators.execute(command(["false"], attempt=2))
    assert left(tmp_path) == ["checkpoint"]
    assert operators.execute(command(SAVES, shell=True, attempt=3)) == Succeeded({"stdout": "7"})


def test_what_is_never_gone_on_with_is_forgotten_after_its_time(tmp_path: Path) -> None:
    operators, now = Operators(tmp_path), SystemClock().now()
    killed = Place(tmp_path, command(["true"]))
    killed.make()
    (killed.work / "file").write_text("x")
    operators.execute(_of_run(command(SAVES + "exit 1", shell=True), "other"))
    assert operators.forget(before=now - timedelta(days=1)) == 0
    assert len(list(tmp_path.iterdir())) == 2
    assert operators.forget(before=now + timedelta(days=1)) == 2
    assert not list(tmp_path.iterdir())
    assert operators.forget(before=now) == 0


def test_what_runs_is_not_forgotten_however_long_it_takes(tmp_path: Path) -> None:
    operators, later = Operators(tmp_path / "work"), SystemClock().now() + timedelta(days=1)
    line = f'echo > {tmp_path}/begun; until test -e {tmp_path}/go; do :; done; echo 1 > "$SWEEPHAND_OUTPUT"'
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(command(line, shell=True))))
    thread.start()
    until((tmp_path / "begun").exists, within_s=10, what="it has begun")
    assert operators.forget(before=later) == 0
    (tmp_path / "go").touch()
    thread.join(10)
    assert outcomes == [Succeeded(1)]


@pytest.mark.parametrize(
    ("written", "percent"),
    [
        ("42", 42),
        ("7.9\n", 7),
        ("0", 0),
        ("100", 100),
        ("101", None),
        ("-1", None),
        ("nan", None),
        ("x", None),
        ("", None),
    ],
)
def test_progress_is_a_number_up_to_a_hundred(tmp_path: Path, written: str, percent: int | None) -> None:
    place = Place(tmp_path, command(["true"]))
    place.make()
    assert place.percent() is None
    place.progress.write_text(written)
    assert place.percent() == percent


def test_who_reads_what_a_task_says_neither_waits_for_a_pipe_nor_follows_a_link(tmp_path: Path) -> None:
    place, other = Place(tmp_path, command(["true"])), tmp_path / "other"
    place.make()
    os.mkfifo(place.progress)
    other.write_text("42")
    place.checkpoint.symlink_to(other)
    assert (place.percent(), beginning_of(place.checkpoint, 10), beginning_of(other, 1)) == (None, None, b"4")


def test_a_checkpoint_may_be_a_folder_and_a_skip_ends_it(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    operators.execute(command('mkdir "$SWEEPHAND_CHECKPOINT"; touch "$SWEEPHAND_CHECKPOINT/a"; false', shell=True))
    outcome = operators.execute(command('ls "$SWEEPHAND_CHECKPOINT"; exit 99', shell=True, attempt=2))
    assert isinstance(outcome, Skipped)
    assert not list(tmp_path.iterdir())


def test_another_run_has_another_place(tmp_path: Path) -> None:
    operators = Operators(tmp_path)
    first = command(SAVES + "exit 1", shell=True)
    operators.execute(first)
    assert operators.execute(_of_run(command(SAVES, shell=True, attempt=2), "other")) == Succeeded()
    assert left(tmp_path) == ["checkpoint"]


def _of_run(call: Call, run_id: str) -> Call:
    return replace(call, run=replace(call.run, key=RunKey(call.run.key.job, RunId(run_id))))


def test_folders_that_a_task_locks_are_removed_all_the_same(tmp_path: Path) -> None:
    line = "mkdir -p a/b; touch a/b/c; ln -s /etc a/link; chmod 500 a/b; chmod 0 a"
    assert Operators(tmp_path).execute(command(line, shell=True)) == Succeeded()
    assert not list(tmp_path.iterdir())
    assert Path("/etc").exists()


def test_only_we_can_look_into_a_place(tmp_path: Path) -> None:
    outcome = Operators(tmp_path).execute(command('stat -c %a . "$TMPDIR" "$SWEEPHAND_ARTIFACTS"', shell=True))
    assert outcome == Succeeded({"stdout": "700\n700\n700"})
