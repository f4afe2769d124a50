"""The one lease that an agent speaks for, over the API."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from msgspec import Struct

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.client.connection import Connection, checked_token, checked_url
from sweephand.client.resources import Leases
from sweephand.client.transport import Transport
from sweephand.domain.retry import Failure
from sweephand.errors import Conflict, Defect, NotFound, Refused, TooMany, Unavailable
from sweephand.orders import decode_call
from sweephand.ports import Clock

BY_LEASE: Final = "lease."
"""What its token begins with; the id of the lease follows."""
ANSWER_WITHIN_S: Final = 10.0
ASK_AGAIN: Final = timedelta(seconds=5)
INSIST_FOR: Final = timedelta(minutes=15)
"""How long an agent tries to be heard that has something to say which nobody else knows."""
_GONE: Final = (Conflict, NotFound, Refused)
_AGAIN: Final = (Unavailable, TooMany, Defect)
_TOLD_CHARS_MAX: Final = 1_000
_NAME_CHARS_MAX: Final = 256

T = TypeVar("T")


class Fenced(Exception):
    """The run was cancelled, or taken over, or ended: whatever is done for it now is done for nobody."""


class Work(Struct, frozen=True):
    """What there is to do, and what the last attempt left."""

    call: Call
    checkpoint: Any = None


class OwnLease:
    """Speaks for one attempt. `Fenced` where it is nobody's any more."""

    def __init__(
        self, url: str, lease: str, epoch: int, *, clock: Clock, wait: Callable[[float], object] | None = None
    ) -> None:
        connection = Connection(checked_url(url), checked_token(f"{BY_LEASE}{lease}"), None)
        self._http = Transport(connection, timeout_s=ANSWER_WITHIN_S, tries_max=2)
        self._leases = Leases(self._http)
        self._lease, self._epoch = lease, epoch
        self._clock = clock
        self._wait = wait or threading.Event().wait

    def close(self) -> None:
        self._http.close()

    def look(self) -> Work:
        """The work of the lease; insisted on, since an agent without work is of no use."""
        answer = self._insist(lambda: self._leases.get(self._lease, self._epoch))
        return Work(decode_call(answer["call"]), answer.get("checkpoint"))

    def beat(self, *, progress: int | None, checkpoint: Any = None) -> None:
        """It is alive. `Unavailable` where nobody heard it: the lease outlives some lost words."""
        try:
            self._leases.heartbeat(self._lease, self._epoch, progress=progress, checkpoint=checkpoint)
        except _GONE as gone:
            raise Fenced(gone.message) from gone

    def report(self, outcome: Outcome) -> None:
        """What came of it; insisted on. Saying it twice changes nothing."""
        self._insist(lambda: self._say(outcome))

    def _say(self, outcome: Outcome) -> Any:
        match outcome:
            case Succeeded(output):
                return self._leases.complete(self._lease, self._epoch, output)
            case Skipped(reason):
                return self._leases.complete(self._lease, self._epoch, skipped=reason[:200])
            case Failure():
                name, told = outcome.error[:_NAME_CHARS_MAX], outcome.message[:_TOLD_CHARS_MAX]
                error = {"name": _sendable(name) or "Error", "message": _sendable(told)}
                return self._leases.fail(self._lease, self._epoch, error, str(outcome.kind))
            case _:
                raise Defect(f"An agent's work cannot come to {type(outcome).__name__}.")

    def _insist(self, ask: Callable[[], T]) -> T:
        until: datetime = self._clock.now() + INSIST_FOR
        while True:
            try:
                return ask()
            except _GONE as gone:
                raise Fenced(gone.message) from gone
            except _AGAIN:
                if self._clock.now() >= until:
                    raise
                self._wait(ASK_AGAIN.total_seconds())


def _sendable(text: str) -> str:
    """The text without what UTF-8 cannot carry."""
    return text.encode(errors="replace").decode()
