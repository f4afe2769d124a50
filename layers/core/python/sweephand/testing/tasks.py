"""What the tasks of a virtual scheduler do: the functions that a test gives them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.duration import format_duration
from sweephand.domain.ids import JobName
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.templates import resolve
from sweephand.messages import Elsewhere
from sweephand.ports import Delivery

Function = Callable[[Call], Any]

_AT_ONCE: Final = timedelta(0)
_GIVEN: Final[Mapping[str, Any]] = {"args": [], "kwargs": {}}


class Permanent(Exception):
    """Raise this, or a subclass, from a task that would fail again: it is not retried."""


class Pending(Struct, frozen=True):
    """An attempt under way, the message that is its lease's timer, and what it will come to."""

    call: Call
    delivery: Delivery
    outcome: Outcome | Elsewhere
    ends_at: datetime


class _Behaviour(Struct, frozen=True):
    function: Function | None = None
    takes: timedelta = _AT_ONCE


class Tasks:
    """The target. A task that nothing was said about succeeds at once."""

    def __init__(self) -> None:
        self._behaviours: dict[JobName, _Behaviour] = {}

    def set(self, job: JobName, function: Function | None, takes: timedelta) -> None:
        self._behaviours[job] = _Behaviour(function, takes)

    def execute(self, call: Call) -> Outcome:
        """What the call comes to, however long it takes."""
        if self._of(call).takes > call.timeout:
            return Failure("Timeout", f"The attempt took longer than {format_duration(call.timeout)}.")
        return _outcome(self._of(call).function, call)

    def length(self, call: Call) -> timedelta:
        """How long it takes: its time-out ends it."""
        return min(self._of(call).takes, call.timeout)

    def _of(self, call: Call) -> _Behaviour:
        return self._behaviours.get(call.run.key.job.name, _Behaviour())


def called(call: Call) -> Any:
    """What the function of a `python` task comes to, in this process; any other task comes to nothing."""
    if call.task.kind != "python":
        return None
    module, _, path = str(call.task.spec["value"]).partition(":")
    function: Any = sys.modules[module]
    for name in path.split("."):
        function = getattr(function, name)
    args, kwargs = (resolve(call.task.spec.get(field) or empty, call.known) for field, empty in _GIVEN.items())
    return function(*args, **kwargs)


def _outcome(function: Function | None, call: Call) -> Outcome:
    try:
        return Succeeded(function(call) if function is not None else None)
    except Exception as error:  # noqa: BLE001  # a task may fail in any way: that is stored, and retried or not
        kind = FailureClass.PERMANENT if isinstance(error, Permanent) else FailureClass.TRANSIENT
        return Failure(type(error).__name__, str(error), kind)
