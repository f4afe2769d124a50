"""An attempt that is a program: its environment, and what its end means."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sweephand.domain.fields import json_bytes
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.plain import plain
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.templates import as_text
from sweephand.engine.complete import TIMEOUT
from sweephand.errors import InvalidInput
from sweephand.operators.operator import Attempt
from sweephand.operators.place import Place
from sweephand.operators.process import Cause, Process
from sweephand.ports import Outcome, Skipped, Succeeded

SKIP_EXIT_CODE: Final = 99
PRINTED_CHARS_MAX: Final = 2_000
_QUOTED_CHARS_MAX: Final = 800
_INHERITED: Final = {"PATH": os.defpath, "LANG": "C.UTF-8"}
_PERMANENT: Final = FailureClass.PERMANENT


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What a task sees of our own environment: where programs are, whose home it is, which language."""
    home = {"HOME": environ["HOME"]} if "HOME" in environ else {}
    return {**{name: environ.get(name) or default for name, default in _INHERITED.items()}, **home}


def environment(attempt: Attempt, base: Mapping[str, str]) -> dict[str, str]:
    """A clean environment, then the task's own, then what we promise, which nothing overrides."""
    call, place = attempt.call, attempt.place
    if attempt.call.task.spec.get("secrets"):
        raise InvalidInput("This place has no secrets yet: a task with 'secrets' cannot run here.", "secrets")
    own = {name: as_text(value) for name, value in attempt.option("env", {}).items()}
    promised = {
        "JOB": call.run.key.job.name,
        "NAMESPACE": call.run.key.job.namespace,
        "RUN_ID": call.run.key.run_id,
        "TASK_ID": call.task.id,
        "ATTEMPT": str(call.run.attempt),
        "FIRE_AT": call.run.fire_at.isoformat().replace("+00:00", "Z"),
        "IDEMPOTENCY_KEY": call.idempotency_key,
        "PARAMS": json.dumps(dict(call.params)),
        "OUTPUT": str(place.output),
        "PROGRESS": str(place.progress),
        "CHECKPOINT": str(place.checkpoint),
        "ARTIFACTS": str(place.artifacts),
    }
    ours = {f"SWEEPHAND_{name}": value for name, value in promised.items()}
    return {"HOME": str(place.work), **base, "TMPDIR": str(place.tmp), **own, **ours}


def folder(attempt: Attempt) -> Path:
    """The current folder: the one that the task names, else an empty one of the attempt's own."""
    named = attempt.option("cwd")
    return Path(as_text(named)) if named else attempt.place.work


def run(attempt: Attempt, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Outcome:
    """Run a program to its end, its time-out or its cancellation."""
    try:
        process = Process(argv, env=env, cwd=cwd)
    except (OSError, ValueError) as error:
        return _not_started(argv[0], error)
    with process:
        attempt.cancellation.stops_by(process.stop)
        cause = process.wait(attempt.call.timeout, grace=attempt.grace)
    match cause:
        case Cause.STOPPED:
            return Failure("Cancelled", "The attempt was told to stop.")
        case Cause.TIMED_OUT:
            return Failure(TIMEOUT, f"The attempt took longer than {attempt.call.timeout}.")
        case Cause.EXITED:
            return _outcome(attempt, process)


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


def _outcome(attempt: Attempt, process: Process) -> Outcome:
    code = process.code
    skip_code = attempt.call.task.spec.get("skipExitCode", SKIP_EXIT_CODE)
    if code is None:
        return Failure("ExitUnknown", "The exit code was lost: SIGCHLD is ignored where Sweephand runs.")
    if code == skip_code:
        return Skipped(f"the task said so: exit code {code}")
    if code == 0:
        return output_of(attempt.place, process.out.text())
    quoted = last_lines(process.err.text(), _QUOTED_CHARS_MAX) or last_lines(process.out.text(), _QUOTED_CHARS_MAX)
    words = f": {quoted}" if quoted else "."
    if code < 0:
        return Failure("Signal", f"It was killed by signal {-code}{words}")
    return Failure("ExitCode", f"It ended with exit code {code}{words}")


def output_of(place: Place, printed: str) -> Outcome:
    """What the program wrote as its output; without that, the end of what it printed."""
    if not place.output.exists():
        return Succeeded(_printed(printed))
    if not place.output.is_file():  # reading a pipe would never end
        return Failure("InvalidOutput", "The output is not a file.", _PERMANENT)
    with place.output.open("rb") as file:
        written = file.read(OUTPUT_BYTES_MAX + 1)
    if len(written) > OUTPUT_BYTES_MAX:
        return Failure("OutputTooLarge", f"The output takes more than {OUTPUT_BYTES_MAX} bytes.", _PERMANENT)
    try:
        # A document has a little more weight than its text; what is too long was refused above.
        copied, errors = plain({"output": json.loads(written)}, bytes_max=4 * OUTPUT_BYTES_MAX)
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
