"""Who is calling? API Gateway asks before it lets a request through."""

from __future__ import annotations

from typing import Any, Final

from sweephand.api.authorize import Gate
from sweephand.api.refusals import Unauthorized
from sweephand.api.sessions import Verifier
from sweephand.entrypoint import deployed, published_keys, settings

world: Final = deployed()
gate: Final = Gate(world, [Verifier.of_user_pool(published_keys, settings(), world.clock)])


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """A policy; API Gateway turns an error with exactly this message into a 401."""
    try:
        return gate.policy(event)
    except Unauthorized:
        raise RuntimeError("Unauthorized") from None
