"""Secrets as a definition names them: one of ours by its id, or one that AWS keeps by where it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.ids import check_name
from sweephand.domain.job import Task
from sweephand.domain.sensor import SENSOR
from sweephand.errors import InvalidInput

VALUE_BYTES_MAX: Final = 65_536
VALUE_CHARS_MIN: Final = 4
"""A shorter one would be found everywhere, and could not be taken out of what tasks say."""

SECRETS_MANAGER: Final = "secretsmanager"
PARAMETER_STORE: Final = "ssm"
_ELSEWHERE: Final = re.compile(
    rf"({SECRETS_MANAGER}):([A-Za-z0-9/_+=.@:-]{{1,2048}})(?:#([^#]{{1,256}}))?"
    rf"|({PARAMETER_STORE}):([A-Za-z0-9/_.:-]{{1,2048}})"
)


class Elsewhere(Struct, frozen=True):
    """A secret that AWS keeps: in which store, under which name or ARN, and which field of it where it is JSON."""

    store: str
    name: str
    field: str = ""


def elsewhere(reference: str) -> Elsewhere | None:
    """What a reference to AWS says; None where it is the id of a secret of ours."""
    found = _ELSEWHERE.fullmatch(reference)
    if found is None:
        return None
    return Elsewhere(found[1], found[2], found[3] or "") if found[1] else Elsewhere(found[4], found[5])


def read_reference(value: Any, path: str) -> str:
    """A reader of a reference."""
    if not isinstance(value, str) or ":" not in value:
        return check_name(value, path=path)
    if elsewhere(value) is None:
        # What it is is not said: it may be a value that somebody put where its name belongs.
        raise InvalidInput("This names no secret: write the id of one, secretsmanager:NAME#FIELD, or ssm:/PATH.", path)
    return value


def declared(task: Task) -> Mapping[str, str]:
    """The secrets of a task: what each is called in it, and where its value is."""
    return secrets_of(task.kind, task.spec)


def secrets_of(kind: str, spec: Mapping[str, Any]) -> Mapping[str, str]:
    """The same, of a spec; a sensor has them where it says what it asks."""
    where = spec.get("http") or {} if kind == SENSOR else spec
    found: Mapping[str, str] = where.get("secrets") or {} if isinstance(where, Mapping) else {}
    return found


def check_value(value: str) -> None:
    """Refuse a value that cannot be kept, or not kept secret; without saying it."""
    if len(value) < VALUE_CHARS_MIN:
        raise InvalidInput(f"A secret has at least {VALUE_CHARS_MIN} characters: this one has {len(value)}.", "value")
    size = len(value.encode())
    if size > VALUE_BYTES_MAX:
        raise InvalidInput(f"A secret takes at most {VALUE_BYTES_MAX} bytes: this one takes {size}.", "value")
    if "\0" in value:
        raise InvalidInput("A secret has no NUL character in it: no environment variable can hold one.", "value")
    if not value.strip():
        raise InvalidInput("A secret is not made of spaces only.", "value")
