"""What is known only when a job runs, and stands in its file as a path: outputs of tasks, params, items of maps."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sweephand.dsl.where import wrong

if TYPE_CHECKING:
    from sweephand.dsl.recording import Recorded

__all__ = ["Condition", "Value", "index", "item", "params", "plain", "run"]

_NAME: Final = re.compile(r"[\w-]+(\.[\w-]+)*")
_NOT_YET: Final = (
    "Its value is known only when the job runs, and this line is run when the job is applied. To decide by it, give a "
    "task `if_=`, such as load.options(if_=rows.count > 0), or use @task.branch; to go through a list, use .map."
)


class Value:
    """A value to come: `${path}` in the document. Its fields are values too, as attributes or in brackets."""

    __slots__ = ("_path", "_recorded")

    def __init__(self, path: str, recorded: Recorded | None = None) -> None:
        self._path = path
        self._recorded = recorded

    def __getitem__(self, field: str | int) -> Value:
        if isinstance(field, bool) or not isinstance(field, str | int):
            raise wrong(f"{self!r} has fields named by text and places of a list by number, not by a {_kind(field)}.")
        name = str(field)
        if not _NAME.fullmatch(name):
            raise wrong(f"A template cannot name the field {name!r}: letters, digits, '_', '-' and '.' can be in it.")
        return Value(f"{self._path}.{name}", self._recorded)

    def __getattr__(self, field: str) -> Value:
        if field.startswith("__"):
            raise AttributeError(field)  # what Python itself asks for: copies, pickles, protocols
        return self[field]

    def __str__(self) -> str:
        return f"${{{self._path}}}"

    def __repr__(self) -> str:
        return f"the value of {self}"

    def __format__(self, spec: str) -> str:
        if spec:
            raise wrong(f"{self!r} cannot be formatted as {spec!r}. {_NOT_YET}")
        return str(self)

    # Order.

    def __rshift__(self, after: Any) -> Any:
        _recorded(self).recording.order([self], after)
        return after

    def __lshift__(self, before: Any) -> Any:
        _recorded(self).recording.order(before, [self])
        return before

    def __rrshift__(self, before: Any) -> Value:
        _recorded(self).recording.order(before, [self])
        return self

    def __rlshift__(self, after: Any) -> Value:
        _recorded(self).recording.order([self], after)
        return self

    # Conditions.

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition.comparing(self, "==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition.comparing(self, "!=", other)

    def __lt__(self, other: object) -> Condition:
        return Condition.comparing(self, "<", other)

    def __le__(self, other: object) -> Condition:
        return Condition.comparing(self, "<=", other)

    def __gt__(self, other: object) -> Condition:
        return Condition.comparing(self, ">", other)

    def __ge__(self, other: object) -> Condition:
        return Condition.comparing(self, ">=", other)

    __hash__ = object.__hash__

    # What Python would need the value itself for.

    def __bool__(self) -> NoReturn:
        raise wrong(f"{self!r} cannot be asked whether it is true. {_NOT_YET}")

    def __iter__(self) -> NoReturn:
        raise wrong(f"{self!r} cannot be gone through. {_NOT_YET}")

    def __len__(self) -> NoReturn:
        raise wrong(f"{self!r} has no length yet. {_NOT_YET}")

    def __index__(self) -> NoReturn:
        raise wrong(f"{self!r} is no number yet. {_NOT_YET}")

    def __contains__(self, _item: object) -> NoReturn:
        raise wrong(f"{self!r} cannot be searched. {_NOT_YET}")

    def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise wrong(f"{self!r} is no function. {_NOT_YET}")


def _recorded(value: Value) -> Recorded:
    if value._recorded is None:
        raise wrong(f"{value!r} is no task: only tasks come before and after each other.")
    return value._recorded


class Condition:
    """A comparison for `if_=`; combined with `&`, `|` and `~`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def comparing(cls, left: Value, operator: str, right: object) -> Condition:
        return cls(f"{left} {operator} {_operand(right)}")

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.text}) and ({condition(other)})")

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self.text}) or ({condition(other)})")

    def __invert__(self) -> Condition:
        return Condition(f"not ({self.text})")

    def __repr__(self) -> str:
        return f"the condition {self.text}"

    def __bool__(self) -> NoReturn:
        raise wrong(f"{self!r} is not decided yet, so Python's `if`, `and`, `or` and `not` cannot use it: {_INSTEAD}")


_INSTEAD: Final = "give it to a task, load.options(if_=…), and combine conditions with & | ~ in parentheses."


def condition(given: object) -> str:
    """The text of a condition."""
    if isinstance(given, Condition):
        return given.text
    if isinstance(given, str | Value):
        return str(given)
    raise wrong(f"A condition is a comparison such as rows.count > 0, or its text, and no {_kind(given)}.")


def _operand(value: object) -> str:
    if isinstance(value, Value):
        return str(value)
    return json.dumps(plain(value, "the other side of a comparison"), ensure_ascii=False)


def plain(value: object, what: str) -> Any:
    """The value as JSON has it, with a template for each that is to come; `what` names it in an error."""
    if isinstance(value, Value):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return value + ""  # a plain text, also of an enum's
    if isinstance(value, float):
        if not math.isfinite(value):
            raise wrong(f"{what} is {value}, which is no number in JSON.")
        return value
    if isinstance(value, list | tuple):
        return [plain(one, f"{what}[{n}]") for n, one in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, what): plain(one, f"{what}[{key!r}]") for key, one in value.items()}
    if isinstance(value, timedelta | date):
        return _time(value, what)
    if isinstance(value, Condition):
        raise wrong(f"{what} is {value!r}: conditions are for `if_=` of a task.")
    told = getattr(value, "as_argument", None)
    if told is not None:
        raise wrong(f"{what} is {told}.")
    raise wrong(f"{what} is a {_kind(value)}, which JSON does not have: use text, numbers, lists, dicts, None.")


def _time(value: timedelta | date, what: str) -> Any:
    """A length in seconds, a moment as RFC 3339 in UTC, a day as itself."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return int(seconds) if seconds.is_integer() else seconds
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise wrong(f"{what} is a time without a zone: give it one, such as UTC.")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _key(key: object, what: str) -> str:
    if not isinstance(key, str):
        raise wrong(f"{what} has the key {key!r}: in JSON, keys are text.")
    return key + ""


def _kind(value: object) -> str:
    return type(value).__name__


params: Final = Value("params")
"""The params of the run: `params.region`."""
item: Final = Value("item")
"""In a mapped task, the item of its instance: `load.map(files, path=item.path)`."""
index: Final = Value("index")
"""In a mapped task, the place of its item, counted from 0."""
run: Final = Value("run")
"""What is known of the run: `run.id`, `run.fireAt`, `run.intervalStart`, `run.localDate`, `run.attempt`."""
