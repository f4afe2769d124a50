"""Templates between tasks: a task can only use the output of one that has ended before it can start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sweephand.domain.conditions import parse_condition
from sweephand.domain.dag import levels
from sweephand.domain.fields import nearest
from sweephand.domain.templates import ITEMS, Reference, pieces
from sweephand.errors import InvalidInput

__all__ = ["reference_errors"]

_STEPS: Final = ("run", "command")
_OF_INTEREST: Final = ("${tasks", *(f"${{{root}" for root in ITEMS))

_Found = tuple[str, Reference]


def reference_errors(tasks: Sequence[Any], path: Callable[[int], str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the tasks and items that the templates of these task documents name.

    Their edges are right. A template that cannot be read is somebody else's refusal.
    """
    places = {task["id"]: n for n, task in enumerate(tasks) if _is_named(task)}
    ancestry = _Ancestry(tasks, places)
    for n, task in enumerate(tasks):
        if not isinstance(task, Mapping):
            continue
        prefix = f"{path(n)}." if path(n) else ""
        for at, reference in _references(task):
            wrong = None
            if reference.names[0] in ITEMS:
                if not isinstance(task.get("map"), Mapping) or at.startswith("map."):
                    wrong = f"${{{reference}}} is known only where a task is mapped: to its step and its condition."
            elif reference.names[0] == "tasks":
                wrong = _wrong_task(reference, n, places, ancestry)
            if wrong is not None:
                yield f"{prefix}{at}", wrong


def _wrong_task(reference: Reference, n: int, places: Mapping[str, int], ancestry: _Ancestry) -> str | None:
    """What is wrong with a path that begins with `tasks`; ids may have dots, and the longest counts."""
    rest = reference.names[1:]
    ends = (end for end in range(len(rest), 0, -1) if ".".join(rest[:end]) in places)
    end = next(ends, None)
    if end is None:
        name = ".".join(rest[: rest.index("output")] if "output" in rest else rest)
        hint = nearest(name, ancestry.names(n)) if name else ": name one, such as ${tasks.extract.output}."
        return f"There is no task '{name[:128]}' before this one{hint}"
    name = ".".join(rest[:end])
    if end == len(rest) or rest[end] != "output":
        return f"What is known of a task is its output: ${{tasks.{name}.output}}."
    if not ancestry.is_before(places[name], n):
        if places[name] == n:
            return "A task cannot use its own output."
        return f"Task '{name}' need not have ended before this one starts: add it to its 'needs'."
    return None


class _Ancestry:
    """Which task comes before which; as sets of bits, since 10,000 tasks have 50 million such pairs."""

    __slots__ = ("_above", "_parents", "_places")

    def __init__(self, tasks: Sequence[Any], places: Mapping[str, int]) -> None:
        self._places = places
        self._parents = [
            frozenset(places[need] for need in (task.get("needs") or ()) if need in places) if _is_named(task) else ()
            for task in tasks
        ]
        self._above: list[int] | None = None

    def is_before(self, task: int, other: int) -> bool:
        return task in self._parents[other] or bool(self._bits()[other] >> task & 1)

    def names(self, task: int) -> list[str]:
        bits = self._bits()[task]
        return [name for name, place in self._places.items() if bits >> place & 1]

    def _bits(self) -> list[int]:
        if self._above is None:
            children: list[list[int]] = [[] for _ in self._parents]
            for n, needed in enumerate(self._parents):
                for parent in needed:
                    children[parent].append(n)
            level = levels([tuple(needed) for needed in self._parents], children)
            above = [0] * len(self._parents)
            for n in sorted(range(len(above)), key=level.__getitem__):
                for parent in self._parents[n]:
                    above[n] |= above[parent] | 1 << parent
            self._above = above
        return self._above


def _is_named(task: Any) -> bool:
    return isinstance(task, Mapping) and isinstance(task.get("id"), str)


# Finding them.


def _references(task: Mapping[str, Any]) -> Iterator[_Found]:
    """Every reference of a task's document that can be read, and its path within."""
    mapped = task.get("map")
    for field in _STEPS:
        step = task.get(field)
        shell = field == "run" and isinstance(step, Mapping) and step.get("shell") is True
        for at, text in _texts(step, field):
            is_shell = shell and at == "run.command"
            yield from ((at, one) for one in _read(text, is_shell=is_shell, is_mapped=mapped is not None))
    if isinstance(mapped, Mapping):
        yield from ((at, one) for at, text in _texts(mapped.get("over"), "map.over") for one in _read(text))
    condition = task.get("if")
    if isinstance(condition, str):
        try:
            yield from (("if", one) for one in parse_condition(condition, "if").references)
        except InvalidInput:
            pass  # refused with its path by whoever reads the task


def _read(text: str, *, is_shell: bool = False, is_mapped: bool = False) -> list[Reference]:
    try:
        found = pieces(text, "", is_shell=is_shell, is_mapped=is_mapped)
    except InvalidInput:
        return []  # refused with its path by whoever reads the step, unless it is an operator's own text
    return [one for one in found if isinstance(one, Reference)]


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if any(word in value for word in _OF_INTEREST):
            yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}")
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from _texts(item, f"{path}[{n}]")
