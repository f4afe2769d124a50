"""HTTP/1.1 and WebSocket as uvicorn speaks them, with limits: on connections, on the time for a head, on what broken
ones hear, and on what those who read slowly hold up."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from sweephand.local.answers import Answer, busy, problem
from sweephand.local.limits import Limits

LIVE: Final = b"/live"
"""The one path where another protocol is spoken."""
_UPGRADE: Final = {
    b"connection": re.compile(rb"(.*[\s,])?upgrade([\s,].*)?", re.IGNORECASE),
    b"upgrade": re.compile(rb"websocket", re.IGNORECASE),
    b"sec-websocket-key": re.compile(rb"[A-Za-z0-9+/]{22}=="),
    b"sec-websocket-version": re.compile(rb"13"),
}
"""The headers of a proper request to listen, each once."""

_DETAILS: Final = {
    400: "This is no HTTP request.",
    408: "The request did not come in time.",
    414: "The URL is too long.",
    431: "The headers are too long.",
    501: "This transfer encoding is not known here.",
}


class Protocol(H11Protocol):
    """One connection."""

    def __init__(self, *, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._end_with(busy("Too many connections at once: try again."))
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._late is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Called while the error is handled that says what is wrong with the request."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        is_first_line = b"\n" not in self.conn.trailing_data[0]
        if status == 431 and is_first_line:
            status = 414
        self._end_with(problem(status, _DETAILS.get(status, msg)))

    def _should_upgrade(self) -> bool:
        """Whether it is a proper request to listen; any other request to change the protocol is one like others."""
        if self.ws_protocol_class is None or (self.scope["method"], self.scope["raw_path"]) != ("GET", LIVE):
            return False
        return all(
            [bool(wanted.fullmatch(value)) for own, value in self.headers if own == name] == [True]
            for name, wanted in _UPGRADE.items()
        )

    def _await_head(self) -> None:
        self._late = self.loop.call_later(self._limits.head_within_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            return
        if self.conn.trailing_data[0]:
            self._end_with(problem(408, _DETAILS[408]))
        else:
            self.transport.close()

    def _end_with(self, answer: Answer) -> None:
        """The last answer on this connection; none where another has begun."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            reason = HTTPStatus(answer.status).phrase.encode()
            headers: list[Any] = [
                *self.server_state.default_headers,
                *answer.wire_headers(),
                (b"connection", b"close"),
            ]
            events = [
                h11.Response(status_code=answer.status, headers=headers, reason=reason),
                h11.Data(data=answer.body),
                h11.EndOfMessage(),
            ]
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class LiveProtocol(WebSocketsSansIOProtocol):
    """One connection that listens. Once nobody serves it any more, it is gone soon, whether it reads its end or not."""

    def __init__(self, *, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self.close_timeout = limits.linger_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # What this machine holds of it, nobody can take back: the less, the sooner it shows that it is not read.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.unread_bytes)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # by a refusal, which uvicorn would call an error of ours

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        self.loop.call_later(self._limits.linger_s, self.transport.abort)
