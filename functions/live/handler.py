"""The WebSocket: what connections say, and what they are told when runs change."""

from __future__ import annotations

from typing import Any, Final

from sweephand.api.authorize import Gate
from sweephand.api.live import Live
from sweephand.api.sessions import Verifier
from sweephand.aws import changed_runs
from sweephand.entrypoint import Context, Event, deployed, entrypoint, live_connections, published_keys, settings

world: Final = deployed()
people: Final = Verifier.of_user_pool(published_keys, settings(), world.clock)
live: Final = Live(Gate(world, [people]), live_connections(), world.clock, settings().origin)


@entrypoint
def handler(event: Event, _context: Context) -> dict[str, Any]:
    if "Records" in event:
        changed = changed_runs(event)
        live.tell(changed.runs)
        return changed.answer
    connection = event["requestContext"]["connectionId"]
    match event["requestContext"]["routeKey"]:
        case "$connect":
            return {"statusCode": 200 if live.may_connect(event.get("headers") or {}) else 403}
        case "$disconnect":
            live.audience.leave(connection)
        case _:
            live.hear(connection, event.get("body") or "")
    return {"statusCode": 200}
