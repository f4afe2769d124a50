"""Work in a thread of its own, which can be left at any moment: when it takes too long, or when it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Generic, TypeVar

from sweephand.operators.process import Cause

T = TypeVar("T")

_NAME: Final = "sweephand-errand"


class Errand(Generic[T]):
    """`wait` belongs to one thread; `stop` may come from any, and before there is anything to stop."""

    def __init__(self, work: Callable[[], T], *, leave: Callable[[], None]) -> None:
        self._work = work
        self._leave = leave
        self._changed = threading.Condition()
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._stop_asked = False

    def stop(self) -> None:
        """Have the waiting thread leave; does not wait."""
        with self._changed:
            self._stop_asked = True
            self._changed.notify_all()

    def wait(self, timeout: timedelta, *, grace: timedelta = timedelta(0)) -> T | Cause:
        """What the work came to, or why it was left, with a grace to end by itself; what it raised is raised."""
        threading.Thread(target=self._run, name=_NAME, daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or self._stop_asked, timeout.total_seconds())
            if self._errors:
                raise self._errors[0]
            if self._results:
                return self._results[0]
            cause = Cause.STOPPED if self._stop_asked else Cause.TIMED_OUT
        self._leave()
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended, grace.total_seconds())
        return cause

    @property
    def _has_ended(self) -> bool:
        return bool(self._results or self._errors)

    def _run(self) -> None:
        results, errors = [], []
        try:
            results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            errors.append(error)
        with self._changed:
            self._results, self._errors = results, errors
            self._changed.notify_all()
