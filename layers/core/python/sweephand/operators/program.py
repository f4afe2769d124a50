"""An attempt that is a program: its environment, and what its end means."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sweephand.calls import Outcome, Skipped, Succeeded, variables
from sweephand.domain.duration import format_duration
from sweephand.domain.fields import json_bytes
from sweephand.domain.limits import OUTPUT_BYTES_MAX, OUTPUT_KEPT_MAX
from sweephand.domain.output import too_large
from sweephand.domain.plain import plain
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.templates import as_text
from sweephand.engine.complete import TIMEOUT
from sweephand.errors import InvalidInput
from sweephand.operators.operator import Attempt
from sweephand.operators.place import Place
from sweephand.operators.process import Cause, Process, Tail

SKIP_EXIT_CODE: Final = 99
PRINTED_CHARS_MAX: Final = 2_000
_QUOTED_CHARS_MAX: Final = 800
_INHERITED: Final = {"PATH": os.defpath, "LANG": "C.UTF-8"}
_PERMANENT: Final = FailureClass.PERMANENT
_NO_MEMORY: Final = ("MemoryError", "Cannot allocate memory", "std::bad_alloc")


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What a task sees of our own environment: where programs are, whose home it is, which language."""
    home = {"HOME": environ["HOME"]} if "HOME" in environ else {}
    return {**{name: environ.get(name) or default for name, default in _INHERITED.items()}, **home}


def environment(attempt: Attempt, base: Mapping[str, str]) -> dict[str, str]:
    """A clean environment, then secrets, then the task's own, then what we promise, which nothing overrides."""
    call, place = attempt.call, attempt.place
    own = own_variables(attempt)
    ours = variables(call, place.files)
    return {"HOME": str(place.work), **base, "TMPDIR": str(place.tmp), **call.secrets.by_name, **own, **ours}


def own_variables(attempt: Attempt) -> dict[str, str]:
    """The task's own `env`, its templates resolved."""
    return {name: as_text(value) for name, value in attempt.option("env", {}).items()}


def folder(attempt: Attempt) -> Path:
    """The current folder: the one that the task names, else an empty one of the attempt's own."""
    named = attempt.option("cwd")
    return Path(as_text(named)) if named else attempt.place.work


Judge = Callable[[Attempt, int | None, str], Outcome | None]
"""What an exit code, and what was said last, mean besides the usual; None where nothing."""


def run(
    attempt: Attempt, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, ended: Judge | None = None
) -> Outcome:
    """Run a program to its end, its time-out or its cancellation."""
    try:
        process = Process(argv, env=env, cwd=cwd, lines=attempt.lines(), bounds=attempt.bounds)
    except (OSError, ValueError) as error:
        return _not_started(argv[0], error)
    with process:
        attempt.cancellation.stops_by(process.stop)
        cause = process.wait(attempt.call.timeout, grace=attempt.grace)
    if cause in (Cause.EXITED, Cause.BEYOND) and process.beyond:
        return _beyond(attempt, process.beyond)
    match cause:
        case Cause.STOPPED:
            return Failure("Cancelled", "The attempt was told to stop.")
        case Cause.TIMED_OUT:
            return Failure(TIMEOUT, f"The attempt took longer than {format_duration(attempt.call.timeout)}.")
        case Cause.EXITED | Cause.BEYOND:
            said = last_lines(_said(attempt, process.err), _QUOTED_CHARS_MAX)
            judged = ended(attempt, process.code, said) if ended else None
            return judged or came_of(attempt, process.code, process.out, process.err)


def _not_started(program: str, error: OSError | ValueError) -> Failure:
    """Only what another moment may mend is transient: a lack of memory, processes or descriptors."""
    if not isinstance(error, OSError):
        return Failure("InvalidInput", f"'{program[:200]}' cannot be started: {error}.", _PERMANENT)
    where = f"'{str(error.filename or program)[:200]}'"
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return Failure("NotFound", f"There is no {where} here.", _PERMANENT)
        case errno.EACCES | errno.EPERM:
            return Failure("NotPermitted", f"{where} may not be run or entered.", _PERMANENT)
        case errno.ENOEXEC:
            return Failure("NotExecutable", f"{where} is no program of this machine.", _PERMANENT)
        case errno.E2BIG:
            return Failure("TooLarge", f"The arguments and variables of {where} are too long.", _PERMANENT)
        case _:
            return Failure("NotStarted", f"{where} could not be started: {error.strerror}.")


def _beyond(attempt: Attempt, limit: str) -> Failure:
    """The same program would most likely take as much again, so it is permanent; `retry.on` may name it."""
    bounds = attempt.bounds
    match limit:
        case "memory":
            return Failure("OutOfMemory", f"It had more than {bounds.memory} MB in memory.", _PERMANENT)
        case "cpuTime" if bounds.cpu_time is not None:
            took = f"It took more than {format_duration(bounds.cpu_time)} of processor time."
            return Failure("CpuTimeExceeded", took, _PERMANENT)
        case "processes":
            return Failure("TooManyProcesses", f"It had more than {bounds.processes} processes.", _PERMANENT)
        case "output":
            return Failure("TooMuchOutput", f"It printed more than {bounds.output} MB.", _PERMANENT)
        case _:
            return Failure("FileTooLarge", f"It wrote a file of more than {bounds.file} MB.", _PERMANENT)


def came_of(attempt: Attempt, code: int | None, out: Tail, err: Tail) -> Outcome:
    """What an exit code means, with what was printed last."""
    skip_code = attempt.call.task.spec.get("skipExitCode", SKIP_EXIT_CODE)
    if code is None:
        return Failure("ExitUnknown", "The exit code was lost: the process that watched it was killed.")
    if code == skip_code:
        return Skipped(f"the task said so: exit code {code}")
    if code == 0:
        return output_of(attempt.place, _said(attempt, out))
    quoted = last_lines(_said(attempt, err), _QUOTED_CHARS_MAX)
    quoted = quoted or last_lines(_said(attempt, out), _QUOTED_CHARS_MAX)
    words = f": {quoted}" if quoted else "."
    if attempt.bounds.memory and any(sign in quoted for sign in _NO_MEMORY):
        # Between two looks only the kernel refuses, and the program says so in its own words.
        return Failure("OutOfMemory", f"It may have {attempt.bounds.memory} MB{words}", _PERMANENT)
    if code < 0:
        return Failure("Signal", f"It was killed by signal {-code}{words}")
    return Failure(f"ExitCode{code}", f"It ended with exit code {code}{words}")


def _said(attempt: Attempt, stream: Tail) -> str:
    """What was kept of a stream, redacted before anything is cut from it: half a value would not be recognised."""
    return attempt.redact(stream.text(), cut_before=stream.is_cut)


def output_of(place: Place, printed: str) -> Outcome:
    """What the program wrote as its output; without that, the end of what it printed."""
    if not place.output.exists():
        return Succeeded(_printed(printed))
    if not place.output.is_file():  # reading a pipe would never end
        return Failure("InvalidOutput", "The output is not a file.", _PERMANENT)
    with place.output.open("rb") as file:
        written = file.read(OUTPUT_KEPT_MAX + 1)
    if len(written) > OUTPUT_KEPT_MAX:
        return too_large()
    try:
        # A document has a little more weight than its text; what is too long was refused above.
        copied, errors = plain({"output": json.loads(written)}, bytes_max=4 * OUTPUT_KEPT_MAX)
    except (ValueError, RecursionError) as error:
        return Failure("InvalidOutput", f"The output is not JSON: {str(error)[:200]}.", _PERMANENT)
    except InvalidInput as refused:
        return Failure("InvalidOutput", f"The output cannot be kept. {refused.message}", _PERMANENT)
    if errors:
        return Failure("InvalidOutput", f"The output cannot be kept. {errors[0][1]}", _PERMANENT)
    return Succeeded(copied["output"])


def _printed(text: str) -> dict[str, Any] | None:
    kept = last_lines(text, PRINTED_CHARS_MAX)
    while json_bytes({"stdout": kept}) > OUTPUT_BYTES_MAX:
        kept = last_lines(kept, len(kept) * 3 // 4)
    return {"stdout": kept} if kept else None


def last_lines(text: str, chars_max: int) -> str:
    """The end of a text: whole lines, unless the last one is too long itself."""
    text = text.strip()
    if len(text) <= chars_max:
        return text
    cut = text[-chars_max:]
    _, newline, whole = cut.partition("\n")
    return whole if newline and whole else cut
