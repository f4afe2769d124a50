"""Threads for calls that block, with a limit on how many may wait for one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from sweephand.local.answers import Turned, busy

T = TypeVar("T")


class Pool:
    """At most so many threads, each started when it is first needed.

    They are daemons, which those of `concurrent.futures` are not: a call that hangs must not keep the process alive.
    """

    def __init__(self, name: str, *, threads: int, waiting_max: int) -> None:
        self._name: Final = name
        self._threads_max: Final = threads
        self._taken_max: Final = threads + waiting_max
        self._lock = threading.Lock()
        self._threads = 0
        self._taken = 0
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()

    async def run(self, work: Callable[[], T]) -> T:
        """The result of the work, done in a thread; `Turned` where too many wait already."""
        future: Future[T] = Future()
        with self._lock:
            if self._taken >= self._taken_max:
                raise Turned(busy("Too many requests at once: try again."))
            self._taken += 1
            needs_thread = self._threads < min(self._taken, self._threads_max)
            self._threads += needs_thread
        self._calls.put((future, work))
        if needs_thread:
            threading.Thread(target=self._work, name=f"sweephand-{self._name}", daemon=True).start()
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            future, work = self._calls.get()
            settle = _settled(future, work)
            # First the room, then the answer: whoever hears it may ask again.
            with self._lock:
                self._taken -= 1
            settle()
            del future, work, settle


def _settled(future: Future[T], work: Callable[[], T]) -> Callable[[], None]:
    """Do the work, unless nobody waits for it any more; then, how to say what came of it."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  # it is the caller's
        return partial(future.set_exception, error)
    return partial(future.set_result, result)
