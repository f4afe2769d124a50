"""What the functions say to each other: typed, versioned, with one encoding."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from msgspec import Struct

from sweephand.domain.ids import RunKey
from sweephand.errors import InvalidInput

_FORMAT: Final = 1


class AttemptRun(Struct, frozen=True):
    """Look at this run and do what it needs.

    `timer` is the moment that this message was sent for, if it is a wait's timer: of several messages for a waiting
    run, only the timer of its present wait goes on, so that messages do not breed. `redriven` counts returns from the
    dead-letter queue.
    """

    run: RunKey
    timer: datetime | None = None
    redriven: int = 0


class SweepShards(Struct, frozen=True):
    """Sweep these shards of the due index."""

    shards: tuple[int, ...]


Message = AttemptRun | SweepShards
M = TypeVar("M", AttemptRun, SweepShards)


class Unstarted(Struct, frozen=True):
    """Nothing was begun, for certain: there was no room for it. It is not counted as an attempt."""

    reason: str


class Again(Struct, frozen=True):
    """What it waits for has not come: look again after a while. Nobody works meanwhile, and no attempt is counted."""

    after: timedelta
    reason: str


class Elsewhere:
    """It goes on elsewhere, and its outcome will be reported under its epoch."""


def encode(message: Message) -> str:
    """The message as it travels."""
    body: dict[str, Any] = {"v": _FORMAT}
    if isinstance(message, AttemptRun):
        body["attempt"] = str(message.run)
        if message.timer is not None:
            body["timer"] = message.timer.isoformat()
        if message.redriven:
            body["redriven"] = message.redriven
    else:
        body["sweep"] = list(message.shards)
    return json.dumps(body, separators=(",", ":"))


def decode_as(kind: type[M], text: str) -> M:
    """The message that travelled, where it is of the kind that is dealt with here."""
    message = decode(text)
    if not isinstance(message, kind):
        raise InvalidInput(f"The message {text} is for another function.", "message")
    return message


def decode(text: str) -> Message:
    """The message that travelled; anything else is refused, and ends among the dead letters."""
    try:
        body = json.loads(text)
        if body["v"] != _FORMAT:
            raise InvalidInput(f"The message has format {body['v']}, which is not known here.", "message")
        if "attempt" in body:
            timer = body.get("timer")
            at = datetime.fromisoformat(timer) if timer is not None else None
            return AttemptRun(RunKey.of(body["attempt"]), at, int(body.get("redriven", 0)))
        return SweepShards(tuple(int(shard) for shard in body["sweep"]))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"The message is not readable: {error}.", "message") from error
