"""The JSON Schema of `run`: what a task can run here."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from sweephand.api.vocabulary import (
    FLAG,
    INSTANT,
    NAME,
    NAME_PATTERN,
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
from sweephand.domain.bounds import BOUNDS, CPU_TIME
from sweephand.domain.headers import HEADER_NAME, VALUE_CHARS_MAX
from sweephand.domain.kinds import (
    ADDRESS_CHARS_MAX,
    APPROVERS_MAX,
    ARGUMENTS_MAX,
    ATTRIBUTES_MAX,
    BUCKET,
    CODE,
    COMMAND_CHARS_MAX,
    CONTAINS_CHARS_MAX,
    HEADERS_MAX,
    KEY_CHARS_MAX,
    KINDS,
    LOOK_METHODS,
    METHODS,
    NOTHING_INSTALLED,
    OBJECT_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    RESPONSE_BYTES_MAX,
    STATUSES_MAX,
    VARIABLES_MAX,
    Installed,
)
from sweephand.domain.limits import MESSAGE_DELAY_MAX
from sweephand.domain.secret import PARAMETER_STORE, SECRETS_MANAGER

_A_SECOND: Final = timedelta(seconds=1)
_VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_ADDRESS: Final = text(ADDRESS_CHARS_MAX)
_PRINTABLE: Final = r"^[\t\x20-\x7e]*$"
_WORDS: Final = listed(text(PAYLOAD_BYTES_MAX, least=0), ARGUMENTS_MAX, least=1)
_LINE: Final = text(COMMAND_CHARS_MAX, format="command-line")
COMMAND: Final[Schema] = {
    "anyOf": [_WORDS, _LINE],
    "description": "The words of a command, or a line that is split as a shell would and run without one.",
}

_SECRETS: Final = mapped(
    _VARIABLE,
    {
        "type": "string",
        "pattern": f"{NAME_PATTERN}|^{SECRETS_MANAGER}:[A-Za-z0-9/_+=.@:-]{{1,2048}}(#[^#]{{1,256}})?$"
        f"|^{PARAMETER_STORE}:[A-Za-z0-9/_.:-]{{1,2048}}$",
        "description": "The id of a secret, or where AWS keeps one: secretsmanager:NAME#FIELD, ssm:/PATH.",
    },
    VARIABLES_MAX,
)
_PROCESS: Final = {
    "env": mapped(_VARIABLE, text(32_768, least=0), VARIABLES_MAX),
    "secrets": _SECRETS,
    "skipExitCode": whole(0, 255),
    "cwd": _ADDRESS,
    "limits": closed(
        all_optional({"cpuTime": period(*CPU_TIME), **{name: whole(*ends) for name, ends in BOUNDS.items()}}),
        description="Cores, processor time, MB of memory, processes, MB of a file, MB that are printed.",
    ),
}
_PYTHON: Final = {
    **_PROCESS,
    "args": listed({}, ARGUMENTS_MAX),
    "kwargs": anything(PAYLOAD_BYTES_MAX),
    "code": {**text(64, pattern=f"^{CODE}$"), "description": "A pack that this namespace has: see putCode."},
}

_TEMPLATE: Final = text(256, pattern=r"^\$\{(params\.[A-Za-z_][A-Za-z0-9_]*|run\.fireAt)\}$")
_OFTEN: Final = {"every": period(_A_SECOND, timedelta(days=1)), "timeout": period(_A_SECOND)}
_ABOUT_A_JOB: Final = {"state": {"enum": ["succeeded", "failed", "ended"]}, "within": period(_A_SECOND)}

_APPROVAL: Final = closed(
    all_optional(
        {
            "by": listed(
                text(128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$"), APPROVERS_MAX, least=1, distinct=True
            ),
            "timeout": period(_A_SECOND),
            "message": text(1_000),
        }
    ),
    description="Asks a person: a role, and those above it, or members; without any, an operator.",
)
_EXTERNAL: Final = all_optional({"secrets": _SECRETS, "prefer": {"enum": ["warm"]}})

_COMMAND_STEP: Final = closed(
    {"command": COMMAND, "shell": {"enum": [False, None]}, **all_optional(_PROCESS)}, required=["command"]
)
_SHELL_STEP: Final = closed(
    {"command": text(COMMAND_CHARS_MAX), "shell": {"const": True}, **all_optional(_PROCESS)},
    required=["command", "shell"],
)
_URL: Final = text(
    ADDRESS_CHARS_MAX,
    format="web-address",
    pattern=r"^(https?://|\$\{)\S+$",
    description="http or https. Where it is no template: a public address, or one that this place allows.",
)
_ASKED: Final = {
    "headers": mapped(f"^{HEADER_NAME}$", text(VALUE_CHARS_MAX, least=0, pattern=_PRINTABLE), HEADERS_MAX),
    "expect": listed(whole(100, 599), STATUSES_MAX, least=1, distinct=True),
    "secrets": _SECRETS,
}
_HTTP: Final = closed(
    {
        "url": _URL,
        **all_optional(
            {
                **_ASKED,
                "method": {"enum": list(METHODS)},
                "maxBytes": whole(0, RESPONSE_BYTES_MAX),
            }
        ),
        "body": {"description": "Text is sent as it is, all else as JSON."},
    },
    required=["url"],
    description="Headers that Sweephand sets, such as Host and Idempotency-Key, are refused.",
)
_LOOKS: Final = [
    ("job", NAME, _ABOUT_A_JOB),
    *(
        (
            "s3",
            closed(
                {
                    "bucket": {"anyOf": [text(63, pattern=f"^{BUCKET}$"), _TEMPLATE]},
                    one: text(KEY_CHARS_MAX),
                    **all_optional({"minBytes": whole(0, OBJECT_BYTES_MAX)}),
                },
                required=["bucket", one],
            ),
            {},
        )
        for one in ("key", "prefix")
    ),
    *(
        ("http", closed({"url": _URL, **all_optional({**_ASKED, **more})}, required=["url"]), {})
        for more in (
            {"method": {"enum": ["GET"]}, "contains": text(CONTAINS_CHARS_MAX)},
            {"method": {"enum": list(LOOK_METHODS)}},
        )
    ),
]
_CONTAINER: Final = closed(
    {
        "image": text(
            1_024, format="image", pattern=r"^[a-z0-9][A-Za-z0-9._:/@-]*$", description="One that this place allows."
        ),
        **all_optional(
            {
                **{name: shape for name, shape in _PROCESS.items() if name != "cwd"},
                "command": _WORDS,
                "entrypoint": _WORDS,
                "cpu": {**whole(1, 1_048_576), "description": "Units, of which 1024 are one CPU."},
                "memory": {**whole(1, 1_048_576), "description": "MB. On AWS, a size of Fargate with its CPU."},
                "disk": {**whole(1, 1_024), "description": "GB."},
                "architecture": {"enum": ["arm64", "x86_64"]},
                "spot": FLAG,
            }
        ),
    },
    required=["image"],
    description="Secrets are files in the folder that the variable SWEEPHAND_SECRETS names.",
)
_PAYLOAD: Final = {"description": "Anything that JSON has."}
_ATTRIBUTES: Final = mapped(r"^.{1,256}$", text(PAYLOAD_BYTES_MAX), ATTRIBUTES_MAX)
_LETTER: Final = {"attributes": _ATTRIBUTES, "group": text(128), "deduplicationId": text(128)}
_AWS_STEPS: Final = {
    "lambda": closed(
        {"lambda": _ADDRESS, **all_optional({"async": FLAG, "qualifier": text(128)}), "payload": _PAYLOAD},
        required=["lambda"],
    ),
    "sqs": closed(
        {"sqs": _ADDRESS, **all_optional({**_LETTER, "delay": period(most=MESSAGE_DELAY_MAX)}), "body": _PAYLOAD},
        required=["sqs"],
    ),
    "sns": closed(
        {"sns": _ADDRESS, **all_optional({**_LETTER, "subject": text(100)}), "message": _PAYLOAD}, required=["sns"]
    ),
    "event": closed(
        {
            "event": closed(
                {
                    "source": text(256),
                    "type": text(128),
                    **all_optional({"detail": anything(PAYLOAD_BYTES_MAX), "bus": _ADDRESS}),
                },
                required=["source", "type"],
            )
        },
        required=["event"],
    ),
    "stateMachine": closed(
        {"stateMachine": _ADDRESS, **all_optional({"async": FLAG}), "input": _PAYLOAD}, required=["stateMachine"]
    ),
    "awsSdk": closed(
        {
            "awsSdk": closed(
                {
                    "service": text(64),
                    "action": text(128),
                    **all_optional({"params": anything(PAYLOAD_BYTES_MAX), "region": text(64), "query": text(1_024)}),
                },
                required=["service", "action"],
            )
        },
        required=["awsSdk"],
    ),
}
_STEPS: Final = {
    "command": [_COMMAND_STEP, _SHELL_STEP],
    "python": [closed({"python": _ADDRESS, **all_optional(_PYTHON)}, required=["python"])],
    "wait": [
        closed({"wait": closed({one: {"anyOf": [shape, _TEMPLATE]}}, required=[one])}, required=["wait"])
        for one, shape in (("for", period()), ("until", INSTANT))
    ],
    "sensor": [
        closed(
            {"sensor": closed({one: shape, **all_optional({**_OFTEN, **more})}, required=[one])}, required=["sensor"]
        )
        for one, shape, more in _LOOKS
    ],
    "approval": [closed({"approval": _APPROVAL}, required=["approval"])],
    "job": [
        closed({"job": NAME, **all_optional({"params": anything(PAYLOAD_BYTES_MAX), "async": FLAG})}, required=["job"])
    ],
    "http": [closed({"http": _HTTP}, required=["http"])],
    "container": [closed({"container": _CONTAINER}, required=["container"])],
    "external": [closed({"external": {"type": "object", "properties": _EXTERNAL}}, required=["external"])],
    **{kind: [step] for kind, step in _AWS_STEPS.items()},
}


def step(kinds: Collection[str], operators: Installed = NOTHING_INSTALLED) -> Schema:
    """A step of one of these kinds, or of an installed operator; where neither says more, only the name is told."""
    installed = {kind: offer.schema for kind, offer in operators.items() if kind not in KINDS}
    known = [one for kind in _STEPS if kind in kinds for one in _STEPS[kind]]
    added = [closed({kind: dict(schema)}, required=[kind]) for kind, schema in installed.items()]
    unknown = sorted(set(kinds) - _STEPS.keys() - installed.keys())
    return {"anyOf": [*known, *added, *({"type": "object", "required": [kind]} for kind in unknown)]}
