"""The WebSocket API."""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.logs import LogGroup
from infra.options import Options
from sweephand.topology import Names

STAGE: Final = "live"
"""Also its path behind CloudFront."""
MESSAGES_PER_SECOND: Final = 200
BURST: Final = 500


class LiveApi(gateway.WebSocketApi):
    """Anybody may connect from the console's address; who says nothing that opens something hears nothing."""

    def __init__(self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, options: Options) -> None:
        super().__init__(scope, id_, api_name=names.of(STAGE), description=f"Live updates of {names.prefix}")
        group = LogGroup(self, "Log", name=f"/aws/apigateway/{names.of(STAGE)}", key=key, options=options)
        self.stage = gateway.WebSocketStage(
            self,
            "Stage",
            web_socket_api=self,
            stage_name=STAGE,
            auto_deploy=True,
            throttle=gateway.ThrottleSettings(rate_limit=MESSAGES_PER_SECOND, burst_limit=BURST),
        )
        resource = self.stage.node.default_child
        if isinstance(resource, gateway.CfnStage):
            resource.access_log_settings = gateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=group.log_group_arn, format=_ACCESS_LOG
            )

    def route(self, live: lambda_.IFunction) -> None:
        """Every message goes to one function."""
        for route in ("$connect", "$disconnect", "$default"):
            self.add_route(
                route,
                integration=integrations.WebSocketLambdaIntegration(f"{route[1:].capitalize()}Integration", live),
            )

    @property
    def host(self) -> str:
        """Its own address, which CloudFront calls."""
        return f"{self.api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"

    @property
    def way_back(self) -> str:
        """Where messages to connections are sent."""
        return f"https://{self.host}/{STAGE}"


_ACCESS_LOG: Final = json.dumps(
    {
        "at": "$context.requestTimeEpoch",
        "id": "$context.requestId",
        "ip": "$context.identity.sourceIp",
        "connection": "$context.connectionId",
        "event": "$context.eventType",
        "route": "$context.routeKey",
        "status": "$context.status",
        "error": "$context.error.responseType",
        "integrationError": "$context.integrationErrorMessage",
    }
)
