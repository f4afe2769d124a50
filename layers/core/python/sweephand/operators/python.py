"""`python`: a function, `module:function`, in a process of its own, so that it can be ended and breaks nothing of ours.

It is imported from the pack that `code` names, from the current folder, from PYTHONPATH where the task's `env` has one,
or from what is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sweephand.calls import Outcome
from sweephand.domain.retry import Failure, FailureClass
from sweephand.errors import InvalidInput, NotFound, Unavailable
from sweephand.operators.operator import Attempt
from sweephand.operators.program import environment, folder, run
from sweephand.operators.runner import MESSAGE_CHARS_MAX
from sweephand.operators.unpacked import Unpacked

_RUNNER: Final = Path(__file__).with_name("runner.py")
"""Run as a file, not as a module: it needs nothing of ours, and importing us would take longer than most tasks."""
_TOLD_BYTES_MAX: Final = 65_536


class Python:
    """Calls functions; those of packs, where there is a place that has them."""

    def __init__(self, base: Mapping[str, str], code: Unpacked | None = None) -> None:
        self._base = base
        self._code = code

    def execute(self, attempt: Attempt) -> Outcome:
        digest = attempt.call.task.spec.get("code")
        if not digest:
            return self._call(attempt, None)
        if self._code is None:
            raise InvalidInput("This place has no code of jobs: it runs functions that are installed.", "code")
        try:
            with self._code.using(attempt.call.run.key.job.namespace, digest) as path:
                return self._call(attempt, path)
        except NotFound as error:
            return Failure("CodeNotFound", error.message, FailureClass.PERMANENT)
        except Unavailable as error:
            return Failure("CodeUnavailable", error.message)

    def _call(self, attempt: Attempt, code: Path | None) -> Outcome:
        env = environment(attempt, self._base)
        request, failure = attempt.place.root / "call.json", attempt.place.root / "failure.json"
        call = {
            "function": attempt.call.task.spec["value"],
            "args": attempt.option("args", []),
            "kwargs": attempt.option("kwargs", {}),
            "code": str(code) if code is not None else None,
            "output": str(attempt.place.output),
            "failure": str(failure),
        }
        request.write_text(json.dumps(call))
        # -P: our folder does not become a place to import from; -u: what was printed before a kill is not lost.
        outcome = run(attempt, [sys.executable, "-P", "-u", str(_RUNNER), str(request)], env=env, cwd=folder(attempt))
        return (_told(attempt, failure) or outcome) if isinstance(outcome, Failure) else outcome


def _told(attempt: Attempt, failure: Path) -> Failure | None:
    """How the function failed in its own words; None where it has not said so, or not to the end."""
    try:
        with failure.open("rb") as file:
            told = json.loads(file.read(_TOLD_BYTES_MAX))
        error, message, is_permanent = str(told["error"]), str(told["message"]), bool(told["permanent"])
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None
    kind = FailureClass.PERMANENT if is_permanent else FailureClass.TRANSIENT
    message = attempt.redact(message[:MESSAGE_CHARS_MAX], cut_after=len(message) >= MESSAGE_CHARS_MAX)
    return Failure(attempt.redact(error)[:128], message, kind)
