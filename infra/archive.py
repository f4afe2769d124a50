"""The archive of finished history: runs leave their table when their time is over, and stay queryable here."""

from __future__ import annotations

from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.logs import LogGroup
from infra.options import Options
from sweephand.topology import ARCHIVE, Names

COLUMNS: Final = {
    "namespace": "string",
    "job": "string",
    "run": "string",
    "state": "string",
    "trigger": "string",
    "fire_at": "string",
    "started_at": "string",
    "ended_at": "string",
    "attempt": "int",
    "version": "int",
    "rev": "int",
    "reason": "string",
    "error": "string",
}
"""As `sweephand.aws.archive` writes them, a line of JSON for each run that ended."""

_RUNS: Final = "runs"
_FAILED: Final = "failed"


class Archive(Construct):
    """A delivery stream into a bucket, a folder for each day, and a table over it that knows its days by itself."""

    def __init__(
        self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, bucket: s3.IBucket, options: Options
    ) -> None:
        super().__init__(scope, id_)
        group = LogGroup(self, "Log", name=f"/aws/kinesisfirehose/{names.of(ARCHIVE)}", key=key, options=options)
        self.stream = self._stream(names, key, bucket, group)
        self.database = names.prefix.replace("-", "_")
        database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=self.database, description=f"Finished history of {names.prefix}"
            ),
        )
        self._table(bucket).add_resource_dependency(database)

    def _stream(
        self, names: Names, key: kms.IKey, bucket: s3.IBucket, group: logs.ILogGroup
    ) -> firehose.CfnDeliveryStream:
        """A file when a quarter of an hour is over, or 64 MB are there."""
        errors = logs.LogStream(self, "Errors", log_group=group, log_stream_name="errors")
        return firehose.CfnDeliveryStream(
            self,
            "Stream",
            delivery_stream_name=names.of(ARCHIVE),
            delivery_stream_type="DirectPut",
            delivery_stream_encryption_configuration_input=(
                firehose.CfnDeliveryStream.DeliveryStreamEncryptionConfigurationInputProperty(
                    key_type="CUSTOMER_MANAGED_CMK", key_arn=key.key_arn
                )
            ),
            extended_s3_destination_configuration=(
                firehose.CfnDeliveryStream.ExtendedS3DestinationConfigurationProperty(
                    bucket_arn=bucket.bucket_arn,
                    role_arn=self._role(key, bucket, group).role_arn,
                    prefix=f"{_RUNS}/dt=!{{timestamp:yyyy-MM-dd}}/",
                    error_output_prefix=f"{_FAILED}/!{{firehose:error-output-type}}/",
                    compression_format="GZIP",
                    buffering_hints=firehose.CfnDeliveryStream.BufferingHintsProperty(
                        interval_in_seconds=900, size_in_m_bs=64
                    ),
                    encryption_configuration=firehose.CfnDeliveryStream.EncryptionConfigurationProperty(
                        kms_encryption_config=firehose.CfnDeliveryStream.KMSEncryptionConfigProperty(
                            awskms_key_arn=key.key_arn
                        )
                    ),
                    cloud_watch_logging_options=firehose.CfnDeliveryStream.CloudWatchLoggingOptionsProperty(
                        enabled=True, log_group_name=group.log_group_name, log_stream_name=errors.log_stream_name
                    ),
                )
            ),
        )

    def _role(self, key: kms.IKey, bucket: s3.IBucket, group: logs.ILogGroup) -> iam.Role:
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "firehose.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            inline_policies={
                "Archive": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
                            resources=[bucket.bucket_arn],
                        ),
                        iam.PolicyStatement(
                            actions=["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"],
                            resources=[bucket.arn_for_objects(f"{folder}/*") for folder in (_RUNS, _FAILED)],
                        ),
                        iam.PolicyStatement(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[key.key_arn]),
                        iam.PolicyStatement(actions=["logs:PutLogEvents"], resources=[group.log_group_arn]),
                    ]
                )
            },
        )

    def _table(self, bucket: s3.IBucket) -> glue.CfnTable:
        location = f"s3://{bucket.bucket_name}/{_RUNS}/"
        return glue.CfnTable(
            self,
            "Table",
            catalog_id=Aws.ACCOUNT_ID,
            database_name=self.database,
            table_input=glue.CfnTable.TableInputProperty(
                name=_RUNS,
                table_type="EXTERNAL_TABLE",
                partition_keys=[glue.CfnTable.ColumnProperty(name="dt", type="string")],
                parameters={
                    "classification": "json",
                    "projection.enabled": "true",
                    "projection.dt.type": "date",
                    "projection.dt.format": "yyyy-MM-dd",
                    "projection.dt.range": "2026-01-01,NOW",
                    "storage.location.template": f"{location}dt=${{dt}}",
                },
                storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                    columns=[glue.CfnTable.ColumnProperty(name=name, type=kind) for name, kind in COLUMNS.items()],
                    compressed=True,
                    input_format="org.apache.hadoop.mapred.TextInputFormat",
                    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                    location=location,
                    serde_info=glue.CfnTable.SerdeInfoProperty(
                        serialization_library="org.openx.data.jsonserde.JsonSerDe"
                    ),
                ),
            ),
        )
