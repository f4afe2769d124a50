"""Powertools' REST resolver, for many threads at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from aws_lambda_powertools.event_handler.api_gateway import BaseRouter, Route
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

# With more, it would log the bodies of calls, and in them what workers say.
logging.getLogger("aws_lambda_powertools").setLevel(logging.INFO)


class _InFlight(threading.local):
    """The request of this thread."""

    def __init__(self) -> None:
        self.event = APIGatewayProxyEvent({})
        self.context: dict[str, Any] = {}


class Resolver(APIGatewayRestResolver):
    """A Lambda function has one request at a time, so the resolver keeps it in attributes, some of them its class's.
    A server has many: here each thread has its own."""

    def __init__(self, **options: Any) -> None:
        self._in_flight = _InFlight()
        super().__init__(**options)
        BaseRouter.lambda_context = None  # type: ignore[assignment]  # it has none, and the class is asked for it

    @property
    def current_event(self) -> APIGatewayProxyEvent:  # type: ignore[override]
        return self._in_flight.event

    @property
    def context(self) -> dict[str, Any]:
        return self._in_flight.context

    @context.setter
    def context(self, value: dict[str, Any]) -> None:
        self._in_flight.context = value

    def resolve(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ARG002 - as its base has it
        """As its base does, without writing to the class."""
        self._in_flight.event = APIGatewayProxyEvent(dict(event))
        try:
            return self._build_response(self._resolve())
        finally:
            self._in_flight.context.clear()

    def prepare(self) -> None:
        """Build what is otherwise built by the first request, which two first requests would build twice."""
        for route in self.routes:
            route._build_middleware_stack(router_middlewares=self._router_middlewares, app=self)
            _ = route.dependant, route.body_field

    @property
    def routes(self) -> list[Route]:
        """Every route, in the order in which they are tried."""
        return [*self._static_routes, *self._dynamic_routes]
