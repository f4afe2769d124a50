"""The WebSocket connections of this server: somebody behind hears what they say, and tells them of what changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

from sweephand.local.answers import Answer, busy, problem
from sweephand.local.gateway import Request
from sweephand.local.limits import Limits
from sweephand.local.line import Line
from sweephand.local.loop import Troubles
from sweephand.local.pool import Pool
from sweephand.ports import Clock, Dice

LOOK_EVERY_S: Final = 0.1
"""How often whoever is behind looks for news, while anybody is connected."""
_THREADS: Final = 4
_OK: Final = 200
_ENDED: Final = 1008
"""WebSocket's code for somebody who may not stay."""
_LATE: Final = json.dumps({"type": "closing", "detail": "The token was not sent in time."})
_NO_TEXT: Final = json.dumps({"type": "error", "detail": "A message is a text."})
_FAILED: Final = json.dumps({"type": "error", "detail": "Something is wrong here: see the log."})

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Hearing(Protocol):
    """Who hears what connections say, and tells them what they wait for. Threads share it."""

    def connect(self, connection: str, headers: Mapping[str, str]) -> int:
        """Somebody begins: 200, or the status that refuses it."""

    def hear(self, connection: str, text: str) -> None: ...

    def leave(self, connection: str) -> None:
        """It is gone."""

    def look(self) -> None:
        """Tell of what is new since the last look."""


class Sockets:
    """Every connection that listens; `behind` makes the one who hears them, and is given the way to them."""

    def __init__(
        self, behind: Callable[[Sockets], Hearing], *, clock: Clock, dice: Dice, limits: Limits | None = None
    ) -> None:
        self._clock = clock
        self._dice = dice
        self._limits = limits or Limits()
        self._lines: dict[str, Line] = {}
        self._hearing = behind(self)
        self._troubles = Troubles()
        self._calls = Pool("hear", threads=_THREADS, waiting_max=self._limits.connections)
        # Apart from the others: whoever waits for a store must not keep news from those who listen.
        self._looks = Pool("look", threads=1, waiting_max=1)
        self._tending: asyncio.Task[None] | None = None

    # What whoever is behind may do, from any thread.

    def __contains__(self, connection: str) -> bool:
        return connection in self._lines

    def send(self, connection: str, text: str) -> bool:
        """False where it is gone, or does not keep up and is let go of."""
        line = self._lines.get(connection)
        return line is not None and line.put(text)

    def stay(self, connection: str, until: datetime) -> None:
        """It has proved itself, and may stay that long."""
        line = self._lines.get(connection)
        if line is not None:
            line.until = until

    def close(self, connection: str) -> None:
        """End it, once it has been sent what it was told before."""
        line = self._lines.get(connection)
        if line is not None:
            line.close()

    # What the server does.

    async def serve(self, request: Request, receive: Receive, send: Send) -> None:
        """One connection, from its request to its end."""
        if refusal := self._refusal(request):
            await refuse(refusal, send)
            return
        name, until = self._dice.nonce(), self._clock.now() + timedelta(seconds=self._limits.prove_within_s)
        line = self._lines[name] = Line(until=until, bytes_max=self._limits.unsent_bytes)
        try:
            status = await self._calls.run(partial(self._connect, name, dict(request.headers)))
            if status != _OK:
                await refuse(problem(status, "You may not listen here, or not now."), send)
                return
            await send({"type": "websocket.accept"})
            if self._tending is None or self._tending.done():
                self._tending = asyncio.create_task(self._tend())
            await self._converse(name, line, receive, send)
        finally:
            line.drop()
            del self._lines[name]
            await self._calls.run(partial(self._leave, name))

    def _refusal(self, request: Request) -> Answer | None:
        own = f"http://{request.header('host')}".lower()
        if any(origin.lower() != own for origin in request.values("origin")):
            return problem(403, "Only pages of this server may listen.")
        if len(self._lines) >= self._limits.listeners:
            return busy("Too many listen at once: try again.")
        return None

    async def _converse(self, name: str, line: Line, receive: Receive, send: Send) -> None:
        """Until one of the two ends it, or the other does not read."""
        tasks = {
            asyncio.ensure_future(self._hear_all(name, line, receive)),
            asyncio.ensure_future(self._tell_all(line, send)),
            asyncio.ensure_future(line.dropped.wait()),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in done:
            task.result()

    async def _hear_all(self, name: str, line: Line, receive: Receive) -> None:
        while (message := await receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            if text is None and message["type"] == "websocket.receive":
                line.put(_NO_TEXT)
            elif text is not None and not line.is_over:
                await self._calls.run(partial(self._hear, name, text))

    async def _tell_all(self, line: Line, send: Send) -> None:
        try:
            while (text := await line.take()) is not None:
                async with asyncio.timeout(self._limits.send_within_s):
                    await send({"type": "websocket.send", "text": text})
            async with asyncio.timeout(self._limits.send_within_s):
                await send({"type": "websocket.close", "code": _ENDED})
        except OSError:
            return  # it went away, or takes nothing in time: then it is not told that it is over either

    async def _tend(self) -> None:
        """Let nobody stay for longer than allowed, and let there be looked for news."""
        while self._lines:
            await asyncio.sleep(LOOK_EVERY_S)
            now = self._clock.now()
            for line in self._lines.values():
                if line.until <= now and line.put(_LATE):
                    line.close()
            await self._looks.run(self._look)

    # In threads. What goes wrong there ends nothing.

    def _connect(self, connection: str, headers: Mapping[str, str]) -> int:
        with self._troubles.survived("live"):
            return self._hearing.connect(connection, headers)
        return 503

    def _hear(self, connection: str, text: str) -> None:
        with self._troubles.survived("live"):
            self._hearing.hear(connection, text)
            return
        self.send(connection, _FAILED)

    def _leave(self, connection: str) -> None:
        with self._troubles.survived("live"):
            self._hearing.leave(connection)

    def _look(self) -> None:
        with self._troubles.survived("live"):
            self._hearing.look()


async def refuse(answer: Answer, send: Send) -> None:
    """Answer a request to listen as any other request is answered."""
    headers = answer.wire_headers()
    await send({"type": "websocket.http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": answer.body})
