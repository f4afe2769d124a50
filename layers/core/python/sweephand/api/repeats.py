"""Idempotency keys: a call that is repeated is answered again, and done once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from hashlib import blake2b
from threading import Event
from typing import Any, Final

from msgspec.structs import replace

from sweephand.domain.ids import Namespace
from sweephand.errors import Conflict
from sweephand.ports import Reply, World

KEPT: Final = timedelta(hours=24)
_HELD: Final = timedelta(seconds=30)
"""How long one caller may be at it before another with the same key begins again."""
_LOOK_EVERY_S: Final = 0.02
_LOOKS_MAX: Final = 500
_ANSWER_CHARS_MAX: Final = 200_000
"""A longer answer is not kept: the call would be made again."""

Result = dict[str, Any]


def once(
    world: World, namespace: Namespace, key: str, asked_for: Mapping[str, Any], call: Callable[[], Result]
) -> Result:
    """The answer to the first call under this key; another call under the same key is a conflict.

    Only successes are kept: a refusal changed nothing, so that it may be tried again. Where a process dies between the
    deed and its answer, the deed is done again; those that must not be done twice know the key themselves.
    """
    fingerprint = blake2b(json.dumps(asked_for, sort_keys=True).encode(), digest_size=16).hexdigest()
    holder = world.dice.nonce()
    for _ in range(_LOOKS_MAX):
        now = world.clock.now()
        mine = Reply(fingerprint, holder, now + _HELD)
        found = world.replies.reserve(namespace, key, mine, now=now, until=now + KEPT)
        if found.fingerprint != fingerprint:
            raise Conflict("This Idempotency-Key was used for another call: take a new one.")
        if found.answer is not None:
            replayed: Result = json.loads(found.answer)
            return replayed
        if found.holder == holder:
            return _answered(world, namespace, key, mine, call)
        Event().wait(_LOOK_EVERY_S)  # the same call is under way
    raise Conflict("The same call is still under way: ask again.")


def _answered(world: World, namespace: Namespace, key: str, mine: Reply, call: Callable[[], Result]) -> Result:
    settled = False
    try:
        result = call()
        text = json.dumps(result)
        if 200 <= result["statusCode"] < 300 and len(text) <= _ANSWER_CHARS_MAX:
            until = world.clock.now() + KEPT
            settled = world.replies.settle(namespace, key, replace(mine, answer=text), until=until)
        return result
    finally:
        if not settled:
            world.replies.release(namespace, key, mine)
