"""What every operator is, and what it gets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol

from msgspec import Struct, field

from sweephand.domain.templates import resolve
from sweephand.operators.place import Place
from sweephand.ports import Call, Outcome


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
    cancellation: Cancellation = field(default_factory=Cancellation)

    @property
    def known(self) -> Mapping[str, Any]:
        """What its templates can name."""
        return {"params": self.call.params, "run": self.call.context}

    def option(self, name: str, default: Any = None) -> Any:
        """A field of the spec with its templates resolved; a wrong template is `InvalidInput`."""
        given = self.call.task.spec.get(name)
        path = self.call.task.kind if name == "value" else name  # as it is written
        return default if given is None else resolve(given, self.known, path)


class Operator(Protocol):
    """Runs tasks of one kind."""

    def execute(self, attempt: Attempt) -> Outcome:
        """Run the task once and say what came of it. `InvalidInput` is a failure that no repetition mends."""
