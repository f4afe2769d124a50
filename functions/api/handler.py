"""The REST API behind API Gateway."""

from __future__ import annotations

from typing import Any, Final

from sweephand.api.app import Api
from sweephand.entrypoint import deployed

api: Final = Api(deployed(), alone=True)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    return api.handle(event)
