"""Somewhere to listen: a real server before a store, and clients of a WebSocket library."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from sweephand.api.authorize import Gate
from sweephand.calls import Target
from sweephand.clock import SystemDice
from sweephand.domain.access import Role
from sweephand.domain.ids import DEFAULT, JobKey, JobName, Namespace
from sweephand.domain.run import Run
from sweephand.embedded import PACE, Stores, open_stores
from sweephand.engine.grant import put_namespace
from sweephand.engine.issue import issue, revoke
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.entrypoint import NoTarget
from sweephand.local import Runtime
from sweephand.local.limits import Limits
from sweephand.local.live import News
from sweephand.local.sockets import Hearing, Sockets
from sweephand.ports import World
from tests.agent.launching import MovedClock
from tests.local.serving import Echo, Serving, serving

HEARS_WITHIN_S: Final = 20.0
SILENCE_S: Final = 0.5
"""Five looks for news."""
TEAM: Final = Namespace("team")


class Listener:
    """One connection, as a program has it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.heard: list[Any] = []

    def say(self, message: Any) -> None:
        self._connection.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def hear(self, kind: str) -> Any:
        """The next message of a kind; what else comes before it is kept."""
        while True:
            self.heard.append(json.loads(self._connection.recv(timeout=HEARS_WITHIN_S)))
            if self.heard[-1]["type"] == kind:
                return self.heard[-1]

    def welcomed(self, token: str, *topics: str) -> Listener:
        self.say({"token": token})
        self.hear("welcome")
        if topics:
            self.say({"subscribe": list(topics)})
            self.hear("subscribed")
        return self

    def until(self, fits: Callable[[Any], object]) -> list[Any]:
        """All changes up to one that fits."""
        changes: list[Any] = []
        while not changes or not any(map(fits, changes)):
            changes += self.hear("changes")["changes"]
        return changes

    def hears_nothing(self) -> bool:
        try:
            self.heard.append(json.loads(self._connection.recv(timeout=SILENCE_S)))
        except TimeoutError:
            return True
        return False

    def end(self) -> int | None:
        """The code with which the other side ends it."""
        try:
            while True:
                self.heard.append(json.loads(self._connection.recv(timeout=HEARS_WITHIN_S)))
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


def narrow(port: int) -> socket.socket:
    """A connection that takes little before it is read."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect(("127.0.0.1", port))
    return made


@contextmanager
def listening(port: int, *, name: str = "127.0.0.1", path: str = "/live", **options: Any) -> Iterator[Listener]:
    """A connection to a server on this machine, by one of its names."""
    sock = options.pop("sock", None) or socket.create_connection(("127.0.0.1", port))
    with connect(f"ws://{name}:{port}{path}", sock=sock, compression=None, **options) as connection:
        yield Listener(connection)


class Place:
    """A store, and whoever changes it."""

    def __init__(self, stores: Stores, world: World, clock: MovedClock, server: Serving) -> None:
        self.stores, self.world, self.clock, self.server = stores, world, clock, server

    def token(self, namespace: Namespace = DEFAULT) -> str:
        return self.issued(namespace)[0]

    def issued(self, namespace: Namespace = DEFAULT) -> tuple[str, Callable[[], Any]]:
        """A token, and how it is revoked."""
        found = issue(self.world, namespace=namespace, role=Role.VIEWER, name="v", actor="test")
        return found.text, partial(revoke, self.world, [namespace], found.token.id, actor="test")

    def run(self, namespace: Namespace = DEFAULT, name: str = "report", world: World | None = None) -> Run:
        """A new run of a job, which is made where there is none."""
        world = world or self.world
        key = JobKey(namespace, JobName(name))
        if world.jobs.head(key) is None:
            put(world, namespace, {"name": name, "command": "report"}, actor="test", expected=None)
        return trigger(world, key)

    def beaten(self, run: Run, times: int = 1) -> Run:
        """The run, claimed, with so many more changes."""
        return self.stores.database.together(partial(self._beaten, run, times))

    def _beaten(self, run: Run, times: int) -> Run:
        now, nonce = self.clock.now(), self.world.dice.nonce
        if run.owner is None:
            claimed = run.claimed(now=now, nonce=nonce(), owner="test", version=1, lease=PACE.lease_grace)
            assert self.world.runs.move(run, claimed)
            run = claimed
        for _ in range(times):
            after = run.beaten(now=now, nonce=nonce(), lease=PACE.lease_grace, progress=None)
            assert self.world.runs.move(run, after)
            run = after
        return run

    @contextmanager
    def listener(self, token: str | None = None, *topics: str, **options: Any) -> Iterator[Listener]:
        with listening(self.server.port, **options) as listener:
            if token is not None:
                listener.welcomed(token, *topics)
            yield listener


@contextmanager
def place(folder: Path, *, target: Target | None = None, **limits: Any) -> Iterator[Place]:
    """A server that nothing runs behind, except where there is a target."""
    clock, dice = MovedClock(), SystemDice()
    with closing(open_stores(folder / "test.db", clock=clock)) as stores, ExitStack() as stack:
        world = World.over(stores, clock=clock, dice=dice, target=NoTarget(), pace=PACE, owner="test")
        if target is not None:
            world = stack.enter_context(Runtime(stores, target=target, clock=clock, dice=dice, workers=2)).world
        put_namespace(world, TEAM, {}, actor="test")
        behind = partial(News, Gate(world, []), stores.feed, clock)
        server = stack.enter_context(serving(Echo(), sockets=sockets(behind, clock, **limits), **limits))
        yield Place(stores, world, clock, server)


def sockets(behind: Callable[[Sockets], Hearing], clock: MovedClock, **limits: Any) -> Sockets:
    return Sockets(behind, clock=clock, dice=SystemDice(), limits=Limits(**limits))
