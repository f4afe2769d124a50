"""The one customer key that everything of a deployment is encrypted with."""

from __future__ import annotations

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from sweephand.topology import Names


class Key(kms.Key):
    """Kept when its stack goes: without it nothing that was kept can be read.

    Functions use it by their roles. Services that act in nobody's name are named here.
    """

    def __init__(self, scope: Construct, id_: str, *, names: Names) -> None:
        super().__init__(
            scope,
            id_,
            alias=names.prefix,
            description=f"Everything of {names.prefix}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        for service in ("cloudwatch.amazonaws.com", "budgets.amazonaws.com", "events.amazonaws.com"):
            self.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal(service)],
                    actions=["kms:Decrypt", "kms:GenerateDataKey"],
                    resources=["*"],
                    conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
                )
            )
        deliveries = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:*"
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("delivery.logs.amazonaws.com")],
                actions=["kms:Decrypt"],
                resources=["*"],
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnLike": {"aws:SourceArn": deliveries},
                },
            )
        )
        groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:/*{names.prefix}*"
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"logs.{Aws.REGION}.amazonaws.com")],
                actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )
