"""An agent at work: one thread does the task, this one says that it is alive and listens for its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Any, Final

from sweephand.agent.lease import Fenced, OwnLease, Work
from sweephand.agent.place import CHECKPOINT_BYTES_MAX, Resumed, content_of, document_of
from sweephand.calls import Call, Outcome
from sweephand.domain.retry import Failure
from sweephand.errors import Defect, InvalidInput, TooMany, Unavailable
from sweephand.operators import Operators
from sweephand.operators.place import beginning_of

logger: Final = logging.getLogger("sweephand.agent")

BEAT_EVERY: Final = timedelta(seconds=15)
"""A lease lasts a minute: some lost words do no harm."""
_MESSAGE_CHARS_MAX: Final = 1_000

Equip = Callable[[Work, bytes | None], tuple[Operators, Resumed]]
"""What runs a piece of work, and where: it begins with these bytes as its checkpoint."""


class Done(Enum):
    """How an agent's day ended."""

    REPORTED = 0
    FENCED = 1
    """Somebody else has the run, or nobody wants it."""


class Agent:
    """`run` belongs to the main thread; `stop` may come from a signal."""

    def __init__(self, lease: OwnLease, equip: Equip, *, beat_every: timedelta = BEAT_EVERY) -> None:
        self._lease = lease
        self._equip = equip
        self._beat_s = beat_every.total_seconds()
        self._changed = threading.Event()
        self._stop_asked = False
        self._outcomes: list[Outcome] = []
        self._saved: bytes | None = None

    def stop(self) -> None:
        """Whoever runs it wants it gone: let the task end, save what it left, and have it tried again."""
        self._stop_asked = True
        self._changed.set()

    def run(self) -> Done:
        """Do the work of the lease, to its end or to somebody's word."""
        try:
            work = self._lease.look()
            self._saved = content_of(work.checkpoint)
            operators, place = self._equip(work, self._saved)
            return self._attend(operators, place, work.call)
        except Fenced as fenced:
            logger.warning("The work is not ours any more: %s", fenced)
            return Done.FENCED

    def _attend(self, operators: Operators, place: Resumed, call: Call) -> Done:
        self._lease.beat(progress=None)  # from now on it is heard of
        thread = threading.Thread(target=self._work, args=(operators, call), name="sweephand-work", daemon=True)
        thread.start()
        try:
            while not self._changed.wait(self._beat_s):
                self._tell(place)
            if not self._outcomes:
                operators.cancel(call)
            while thread.is_alive():
                thread.join(self._beat_s)
                self._tell(place)  # it may take its time to end, and leaves its checkpoint with its last breath
        except Fenced:
            operators.cancel(call)
            thread.join()
            raise
        outcome = self._outcomes[0]
        if isinstance(outcome, Failure):
            if self._stop_asked:
                outcome = Failure("Interrupted", "The agent was told to stop before the task had ended.")
            self._tell(place)
        self._lease.report(outcome)
        return Done.REPORTED

    def _work(self, operators: Operators, call: Call) -> None:
        try:
            self._outcomes.append(operators.execute(call))
        except Exception as error:
            logger.exception("The task of run %s raised.", call.run.key)
            self._outcomes.append(Failure(type(error).__name__, str(error)[:_MESSAGE_CHARS_MAX]))
        self._changed.set()

    def _tell(self, place: Resumed) -> None:
        """A word in between. One that is not heard is no harm: the next one says it again."""
        content = beginning_of(place.checkpoint, CHECKPOINT_BYTES_MAX + 1)
        is_new = content is not None and content != self._saved
        if is_new and len(content or b"") > CHECKPOINT_BYTES_MAX:
            logger.warning("The checkpoint has more than %d bytes, and is not kept.", CHECKPOINT_BYTES_MAX)
            is_new = False
        document: Any = document_of(content) if is_new and content is not None else None
        try:
            self._lease.beat(progress=place.percent(), checkpoint=document)
        except (Unavailable, TooMany, Defect, InvalidInput) as trouble:
            logger.warning("A heartbeat was not heard: %s", trouble)
            return
        if is_new:
            self._saved = content
