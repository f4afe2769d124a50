"""Takes from the queue what this process's workers do next: see `domain.shares` for who comes first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from sweephand.domain.ids import Namespace
from sweephand.domain.shares import Shares
from sweephand.embedded import Stores
from sweephand.engine.quota import weight_of
from sweephand.local.attempts import Attempt, Attempts
from sweephand.ports import Delivery, Lane, World

LANES: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
_WEIGHED_EVERY: Final = timedelta(seconds=5)
"""How long a changed weight may go unnoticed."""


class Picker:
    """Belongs to the dispatcher, whose thread calls it."""

    def __init__(self, world: World, stores: Stores, attempts: Attempts, *, hold: timedelta) -> None:
        self._world = world
        self._backlog = stores.backlog
        self._attempts = attempts
        self._hold = hold
        self._shares = Shares()
        self._weights: dict[str, int] = {}
        self._weighed_at: datetime | None = None

    def pass_time(self, finished: Iterable[Attempt]) -> None:
        """Charge the namespaces for the workers that they kept until now, with those of the finished attempts."""
        now = self._world.clock.now()
        in_use = self._attempts.workers_of()
        if self._weighed_at is None or not timedelta(0) <= now - self._weighed_at < _WEIGHED_EVERY:
            self._weights, self._weighed_at = {}, now
            for namespace in in_use:
                self._weigh(namespace)
        self._shares.spend(in_use, self._weights, now=now)
        for attempt in finished:
            run = attempt.call.run
            self._shares.ended(run.key.job.namespace, now - run.changed_at)

    def receive(self, room: int, *, finished: Iterable[Attempt], claimed: Iterable[Attempt] = ()) -> list[Delivery]:
        """Deliveries for so many workers, those of the finished attempts among them, and not those of the claimed.

        Safe to repeat where the transaction around it is: it remembers nothing of what it took.
        """
        received: list[Delivery] = []
        in_use = self._attempts.workers_of()
        in_use.subtract(self._attempts.workers_of(finished))
        in_use.update(self._attempts.workers_of(claimed))
        while len(received) < room and (waiting := self._backlog.heads(LANES)):
            for one in waiting:
                self._weigh(one.namespace)
            now = self._world.clock.now()
            left = room - len(received)
            allotted = self._shares.allot(waiting, left, in_use=in_use, weights=self._weights, now=now)
            before = len(received)
            for one, most in allotted.items():
                found = self._backlog.receive(Lane(one.priority), one.namespace, most=most, hold=self._hold)
                in_use[one.namespace] += len(found)
                received += found
            if len(received) == before:
                break  # another process was faster
        return received

    def handed_out(self, count: int) -> None:
        """So many of what was received last are with workers now."""
        self._shares.handed_out(count)

    def _weigh(self, namespace: str) -> None:
        if namespace not in self._weights:
            self._weights[namespace] = weight_of(self._world, Namespace(namespace))
