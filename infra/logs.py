"""Log groups."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.options import Options


class LogGroup(logs.LogGroup):
    """Encrypted, and kept for as long as the options say; it goes with its stack."""

    def __init__(self, scope: Construct, id_: str, *, name: str, key: kms.IKey, options: Options) -> None:
        super().__init__(
            scope, id_, log_group_name=name, encryption_key=key, removal_policy=RemovalPolicy.DESTROY, retention=None
        )
        resource = self.node.default_child
        if isinstance(resource, logs.CfnLogGroup):
            resource.retention_in_days = options.log_retention_days
