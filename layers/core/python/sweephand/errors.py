"""What can go wrong, once.

    SweephandError
    ├── InvalidInput          400  the caller's fault; never retried
    ├── Refused               403  not allowed
    ├── NotFound              404  absent, or not yours
    ├── Conflict              409  the world moved on
    │   ├── IllegalTransition       a lifecycle has no such arrow
    │   ├── StaleVersion      412   an edit based on an old version
    │   └── StaleEpoch              a completion by a fenced attempt
    ├── TooMany               429  a limit, with the moment to come back
    ├── Unavailable           503  try again; the call may have taken effect
    └── Defect                500  our own bug: alarmed, never caught

A failing user task is not here: it is an outcome that is stored (`domain.retry.Failure`).
"""

from __future__ import annotations

__all__ = [
    "Conflict",
    "Defect",
    "IllegalTransition",
    "InvalidInput",
    "NotFound",
    "Refused",
    "StaleEpoch",
    "StaleVersion",
    "SweephandError",
    "TooMany",
    "Unavailable",
]


class SweephandError(Exception):
    """The root of everything that Sweephand raises on purpose."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(SweephandError):
    """The input is wrong; `path` names the field and the message says what would be right."""

    def __init__(self, message: str, path: str = "", *, errors: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.errors = errors or ((path, message),)


class Refused(SweephandError):
    """The caller is known and may not do this."""


class NotFound(SweephandError):
    """There is no such thing, or it belongs to somebody else."""


class Conflict(SweephandError):
    """The request does not fit the present state."""


class IllegalTransition(Conflict):
    """A lifecycle has no arrow for this event in this state."""

    def __init__(self, what: str, state: str, event: str) -> None:
        super().__init__(f"{what} is {state}: '{event}' is not possible.")


class StaleVersion(Conflict):
    """An edit was based on a version that is no longer the current one."""

    def __init__(self, job: str, expected: int, current: int) -> None:
        super().__init__(f"Job {job} is at version {current}, not {expected}: read it again and repeat the change.")
        self.current = current


class StaleEpoch(Conflict):
    """An attempt reported after its lease was taken over; its report changes nothing."""

    def __init__(self, run: str, epoch: int, current: int) -> None:
        super().__init__(f"Run {run} is at epoch {current}: the attempt with epoch {epoch} no longer owns it.")
        self.current = current


class TooMany(SweephandError):
    """A limit is reached; `retry_after_s` says when it may work."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(SweephandError):
    """A dependency did not answer: repeat the call, which is safe, since it may have taken effect."""


class Defect(SweephandError):
    """An invariant of our own is broken: nothing may catch this."""
