"""One process that sweeps, runs and keeps house on a set of stores. Several may share one file."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from msgspec.structs import replace

from sweephand.calls import Target
from sweephand.embedded import PACE, Stores
from sweephand.engine.look import Looking
from sweephand.errors import Conflict, InvalidInput
from sweephand.local.attempts import Attempts
from sweephand.local.dispatcher import Dispatcher
from sweephand.local.housekeeping import (
    Projection,
    Reconciliation,
    forget_files,
    go_on_with_backfills,
    see_to_dead_letters,
)
from sweephand.local.loop import Loop, Troubles
from sweephand.local.sweeper import Sweeper
from sweephand.ports import Clock, Dice, Pace, World

logger: Final = logging.getLogger("sweephand.local")

LEASE: Final = timedelta(seconds=15)
"""How long the runs of a killed process stay its own."""
_SHORTLY: Final = timedelta(milliseconds=100)
STOP_WITHIN: Final = timedelta(seconds=30)


class Runtime:
    """The loops: a sweeper, a dispatcher with its workers, heartbeats, and housekeeping.

    What a killed process leaves behind is taken over by the next one, or by another on the same file, when the leases
    end: they are short and renewed while their attempts run.
    """

    def __init__(
        self,
        stores: Stores,
        *,
        target: Target,
        clock: Clock,
        dice: Dice,
        workers: int = 8,
        pace: Pace = PACE,
    ) -> None:
        if workers < 1:
            raise InvalidInput("There must be at least one worker.", "workers")
        self._stores = stores
        self._lease = pace.lease or LEASE
        self._name = f"{os.getpid()}-{dice.nonce()}"
        pace = replace(pace, lease=self._lease)
        world = World.over(stores, clock=clock, dice=dice, target=target, pace=pace, owner=self._name)
        looking = Looking(target, world)
        self.world: Final = replace(world, target=looking)
        """For callers in the same process: what they put, pause or trigger, the loops carry out."""
        self._stopping = threading.Event()
        self._troubles = Troubles()
        self._attempts = Attempts(stores, looking, workers=workers, wake=stores.bell.ring)
        self._dispatcher = Dispatcher(self._world("work"), stores, self._attempts, self._troubles, hold=self._lease)
        self._loops = [
            self._loop("dispatch", self._dispatcher.step),
            self._loop("sweep", Sweeper(self._world("sweep")).step),
            self._loop("beat", self._beat),
            self._loop("project", Projection(self._world("project"), stores.feed, self._attempts.notice).step),
            self._loop("audit", Reconciliation(self._world("audit"), self._stopping.is_set).step),
            self._loop("watch", lambda: see_to_dead_letters(self._world("watch"))),
            self._loop("backfill", lambda: go_on_with_backfills(self._world("backfill"))),
            self._loop("forget", lambda: forget_files(stores, target, now=clock.now())),
        ]

    def also(self, name: str, step: Callable[[], timedelta]) -> None:
        """Something more to do again and again; said before it starts."""
        self._loops.append(self._loop(name, step))

    @property
    def defects(self) -> int:
        """How often something went wrong that must not; each is in the log, with its traceback."""
        return self._troubles.defects

    def start(self) -> None:
        """Begin; a runtime starts once."""
        if self._loops[0].ident is not None:
            raise Conflict("The runtime was started before: make a new one.")
        self._attempts.start()
        for loop in self._loops:
            loop.start()

    def stop(self, within: timedelta = STOP_WITHIN) -> bool:
        """Begin nothing more and let what runs finish; False where some of it did not within the time.

        The leases of what is left end soon, and the next process runs it again.
        """
        if self._loops[0].ident is None:
            return True
        deadline = self.world.clock.now() + within
        finished = self._dispatcher.drain(within)
        if not finished:
            logger.warning("Some attempts did not end within %s: their runs are run again later.", within)
        workers = self._attempts.close()
        self._stopping.set()
        self._stores.bell.ring()
        for thread in (*self._loops, *(workers if finished else ())):
            thread.join(max(deadline - self.world.clock.now(), _SHORTLY).total_seconds())
        return finished

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _loop(self, name: str, step: Callable[[], timedelta]) -> Loop:
        return Loop(name, step, stopping=self._stopping, troubles=self._troubles)

    def _world(self, part: str) -> World:
        """The same world under an owner's name of its own."""
        return replace(self.world, owner=f"{self._name}-{part}")

    def _beat(self) -> timedelta:
        self._attempts.renew(self.world, lease=self._lease, troubles=self._troubles)
        return self._lease / 3
