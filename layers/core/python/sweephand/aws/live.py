"""WebSocket connections: who listens to what, and the way to them.

pk                 sk                 what
live#connection    caller             who it is, and until when that counts
live#connection    topic#job:report   that it listens to this
listeners#ns       connection#topic   the same, for those who have news
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from sweephand.aws.calls import asking, code_of
from sweephand.aws.items import end, instant, item_of, read_instant, text
from sweephand.aws.table import Table
from sweephand.domain.ids import Namespace
from sweephand.ports import Clock
from sweephand.topology import TTL

if TYPE_CHECKING:
    from types_boto3_apigatewaymanagementapi.client import ApiGatewayManagementApiClient

_GONE: Final = "GoneException"
_CLOGGED: Final = frozenset({"LimitExceededException", "ForbiddenException", "PayloadTooLargeException"})
"""This one does not take what it is sent. It is ended, so that it comes again and asks for a snapshot, and does not
keep the others from hearing."""
_TOPIC: Final = "topic#"
_FIRST, _LAST = "!", "~"


class Connections:
    """The `Audience` of a deployment."""

    def __init__(self, table: Table, client: ApiGatewayManagementApiClient, *, clock: Clock) -> None:
        self._table = table
        self._client = client
        self._clock = clock

    def admit(self, connection: str, namespace: Namespace, *, until: datetime) -> None:
        fields = {"ns": text(namespace), "u": instant(until), TTL: end(until)}
        self._table.put_all([item_of(_own(connection), "caller", fields)])
        self.listen(connection, namespace, self._topics(connection), until=until)

    def admitted(self, connection: str) -> tuple[Namespace, datetime] | None:
        item = self._table.get(_own(connection), "caller")
        until = read_instant(item or {}, "u")
        if item is None or until is None or until <= self._clock.now():
            return None
        return Namespace(item["ns"]["S"]), until

    def listen(self, connection: str, namespace: Namespace, topics: Sequence[str], *, until: datetime) -> None:
        fields = {"u": instant(until), TTL: end(until)}
        self._table.put_all(
            item
            for topic in topics
            for item in (
                item_of(_own(connection), f"{_TOPIC}{topic}", fields),
                item_of(_listeners(namespace), f"{connection}#{topic}", fields),
            )
        )

    def ignore(self, connection: str, namespace: Namespace, topics: Sequence[str]) -> None:
        keys = [(_own(connection), f"{_TOPIC}{topic}") for topic in topics]
        self._table.delete_all(keys + [(_listeners(namespace), f"{connection}#{topic}") for topic in topics])

    def leave(self, connection: str) -> None:
        item = self._table.get(_own(connection), "caller")
        if item is not None:
            self.ignore(connection, Namespace(item["ns"]["S"]), self._topics(connection))
            self._table.delete_all([(_own(connection), "caller")])

    def listeners(self, namespace: Namespace) -> Mapping[str, Mapping[str, bool]]:
        found: dict[str, dict[str, bool]] = {}
        for item in self._table.query(_listeners(namespace), low=_FIRST, high=_LAST):
            connection, _, topic = item["sk"]["S"].partition("#")
            until = read_instant(item, "u")
            found.setdefault(connection, {})[topic] = until is not None and until > self._clock.now()
        return found

    def send(self, connection: str, message: Mapping[str, Any]) -> bool:
        with asking(f"tell {connection}"):
            try:
                self._client.post_to_connection(ConnectionId=connection, Data=json.dumps(message).encode())
            except ClientError as error:
                if code_of(error) in _CLOGGED:
                    self.close(connection)
                elif code_of(error) != _GONE:
                    raise
                return False
        return True

    def close(self, connection: str) -> None:
        with asking(f"close {connection}"):
            try:
                self._client.delete_connection(ConnectionId=connection)
            except ClientError as error:
                if code_of(error) != _GONE:  # safe: it is closed already
                    raise
        self.leave(connection)

    def _topics(self, connection: str) -> list[str]:
        found = self._table.query(_own(connection), low=_TOPIC, high=f"{_TOPIC}{_LAST}")
        return [item["sk"]["S"].removeprefix(_TOPIC) for item in found]


def _own(connection: str) -> str:
    return f"live#{connection}"


def _listeners(namespace: Namespace) -> str:
    return f"listeners#{namespace}"
