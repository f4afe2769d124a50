"""Live updates over a WebSocket: who connects says who it is, names what it wants to hear of, and hears of it.

Messages to us     {"token": …, "namespace": …}, {"subscribe": [topics]}, {"unsubscribe": [topics]}, {"ping": true}
Messages from us   welcome, subscribed, pong, changes, error, closing
Topics             job:<job>, run:<job>/<run>, runs (every run of the namespace)

Who listens to one run hears of its tasks too: their changes have a taskId. A token counts for a few minutes and is
then sent again, so that one that was revoked ends soon. Every change has the revision of its run, or of its task, as
sequence number: whoever reconnects asks REST for a snapshot, and drops what is older.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from msgspec import Struct

from sweephand.api.authorize import Gate
from sweephand.api.refusals import Unauthorized
from sweephand.api.shapes import moment
from sweephand.api.vocabulary import NAME_PATTERN
from sweephand.domain.ids import Namespace
from sweephand.domain.run import Run, RunState
from sweephand.errors import InvalidInput, Refused
from sweephand.ports import Clock

LISTENS_FOR: Final = timedelta(minutes=5)
TOPICS_MAX: Final = 50
MESSAGE_BYTES_MAX: Final = 16_384
_CHANGES_MAX: Final = 100
_UNSEEN: Final = frozenset({RunState.PLANNED, RunState.VOID})
"""No list shows runs in these states: they are nobody's news."""
_NAME: Final = NAME_PATTERN.strip("^$")
_TOPIC: Final = re.compile(rf"runs|job:{_NAME}|run:{_NAME}/{_NAME}")

_News = tuple[frozenset[str], Mapping[str, Any]]
"""The topics that a change is about, and the change as it is told."""


class Audience(Protocol):
    """Who listens, and the way to them."""

    def admit(self, connection: str, namespace: Namespace, *, until: datetime) -> None:
        """This connection may hear of the namespace for a while; what it listens to stays."""

    def admitted(self, connection: str) -> tuple[Namespace, datetime] | None:
        """What it may hear of, and until when; None where its time is over."""

    def listen(self, connection: str, namespace: Namespace, topics: Sequence[str], *, until: datetime) -> None: ...

    def ignore(self, connection: str, namespace: Namespace, topics: Sequence[str]) -> None: ...

    def leave(self, connection: str) -> None:
        """It is gone."""

    def listeners(self, namespace: Namespace) -> Mapping[str, Mapping[str, bool]]:
        """The topics of each connection, and whether it may still hear of them."""

    def send(self, connection: str, message: Mapping[str, Any]) -> bool:
        """False where it is gone."""

    def close(self, connection: str) -> None: ...


class Live(Struct, frozen=True):
    """Hears what connections say, and tells them what they listen to."""

    gate: Gate
    audience: Audience
    clock: Clock
    origin: str
    """The address that browsers may connect from; programs name none."""

    def may_connect(self, headers: Mapping[str, str]) -> bool:
        """Whether somebody may begin: a page of another site may not."""
        origins = [value for name, value in headers.items() if name.lower() == "origin"]
        return all(value == self.origin for value in origins)

    def hear(self, connection: str, text: str) -> None:
        """Deal with one message; one that is refused ends the connection, since it has proved nothing."""
        try:
            message = _message(text)
            if "token" in message:
                self._welcome(connection, message)
            else:
                self._obey(connection, message)
        except (InvalidInput, Refused, Unauthorized) as error:
            self.audience.send(connection, {"type": "error", "detail": error.message})
            if not isinstance(error, InvalidInput):
                self.audience.close(connection)

    def tell(self, runs: Sequence[Run]) -> int:
        """Tell those who listen what changed; how many were told. Telling again is harmless: changes have numbers."""
        told = 0
        news: dict[Namespace, list[_News]] = {}
        for run in runs:
            if run.state not in _UNSEEN:
                news.setdefault(run.key.job.namespace, []).append((_topics_of(run), _change(run)))
        for namespace, own in news.items():
            for connection, topics in self.audience.listeners(namespace).items():
                told += self._tell(connection, topics, own)
        return told

    def _tell(self, connection: str, topics: Mapping[str, bool], news: Sequence[_News]) -> bool:
        if not all(topics.values()):
            self.audience.send(connection, {"type": "closing", "detail": "The token was not sent again in time."})
            self.audience.close(connection)
            return False
        changes = [change for concerned, change in news if concerned & topics.keys()]
        for first in range(0, len(changes), _CHANGES_MAX):
            page = {"type": "changes", "changes": changes[first : first + _CHANGES_MAX]}
            if not self.audience.send(connection, page):
                self.audience.leave(connection)
                return False
        return bool(changes)

    def _welcome(self, connection: str, message: Mapping[str, Any]) -> None:
        token, namespace = message["token"], message.get("namespace")
        if not isinstance(token, str) or not isinstance(namespace, str | None):
            raise InvalidInput("The token and the namespace are texts.", "token")
        headers = {"authorization": f"Bearer {token}"} | ({"x-namespace": namespace} if namespace else {})
        caller = self.gate.caller({"headers": headers})
        before = self.audience.admitted(connection)
        if before is not None and before[0] != caller.namespace:
            self.audience.leave(connection)
        until = self.clock.now() + LISTENS_FOR
        self.audience.admit(connection, caller.namespace, until=until)
        self.audience.send(connection, {"type": "welcome", "namespace": caller.namespace, "until": moment(until)})

    def _obey(self, connection: str, message: Mapping[str, Any]) -> None:
        admitted = self.audience.admitted(connection)
        if admitted is None:
            raise Unauthorized('A token is needed first: {"token": "…"}.')
        namespace, until = admitted
        if "subscribe" in message:
            topics = _topics(message["subscribe"], "subscribe")
            self.audience.listen(connection, namespace, topics, until=until)
            self.audience.send(connection, {"type": "subscribed", "topics": topics})
        elif "unsubscribe" in message:
            self.audience.ignore(connection, namespace, _topics(message["unsubscribe"], "unsubscribe"))
            self.audience.send(connection, {"type": "unsubscribed", "topics": message["unsubscribe"]})
        elif message.get("ping") is True:
            self.audience.send(connection, {"type": "pong"})
        else:
            raise InvalidInput("A message has one of token, subscribe, unsubscribe, ping.", "message")


def _message(text: str) -> Mapping[str, Any]:
    if len(text.encode()) > MESSAGE_BYTES_MAX:
        raise InvalidInput(f"A message has at most {MESSAGE_BYTES_MAX} bytes.", "message")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"A message is a JSON object: {error}.", "message") from error
    if not isinstance(message, dict):
        raise InvalidInput("A message is a JSON object.", "message")
    return message


def _topics(value: Any, path: str) -> list[str]:
    if not isinstance(value, list) or not 0 < len(value) <= TOPICS_MAX:
        raise InvalidInput(f"Topics are a list of 1 to {TOPICS_MAX}.", path)
    for number, topic in enumerate(value):
        if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
            raise InvalidInput("A topic is runs, job:<job> or run:<job>/<run>.", f"{path}[{number}]")
    return list(dict.fromkeys(value))


def _topics_of(run: Run) -> frozenset[str]:
    name = run.key.job.name
    own = f"run:{name}/{run.key.run_id}"
    # A run of many tasks must not drown what others listen to: its tasks are the business of its own page.
    return frozenset({own}) if run.key.task else frozenset({own, "runs", f"job:{name}"})


def _change(run: Run) -> dict[str, Any]:
    return {
        "jobId": run.key.job.name,
        "runId": run.key.run_id,
        **({"taskId": run.key.task} if run.key.task else {}),
        "state": str(run.state),
        "reason": str(run.reason) if run.reason else None,
        "attempt": run.attempt,
        "progress": run.progress,
        "seq": run.rev,
        "at": moment(run.changed_at),
    }
