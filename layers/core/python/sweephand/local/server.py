"""The local server: HTTP on 127.0.0.1 in front of the gateway, the console's files, and connections that listen. What
is wrong with a request is said as a problem."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any, Final

import uvicorn

from sweephand.api.asked import Patience
from sweephand.errors import TooMany, Unavailable
from sweephand.local.answers import Answer, Turned, busy, problem
from sweephand.local.gateway import Context, Gateway, Request
from sweephand.local.limits import Limits
from sweephand.local.polls import Match, Polls
from sweephand.local.pool import Pool
from sweephand.local.protocol import LiveProtocol, Protocol
from sweephand.local.site import Site
from sweephand.local.sockets import Sockets, refuse
from sweephand.ports import Dice

logger: Final = logging.getLogger("sweephand.local")

STANDARD: Final = Limits()
HOST: Final = "127.0.0.1"
_BACKLOG: Final = 256
_HOSTS: Final = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.IGNORECASE)
_CODE: Final = re.compile(r"/api/v1/code/[0-9a-f]{64}")
_POLLS: Final = re.compile(r".*/leases/*", re.IGNORECASE | re.DOTALL)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Gone(Exception):
    """The client went away: nobody waits for an answer."""


class App:
    """The ASGI application: one way in for every request."""

    def __init__(
        self,
        gateway: Gateway,
        dice: Dice,
        limits: Limits = STANDARD,
        *,
        site: Site | None = None,
        sockets: Sockets | None = None,
        match: Match | None = None,
    ) -> None:
        """Without `match`, nobody who asks for work is kept waiting."""
        self._gateway = gateway
        self._dice = dice
        self._site = site
        self.limits: Final = limits
        self.sockets: Final = sockets
        self._calls = Pool("call", threads=limits.threads, waiting_max=limits.connections)
        self.polls: Final = Polls(match, limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._listen(_request(scope), receive, send)
            return
        request, body = _request(scope), _Body(receive, scope, self.limits)
        try:
            answer = await self._answer(request, body)
        except Turned as turned:
            answer = turned.answer
        except TooMany as error:
            answer = problem(429, error.message, headers=[("retry-after", str(ceil(error.retry_after_s)))])
        except Unavailable as error:
            answer = busy(error.message)
        except _Gone:
            return
        except asyncio.CancelledError:
            answer = busy("The server stops before this came to an end.")  # only stopping cancels: let it be said
        except Exception:
            incident = self._dice.nonce()
            logger.exception("Incident %s: %s %s failed.", incident, request.method, request.path)
            answer = problem(500, f"Something is wrong here: see {incident} in the log.", instance=f"urn:{incident}")
        async with asyncio.timeout(self.limits.send_within_s):
            await _send(answer, body, send)

    async def _listen(self, request: Request, receive: Receive, send: Send) -> None:
        try:
            _check(request, self.limits)
        except Turned as turned:
            await refuse(turned.answer, send)
            return
        if self.sockets is not None:
            await self.sockets.serve(request, receive, send)

    async def _answer(self, request: Request, body: _Body) -> Answer:
        _check(request, self.limits)
        if self._site is not None and self._site.is_for(request):
            page = await self._calls.run(partial(self._site.answer, request))
            if page is not None:
                return page
        is_poll = request.method == "POST" and _POLLS.fullmatch(request.path)
        run = self.polls.run if is_poll else self._calls.run
        context = await run(partial(self._gateway.authorize, request))
        is_code = request.method == "PUT" and _CODE.fullmatch(request.path)
        content = await body.read(self.limits.code_bytes if is_code else self.limits.body_bytes)
        if is_poll:
            return await self._poll(request, content, context, body)
        return await run(partial(self._gateway.handle, request, content, context))

    async def _poll(self, request: Request, content: bytes, context: Context, body: _Body) -> Answer:
        """A call that may wait for long."""

        def call(patience: Patience | None) -> Answer:
            return self._gateway.handle(request, content, context, patience=patience)

        answer = await self.polls.answer(call, body.left)
        if answer is None:
            raise _Gone
        return answer


class _Body:
    """A request's body, read up to a limit."""

    def __init__(self, receive: Receive, scope: Scope, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        headers = dict(scope["headers"])
        self._announced = headers.get(b"content-length", b"0")
        self.is_read = self._announced == b"0" and b"transfer-encoding" not in headers
        self._is_held_back = b"expect" in headers

    async def read(self, bytes_max: int) -> bytes:
        """All of it; `Turned` where it is too large or too slow."""
        if int(self._announced) > bytes_max:
            raise Turned(_too_large(bytes_max))
        content = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_within_s):
                while not self.is_read:
                    content += await self._next()
                    if len(content) > bytes_max:
                        raise Turned(_too_large(bytes_max))
        except TimeoutError as error:
            raise Turned(problem(408, "The body did not come in time.")) from error
        return bytes(content)

    async def left(self) -> None:
        """Until the client has gone away."""
        while (await self._receive())["type"] != "http.disconnect":
            continue

    async def linger(self) -> None:
        """Drop some of what is still coming: closing at once would reset the connection, and the answer with it."""
        if self._is_held_back:
            return
        dropped = 0
        try:
            async with asyncio.timeout(self._limits.linger_s):
                while not self.is_read and dropped < self._limits.linger_bytes:
                    dropped += len(await self._next())
        except (TimeoutError, _Gone):
            pass  # then the client hears it or not: it was told

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        self.is_read = not message.get("more_body", False)
        content: bytes = message.get("body", b"")
        return content


class Server(uvicorn.Server):
    """A server on a socket that is listening already; it calls `ready` once it answers."""

    def __init__(self, app: App, *, ready: Callable[[], None], verbose: bool = False) -> None:
        limits = app.limits
        self._polls = app.polls
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=partial(Protocol, limits=limits),  # type: ignore[arg-type]  # it is called, and no more
                ws=partial(LiveProtocol, limits=limits) if app.sockets else "none",  # type: ignore[arg-type]  # as above
                ws_max_size=limits.message_bytes,
                ws_per_message_deflate=False,
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level="info" if verbose else "error",
                access_log=verbose,
                proxy_headers=False,
                server_header=False,
                h11_max_incomplete_event_size=limits.head_bytes,
                timeout_keep_alive=limits.idle_s,
                timeout_graceful_shutdown=limits.finish_within_s,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._polls.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the caller's."""
        yield


def listen(port: int) -> socket.socket:
    """A socket on this machine's own address only; port 0 is any that is free. `OSError` where it is taken."""
    # Said to be TCP, so that asyncio recognises it and sends at once: an answer's body is not to wait for an ACK.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _request(scope: Scope) -> Request:
    return Request(
        scope.get("method", "GET"),  # to listen there is only one
        scope["raw_path"].decode("latin-1"),
        scope["query_string"].decode("latin-1"),
        tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]),
        client=scope["client"][0] if scope["client"] else HOST,
        http_version=scope["http_version"],
    )


def _check(request: Request, limits: Limits) -> None:
    """Turn away what is out of bounds, whoever sends it."""
    if len(request.path) + len(request.query) > limits.url_chars:
        raise Turned(problem(414, f"The URL is too long: at most {limits.url_chars} characters are right."))
    size = sum(len(name) + len(value) for name, value in request.headers)
    if size > limits.head_bytes or len(request.headers) > limits.headers:
        most = f"at most {limits.headers} of together {limits.head_bytes} bytes are right"
        raise Turned(problem(431, f"The headers are too long: {most}."))
    if request.http_version not in {"1.0", "1.1"}:
        raise Turned(problem(505, "HTTP/1.1 is spoken here."))
    if not _HOSTS.fullmatch(request.header("host") or ""):
        # A page elsewhere whose name was made to lead here must not be read by its browser as ours.
        raise Turned(problem(403, "The Host must be 127.0.0.1 or localhost."))


def _too_large(bytes_max: int) -> Answer:
    return problem(413, f"The body is too large: at most {bytes_max} bytes are right.")


async def _send(answer: Answer, body: _Body, send: Send) -> None:
    """Write the answer; where the request was not read to its end, the connection ends with it."""
    headers = answer.wire_headers()
    ends = not body.is_read
    if ends:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": ends})
    if ends:
        await body.linger()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
