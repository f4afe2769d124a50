"""The stateful stack: what must survive everything else."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.archive import Archive
from infra.buckets import Buckets
from infra.key import Key
from infra.logs import LogGroup
from infra.options import Options
from infra.people import People
from infra.queues import Queues
from infra.tables import Tables
from sweephand.topology import Names


class DataStack(Stack):
    """The key, the tables, the queues, the buckets, the archive, the logs of attempts and the people; protected against
    deletion."""

    def __init__(self, scope: Construct, id_: str, *, options: Options) -> None:
        super().__init__(
            scope, id_, termination_protection=True, description=f"{options.name}: data, queues and people"
        )
        names = Names(options.name)
        self.key = Key(self, "Key", names=names)
        self.tables = Tables(self, "Tables", names=names, key=self.key, options=options)
        self.queues = Queues(self, "Queues", names=names, key=self.key)
        self.buckets = Buckets(self, "Buckets", key=self.key, options=options)
        self.archive = Archive(self, "Archive", names=names, key=self.key, bucket=self.buckets.archive, options=options)
        self.run_log = LogGroup(self, "RunLog", name=names.run_log, key=self.key, options=options)
        self.people = People(self, "People", names=names)
        CfnOutput(self, "UserPool", value=self.people.user_pool_id, description="Where people are added")
        CfnOutput(self, "ArchiveBucket", value=self.buckets.archive.bucket_name)
        CfnOutput(self, "ArtifactsBucket", value=self.buckets.artifacts.bucket_name)
