"""The output of a run: in the run itself where it is small, else in a file, of which the run has only where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.limits import OUTPUT_BYTES_MAX, OUTPUT_KEPT_MAX
from sweephand.domain.retry import Failure, FailureClass

__all__ = ["Kept", "decode_output", "encode_output", "is_reserved", "too_large"]

_MARK: Final = "$kept"


class Kept(Struct, frozen=True):
    """An output that is kept in a file: of which attempt, and how many bytes it has."""

    run_id: str
    task: str
    attempt: int
    size: int


def encode_output(output: Any) -> Any:
    """JSON-able, for the stores and for orders."""
    if not isinstance(output, Kept):
        return output
    return {_MARK: {"run": output.run_id, "task": output.task, "attempt": output.attempt, "bytes": output.size}}


def decode_output(stored: Any) -> Any:
    """The output that was encoded."""
    if not is_reserved(stored):
        return stored
    told = stored[_MARK]
    return Kept(str(told["run"]), str(told["task"]), int(told["attempt"]), int(told["bytes"]))


def is_reserved(output: Any) -> bool:
    """Whether an output would be taken for the place of another: no task's own may look like that."""
    return isinstance(output, Mapping) and _MARK in output


def too_large(most: int = OUTPUT_KEPT_MAX) -> Failure:
    """How a task fails whose output is more than can be kept; its run has the first few thousand bytes at most."""
    hint = "" if most == OUTPUT_BYTES_MAX else " Write it as an artifact, and its name as the output."
    return Failure("OutputTooLarge", f"The output takes more than {most} bytes.{hint}", FailureClass.PERMANENT)
