"""What API Gateway does with WebSocket connections: the function `live` hears of each, and says what they are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.local.sockets import Sockets

_STAGE: Final = "live"


class Told:
    """Connections of a real server, to which a deployment's messages go."""

    def __init__(self, deployment: Deployment, sockets: Sockets) -> None:
        self._deployment = deployment
        self._sockets = sockets
        deployment.tell(self)

    def connect(self, connection: str, headers: Mapping[str, str]) -> int:
        # The server has seen that a page is its own, by whichever name; a deployment has one name.
        known = {"origin": self._deployment.settings.origin} if "origin" in headers else {}
        try:
            answer = self._invoke("$connect", connection, headers={**headers, **known})
        except FunctionFailed:
            return 502
        status: int = answer["statusCode"]
        return status

    def hear(self, connection: str, text: str) -> None:
        try:
            self._invoke("$default", connection, body=text)
        except FunctionFailed:
            self._sockets.send(connection, json.dumps({"message": "Internal server error", "connectionId": connection}))

    def leave(self, connection: str) -> None:
        try:
            self._invoke("$disconnect", connection)
        except FunctionFailed:
            return  # API Gateway says it once, to whoever hears it

    def look(self) -> None:
        """The stream brings what is new."""

    def send(self, connection: str, message: Any) -> bool:
        """A message of the function's; False where the connection is gone. Who is welcomed stays for as long as that
        counts, which on AWS is seen to with the next news."""
        if message.get("type") == "welcome":
            self._sockets.stay(connection, datetime.fromisoformat(message["until"]))
        return self._sockets.send(connection, json.dumps(message))

    def close(self, connection: str) -> bool:
        """The function ends it; False where it is gone."""
        is_there = connection in self._sockets
        self._sockets.close(connection)
        return is_there

    def _invoke(self, route: str, connection: str, **more: Any) -> Any:
        context = {"routeKey": route, "connectionId": connection, "stage": _STAGE, "apiId": _STAGE}
        return self._deployment.invoke("live", {"requestContext": context, **more})
