"""What a program of a task may take of its machine."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.fields import Fields, Reader, duration, whole
from sweephand.errors import InvalidInput

__all__ = ["BOUNDS", "CPU_TIME", "USUAL", "Bounds", "parse_bounds", "read_bounds"]

CPU_TIME: Final = (timedelta(seconds=1), timedelta(days=7))
BOUNDS: Final = {
    "cpu": (1, 1_024),
    "memory": (16, 1_048_576),
    "processes": (1, 100_000),
    "file": (1, 1_048_576),
    "output": (1, 1_048_576),
}
"""The whole numbers among the limits, and from where to where they go."""

_READERS: Final[dict[str, Reader[Any]]] = {
    "cpuTime": duration(*CPU_TIME),
    **{name: whole(low, high) for name, (low, high) in BOUNDS.items()},
}


class Bounds(Struct, frozen=True):
    """Each counts all processes of an attempt together, except `file`; None is no limit."""

    cpu: int | None = None
    """Cores."""
    cpu_time: timedelta | None = None
    memory: int | None = None
    """Megabytes that are in use."""
    processes: int | None = None
    file: int | None = None
    """Megabytes of the largest file."""
    output: int | None = None
    """Megabytes of what is printed."""

    def within(self, other: Bounds) -> Bounds:
        """Of each limit, the smaller one."""
        return Bounds(
            _least(self.cpu, other.cpu),
            _least(self.cpu_time, other.cpu_time),
            _least(self.memory, other.memory),
            _least(self.processes, other.processes),
            _least(self.file, other.file),
            _least(self.output, other.output),
        )


USUAL: Final = Bounds(processes=1_000)
"""Where nobody says more: a program that starts itself over and over must not take the machine with it."""


def _least(one: Any, other: Any) -> Any:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def read_bounds(value: Any, path: str) -> Bounds:
    """The limits that a task names."""
    fields = Fields(value, path)
    found = {name: fields.get(name, read, None) for name, read in _READERS.items()}
    fields.done()
    return Bounds(cpu_time=found.pop("cpuTime"), **found)


def parse_bounds(words: Iterable[str], path: str) -> Bounds:
    """The limits of a place, each as `name=number`; the usual ones hold where none is named."""
    named: dict[str, Any] = {}
    for word in words:
        name, equals, number = word.partition("=")
        if not (name in _READERS and equals and number):
            raise InvalidInput(f"'{word[:64]}' is no limit: write {', '.join(_READERS)} as memory=512.", path)
        named[name] = int(number) if number.isascii() and number.isdigit() else number
    try:
        given = read_bounds(named, path)
    except InvalidInput as refused:
        at, message = refused.errors[0]
        raise InvalidInput(f"{at.rpartition('.')[2]}: {message}", at) from refused
    return given if given.processes is not None else given.within(USUAL)
