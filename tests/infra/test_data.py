"""What the stateful stack promises, a promise at a time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from infra.options import Options
from sweephand.aws.archive import Archive
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.run import Run, RunState
from sweephand.topology import ARCHIVE, ARTIFACTS_PREFIX, QUEUES, TABLES, UNDELIVERED, Names
from tests.infra.assembly import Assembly, Resource, listed

NAMES = Names()


def test_the_tables_are_those_of_the_topology(assembly: Assembly) -> None:
    found = {
        name: (
            [key["AttributeName"] for key in table.properties["KeySchema"]],
            table.properties.get("TimeToLiveSpecification"),
            table.properties.get("StreamSpecification"),
            "GlobalSecondaryIndexes" in table.properties,
        )
        for name, table in assembly.named("DynamoDB::GlobalTable", "TableName").items()
    }
    assert found == {
        NAMES.table(table): (
            [table.partition_key, table.sort_key],
            {"AttributeName": table.ttl, "Enabled": True} if table.ttl else None,
            {"StreamViewType": table.stream} if table.stream else None,
            False,
        )
        for table in TABLES
    }


def test_every_table_is_encrypted_with_our_key(assembly: Assembly) -> None:
    for table in assembly.of("DynamoDB::GlobalTable"):
        assert table.properties["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}, table
        (replica,) = table.properties["Replicas"]
        assert replica["SSESpecification"] == {"KMSMasterKeyId": _key(assembly)}, table


def test_every_table_can_be_put_back_to_any_second(assembly: Assembly) -> None:
    for table in assembly.of("DynamoDB::GlobalTable"):
        (replica,) = table.properties["Replicas"]
        assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True, table


def test_no_table_goes_by_mistake(assembly: Assembly) -> None:
    for table in assembly.of("DynamoDB::GlobalTable"):
        (replica,) = table.properties["Replicas"]
        assert replica["DeletionProtectionEnabled"] is True, table
        assert (table.whole["DeletionPolicy"], table.whole["UpdateReplacePolicy"]) == ("Retain", "Retain"), table


def test_every_table_bills_by_the_request_and_is_warmed_only_on_demand(assembly: Assembly) -> None:
    for table in assembly.of("DynamoDB::GlobalTable"):
        assert table.properties["BillingMode"] == "PAY_PER_REQUEST", table
        assert "WarmThroughput" not in table.properties, table


def test_the_queues_are_those_of_the_topology_and_each_has_its_dead_letter_queue(assembly: Assembly) -> None:
    queues = assembly.named("SQS::Queue", "QueueName")
    dead = {NAMES.queue(queue.dead) for queue in QUEUES}
    assert queues.keys() == {NAMES.queue(queue.name) for queue in QUEUES} | dead | {NAMES.of(UNDELIVERED)}
    for queue in QUEUES:
        found = queues[NAMES.queue(queue.name)].properties
        assert found["VisibilityTimeout"] == queue.visibility.total_seconds()
        assert found["MessageRetentionPeriod"] == queue.retention.total_seconds()
        assert found["RedrivePolicy"] == {
            "maxReceiveCount": queue.receives_max,
            "deadLetterTargetArn": {"Fn::GetAtt": [queues[NAMES.queue(queue.dead)].id, "Arn"]},
        }


def test_what_failed_is_kept_as_long_as_a_queue_can(assembly: Assembly) -> None:
    queues = assembly.named("SQS::Queue", "QueueName")
    for name in (*(queue.dead for queue in QUEUES), UNDELIVERED):
        assert queues[NAMES.queue(name)].properties["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_every_queue_is_standard_so_that_it_is_fair_among_message_groups(assembly: Assembly) -> None:
    assert not [queue for queue in assembly.of("SQS::Queue") if "FifoQueue" in queue.properties]


def test_every_queue_is_encrypted_with_our_key(assembly: Assembly) -> None:
    for queue in assembly.of("SQS::Queue"):
        assert queue.properties["KmsMasterKeyId"] == _key(assembly), queue


def test_every_queue_refuses_what_does_not_come_over_tls(assembly: Assembly) -> None:
    refusing = {
        queue["Ref"]
        for policy in assembly.of("SQS::QueuePolicy")
        for queue in policy.properties["Queues"]
        if _refuses_plain_text(policy.properties["PolicyDocument"])
    }
    assert refusing == {queue.id for queue in assembly.of("SQS::Queue")}


def test_a_queue_that_an_upgrade_would_replace_stays_with_its_messages(assembly: Assembly) -> None:
    for queue in assembly.of("SQS::Queue"):
        assert queue.whole["UpdateReplacePolicy"] == "Retain", queue
        assert queue.id in assembly.templates["Data"]["Resources"], queue


def test_every_bucket_is_private_encrypted_and_tls_only(assembly: Assembly) -> None:
    refusing = {
        policy.properties["Bucket"]["Ref"]
        for policy in assembly.of("S3::BucketPolicy")
        if _refuses_plain_text(policy.properties["PolicyDocument"])
    }
    for bucket in assembly.of("S3::Bucket"):
        assert set(bucket.properties["PublicAccessBlockConfiguration"].values()) == {True}, bucket
        assert bucket.properties["BucketEncryption"], bucket
        assert bucket.id in refusing, bucket


def test_artifacts_and_archive_are_encrypted_with_our_key_and_stay(assembly: Assembly) -> None:
    kept = [bucket for bucket in assembly.of("S3::Bucket") if "VersioningConfiguration" in bucket.properties]
    assert len(kept) == 2
    for bucket in kept:
        (rule,) = bucket.properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": _key(assembly)}
        assert bucket.whole["DeletionPolicy"] == "Retain", bucket


def test_files_of_attempts_go_with_their_runs_and_nothing_else_does(assembly: Assembly) -> None:
    """Packed code and job files are in the same bucket, and the archive is for good."""
    assert expiring(assembly, "Artifacts") == [(ARTIFACTS_PREFIX, Options().keep_runs_days)]
    assert expiring(assembly, "Archive") == []


def test_what_was_overwritten_or_deleted_in_a_bucket_that_keeps_goes_after_a_month(assembly: Assembly) -> None:
    for name in ("Artifacts", "Archive"):
        rules = bucket_of(assembly, name).properties["LifecycleConfiguration"]["Rules"]
        gone = [rule["NoncurrentVersionExpiration"] for rule in rules if "NoncurrentVersionExpiration" in rule]
        assert gone == [{"NoncurrentDays": 30}], name
        assert all("Prefix" not in rule for rule in rules if "NoncurrentVersionExpiration" in rule), name


def bucket_of(assembly: Assembly, name: str) -> Resource:
    """One of the two that keep something."""
    (found,) = (one for one in assembly.of("S3::Bucket") if f"Buckets{name}" in one.id)
    return found


def expiring(assembly: Assembly, name: str) -> list[tuple[str, int]]:
    """What goes by itself: beneath which prefix, and after how many days."""
    rules = bucket_of(assembly, name).properties["LifecycleConfiguration"]["Rules"]
    assert all(rule["Status"] == "Enabled" for rule in rules)
    return [(rule.get("Prefix", ""), rule["ExpirationInDays"]) for rule in rules if "ExpirationInDays" in rule]


def test_there_is_one_key_and_it_rotates_and_stays(assembly: Assembly) -> None:
    key = assembly.only("KMS::Key")
    assert key.properties["EnableKeyRotation"] is True
    assert key.whole["DeletionPolicy"] == "Retain"


def test_nobody_signs_up_by_themselves_and_the_people_stay(assembly: Assembly) -> None:
    pool = assembly.only("Cognito::UserPool")
    assert pool.properties["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    assert pool.properties["DeletionProtection"] == "ACTIVE"
    assert pool.whole["DeletionPolicy"] == "Retain"


def test_the_archive_is_written_by_days_compressed_and_encrypted(assembly: Assembly) -> None:
    stream = assembly.only("KinesisFirehose::DeliveryStream").properties
    assert stream["DeliveryStreamName"] == NAMES.of(ARCHIVE)
    assert stream["DeliveryStreamEncryptionConfigurationInput"]["KeyType"] == "CUSTOMER_MANAGED_CMK"
    target = stream["ExtendedS3DestinationConfiguration"]
    assert target["Prefix"] == "runs/dt=!{timestamp:yyyy-MM-dd}/"
    assert target["CompressionFormat"] == "GZIP"
    assert target["EncryptionConfiguration"] == {"KMSEncryptionConfig": {"AWSKMSKeyARN": _key(assembly)}}


def test_the_table_over_the_archive_has_the_columns_that_are_written(assembly: Assembly) -> None:
    described = assembly.only("Glue::Table").properties["TableInput"]
    columns = {column["Name"]: column["Type"] for column in described["StorageDescriptor"]["Columns"]}
    assert [column["Name"] for column in described["PartitionKeys"]] == ["dt"]
    assert columns.keys() == _archived().keys()
    assert {name for name, kind in columns.items() if kind == "int"} == {"attempt", "version", "rev"}


class _Firehose:
    def __init__(self) -> None:
        self.rows: list[Any] = []

    def put_record_batch(self, *, DeliveryStreamName: str, Records: list[Any]) -> dict[str, Any]:  # noqa: N803
        self.rows += [json.loads(record["Data"]) for record in Records]
        return {"RequestResponses": [{} for _ in Records]}


def _archived() -> dict[str, Any]:
    at = datetime(2026, 11, 15, 6, tzinfo=UTC)
    key = RunKey(JobKey(Namespace("default"), JobName("report")), RunId("20261115T060000Z"))
    run = Run(key, at, at, created_at=at, changed_at=at, state=RunState.SUCCEEDED)
    client: Any = _Firehose()
    Archive(client, "archive").keep([run])
    (row,) = client.rows
    found: dict[str, Any] = row
    return found


def _key(assembly: Assembly) -> dict[str, Any]:
    return {"Fn::GetAtt": [assembly.only("KMS::Key").id, "Arn"]}


def _refuses_plain_text(policy: dict[str, Any]) -> bool:
    return any(
        statement["Effect"] == "Deny"
        and statement["Condition"].get("Bool") == {"aws:SecureTransport": "false"}
        and statement["Action"] in ("sqs:*", "s3:*")
        and listed(statement["Resource"])
        for statement in policy["Statement"]
    )
