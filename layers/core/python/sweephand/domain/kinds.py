"""What a task can run: how each kind of step is written in a definition."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from sweephand.domain.access import check_member
from sweephand.domain.addresses import Allowed, check_written_url
from sweephand.domain.bounds import read_bounds
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
from sweephand.domain.headers import header_name, header_value
from sweephand.domain.limits import MESSAGE_DELAY_MAX
from sweephand.domain.secret import read_reference, secrets_of
from sweephand.domain.sensor import SUBJECTS
from sweephand.domain.templates import check
from sweephand.errors import InvalidInput

__all__ = [
    "KINDS",
    "Installed",
    "Offer",
    "Step",
    "argv",
    "http_within",
    "read_step",
    "read_stored_step",
    "sensor_within",
]

Step = tuple[str, Mapping[str, Any]]
"""The kind of a step, and what its operator gets."""

COMMAND_CHARS_MAX: Final = 8_192
ARGUMENTS_MAX: Final = 1_000
VARIABLES_MAX: Final = 200
ADDRESS_CHARS_MAX: Final = 2_048
PAYLOAD_BYTES_MAX: Final = 131_072
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HEADERS_MAX: Final = 100
STATUSES_MAX: Final = 50
RESPONSE_BYTES_MAX: Final = 104_857_600
LOOK_METHODS: Final = ("GET", "HEAD")
CONTAINS_CHARS_MAX: Final = 1_024
BUCKET: Final = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
KEY_CHARS_MAX: Final = 1_024
OBJECT_BYTES_MAX: Final = 2**46
APPROVERS_MAX: Final = 50
CODE: Final = r"[0-9a-f]{64}"
ATTRIBUTES_MAX: Final = 9
"""SQS takes ten, of which one is the idempotency key."""

_ADDRESS: Final = text(ADDRESS_CHARS_MAX)
_VARIABLE: Final = text(
    128, pattern=r"[A-Za-z_][A-Za-z0-9_]*", right="a variable is letters, digits and '_', no digit first"
)
_ARGUMENTS: Final = listed(text(PAYLOAD_BYTES_MAX, least=0), ARGUMENTS_MAX, least=1)
_ENV: Final = mapped(_VARIABLE, text(32_768, least=0), VARIABLES_MAX)
_SECRETS: Final = mapped(_VARIABLE, read_reference, VARIABLES_MAX)
_ATTRIBUTES: Final = mapped(text(256), text(PAYLOAD_BYTES_MAX), ATTRIBUTES_MAX)
_URL_TEXT: Final = text(
    ADDRESS_CHARS_MAX, pattern=r"(https?://|\$\{)\S+", right="a URL begins with https:// or http://"
)
_CODE: Final = text(64, pattern=CODE, right="code is named by the SHA-256 of its zip, 64 hex digits")
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


def _url(value: Any, path: str) -> str:
    """A URL that some place could allow; see `http_within` for what one place does."""
    given = _URL_TEXT(value, path)
    check_written_url(given, path)
    return given


def _approver(value: Any, path: str) -> str:
    """A role, which those above it share, or a member."""
    return check_member(value, path=path)


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
    """Its operator checks the other fields itself."""
    with_secrets: frozenset[str] = frozenset({"env"})
    """The fields in which templates may name secrets."""
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of what is written instead of a field: which fields do not go with it."""


_S3_LOOK: Final = Kind(
    fields={
        "bucket": _templated(text(63, pattern=BUCKET, right="a bucket is named by 3 to 63 small letters and digits")),
        "key": text(KEY_CHARS_MAX),
        "prefix": text(KEY_CHARS_MAX),
        "minBytes": whole(0, OBJECT_BYTES_MAX),
    },
    needed=("bucket",),
    either=("key", "prefix"),
)
_HTTP_LOOK: Final = Kind(
    fields={
        "url": _url,
        "method": one_of(*LOOK_METHODS),
        "headers": mapped(header_name, header_value, HEADERS_MAX),
        "expect": listed(whole(100, 599), STATUSES_MAX, least=1, distinct=True),
        "contains": text(CONTAINS_CHARS_MAX),
        "secrets": _SECRETS,
    },
    needed=("url",),
)


def _s3_look(value: Any, path: str) -> Any:
    return _read_object(_S3_LOOK, None, value, path)


def _http_look(value: Any, path: str) -> Any:
    read = _read_object(_HTTP_LOOK, None, value, path)
    if read.get("contains") is not None and read.get("method") == "HEAD":
        raise InvalidInput("An answer to HEAD has no body: use GET.", f"{path}.contains")
    return read


_ABOUT_A_JOB: Final = ("state", "within")

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "command": Kind(argv, {**_PROCESS, "shell": flag, "cwd": _ADDRESS, "limits": read_bounds}),
        "python": Kind(
            _ADDRESS,
            {
                **_PROCESS,
                "args": listed(anything, ARGUMENTS_MAX),
                "kwargs": object_of(PAYLOAD_BYTES_MAX),
                "code": _CODE,
                "cwd": _ADDRESS,
                "limits": read_bounds,
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
                "architecture": one_of("arm64", "x86_64"),
                "spot": flag,
            },
            needed=("image",),
            # Variables of a container can be read by whoever may look at it: its secrets are files.
            with_secrets=frozenset(),
        ),
        "lambda": Kind(_ADDRESS, {"payload": anything, "async": flag, "qualifier": text(128)}),
        "http": Kind(
            fields={
                "url": _url,
                "method": one_of(*METHODS),
                "headers": mapped(header_name, header_value, HEADERS_MAX),
                "body": anything,
                "expect": listed(whole(100, 599), STATUSES_MAX, least=1, distinct=True),
                "maxBytes": whole(0, RESPONSE_BYTES_MAX),
                "secrets": _SECRETS,
            },
            needed=("url",),
            with_secrets=frozenset({"url", "headers", "body"}),
        ),
        "sqs": Kind(
            _ADDRESS,
            {
                "body": anything,
                "attributes": _ATTRIBUTES,
                "group": text(128),
                "deduplicationId": text(128),
                "delay": _templated(duration(most=MESSAGE_DELAY_MAX)),
            },
        ),
        "sns": Kind(
            _ADDRESS,
            {
                "message": anything,
                "subject": text(100),
                "attributes": _ATTRIBUTES,
                "group": text(128),
                "deduplicationId": text(128),
            },
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
            fields={
                "service": text(64),
                "action": text(128),
                "params": object_of(PAYLOAD_BYTES_MAX),
                "region": text(64),
                "query": text(1_024),
            },
            needed=("service", "action"),
        ),
        "job": Kind(name, {"params": object_of(PAYLOAD_BYTES_MAX), "async": flag}),
        "wait": Kind(fields={"for": _templated(duration()), "until": _templated(instant)}, either=("for", "until")),
        "sensor": Kind(
            fields={
                "job": name,
                "s3": _s3_look,
                "http": _http_look,
                "state": one_of("succeeded", "failed", "ended"),
                "within": duration(timedelta(seconds=1)),
                "every": duration(timedelta(seconds=1), timedelta(days=1)),
                "timeout": duration(timedelta(seconds=1)),
            },
            either=SUBJECTS,
            with_secrets=frozenset({"http"}),
            others={"s3": _ABOUT_A_JOB, "http": _ABOUT_A_JOB},
        ),
        "approval": Kind(
            fields={
                "by": listed(_approver, APPROVERS_MAX, least=1, distinct=True),
                "timeout": duration(timedelta(seconds=1)),
                "message": text(1_000),
            }
        ),
        "external": Kind(fields={"secrets": _SECRETS, "prefer": one_of("warm")}, is_open=True),
    }
)

_OPERATOR: Final = Kind(is_open=True)


class Offer(Struct, frozen=True):
    """What a place says of a kind of step: how its object is read, and the schema of that."""

    read: Reader[Any] = anything
    schema: Mapping[str, Any] = MappingProxyType({"type": "object"})
    parts: Mapping[str, Any] = MappingProxyType({})
    """Schemas that it refers to, by their names among the components of the API's document."""


Installed = Mapping[str, Offer]
"""The operators that are installed beside the built-in ones; of a built-in one, what a place checks besides."""
NOTHING_INSTALLED: Final[Installed] = MappingProxyType({})


def http_within(allowed: Allowed) -> Offer:
    """`http` in a place whose requests may reach public addresses, and what is allowed besides."""

    def read(value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        check_written_url(value.get("url"), f"{path}.url", allowed)
        return value

    return Offer(read)


def sensor_within(allowed: Allowed) -> Offer:
    """The same for what a sensor asks."""

    def read(value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        asked = value.get("http")
        if asked is not None:
            check_written_url(asked.get("url"), f"{path}.http.url", allowed)
        return value

    return Offer(read)


def read_step(value: Any, path: str, *, operators: Installed = NOTHING_INSTALLED) -> Step:
    """The kind and the spec of a `run` object, which names exactly one kind or installed operator."""
    if not isinstance(value, Mapping):
        raise InvalidInput('A step is an object such as {"command": ["python", "report.py"]}.', path)
    found = [one for one in value if one in KINDS] or [one for one in value if one in operators]
    if len(found) > 1:
        raise InvalidInput(f"A step is of one kind, not of {len(found)}: {', '.join(found)}.", path)
    if not found:
        known = [*KINDS, *sorted(operators.keys() - KINDS.keys())]
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
        spec: Mapping[str, Any] = fields.get(step, partial(_read_object, kind, operators.get(step)), {}, required=True)
    else:
        main = fields.get(step, text(COMMAND_CHARS_MAX) if is_line else kind.main, "", required=True)
        _read_fields(kind, fields)
        spec = _spec(list(main) if isinstance(main, tuple) else main, step, value)
    fields.done()
    if not kind.is_open:
        options = value if kind.main else value[step]
        declared = secrets_of(step, options)
        for option, given in options.items():
            at = fields.path(option if kind.main else f"{step}.{option}")
            may = declared if option in kind.with_secrets else None
            check(given, at, is_shell=is_line and option == step, secrets=may)
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


def _read_object(kind: Kind, offer: Offer | None, value: Any, path: str) -> Mapping[str, Any]:
    fields = Fields(value, path)
    _read_fields(kind, fields)
    if kind.either and len(fields.given(*kind.either)) != 1:
        fields.refuse("", f"Exactly one of {', '.join(kind.either[:-1])} and {kind.either[-1]} is right.")
    for instead, not_with in kind.others.items():
        for wrong in fields.given(*not_with) if fields.given(instead) else ():
            fields.refuse(wrong, f"'{wrong}' is about another job's run, and does not go with '{instead}'.")
    fields.done(others=kind.is_open)
    if offer is not None:
        offer.read(value, path)
    return dict(value)


def _read_fields(kind: Kind, fields: Fields) -> None:
    for option, read in kind.fields.items():
        fields.get(option, read, None, required=option in kind.needed)
