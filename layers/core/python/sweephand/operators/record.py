"""The log of an attempt as it is written: by a thread of its own, so that a store's trouble is not the task's."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sweephand.logs import Line, Log, left_out

logger: Final = logging.getLogger("sweephand.operators")

EVERY: Final = timedelta(milliseconds=100)
"""How long lines gather before they are written."""
PENDING_MAX: Final = 1_048_576
_LINE_WEIGHT: Final = 128
_PATIENCE_S: Final = 2.0
"""How long a task that writes faster than its log waits; then the oldest lines that were not written are dropped."""
_CLOSE_TRIES: Final = 3
_BETWEEN_TRIES_S: Final = 0.5
END_WITHIN: Final = timedelta(seconds=15)
"""How long an attempt that has ended waits for its log."""


class Record:
    """Lines may come from any thread; the first one opens the log. Without a log, nothing is kept."""

    def __init__(self, begin: Callable[[], Log] | None = None, *, every: timedelta = EVERY) -> None:
        self._begin = begin
        self._every_s = every.total_seconds()
        self._changed = threading.Condition()
        self._pending: deque[Line] = deque()
        self._weight = 0
        self._lost = 0
        self._stalled = False
        self._ending = False
        self._thread: threading.Thread | None = None
        self._log: Log | None = None

    def add(self, lines: Sequence[Line]) -> None:
        """These come next; they are written soon, or counted."""
        if self._begin is None or not lines:
            return
        with self._changed:
            if self._ending:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_on, name="sweephand-record", daemon=True)
                self._thread.start()
            if self._weight >= PENDING_MAX and not self._stalled:
                self._stalled = not self._changed.wait_for(lambda: self._weight < PENDING_MAX, _PATIENCE_S)
            self._pending.extend(lines)
            self._weight += sum(map(_weight, lines))
            while self._stalled and self._weight > PENDING_MAX:
                self._weight -= _weight(self._pending.popleft())
                self._lost += 1
            self._changed.notify_all()

    def end(self, within: timedelta = END_WITHIN) -> None:
        """Write what is left, and close the log; a store that takes longer is not waited for."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(within.total_seconds())

    def _write_on(self) -> None:
        at: datetime | None = None
        while batch := self._next():
            at = batch[-1].at
            self._write(batch)
            with self._changed:
                self._changed.wait_for(lambda: self._ending or self._weight >= PENDING_MAX // 2, self._every_s)
        if at is not None:
            self._close(at)

    def _next(self) -> list[Line]:
        """What waits; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._ending)
            batch = list(self._pending)
            self._pending.clear()
            self._weight = 0
            self._changed.notify_all()
            return batch

    def _write(self, batch: list[Line]) -> None:
        with self._changed:
            lost, self._lost = self._lost, 0
        mark = [left_out(batch[0].at, lost)] if lost else []
        try:
            self._opened().append([*mark, *batch])
            lost = 0
        except Exception:
            logger.warning("Lines of a log could not be written.", exc_info=True)
            lost += len(batch)
        with self._changed:
            self._stalled = self._stalled and lost > 0
            self._lost += lost

    def _close(self, at: datetime) -> None:
        for _ in range(_CLOSE_TRIES):
            try:
                self._opened().close(at, lost=self._lost)
                return
            except Exception:
                logger.warning("A log could not be closed: it will look cut off.", exc_info=True)
                threading.Event().wait(_BETWEEN_TRIES_S)

    def _opened(self) -> Log:
        assert self._begin is not None
        if self._log is None:
            self._log = self._begin()
        return self._log


def _weight(line: Line) -> int:
    return len(line.text) + _LINE_WEIGHT
