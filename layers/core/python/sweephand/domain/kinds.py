"""What a task can run: how each kind of step is written in a definition."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from sweephand.domain.fields import (
    Fields,
    Reader,
    anything,
    duration,
    flag,
    instant,
    listed,
    mapped,
    name,
    nearest,
    object_of,
    one_of,
    text,
    whole,
)
from sweephand.domain.templates import check
from sweephand.errors import InvalidInput

__all__ = ["KINDS", "Step", "argv", "read_step", "read_stored_step"]

Step = tuple[str, Mapping[str, Any]]
"""The kind of a step, and what its operator gets."""

COMMAND_CHARS_MAX: Final = 8_192
ARGUMENTS_MAX: Final = 1_000
VARIABLES_MAX: Final = 200
ADDRESS_CHARS_MAX: Final = 2_048
PAYLOAD_BYTES_MAX: Final = 131_072

_ADDRESS: Final = text(ADDRESS_CHARS_MAX)
_VARIABLE: Final = text(
    128, pattern=r"[A-Za-z_][A-Za-z0-9_]*", right="a variable is letters, digits and '_', no digit first"
)
_ARGUMENTS: Final = listed(text(PAYLOAD_BYTES_MAX, least=0), ARGUMENTS_MAX, least=1)
_ENV: Final = mapped(_VARIABLE, text(32_768, least=0), VARIABLES_MAX)
_SECRETS: Final = mapped(_VARIABLE, name, VARIABLES_MAX)
_ATTRIBUTES: Final = mapped(text(256), text(PAYLOAD_BYTES_MAX), 10)
_URL: Final = text(ADDRESS_CHARS_MAX, pattern=r"(https?://|\$\{)\S+", right="a URL begins with https:// or http://")
_PROCESS: Final[Mapping[str, Reader[Any]]] = {
    "env": _ENV,
    "secrets": _SECRETS,
    "skipExitCode": whole(0, 255),
}


def argv(value: Any, path: str) -> tuple[str, ...]:
    """The words of a command: a list, or a line that is split as a shell would and run without one."""
    if not isinstance(value, str):
        return _ARGUMENTS(value, path)
    if len(value) > COMMAND_CHARS_MAX:
        raise InvalidInput(f"The line has {len(value)} characters: at most {COMMAND_CHARS_MAX} are right.", path)
    try:
        words = tuple(shlex.split(value))
    except ValueError as error:
        raise InvalidInput(f"The line cannot be split into words: {error}.", path) from error
    if not words:
        raise InvalidInput("The command is empty.", path)
    return words


def _templated(read: Reader[Any]) -> Reader[Any]:
    """A value that may also be a template, whose meaning shows at run time only."""

    def read_or_pass(value: Any, path: str) -> Any:
        return value if isinstance(value, str) and "${" in value else read(value, path)

    return read_or_pass


class Kind(Struct, frozen=True):
    """The fields of a kind: beside its main value, or, where it has none, inside its object."""

    main: Reader[Any] | None = None
    fields: Mapping[str, Reader[Any]] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    """Exactly one of these."""
    is_open: bool = False
    """Its operator checks the fields itself."""


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "command": Kind(argv, {**_PROCESS, "shell": flag, "cwd": _ADDRESS}),
        "python": Kind(
            _ADDRESS,
            {
                **_PROCESS,
                "args": listed(anything, ARGUMENTS_MAX),
                "kwargs": object_of(PAYLOAD_BYTES_MAX),
                "requirements": listed(text(512), 200),
                "code": text(256),
                "cwd": _ADDRESS,
            },
        ),
        "container": Kind(
            fields={
                **_PROCESS,
                "image": text(1024),
                "command": _ARGUMENTS,
                "entrypoint": _ARGUMENTS,
                "cpu": whole(1, 1_048_576),
                "memory": whole(1, 1_048_576),
                "disk": whole(1, 1_024),
            },
            needed=("image",),
        ),
        "lambda": Kind(_ADDRESS, {"payload": anything, "async": flag, "qualifier": text(128)}),
        "http": Kind(
            fields={
                "url": _URL,
                "method": one_of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
                "headers": mapped(text(256), text(8_192, least=0), 100),
                "body": anything,
                "secrets": _SECRETS,
            },
            needed=("url",),
        ),
        "sqs": Kind(
            _ADDRESS,
            {"body": anything, "attributes": _ATTRIBUTES, "group": text(128), "deduplicationId": text(128)},
        ),
        "sns": Kind(
            _ADDRESS,
            {"message": anything, "subject": text(100), "attributes": _ATTRIBUTES, "group": text(128)},
        ),
        "event": Kind(
            fields={
                "source": text(256),
                "type": text(128),
                "detail": object_of(PAYLOAD_BYTES_MAX),
                "bus": _ADDRESS,
            },
            needed=("source", "type"),
        ),
        "stateMachine": Kind(_ADDRESS, {"input": anything, "async": flag}),
        "awsSdk": Kind(
            fields={"service": text(64), "action": text(128), "params": object_of(PAYLOAD_BYTES_MAX)},
            needed=("service", "action"),
        ),
        "job": Kind(name, {"params": object_of(PAYLOAD_BYTES_MAX), "async": flag}),
        "wait": Kind(fields={"for": _templated(duration()), "until": _templated(instant)}, either=("for", "until")),
        "sensor": Kind(
            fields={
                "job": name,
                "state": one_of("succeeded", "failed", "ended"),
                "within": duration(timedelta(seconds=1)),
                "every": duration(timedelta(seconds=1), timedelta(days=1)),
                "timeout": duration(timedelta(seconds=1)),
            },
            needed=("job",),
        ),
        "approval": Kind(is_open=True),
        "external": Kind(is_open=True),
    }
)

_OPERATOR: Final = Kind(is_open=True)


def read_step(value: Any, path: str, *, operators: frozenset[str] = frozenset()) -> Step:
    """The kind and the spec of a `run` object, which names exactly one kind or installed operator."""
    if not isinstance(value, Mapping):
        raise InvalidInput('A step is an object such as {"command": ["python", "report.py"]}.', path)
    found = [one for one in value if one in KINDS] or [one for one in value if one in operators]
    if len(found) > 1:
        raise InvalidInput(f"A step is of one kind, not of {len(found)}: {', '.join(found)}.", path)
    if not found:
        known = [*KINDS, *sorted(operators)]
        wrong = next(iter(value), None)
        if wrong is None:
            raise InvalidInput(f"A step is one of {', '.join(known)}.", path)
        raise InvalidInput(f"There is no kind of step '{wrong[:64]}'{nearest(wrong, known)}", path)
    step = found[0]
    kind = KINDS.get(step, _OPERATOR)
    fields = Fields(value, path)
    # A shell's own syntax is not ours to split.
    is_line = step == "command" and value.get("shell") is True
    if kind.main is None:
        spec: Mapping[str, Any] = fields.get(step, partial(_read_object, kind), {}, required=True)
    else:
        main = fields.get(step, text(COMMAND_CHARS_MAX) if is_line else kind.main, "", required=True)
        _read_fields(kind, fields)
        spec = _spec(list(main) if isinstance(main, tuple) else main, step, value)
    fields.done()
    for option, given in value.items():
        if not kind.is_open:
            check(given, fields.path(option), is_shell=is_line and option == step)
    return step, spec


def read_stored_step(value: Mapping[str, Any], path: str) -> Step:  # noqa: ARG001 - a reader
    """What `read_step` read, from a canonical document, which was checked when it was saved."""
    step = next((one for one in value if one in KINDS), None) or next(iter(value))
    if KINDS.get(step, _OPERATOR).main is None:
        return step, value[step]
    return step, _spec(value[step], step, value)


def _spec(main: Any, step: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    options = {option: given for option, given in value.items() if option != step and given is not None}
    return {"value": main, **options}


def _read_object(kind: Kind, value: Any, path: str) -> Mapping[str, Any]:
    fields = Fields(value, path)
    if kind.is_open:
        return dict(value)
    _read_fields(kind, fields)
    if kind.either and len(fields.given(*kind.either)) != 1:
        fields.refuse("", f"Exactly one of {' and '.join(kind.either)} is right.")
    fields.done()
    return dict(value)


def _read_fields(kind: Kind, fields: Fields) -> None:
    for option, read in kind.fields.items():
        fields.get(option, read, None, required=option in kind.needed)
