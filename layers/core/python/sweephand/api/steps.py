"""The JSON Schema of `run`: what a task can run here."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from sweephand.api.vocabulary import (
    INSTANT,
    NAME,
    Schema,
    all_optional,
    anything,
    closed,
    listed,
    mapped,
    period,
    text,
    whole,
)
from sweephand.domain.kinds import (
    ADDRESS_CHARS_MAX,
    ARGUMENTS_MAX,
    COMMAND_CHARS_MAX,
    PAYLOAD_BYTES_MAX,
    VARIABLES_MAX,
)

_A_SECOND: Final = timedelta(seconds=1)
_VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_ADDRESS: Final = text(ADDRESS_CHARS_MAX)
_WORDS: Final = listed(text(PAYLOAD_BYTES_MAX, least=0), ARGUMENTS_MAX, least=1)
_LINE: Final = text(COMMAND_CHARS_MAX, format="command-line")
COMMAND: Final[Schema] = {
    "anyOf": [_WORDS, _LINE],
    "description": "The words of a command, or a line that is split as a shell would and run without one.",
}

_PROCESS: Final = {
    "env": mapped(_VARIABLE, text(32_768, least=0), VARIABLES_MAX),
    "secrets": mapped(_VARIABLE, NAME, VARIABLES_MAX),
    "skipExitCode": whole(0, 255),
    "cwd": _ADDRESS,
}
_PYTHON: Final = {
    **_PROCESS,
    "args": listed({}, ARGUMENTS_MAX),
    "kwargs": anything(PAYLOAD_BYTES_MAX),
    "requirements": listed(text(512), 200),
    "code": text(256),
}

_TEMPLATE: Final = text(256, pattern=r"^\$\{(params\.[A-Za-z_][A-Za-z0-9_]*|run\.fireAt)\}$")
_SENSOR: Final = closed(
    {
        "job": NAME,
        **all_optional(
            {
                "state": {"enum": ["succeeded", "failed", "ended"]},
                "within": period(_A_SECOND),
                "every": period(_A_SECOND, timedelta(days=1)),
                "timeout": period(_A_SECOND),
            }
        ),
    },
    required=["job"],
)

_COMMAND_STEP: Final = closed(
    {"command": COMMAND, "shell": {"enum": [False, None]}, **all_optional(_PROCESS)}, required=["command"]
)
_SHELL_STEP: Final = closed(
    {"command": text(COMMAND_CHARS_MAX), "shell": {"const": True}, **all_optional(_PROCESS)},
    required=["command", "shell"],
)
_STEPS: Final = {
    "command": [_COMMAND_STEP, _SHELL_STEP],
    "python": [closed({"python": _ADDRESS, **all_optional(_PYTHON)}, required=["python"])],
    "wait": [
        closed({"wait": closed({one: {"anyOf": [shape, _TEMPLATE]}}, required=[one])}, required=["wait"])
        for one, shape in (("for", period()), ("until", INSTANT))
    ],
    "sensor": [closed({"sensor": _SENSOR}, required=["sensor"])],
    "external": [closed({"external": {"type": "object"}}, required=["external"])],
}


def step(kinds: Collection[str]) -> Schema:
    """A step of one of these kinds; of those that check their fields themselves, only the name is told."""
    known = [one for kind in _STEPS if kind in kinds for one in _STEPS[kind]]
    others = [{"type": "object", "required": [kind]} for kind in sorted(kinds) if kind not in _STEPS]
    return {"anyOf": [*known, *others]}
