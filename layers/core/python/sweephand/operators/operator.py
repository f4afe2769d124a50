"""What every operator is, and what it gets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol, TypeVar, runtime_checkable

from msgspec import Struct, field

from sweephand.calls import Call, Outcome
from sweephand.clock import SystemClock
from sweephand.domain.bounds import USUAL, Bounds, read_bounds
from sweephand.domain.templates import resolve
from sweephand.logs import Line, Stream
from sweephand.operators.lines import Lines, text_of
from sweephand.operators.place import Place
from sweephand.operators.record import Record
from sweephand.operators.specs import options_as
from sweephand.ports import Clock
from sweephand.secrets import Redactor

S = TypeVar("S", bound=Struct)


class Cancellation:
    """Somebody's wish that an attempt should end; it may come before, while or after there is something to end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self._stop: Callable[[], None] | None = None

    def ask(self) -> None:
        """End it; does not wait for the end."""
        with self._lock:
            self._asked = True
            stop = self._stop
        if stop is not None:
            stop()

    def stops_by(self, stop: Callable[[], None]) -> None:
        """From now on the wish is this call, which must not wait; it is made at once where the wish came earlier."""
        with self._lock:
            self._stop = stop
            asked = self._asked
        if asked:
            stop()


class Attempt(Struct, frozen=True):
    """One call, the place where it happens, and the way to end it."""

    call: Call
    place: Place
    grace: timedelta
    """How long it has to end when it is told to."""
    redact: Redactor = field(default_factory=Redactor)
    """Takes the values of its secrets out of a text, before anybody keeps it: of its log, its output, its failure."""
    cancellation: Cancellation = field(default_factory=Cancellation)
    record: Record = field(default_factory=Record)
    clock: Clock = field(default_factory=SystemClock)
    place_bounds: Bounds = USUAL
    """What the place lets any program take."""

    @property
    def bounds(self) -> Bounds:
        """What a program of this attempt may take: by the place, and by the task."""
        named = self.call.task.spec.get("limits")
        return self.place_bounds if named is None else read_bounds(named, "limits").within(self.place_bounds)

    @property
    def known(self) -> Mapping[str, Any]:
        """What its templates can name. Values of secrets are in it: only what was checked at save may be resolved."""
        return self.call.known

    def log(self, text: str) -> None:
        """Say something in the attempt's log; what UTF-8 cannot carry, such as a file's odd name, is replaced."""
        now, told = self.clock.now(), text_of(self.redact(text).encode(errors="replace"))
        self.record.add([Line(now, Stream.SYSTEM, line) for line in told.splitlines() or [""]])

    def lines(self) -> Lines:
        """What a process of the attempt writes goes to its log."""
        return Lines(self.record.add, clock=self.clock, redact=self.redact)

    def option(self, name: str, default: Any = None) -> Any:
        """A field of the spec with its templates resolved; a wrong template is `InvalidInput`."""
        given = self.call.task.spec.get(name)
        path = self.call.task.kind if name == "value" else name  # as it is written
        return default if given is None else resolve(given, self.known, path)

    def options(self, spec: type[S]) -> S:
        """All of the spec, its templates resolved, as an installed operator's struct; else `InvalidInput`."""
        return options_as(spec, resolve(self.call.task.spec, self.known))


class Operator(Protocol):
    """Runs tasks of one kind."""

    def execute(self, attempt: Attempt) -> Outcome:
        """Run the task once and say what came of it. `InvalidInput` is a failure that no repetition mends."""


@runtime_checkable
class Stopping(Protocol):
    """An operator whose tasks go on elsewhere between its looks, and that can end them there."""

    def stop(self, attempt: Attempt) -> None:
        """Nobody waits for this attempt any more: end what goes on. Where nothing does, there is nothing to do."""
