"""Live updates on one machine: who listens, in memory, and the feed of changed runs that they hear of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Any, Final

from sweephand.api.authorize import Gate
from sweephand.api.live import Live
from sweephand.domain.ids import Namespace
from sweephand.embedded.views import Feed
from sweephand.errors import InvalidInput
from sweephand.local.sockets import Sockets
from sweephand.ports import Clock

LISTENS_TO_MAX: Final = 500
"""The topics of one connection."""
_BATCH: Final = 1_000


class Listeners:
    """The `Audience` of one machine."""

    def __init__(self, sockets: Sockets, clock: Clock) -> None:
        self._sockets = sockets
        self._clock = clock
        self._lock = Lock()
        self._admitted: dict[str, tuple[Namespace, datetime]] = {}
        self._topics: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        """Whether anybody listens to anything."""
        return bool(self._topics)

    def admit(self, connection: str, namespace: Namespace, *, until: datetime) -> None:
        with self._lock:
            self._admitted[connection] = (namespace, until)
        self._sockets.stay(connection, until)

    def admitted(self, connection: str) -> tuple[Namespace, datetime] | None:
        found = self._admitted.get(connection)
        return found if found is not None and found[1] > self._clock.now() else None

    def listen(self, connection: str, namespace: Namespace, topics: Sequence[str], *, until: datetime) -> None:  # noqa: ARG002 - as it was admitted
        with self._lock:
            if connection not in self._admitted:
                return  # it has just left
            heard = self._topics.get(connection, set()) | set(topics)
            if len(heard) > LISTENS_TO_MAX:
                raise InvalidInput(f"A connection listens to {LISTENS_TO_MAX} topics at most.", "subscribe")
            self._topics[connection] = heard

    def ignore(self, connection: str, namespace: Namespace, topics: Sequence[str]) -> None:  # noqa: ARG002 - as above
        with self._lock:
            left = self._topics.pop(connection, set()) - set(topics)
            if left:
                self._topics[connection] = left

    def leave(self, connection: str) -> None:
        with self._lock:
            self._topics.pop(connection, None)
            self._admitted.pop(connection, None)

    def listeners(self, namespace: Namespace) -> Mapping[str, Mapping[str, bool]]:
        now, found = self._clock.now(), {}
        with self._lock:
            for connection, topics in self._topics.items():
                own, until = self._admitted[connection]
                if own == namespace:
                    found[connection] = dict.fromkeys(topics, until > now)
        return found

    def send(self, connection: str, message: Mapping[str, Any]) -> bool:
        return self._sockets.send(connection, json.dumps(message, separators=(",", ":")))

    def close(self, connection: str) -> None:
        self._sockets.close(connection)
        self.leave(connection)


class News:
    """Hears those who listen on one machine, and tells them what this process or another on the same file changed."""

    def __init__(self, gate: Gate, feed: Feed, clock: Clock, sockets: Sockets) -> None:
        self._sockets = sockets
        self._listeners = Listeners(sockets, clock)
        self._live = Live(gate, self._listeners, clock, origin="")
        self._feed = feed
        self._lock = Lock()
        self._told = 0

    def connect(self, connection: str, headers: Mapping[str, str]) -> int:  # noqa: ARG002 - the server has seen to them
        self.look()
        return 200

    def hear(self, connection: str, text: str) -> None:
        self._live.hear(connection, text)
        if connection not in self._sockets:
            self.leave(connection)  # it left while it was heard

    def leave(self, connection: str) -> None:
        self._listeners.leave(connection)

    def look(self) -> None:
        """Tell of runs that changed since, each once, as it is now; what nobody listens to is passed over.

        So many at a time: those who read them at once are to have read them before there are more.
        """
        with self._lock:
            # Before anybody is looked for: who begins to listen after that hears of everything after that.
            last = self._feed.last()
            changed = self._feed.read(self._told, _BATCH) if self._listeners and self._told < last else []
            self._live.tell([run for _, run in changed])
            self._told = changed[-1][0] if changed else max(self._told, last)
