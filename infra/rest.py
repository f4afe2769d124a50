"""The REST API: one stage, an authorizer in front of everything but two public answers, and limits."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_wafv2 as waf
from constructs import Construct

from infra.logs import LogGroup
from infra.options import Options
from sweephand.topology import Names

STAGE: Final = "api"
"""Also the first part of its paths behind CloudFront: /api/v1/jobs is v1/jobs of this stage."""
PUBLIC: Final = ("health", "jwks.json")
REQUESTS_PER_SECOND: Final = 200
BURST: Final = 400

_PROBLEMS: Final = {
    apigateway.ResponseType.UNAUTHORIZED: (401, "A token is needed: Authorization: Bearer <token>."),
    apigateway.ResponseType.ACCESS_DENIED: (403, "This token may not do that, or not in that namespace."),
    apigateway.ResponseType.MISSING_AUTHENTICATION_TOKEN: (404, "There is nothing here."),
    apigateway.ResponseType.REQUEST_TOO_LARGE: (413, "The request is larger than any that could be right."),
    apigateway.ResponseType.THROTTLED: (429, "Too many requests: try again in a second."),
    apigateway.ResponseType.QUOTA_EXCEEDED: (429, "Too many requests: try again later."),
    apigateway.ResponseType.AUTHORIZER_FAILURE: (503, "Who is calling could not be found out: try again."),
    apigateway.ResponseType.AUTHORIZER_CONFIGURATION_ERROR: (503, "Who is calling could not be found out: try again."),
    apigateway.ResponseType.INTEGRATION_TIMEOUT: (504, "It took too long. It may have taken effect: try again."),
    apigateway.ResponseType.DEFAULT_4_XX: (400, "The request could not be understood."),
    apigateway.ResponseType.DEFAULT_5_XX: (503, "It could not be done: try again."),
}
"""What API Gateway answers by itself, in the words and the form of the API's own problems."""
_OWN_STATUS: Final = (apigateway.ResponseType.DEFAULT_4_XX, apigateway.ResponseType.DEFAULT_5_XX)
"""For these, API Gateway knows the status better."""


class RestApi(apigateway.RestApi):
    """Without CORS: console and API have one origin."""

    def __init__(self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, options: Options) -> None:
        group = LogGroup(scope, f"{id_}Log", name=f"/aws/apigateway/{names.of(STAGE)}", key=key, options=options)
        super().__init__(
            scope,
            id_,
            rest_api_name=names.prefix,
            description=f"The REST API of {names.prefix}",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            cloud_watch_role=False,
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                throttling_rate_limit=REQUESTS_PER_SECOND,
                throttling_burst_limit=BURST,
                access_log_destination=apigateway.LogGroupLogDestination(group),
                access_log_format=apigateway.AccessLogFormat.custom(_ACCESS_LOG),
            ),
        )
        for kind, (status, detail) in _PROBLEMS.items():
            self._problem(kind, status, detail)
        if options.waf:
            self._firewall(names)

    def route(self, *, api: lambda_.IFunction, authorize: lambda_.IFunction) -> None:
        """Everything goes to one function, and first through the authorizer.

        Its answers are not kept: which namespace is meant is in a header that may be absent, and API Gateway keeps
        answers by headers that must be there.
        """
        authorizer = apigateway.RequestAuthorizer(
            self,
            "Authorizer",
            handler=authorize,
            identity_sources=[apigateway.IdentitySource.header("Authorization")],
            results_cache_ttl=Duration.seconds(0),
        )
        integration = apigateway.LambdaIntegration(api, allow_test_invoke=False)
        version = self.root.add_resource("v1")
        guarded = [self.root.add_resource("{proxy+}"), version.add_resource("{proxy+}")]
        for path in PUBLIC:
            resource = version.add_resource(path)
            resource.add_method("GET", integration, authorization_type=apigateway.AuthorizationType.NONE)
            guarded.append(resource)
        for resource in guarded:
            resource.add_method(
                "ANY",
                integration,
                authorizer=authorizer,
                authorization_type=apigateway.AuthorizationType.CUSTOM,
            )

    @property
    def host(self) -> str:
        """Its own address, which CloudFront calls."""
        return f"{self.rest_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"

    def _problem(self, kind: apigateway.ResponseType, status: int, detail: str) -> None:
        problem = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
        text = json.dumps(problem)
        if kind in _OWN_STATUS:
            text = json.dumps({"type": "about:blank", "title": HTTPStatus(status).phrase, "detail": detail})
        self.add_gateway_response(
            f"Problem{kind.response_type.title().replace('_', '')}",
            type=kind,
            status_code=None if kind in _OWN_STATUS else str(status),
            response_headers={"Content-Type": "'application/problem+json'"},
            templates={"application/json": text},
        )

    def _firewall(self, names: Names) -> None:
        """The option `waf`: AWS's own lists of bad requests and addresses, and a limit per address."""
        rules = [
            _managed(number, name)
            for number, name in enumerate(
                ("AWSManagedRulesAmazonIpReputationList", "AWSManagedRulesKnownBadInputsRuleSet")
            )
        ]
        limit = waf.CfnWebACL.RuleProperty(
            name="limit",
            priority=len(rules),
            action=waf.CfnWebACL.RuleActionProperty(block={}),
            statement=waf.CfnWebACL.StatementProperty(
                rate_based_statement=waf.CfnWebACL.RateBasedStatementProperty(limit=10_000, aggregate_key_type="IP")
            ),
            visibility_config=_seen("limit"),
        )
        acl = waf.CfnWebACL(
            self,
            "Firewall",
            name=names.prefix,
            scope="REGIONAL",
            default_action=waf.CfnWebACL.DefaultActionProperty(allow={}),
            visibility_config=_seen(names.prefix),
            rules=[*rules, limit],
        )
        waf.CfnWebACLAssociation(self, "Guard", resource_arn=self.deployment_stage.stage_arn, web_acl_arn=acl.attr_arn)


def _managed(priority: int, name: str) -> waf.CfnWebACL.RuleProperty:
    return waf.CfnWebACL.RuleProperty(
        name=name,
        priority=priority,
        override_action=waf.CfnWebACL.OverrideActionProperty(none={}),
        statement=waf.CfnWebACL.StatementProperty(
            managed_rule_group_statement=waf.CfnWebACL.ManagedRuleGroupStatementProperty(name=name, vendor_name="AWS")
        ),
        visibility_config=_seen(name),
    )


def _seen(name: str) -> waf.CfnWebACL.VisibilityConfigProperty:
    return waf.CfnWebACL.VisibilityConfigProperty(
        metric_name=name, cloud_watch_metrics_enabled=True, sampled_requests_enabled=True
    )


_ACCESS_LOG: Final = json.dumps(
    {
        "at": "$context.requestTimeEpoch",
        "id": "$context.requestId",
        "ip": "$context.identity.sourceIp",
        "agent": "$context.identity.userAgent",
        "method": "$context.httpMethod",
        "path": "$context.path",
        "status": "$context.status",
        "bytes": "$context.responseLength",
        "ms": "$context.responseLatency",
        "namespace": "$context.authorizer.namespace",
        "caller": "$context.authorizer.callerId",
        "error": "$context.error.responseType",
        "authorizerError": "$context.authorizer.error",
        "integrationError": "$context.integration.error",
    }
)
