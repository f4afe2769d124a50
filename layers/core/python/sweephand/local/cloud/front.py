"""What API Gateway calls: the functions `authorize` and `api`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sweephand.api.asked import Patience
from sweephand.api.refusals import Unauthorized
from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.functions import FunctionFailed

_UNAUTHORIZED: Final = "Unauthorized"
"""The one message of an authorizer's error that means 401."""


class Front:
    """Behind the gateway. A function answers at once: it keeps nobody waiting."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def authorize(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """The authorizer's policy."""
        try:
            policy: Mapping[str, Any] = self._deployment.invoke("authorize", event)
        except FunctionFailed as failed:
            if failed.message == _UNAUTHORIZED:
                raise Unauthorized("A token that is known here is needed: Authorization: Bearer <token>.") from failed
            raise
        return policy

    def handle(self, event: Mapping[str, Any], *, patience: Patience | None = None) -> Mapping[str, Any]:  # noqa: ARG002
        """The API's reply."""
        reply: Mapping[str, Any] = self._deployment.invoke("api", event)
        return reply
