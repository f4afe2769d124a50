"""Outputs that are too large for their run: kept in a file, read as if they were not, and refused beyond a bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.limits import OUTPUT_BYTES_MAX, OUTPUT_KEPT_MAX
from sweephand.domain.output import Kept
from sweephand.domain.retry import Failure, FailureClass
from sweephand.embedded.artifacts import FileArtifacts
from sweephand.engine.outputs import output_of
from sweephand.errors import Unavailable
from sweephand.logs import LogKey
from sweephand.operators import Operators
from sweephand.orders import decode_outcome, encode_outcome
from sweephand.secrets import Values
from tests.operators.calls import RUN, script

WRITES = "import json, os, sys; json.dump(['x' * int(sys.argv[1])], open(os.environ['SWEEPHAND_OUTPUT'], 'w'))"
AROUND = len(json.dumps([""]))


def ran(folder: Path, size: int, keep: Callable[[LogKey, bytes], None] | None = None, **more: Any) -> Outcome:
    """A program that writes an output of so many bytes."""
    kept = FileArtifacts(folder / "kept")
    call = replace(script(WRITES, str(size - AROUND)), **more)
    return Operators(folder / "work", keep_output=keep or kept.keep_output).execute(call)


@pytest.mark.parametrize("size", [OUTPUT_BYTES_MAX + 1, OUTPUT_KEPT_MAX])
def test_what_the_run_cannot_hold_is_kept_in_a_file_and_read_from_there(tmp_path: Path, size: int) -> None:
    outcome = ran(tmp_path, size)
    assert outcome == Succeeded(Kept(RUN.key.run_id, "main", 1, size))
    assert decode_outcome(json.loads(json.dumps(encode_outcome(outcome)))) == outcome
    ended = RUN.succeeded(now=RUN.fire_at, nonce="n", output=Kept(RUN.key.run_id, "main", 1, size))
    assert output_of(FileArtifacts(tmp_path / "kept"), ended) == ["x" * (size - AROUND)]


def test_a_small_output_needs_no_file(tmp_path: Path) -> None:
    assert ran(tmp_path, OUTPUT_BYTES_MAX) == Succeeded(["x" * (OUTPUT_BYTES_MAX - AROUND)])
    assert not (tmp_path / "kept").exists()


def test_each_instance_of_a_mapped_task_keeps_its_own(tmp_path: Path) -> None:
    instance = replace(RUN, key=RUN.key.of_task("main[3]"))
    outcome = ran(tmp_path, OUTPUT_BYTES_MAX + 1, run=instance)
    assert outcome == Succeeded(Kept(RUN.key.run_id, "main[3]", 1, OUTPUT_BYTES_MAX + 1))
    ended = instance.succeeded(now=RUN.fire_at, nonce="n", output=outcome.output)
    assert output_of(FileArtifacts(tmp_path / "kept"), ended) == ["x" * (OUTPUT_BYTES_MAX + 1 - AROUND)]


def test_a_place_that_keeps_no_outputs_refuses_what_is_larger_than_it_is_told(tmp_path: Path) -> None:
    call = script(WRITES, str(10_000 - AROUND))
    said = [Operators(tmp_path / "work", output_max=most).execute(call) for most in (10_000, 9_999)]
    assert said[0] == Succeeded(["x" * (10_000 - AROUND)])
    assert isinstance(said[1], Failure)
    assert (said[1].error, "9999" in said[1].message) == ("OutputTooLarge", True)


def test_more_than_can_be_kept_is_a_failure_for_good(tmp_path: Path) -> None:
    outcome = ran(tmp_path, OUTPUT_KEPT_MAX + 1)
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind) == ("OutputTooLarge", FailureClass.PERMANENT)
    assert str(OUTPUT_KEPT_MAX) in outcome.message
    assert "artifact" in outcome.message


def test_a_store_that_refuses_is_a_failure_that_may_pass(tmp_path: Path) -> None:
    def refuses(_key: LogKey, _content: bytes) -> None:
        raise Unavailable("the disk is full")

    outcome = ran(tmp_path, OUTPUT_BYTES_MAX + 1, refuses)
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind) == ("OutputNotKept", FailureClass.TRANSIENT)


def test_no_value_of_a_secret_is_kept(tmp_path: Path) -> None:
    ran(tmp_path, OUTPUT_BYTES_MAX + 9, secrets=Values({"KEY": "xxxxxxxx"}))
    (file,) = (tmp_path / "kept").rglob("*.output")
    assert b"xxxxxxxx" not in file.read_bytes()
