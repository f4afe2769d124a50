"""An agent beside a container of somebody else's: it prepares what they share, and waits for that container's end.

What the container prints comes over a socket, and its exit code from ECS, which tells every container of a task about
the others. That container begins when the mark of readiness is there, so that it finds its checkpoint and its secrets.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from msgspec import Struct

from sweephand.agent.fluent import Printed
from sweephand.agent.place import Shared
from sweephand.calls import Outcome
from sweephand.domain.duration import format_duration
from sweephand.domain.retry import Failure, FailureClass
from sweephand.engine.complete import TIMEOUT
from sweephand.errors import Defect
from sweephand.operators.container import leave_secrets
from sweephand.operators.operator import Attempt
from sweephand.operators.program import came_of
from sweephand.topology import TASK_CONTAINER

LOOK_EVERY_S: Final = 1.0
_ANSWER_WITHIN_S: Final = 5.0
_STOPPED: Final = "STOPPED"
_SIGNALS: Final = 128
"""An exit code beyond this is a signal, as engines of containers say it."""


class Seen(Struct, frozen=True):
    """What ECS says of the other container."""

    has_ended: bool
    code: int | None
    is_stopping: bool
    """Whether the whole task is being stopped."""


class Beside:
    """Waits for the task's own container."""

    def __init__(self, metadata: str, socket: Path, *, look_every: timedelta = timedelta(seconds=LOOK_EVERY_S)) -> None:
        self._address = f"{metadata.rstrip('/')}/task"
        self._socket = socket
        self._look_every_s = look_every.total_seconds()

    def execute(self, attempt: Attempt) -> Outcome:
        place = attempt.place
        if not isinstance(place, Shared):
            raise Defect("A container and its agent share a volume, and here is none.")
        stop = threading.Event()
        attempt.cancellation.stops_by(stop.set)
        deadline = attempt.clock.now() + attempt.call.timeout
        leave_secrets(attempt.call, place.files)
        with Printed(self._socket, attempt.lines(), note=attempt.log) as printed:
            place.ready.touch()
            while True:
                seen = self._look()
                if seen is not None and seen.has_ended:
                    break
                if stop.wait(self._look_every_s):
                    return Failure("Cancelled", "The attempt was told to stop.")
                if attempt.clock.now() >= deadline:
                    return Failure(TIMEOUT, f"The attempt took longer than {format_duration(attempt.call.timeout)}.")
        if seen.is_stopping and seen.code != 0:
            return Failure("Interrupted", "The task was stopped before it had ended.")
        if seen.code is None:
            return Failure("NotStarted", "The container could not be started.", FailureClass.PERMANENT)
        code = _SIGNALS - seen.code if seen.code > _SIGNALS else seen.code
        return came_of(attempt, code, printed.out, printed.err)

    def _look(self) -> Seen | None:
        """None where nothing is known: the next look tells."""
        try:
            with urlopen(self._address, timeout=_ANSWER_WITHIN_S) as answer:
                return seen_of(json.load(answer))
        except (OSError, ValueError, HTTPException):
            return None


def seen_of(task: Mapping[str, Any]) -> Seen | None:
    """What the metadata of a task, in its version 4, says of the container that is not the agent."""
    for container in task.get("Containers") or ():
        if container.get("Name") == TASK_CONTAINER:
            code = container.get("ExitCode")
            return Seen(
                container.get("KnownStatus") == _STOPPED,
                code if isinstance(code, int) else None,
                task.get("DesiredStatus") == _STOPPED,
            )
    return None
