"""The buckets that keep something: users' artifacts, the archive of ended runs, and who read what."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.options import Options
from sweephand.topology import ARTIFACTS_PREFIX


class Buckets(Construct):
    """Private, TLS only, kept when their stack goes. Their names are generated: no two deployments can collide."""

    def __init__(self, scope: Construct, id_: str, *, key: kms.IKey, options: Options) -> None:
        super().__init__(scope, id_)
        # CloudFront and S3 write their logs with keys of their own, CloudFront by way of an access list.
        self.logs = s3.Bucket(
            self,
            "Logs",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_PREFERRED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=Duration.days(options.log_retention_days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=RemovalPolicy.RETAIN,
        )
        self.artifacts = self._kept("Artifacts", key)
        self.artifacts.add_lifecycle_rule(prefix=ARTIFACTS_PREFIX, expiration=Duration.days(options.keep_runs_days))
        # By the property: CDK's own way takes a function of its own to say the same.
        resource = self.artifacts.node.default_child
        if isinstance(resource, s3.CfnBucket):
            resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
                event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True)
            )
        self.archive = self._kept("Archive", key)

    def _kept(self, id_: str, key: kms.IKey) -> s3.Bucket:
        return s3.Bucket(
            self,
            id_,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=True,
            server_access_logs_bucket=self.logs,
            server_access_logs_prefix=f"s3/{id_.lower()}/",
            lifecycle_rules=[
                s3.LifecycleRule(
                    noncurrent_version_expiration=Duration.days(30),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=RemovalPolicy.RETAIN,
        )
