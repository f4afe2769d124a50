"""The attempts under way in this process: threads that execute them, and leases that are kept alive meanwhile."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from queue import SimpleQueue
from typing import Final

from sweephand.calls import Call, Cancellable, Outcome, Progressing, Target
from sweephand.domain.ids import RunKey
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.engine.attempt import execute
from sweephand.engine.heartbeat import heartbeat
from sweephand.errors import NotFound, StaleEpoch
from sweephand.local.loop import Troubles
from sweephand.messages import Elsewhere
from sweephand.ports import Delivery, Stores, World

logger: Final = logging.getLogger("sweephand.local")

MESSAGE_CHARS_MAX: Final = 1_000


class Attempt:
    """A claimed run: the call, the message that is its lease's timer, and its outcome once there is one."""

    __slots__ = ("call", "delivery", "outcome", "told")

    def __init__(self, call: Call, delivery: Delivery) -> None:
        self.call = call
        self.delivery = delivery
        self.outcome: Outcome | Elsewhere | None = None
        self.told = False


class Attempts:
    """A fixed number of threads, each with one attempt at a time.

    `begin`, `finished` and `end` belong to the dispatcher; an attempt is under way from the first to the last of them,
    and for that long its lease is renewed.
    """

    def __init__(self, stores: Stores, target: Target, *, workers: int, wake: Callable[[], None]) -> None:
        self._stores = stores
        self._target = target
        self._wake = wake
        self._waiting: SimpleQueue[Attempt | None] = SimpleQueue()
        self._finished: deque[Attempt] = deque()
        self._under_way: dict[Attempt, None] = {}
        self._workers = [
            threading.Thread(target=self._work, name=f"sweephand-work-{n}", daemon=True) for n in range(workers)
        ]

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    @property
    def under_way(self) -> int:
        """How many have begun and are not reported."""
        return len(self._under_way)

    @property
    def room(self) -> int:
        """How many more can begin at once."""
        return len(self._workers) - len(self._under_way)

    def workers_of(self, attempts: Iterable[Attempt] | None = None) -> Counter[str]:
        """How many workers each namespace keeps with these attempts; with all that are under way by default."""
        counted = self._under_way if attempts is None else attempts
        return Counter(attempt.call.run.key.job.namespace for attempt in counted)

    def begin(self, attempts: list[Attempt]) -> None:
        """Execute these claimed runs."""
        for attempt in attempts:
            self._under_way[attempt] = None
            self._waiting.put(attempt)

    def finished(self) -> list[Attempt]:
        """Those with an outcome that nobody has reported yet."""
        return [self._finished.popleft() for _ in range(len(self._finished))]

    def unreported(self, attempts: list[Attempt]) -> None:
        """These could not be reported: they come again."""
        self._finished.extend(attempts)

    def end(self, attempts: list[Attempt]) -> None:
        """These are reported."""
        for attempt in attempts:
            del self._under_way[attempt]

    def executes(self, key: RunKey) -> bool:
        """Whether an attempt of this run is under way here."""
        return any(attempt.call.run.key == key for attempt in list(self._under_way))

    def close(self) -> list[threading.Thread]:
        """Let the threads go; each ends with its attempt."""
        for _ in self._workers:
            self._waiting.put(None)
        return self._workers

    def renew(self, world: World, *, lease: timedelta, troubles: Troubles) -> None:
        """Extend every lease that has run for a third of its time; short attempts need none of this.

        First the lease, then the message: it comes back when nobody renews them any more.
        """
        for attempt in list(self._under_way):
            now, call = world.clock.now(), attempt.call
            if now - _begun_at(call) < lease / 3:
                continue
            with troubles.survived(f"heartbeat of {call.run.key}"):
                if now > _begun_at(call) + call.timeout + world.pace.lease_grace:
                    self._tell(attempt)  # and let the lease end: its own time-out should have ended it
                    continue
                try:
                    progress = self._target.progress(call) if isinstance(self._target, Progressing) else None
                    heartbeat(world, call.run.key, epoch=call.run.epoch, lease=lease, progress=progress)
                    world.inbox.keep(attempt.delivery, lease)
                except (StaleEpoch, NotFound):
                    self._tell(attempt)

    def notice(self, run: Run) -> None:
        """Tell the attempts of a run that was just read if it is no longer theirs."""
        for attempt in list(self._under_way):
            own = attempt.call.run
            if own.key == run.key and (
                run.epoch > own.epoch or (run.epoch == own.epoch and run.state is not RunState.RUNNING)
            ):
                self._tell(attempt)

    def _tell(self, attempt: Attempt) -> None:
        if attempt.told or attempt.outcome is not None:
            return
        attempt.told = True
        run = attempt.call.run
        logger.info("Attempt %d of run %s is told to stop: the run is no longer its own.", run.attempt, run.key)
        if isinstance(self._target, Cancellable):
            self._target.cancel(attempt.call)

    def _work(self) -> None:
        while (attempt := self._waiting.get()) is not None:
            attempt.outcome = self._outcome(attempt.call)
            self._finished.append(attempt)
            self._wake()

    def _outcome(self, call: Call) -> Outcome | Elsewhere:
        try:
            return execute(self._stores, self._target, call)
        except Exception as error:
            logger.exception("The target of run %s raised.", call.run.key)
            return Failure(type(error).__name__, str(error)[:MESSAGE_CHARS_MAX])


def _begun_at(call: Call) -> datetime:
    """When the attempt was claimed: that was the run's last change."""
    return call.run.changed_at
