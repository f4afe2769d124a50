"""The REST API behind API Gateway."""

from __future__ import annotations

from typing import Any, Final

from sweephand.api.app import ON_AWS, Api
from sweephand.entrypoint import deployed, images, settings, targets
from sweephand.operators import steps_within

steps: Final = steps_within(settings().reachable, images())
api: Final = Api(deployed(), kinds=ON_AWS, operators=steps, targets=targets(), alone=True)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    return api.handle(event)
