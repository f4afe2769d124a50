"""A thread that does one thing again and again, and survives what goes wrong in it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from sweephand.errors import SweephandError, Unavailable

logger: Final = logging.getLogger("sweephand.local")

AT_ONCE: Final = timedelta(0)
_AFTER_TROUBLE: Final = timedelta(seconds=1)


class Troubles:
    """What went wrong so far: defects are ours and counted, the rest passes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.defects = 0

    @contextmanager
    def survived(self, what: str) -> Iterator[None]:
        """Log what goes wrong inside, and go on: everything the engine does is safe to repeat."""
        try:
            yield
        except Unavailable as error:
            logger.warning("%s: %s", what, error)
        except SweephandError as error:
            self._count()
            logger.exception("%s: %s", what, error)
        except Exception:
            self._count()
            logger.exception("%s: an unforeseen error", what)

    def _count(self) -> None:
        with self._lock:
            self.defects += 1


class Loop(threading.Thread):
    """Calls `step` until `stopping` is set, pausing for as long as each step answers."""

    def __init__(
        self, name: str, step: Callable[[], timedelta], *, stopping: threading.Event, troubles: Troubles
    ) -> None:
        super().__init__(name=f"sweephand-{name}", daemon=True)
        self._what = name
        self._step = step
        self._stopping = stopping
        self._troubles = troubles

    def run(self) -> None:
        while not self._stopping.is_set():
            pause = _AFTER_TROUBLE
            with self._troubles.survived(self._what):
                pause = self._step()
            if pause > AT_ONCE:
                self._stopping.wait(pause.total_seconds())
