"""The one thread between the queue and the workers: reports what they finished and claims what they do next.

It does both for all of them in one transaction, so that a sync of the disk is shared by as many runs as there are
workers. A claim is on the disk before its task is executed, and a message goes with the report that ends its run.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Final

from msgspec import Struct

from sweephand.embedded import Stores
from sweephand.engine.attempt import Attempted, Fate, begin, finish
from sweephand.errors import InvalidInput
from sweephand.local.attempts import Attempt, Attempts
from sweephand.local.loop import AT_ONCE, Troubles
from sweephand.local.picker import Picker
from sweephand.messages import AttemptRun, decode
from sweephand.ports import Delivery, World

_LOOK_EVERY: Final = timedelta(milliseconds=500)
_AFTER_TROUBLE: Final = timedelta(seconds=1)
_LOOKS_MAX: Final = 2
"""How often a turn looks for work: a run that goes on, seen at the first look, sends its next tasks for the second."""


class _Turn(Struct, frozen=True):
    """What a transaction did: the attempts that it claimed, and whether it had anything to do."""

    claimed: list[Attempt]
    deliveries: int


class Dispatcher:
    """Takes turns until it is drained."""

    def __init__(
        self, world: World, stores: Stores, attempts: Attempts, troubles: Troubles, *, hold: timedelta
    ) -> None:
        self._world = world
        self._stores = stores
        self._attempts = attempts
        self._troubles = troubles
        self._picker = Picker(world, stores, attempts, hold=hold)
        self._draining = threading.Event()
        self._drained = threading.Event()

    def drain(self, within: timedelta) -> bool:
        """Begin nothing more; whether all that was under way is reported within the time."""
        self._draining.set()
        self._stores.bell.ring()
        return self._drained.wait(within.total_seconds())

    def step(self) -> timedelta:
        """One turn, or a wait for something to do."""
        draining = self._draining.is_set()
        finished = self._attempts.finished()
        room = 0 if draining else self._attempts.room + len(finished)
        if draining and not finished and not self._attempts.under_way:
            self._drained.set()
        if not finished and not (room and self._is_anything_there()):
            self._stores.await_work(_LOOK_EVERY)
            return AT_ONCE
        self._picker.pass_time(finished)
        turn: _Turn | None = None
        with self._troubles.survived("turn"):
            turn = self._stores.database.together(lambda: self._turn(finished, room))
        if turn is None:
            return self._one_by_one(finished, room)
        self._attempts.end(finished)
        self._attempts.begin(turn.claimed)
        self._picker.handed_out(len(turn.claimed))
        if not finished and not turn.deliveries:
            self._stores.await_work(_LOOK_EVERY)  # another process was faster, or it is nothing for workers
        return AT_ONCE

    def _is_anything_there(self) -> bool:
        """Looked up without taking the writers' lock."""
        next_at = self._stores.bell.next_visible_at()
        return next_at is not None and next_at <= self._world.clock.now()

    def _turn(self, finished: list[Attempt], room: int) -> _Turn:
        done = [attempt.delivery for attempt in finished if self._report(attempt)]
        claimed: list[Attempt] = []
        received = 0
        for _ in range(_LOOKS_MAX):
            deliveries = self._picker.receive(room - len(claimed), finished=finished, claimed=claimed)
            received += len(deliveries)
            begun = [(delivery, self._begin(delivery)) for delivery in deliveries]
            claimed += [one for _, one in begun if isinstance(one, Attempt)]
            done += [delivery for delivery, one in begun if one is True]
            if all(isinstance(one, Attempt) for _, one in begun):
                break
        self._world.inbox.delete(done)
        return _Turn(claimed, received)

    def _one_by_one(self, finished: list[Attempt], room: int) -> timedelta:
        """After a turn that failed and left no trace: each for itself, so that one defect stays alone.

        What cannot be reported now is reported later, under its lease; a delivery that cannot be dealt with comes back,
        and in the end it is a dead letter.
        """
        pause = AT_ONCE
        for attempt in finished:
            reported = False
            with self._troubles.survived(f"report of {attempt.call.run.key}"):
                if self._report(attempt):
                    self._world.inbox.delete([attempt.delivery])
                reported = True
            if reported:
                self._attempts.end([attempt])
            else:
                self._attempts.unreported([attempt])
                pause = _AFTER_TROUBLE
        for delivery in self._picker.receive(room - len(finished), finished=()):
            with self._troubles.survived(f"delivery {delivery.body}"):
                begun = self._begin(delivery)
                if isinstance(begun, Attempt):
                    self._attempts.begin([begun])
                elif begun:
                    self._world.inbox.delete([delivery])
        return pause

    def _begin(self, delivery: Delivery) -> Attempt | bool:
        """A claimed attempt, or whether the message has done its work."""
        message = decode(delivery.body)
        if not isinstance(message, AttemptRun):
            raise InvalidInput(f"There is no run in the message {delivery.body}.", "message")
        begun = begin(self._world, message, delivery)
        if not isinstance(begun, Attempted):
            return Attempt(begun, delivery)
        if begun.fate is Fate.KEEP:
            if self._attempts.executes(message.run):
                return True  # a second message: the one that came with the attempt is its lease's timer
            self._world.inbox.keep(delivery, begun.hold)
        return begun.fate is Fate.DELETE

    def _report(self, attempt: Attempt) -> bool:
        """Whether the message has done its work."""
        if attempt.outcome is None:
            return False
        return finish(self._world, attempt.call, attempt.outcome).fate is Fate.DELETE
