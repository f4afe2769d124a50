"""API Gateway's right to write logs, which a region of an account has once for all its APIs."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from constructs import Construct


class GatewayAccount(Construct):
    """It stays when the stack goes: other APIs of the account may have come to rely on it."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("apigateway.amazonaws.com"),
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name("service-role/AmazonAPIGatewayPushToCloudWatchLogs")
            ],
        )
        role.apply_removal_policy(RemovalPolicy.RETAIN)
        account = apigateway.CfnAccount(self, "Account", cloud_watch_role_arn=role.role_arn)
        account.apply_removal_policy(RemovalPolicy.RETAIN)
