"""Similar small calls in one invocation: those that come within a moment, of one time-out, go together.

Whoever comes first waits a moment for the others and sends for all. Each has an outcome of its own. They share a
time-out, so that none waits for another beyond its own lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Condition
from typing import Final

from sweephand.calls import Call, Outcome

MOST: Final = 10
"""As many as one delivery brings."""
WITHIN: Final = timedelta(milliseconds=100)
"""How long the first waits for the others."""

Send = Callable[[Sequence[Call]], Sequence[Outcome]]


class _Group:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.outcomes: Sequence[Outcome] = ()
        self.error: Exception | None = None
        self.is_over = False


class Gathering:
    """Safe for many threads; each call belongs to one."""

    def __init__(self, send: Send, *, most: int = MOST, within: timedelta = WITHIN) -> None:
        self._send = send
        self._most = most
        self._within = within
        self._changed = Condition()
        self._open: dict[timedelta, _Group] = {}

    def execute(self, call: Call) -> Outcome:
        """What the call comes to; what keeps the whole invocation from coming about is raised to each of them."""
        with self._changed:
            group = self._open.get(call.timeout)
            leads = group is None
            if group is None:
                group = self._open[call.timeout] = _Group()
            place = len(group.calls)
            group.calls.append(call)
            if len(group.calls) >= self._most:
                del self._open[call.timeout]
            self._changed.notify_all()
        if leads:
            self._lead(group, call.timeout)
        with self._changed:
            self._changed.wait_for(lambda: group.is_over)
        if group.error is not None:
            raise group.error
        return group.outcomes[place]

    def _lead(self, group: _Group, timeout: timedelta) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(group.calls) >= self._most, self._within.total_seconds())
            if self._open.get(timeout) is group:
                del self._open[timeout]
        try:
            group.outcomes = self._send(group.calls)
        except Exception as error:  # noqa: BLE001  # it is raised to each of them
            group.error = error
        with self._changed:
            group.is_over = True
            self._changed.notify_all()
