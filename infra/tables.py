"""The tables of the topology."""

from __future__ import annotations

from typing import Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.options import Options
from sweephand.topology import DUE, JOBS, RUNS, TABLES, VIEWS, Names, Table

WRITES_PER_RUN: Final = {RUNS.name: 3, JOBS.name: 1, DUE.name: 1, VIEWS.name: 1}
READS_PER_RUN: Final = {RUNS.name: 4, JOBS.name: 4}
"""Units that a run costs its tables: docs/costs.md, rounded up."""

_COLD_WRITES: Final = 4_000
_COLD_READS: Final = 12_000
"""What a new on-demand table can do at once, and the least that can be asked for."""


class Tables(Construct):
    """They outlive their stack, cannot be deleted by mistake, and can be put back to any second of the last 35 days."""

    def __init__(self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, options: Options) -> None:
        super().__init__(scope, id_)
        self._names, self._key, self._peak = names, key, options.peak_runs_per_second
        self.all = {table.name: self._table(table) for table in TABLES}

    def _table(self, table: Table) -> dynamodb.TableV2:
        made = dynamodb.TableV2(
            self,
            table.name.capitalize(),
            table_name=self._names.table(table),
            partition_key=_text(table.partition_key),
            sort_key=_text(table.sort_key),
            billing=dynamodb.Billing.on_demand(),
            time_to_live_attribute=table.ttl,
            dynamo_stream=dynamodb.StreamViewType[table.stream] if table.stream else None,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
            warm_throughput=self._warm(table),
        )
        resource = made.node.default_child
        if isinstance(resource, dynamodb.CfnGlobalTable):
            # TableV2 takes a customer key only where the region is known, and these stacks fit every region.
            resource.add_property_override("SSESpecification", {"SSEEnabled": True, "SSEType": "KMS"})
            resource.add_property_override("Replicas.0.SSESpecification.KMSMasterKeyId", self._key.key_arn)
        return made

    def _warm(self, table: Table) -> dynamodb.WarmThroughput | None:
        """Paid for once, and never taken back: only where a new table would be too slow for the expected peak."""
        writes = self._peak * WRITES_PER_RUN.get(table.name, 0)
        reads = self._peak * READS_PER_RUN.get(table.name, 0)
        if writes <= _COLD_WRITES and reads <= _COLD_READS:
            return None
        return dynamodb.WarmThroughput(
            write_units_per_second=max(writes, _COLD_WRITES), read_units_per_second=max(reads, _COLD_READS)
        )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
