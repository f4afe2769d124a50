"""What is still to be said to one connection: threads put, one task takes."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime
from threading import Lock
from typing import Final


class Line:
    """Texts in their order, up to a bound: whoever does not keep up is let go of."""

    def __init__(self, *, until: datetime, bytes_max: int) -> None:
        self.until = until
        """When it is over, unless somebody says otherwise."""
        self._bytes_max = bytes_max
        self._bytes = 0
        self._texts: deque[str] = deque()
        self._is_over = False
        self._lock = Lock()
        self._loop: Final = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self.dropped: Final = asyncio.Event()
        """Nothing more is sent, not even what was put."""

    @property
    def is_over(self) -> bool:
        return self._is_over

    def put(self, text: str) -> bool:
        """False where it is over; with this text too much would wait, and then it is over too."""
        with self._lock:
            if self._is_over:
                return False
            self._bytes += len(text)
            if self._bytes > self._bytes_max:
                self._is_over = True
                self._call(self.dropped)
                return False
            self._texts.append(text)
            self._call(self._rung)
            return True

    def close(self) -> None:
        """What was put before is still sent."""
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._call(self._rung)

    def drop(self) -> None:
        """Nobody takes any more. Afterwards nothing is asked of the loop, which may be gone."""
        with self._lock:
            self._is_over = True
            self.dropped.set()

    async def take(self) -> str | None:
        """The next text; None at the end."""
        while True:
            with self._lock:
                if self._texts:
                    text = self._texts.popleft()
                    self._bytes -= len(text)
                    return text
                if self._is_over:
                    return None
                self._rung.clear()
            await self._rung.wait()

    def _call(self, event: asyncio.Event) -> None:
        self._loop.call_soon_threadsafe(event.set)
