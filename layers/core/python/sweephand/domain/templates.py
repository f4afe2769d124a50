"""Templates in a task's spec: `${params.region}` stands for a value. Paths only, no code.

A text that is one template takes the value as it is; inside other text a value becomes text. `$${` stands for `${`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.fields import json_bytes, nearest, refusal, shown
from sweephand.domain.job import Job, Task
from sweephand.domain.occasions import local_day
from sweephand.domain.plain import DEPTH_MAX
from sweephand.domain.run import Run
from sweephand.errors import InvalidInput

__all__ = ["ROOTS", "RUN_FACTS", "Reference", "as_text", "check", "look_up", "pieces", "resolve", "run_facts"]

ROOTS: Final = ("params", "run", "secrets", "tasks", "item", "index")
ITEMS: Final = ("item", "index")
"""The roots that only mapped tasks know."""
SECRETS: Final = "secrets"
RUN_FACTS: Final = (
    "id",
    "fireAt",
    "attempt",
    "idempotencyKey",
    "localDate",
    "intervalStart",
    "intervalEnd",
)
PATH_CHARS_MAX: Final = 512
RESOLVED_BYTES_MAX: Final = 1_048_576
"""All values that one spec's templates put in: a short spec can name a long value a thousand times."""

_OPEN: Final = "${"
_NAME: Final = re.compile(r"[\w-]+")
_OURS_MAPPED: Final = re.compile(rf"({'|'.join(ROOTS)})[.}}]")
# A shell's own loops like the names `item` and `index`.
_OURS: Final = re.compile(rf"({'|'.join(root for root in ROOTS if root not in ITEMS)})[.}}]")
_INTERVAL: Final = ("${run.interval", "${run}")


class Reference(Struct, frozen=True):
    """A template: the names along its path, the root first."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.names)


def pieces(text: str, path: str, *, is_shell: bool = False, is_mapped: bool = False) -> list[str | Reference]:
    """The text as literals and references, or a refusal of what is no template.

    In a line for a shell, `${HOME}` and all else that begins with none of our roots is the shell's own, and so are
    `${item}` and `${index}` unless the task is mapped.
    """
    ours = _OURS_MAPPED if is_mapped else _OURS
    found: list[str | Reference] = []
    done = 0  # up to where the text is in `found`
    seen = 0  # up to where it was looked at
    while (at := text.find(_OPEN, seen)) >= 0:
        seen = at + len(_OPEN)
        if at > done and text[at - 1] == "$":
            found += [text[done : at - 1], _OPEN]
        elif is_shell and not ours.match(text, seen):
            continue
        else:
            end = text.find("}", seen, seen + PATH_CHARS_MAX + 1)
            found += [text[done:at], _reference(text, seen, end, path)]
            seen = end + 1
        done = seen
    return [piece for piece in [*found, text[done:]] if piece]


def _reference(text: str, start: int, end: int, path: str) -> Reference:
    if end < 0:
        raise InvalidInput(
            f"{shown(text[start - 2 :])} has no end: a template is ${{path}} with at most {PATH_CHARS_MAX} characters, "
            "and '$${' stands for a '${' that begins none.",
            path,
        )
    names = tuple(text[start:end].split("."))
    if len(names) > DEPTH_MAX or not all(_NAME.fullmatch(name) for name in names):
        raise InvalidInput(
            f"{shown(text[start - 2 : end + 1])} is no template: it is a path such as ${{params.region}}, no code; "
            "'$${' stands for a '${' that begins none.",
            path,
        )
    if names[0] not in ROOTS:
        raise InvalidInput(
            f"'{names[0][:64]}' is no root of templates: use {', '.join(ROOTS)}; "
            "'$${' stands for a '${' that begins none.",
            path,
        )
    if names[0] == "run" and len(names) > 1 and (len(names) > 2 or names[1] not in RUN_FACTS):
        wrong = ".".join(names[1:])
        raise InvalidInput(f"A run has no '{wrong[:64]}'{nearest(wrong, RUN_FACTS)}", path)
    if names[0] == "index" and len(names) != 1:
        raise InvalidInput("${index} is a number, and has no parts.", path)
    if names[0] == SECRETS and len(names) != 2:
        raise InvalidInput("A secret is named by ${secrets.NAME}, one of those that the task declares.", path)
    return Reference(names)


def check(value: Any, path: str, *, is_shell: bool = False, secrets: Collection[str] | None = None) -> None:
    """Refuses templates that cannot mean anything, all at once; what exists shows only when a task runs.

    Secrets are the exception: `secrets` are those that may be named here, None where none may.
    """
    errors: list[tuple[str, str]] = []

    def look(text: str, at: str) -> str:
        try:
            for piece in pieces(text, at, is_shell=is_shell):
                if isinstance(piece, Reference) and piece.names[0] == SECRETS:
                    _check_secret(piece.names[1], at, secrets)
        except InvalidInput as refused:
            errors.extend(refused.errors)
        return text

    _each_text(value, path, look)
    if errors:
        raise refusal(errors)


def _check_secret(name: str, path: str, declared: Collection[str] | None) -> None:
    if declared is None:
        raise InvalidInput(
            f"${{secrets.{name[:64]}}} cannot stand here: secrets go into the values of env, and into url, headers and "
            "body of http.",
            path,
        )
    if name not in declared:
        raise InvalidInput(
            f"The task declares no secret '{name[:64]}': name it in its secrets, such as {{{name[:64]}: the-id}}.", path
        )


def resolve(value: Any, known: Mapping[str, Any], path: str = "") -> Any:
    """A copy with every template replaced; field names are left as they are."""
    left = RESOLVED_BYTES_MAX

    def replaced(text: str, at: str) -> Any:
        nonlocal left
        if _OPEN not in text:
            return text
        found = pieces(text, at)
        values = [look_up(piece, known, at) if isinstance(piece, Reference) else piece for piece in found]
        left -= sum(json_bytes(one) for one, piece in zip(values, found, strict=True) if isinstance(piece, Reference))
        if left < 0:
            raise InvalidInput(f"The values of the templates take more than {RESOLVED_BYTES_MAX} bytes.", at)
        return values[0] if len(values) == 1 else "".join(map(as_text, values))

    return _each_text(value, path, replaced)


def look_up(reference: Reference, known: Mapping[str, Any], path: str = "") -> Any:
    """The value at a reference's path; a name with dots in it is found too, the longest first."""
    value: Any = known
    rest: Sequence[str] = reference.names
    while rest:
        if isinstance(value, Mapping):
            joined = (".".join(rest[:count]) for count in range(len(rest), 0, -1))
            key: Any = next((name for name in joined if name in value), None)
            if key is None:
                raise _unknown(reference, rest, value, path)
            value, rest = value[key], rest[key.count(".") + 1 :]
        elif isinstance(value, list) and rest[0].isdecimal() and len(rest[0]) < 10 and int(rest[0]) < len(value):
            value, rest = value[int(rest[0])], rest[1:]
        else:
            raise _unknown(reference, rest, value, path)
    return value


def _unknown(reference: Reference, rest: Sequence[str], value: Any, path: str) -> InvalidInput:
    above = ".".join(reference.names[: len(reference.names) - len(rest)])
    where = f"'{above}'" if above else "here"
    if isinstance(value, Mapping):
        names = ", ".join(sorted(map(str, value))[:40]) if value else "nothing"
        has = f"{where} has {names}" if above else f"known here: {names}"
    elif isinstance(value, list):
        has = f"{where} is a list of {len(value)}, counted from 0"
    else:
        has = f"{where} is no object"
    return InvalidInput(f"'${{{reference}}}' is unknown: {has}.", path)


def as_text(value: Any) -> str:
    """A value inside other text: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _each_text(value: Any, path: str, change: Callable[[str, str], Any]) -> Any:
    if isinstance(value, str):
        return change(value, path)
    if isinstance(value, Mapping):
        return {key: _each_text(item, f"{path}.{key}" if path else key, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(item, f"{path}[{n}]", change) for n, item in enumerate(value)]
    return value


def run_facts(run: Run, job: Job, task: Task) -> dict[str, Any]:
    """What templates call `run`, as plain JSON; the interval only where the task asks for it, since it costs a search.

    A run that the schedule does not name has an interval of no length, and so has a schedule's first.
    """
    schedule, fire_at = job.schedule, run.fire_at
    facts = {
        "id": str(run.key.run_id),
        "fireAt": _instant(fire_at),
        "attempt": run.attempt,
        "idempotencyKey": run.idempotency_key(task.id),
        "localDate": local_day(fire_at, schedule.timezone if schedule else job.after_rule.timezone).isoformat(),
    }
    cache = task.cache or job.cache
    if not _mentions([task.spec, cache.key if cache else ""], _INTERVAL):
        return facts
    previous = schedule.previous_before(fire_at) if schedule is not None and schedule.names(fire_at) else None
    begins_at = run.interval_start or previous or fire_at
    return {**facts, "intervalStart": _instant(begins_at), "intervalEnd": _instant(fire_at)}


def _mentions(value: Any, words: tuple[str, ...]) -> bool:
    if isinstance(value, str):
        return any(word in value for word in words)
    if isinstance(value, Mapping):
        return any(_mentions(item, words) for item in value.values())
    return isinstance(value, list | tuple) and any(_mentions(item, words) for item in value)


def _instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
