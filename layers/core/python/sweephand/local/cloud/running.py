"""A deployment in real time: each of its sources works in threads of its own, so that none waits for another."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Final, Self

from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.sources import Source
from sweephand.local.loop import AT_ONCE, Loop, Troubles, logger

_LOOK_AGAIN: Final = timedelta(milliseconds=50)
STOP_WITHIN: Final = timedelta(seconds=5)
"""Short, since nothing that finishes is kept."""


class Running:
    """Threads for everything that calls functions by itself; of one source, at most `width` side by side."""

    def __init__(self, deployment: Deployment, *, width: int) -> None:
        self._clock = deployment.clock
        self._stopping = threading.Event()
        self._troubles = Troubles()
        self._loops = [
            Loop(source.name, partial(self._step, source), stopping=self._stopping, troubles=self._troubles)
            for source in deployment.sources
            for _ in range(min(source.at_once, width))
        ]

    def __enter__(self) -> Self:
        for loop in self._loops:
            loop.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hand nothing more over, and let what runs finish."""
        self._stopping.set()
        deadline = self._clock.now() + STOP_WITHIN
        for loop in self._loops:
            loop.join(max(deadline - self._clock.now(), AT_ONCE).total_seconds())
        if any(loop.is_alive() for loop in self._loops):
            logger.warning("Some functions did not end within %s.", STOP_WITHIN)

    def _step(self, source: Source) -> timedelta:
        if source.poll():
            return AT_ONCE
        next_at = source.next_at()
        return _LOOK_AGAIN if next_at is None else min(max(next_at - self._clock.now(), AT_ONCE), _LOOK_AGAIN)
