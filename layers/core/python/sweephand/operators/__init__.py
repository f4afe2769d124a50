"""What a task can run on this machine: one module per operator, and the target that chooses among them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from sweephand.domain.ids import RunKey
from sweephand.domain.retry import Failure, FailureClass
from sweephand.errors import InvalidInput
from sweephand.operators.command import Command
from sweephand.operators.operator import Attempt, Cancellation, Operator
from sweephand.operators.place import Place
from sweephand.operators.process import GRACE
from sweephand.operators.program import inherited
from sweephand.operators.python import Python
from sweephand.ports import Call, Outcome

__all__ = ["Attempt", "Cancellation", "Operator", "Operators"]

logger: Final = logging.getLogger("sweephand.operators")

_EARLY_MAX: Final = 1_000

_Key = tuple[RunKey, str, int]


class Operators:
    """The target of this machine. `execute` belongs to a thread per attempt; `cancel` may come from any."""

    def __init__(self, folder: Path, *, environ: Mapping[str, str] = os.environ, grace: timedelta = GRACE) -> None:
        base = inherited(environ)
        self._folder = folder
        self._grace = grace
        self._operators: Mapping[str, Operator] = {"command": Command(base), "python": Python(base)}
        self._lock = threading.Lock()
        self._under_way: dict[_Key, Cancellation] = {}
        self._early: dict[_Key, None] = {}
        """Cancelled before they began, or after they ended: the oldest are forgotten."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of task that can run here."""
        return frozenset(self._operators)

    def execute(self, call: Call) -> Outcome:
        """Run the task once, in a folder of its own that is gone afterwards."""
        operator = self._operators.get(call.task.kind)
        if operator is None:
            known = ", ".join(sorted(self.kinds))
            return _permanent("UnknownOperator", f"'{call.task.kind}' cannot run here: this place runs {known}.")
        attempt = Attempt(call, Place(self._folder, call), self._grace)
        if not self._begin(attempt):
            return Failure("Cancelled", "The attempt was told to stop before it began.")
        try:
            return self._execute(operator, attempt)
        finally:
            with self._lock:
                del self._under_way[_key(call)]

    def cancel(self, call: Call) -> None:
        """End this call if it runs, or as soon as it begins; does not wait for the end."""
        with self._lock:
            cancellation = self._under_way.get(_key(call))
            if cancellation is None:
                self._early[_key(call)] = None
                while len(self._early) > _EARLY_MAX:
                    del self._early[next(iter(self._early))]
        if cancellation is not None:
            cancellation.ask()

    def _begin(self, attempt: Attempt) -> bool:
        key = _key(attempt.call)
        with self._lock:
            if key in self._early:
                del self._early[key]
                return False
            self._under_way[key] = attempt.cancellation
            return True

    def _execute(self, operator: Operator, attempt: Attempt) -> Outcome:
        outcome: Outcome | None = None
        try:
            attempt.place.make()
            outcome = operator.execute(attempt)
        except InvalidInput as refused:
            where = f"{refused.path}: " if refused.path else ""
            outcome = _permanent("InvalidInput", f"{where}{refused.message}")
        finally:
            self._clear(attempt, keep_checkpoint=outcome is None or isinstance(outcome, Failure))
        return outcome

    def _clear(self, attempt: Attempt, *, keep_checkpoint: bool) -> None:
        try:
            attempt.place.clear(keep_checkpoint=keep_checkpoint)
        except OSError:  # safe: a folder that stays takes room and nothing else, and its outcome counts
            logger.warning("The folder %s could not be cleared.", attempt.place.root, exc_info=True)


def _key(call: Call) -> _Key:
    return call.run.key, call.task.id, call.run.epoch


def _permanent(error: str, message: str) -> Failure:
    return Failure(error, message, FailureClass.PERMANENT)
