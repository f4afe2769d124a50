"""Who is calling? API Gateway asks before it lets a request through, and remembers the answer for a minute."""

from __future__ import annotations

from typing import Any, Final

from sweephand.api import Api, Unauthorized
from sweephand.api.sessions import PublishedKeys, Verifier
from sweephand.entrypoint import deployed, published_keys, settings

_keys: Final = PublishedKeys(published_keys, deployed().clock)
_people: Final = Verifier(_keys, settings().issuer, settings().audience, audience_claim="client_id")
api: Final = Api(deployed(), verifiers=[_people])


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """A policy; API Gateway turns an error with exactly this message into a 401."""
    try:
        return api.authorize(event)
    except Unauthorized:
        raise RuntimeError("Unauthorized") from None
