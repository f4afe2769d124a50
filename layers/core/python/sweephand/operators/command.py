"""`command`: a program of this machine, by its words; with `shell: true`, a line for /bin/sh.

Values never become code: in a shell's line a template is replaced by a variable that holds the value, so quote it as
any variable, "${params.name}"; inside single quotes the shell does not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sweephand.calls import Outcome
from sweephand.domain.templates import Reference, as_text, look_up, pieces
from sweephand.errors import InvalidInput
from sweephand.operators.operator import Attempt
from sweephand.operators.program import environment, folder, run

_SHELL: Final = "/bin/sh"


class Command:
    """Runs programs."""

    def __init__(self, base: Mapping[str, str]) -> None:
        self._base = base

    def execute(self, attempt: Attempt) -> Outcome:
        env = environment(attempt, self._base)
        if attempt.call.task.spec.get("shell") is True:
            line, values = _line(attempt)
            return run(attempt, [_SHELL, "-c", line], env={**env, **values}, cwd=folder(attempt))
        words = [as_text(word) for word in attempt.option("value", [])]
        if not words or not words[0]:
            raise InvalidInput("The command names no program.", "command")
        return run(attempt, words, env=env, cwd=folder(attempt))


def _line(attempt: Attempt) -> tuple[str, dict[str, str]]:
    """The line with a variable for each template, and those variables."""
    names: dict[Reference, str] = {}

    def written(piece: str | Reference) -> str:
        if isinstance(piece, str):
            return piece
        return f"${{{names.setdefault(piece, f'SWEEPHAND_VALUE_{len(names) + 1}')}}}"

    line = "".join(
        map(
            written,
            pieces(attempt.call.task.spec["value"], "command", is_shell=True, is_mapped="item" in attempt.known),
        )
    )
    return line, {name: as_text(look_up(piece, attempt.known, "command")) for piece, name in names.items()}
