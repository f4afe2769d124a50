"""The ports over DynamoDB and SQS. Nothing of boto3, and no error of its, is seen outside this package."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

from sweephand import ports
from sweephand.aws.archive import Archive
from sweephand.aws.artifacts import S3Artifacts
from sweephand.aws.calls import Abreast
from sweephand.aws.control import SHARDS_DEFAULT, DynamoShards, DynamoSlots
from sweephand.aws.dags import DynamoDags
from sweephand.aws.due import DynamoDue
from sweephand.aws.fargate import Cluster, Fargate, images_of
from sweephand.aws.happening import handed_over, happening_of
from sweephand.aws.jobs import DynamoJobs
from sweephand.aws.live import Connections
from sweephand.aws.logs import CloudWatchLogs
from sweephand.aws.machines import BackfillMachine, StepFunctions
from sweephand.aws.offers import DynamoOffers
from sweephand.aws.packs import S3Packs
from sweephand.aws.queue import Addresses, SqsInbox, SqsQueue
from sweephand.aws.replies import DynamoReplies
from sweephand.aws.runs import DynamoRuns
from sweephand.aws.seal import KmsSecrets, unseal
from sweephand.aws.shared import DynamoShared
from sweephand.aws.stopped import DETAIL_TYPE as STOPPING
from sweephand.aws.stopped import Stopped, stopped_of
from sweephand.aws.stream import Changed, changed_runs
from sweephand.aws.table import Table
from sweephand.aws.target import Execute, outcome_of_machine
from sweephand.aws.trail import DynamoTrail
from sweephand.aws.views import DynamoViews
from sweephand.secrets import Bound
from sweephand.topology import ARCHIVE, CONTROL, DUE, EXECUTE_MAX, JOBS, RUNS, VIEWS, Names

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_sqs.client import SQSClient

    from sweephand.aws.filed import S3JobFiles

__all__ = [
    "CONFIG",
    "KEEP_RUNS",
    "PACE",
    "STOPPING",
    "Archive",
    "BackfillMachine",
    "Changed",
    "Cluster",
    "Config",
    "Connections",
    "StepFunctions",
    "Stopped",
    "archive",
    "artifacts",
    "backfill_machine",
    "changed_runs",
    "clients",
    "config",
    "connect",
    "connections",
    "dag_machine",
    "execute_target",
    "handed_over",
    "happening_of",
    "images_of",
    "job_files",
    "logs",
    "outcome_of_machine",
    "packs",
    "stopped_of",
    "unsealed_order",
]

PACE: Final = ports.Pace(
    lookahead=timedelta(minutes=14),
    step=timedelta(minutes=7),
    spread=timedelta(minutes=7),
    margin=timedelta(minutes=4),
    lease_grace=timedelta(seconds=30),
    sweep_lease=timedelta(seconds=55),
)

CONFIG: Final = Config(
    retries={"mode": "standard", "max_attempts": 3}, connect_timeout=2, read_timeout=5, max_pool_connections=16
)
"""Short, since whoever gives up is delivered again, and a function that hangs is paid for."""
_WAITING: Final = Config(
    retries={"mode": "standard", "total_max_attempts": 1},
    read_timeout=int(EXECUTE_MAX.total_seconds()) + 30,
    tcp_keepalive=True,
)
"""For a call that runs users' code: it is waited for, and never repeated by itself."""

KEEP_RUNS: Final = timedelta(days=35)
"""How long ended runs are kept, unless the settings say otherwise."""

ABREAST_MAX: Final = 8


def clients(config: Config = CONFIG) -> tuple[DynamoDBClient, SQSClient]:
    """Clients for the region and the credentials of the environment."""
    return boto3.client("dynamodb", config=config), boto3.client("sqs", config=config)


def _client(config: Config, service: str) -> Any:
    return boto3.client(service, config=config)  # type: ignore[call-overload]  # its stubs know services one by one


def config(caller: str) -> Config:
    """The usual configuration, with the caller's name in every request, as CloudTrail will show it."""
    return CONFIG.merge(Config(user_agent_extra=caller))


def execute_target(
    names: Names,
    machine: str,
    stores: ports.Stores,
    config: Config,
    cluster: Cluster | None = None,
    *,
    gathers: bool = False,
) -> Execute:
    """What runs tasks; with a cluster, also what takes long and what has an image of its own."""
    functions = boto3.client("lambda", config=config.merge(_WAITING))
    return Execute(
        functions,
        lambda: boto3.client("stepfunctions", config=config),
        stores.runs,
        names,
        machine=machine,
        secrets=stores.secrets,
        gathers=gathers,
        fargate=Fargate(partial(_client, config, "ecs"), cluster) if cluster is not None else None,
    )


def dag_machine(machine: str, config: Config) -> StepFunctions:
    """What advances runs of several tasks."""
    return StepFunctions(lambda: boto3.client("stepfunctions", config=config), machine=machine)


def backfill_machine(machine: str, config: Config) -> BackfillMachine:
    """What keeps backfills going."""
    return BackfillMachine(lambda: boto3.client("stepfunctions", config=config), machine=machine)


def unsealed_order(sealed: str, bound_to: Bound) -> str | None:
    """The secrets that came to a task through its machine, opened with the rights of `execute`."""
    return unseal(sealed, bound_to, partial(_client, config("sweephand/execute")))


def logs(names: Names, config: Config) -> CloudWatchLogs:
    """What attempts print."""
    return CloudWatchLogs(lambda: boto3.client("logs", config=config), names.run_log)


def artifacts(bucket: str, config: Config) -> S3Artifacts:
    """The files that attempts leave behind."""
    signing = config.merge(Config(signature_version="s3v4"))  # what is encrypted with our key takes no other
    return S3Artifacts(lambda: boto3.client("s3", config=signing), bucket)


def packs(bucket: str, config: Config) -> S3Packs:
    """The code of `python` tasks."""
    signing = config.merge(Config(signature_version="s3v4"))
    return S3Packs(lambda: boto3.client("s3", config=signing), bucket)


def job_files(bucket: str, config: Config) -> S3JobFiles:
    """The job files in a bucket."""
    from sweephand.aws.filed import S3JobFiles  # late: one function scans, and the others begin without

    return S3JobFiles(boto3.client("s3", config=config), bucket)


def archive(names: Names, config: Config) -> Archive:
    """Where ended runs outlive their items."""
    return Archive(boto3.client("firehose", config=config), names.of(ARCHIVE))


def connections(names: Names, endpoint: str, config: Config, *, clock: ports.Clock) -> Connections:
    """Who listens, and the way to them."""
    client = boto3.client("apigatewaymanagementapi", endpoint_url=endpoint, config=config)
    return Connections(Table(boto3.client("dynamodb", config=config), names.table(VIEWS)), client, clock=clock)


def connect(
    names: Names,
    dynamodb: DynamoDBClient,
    sqs: SQSClient,
    *,
    clock: ports.Clock,
    keep_runs: timedelta = KEEP_RUNS,
    abreast: int = ABREAST_MAX,
    shards: int = SHARDS_DEFAULT,
    config: Config = CONFIG,
    artifacts_bucket: str = "",
    secret_arns: Sequence[str] = (),
) -> ports.Stores:
    """The stores of one deployment; `abreast` bounds the calls that one verb has under way at once. `config` is for
    clients that are made when they are first needed; `secret_arns` are the secrets of AWS that tasks may refer to."""
    side_by_side = Abreast(abreast)
    jobs, runs, due, control, views = (
        Table(dynamodb, names.table(table)) for table in (JOBS, RUNS, DUE, CONTROL, VIEWS)
    )
    trail = DynamoTrail(jobs)
    addresses = Addresses(sqs, names)
    return ports.Stores(
        jobs=DynamoJobs(jobs, due, trail, side_by_side),
        runs=DynamoRuns(runs, side_by_side, clock=clock, keep=keep_runs),
        dags=DynamoDags(runs, clock=clock, keep=keep_runs),
        due=DynamoDue(due),
        shards=DynamoShards(control, at_least=shards),
        slots=DynamoSlots(control),
        shared=DynamoShared(control, trail),
        trail=trail,
        replies=DynamoReplies(runs),
        offers=DynamoOffers(due, side_by_side, clock=clock),
        queue=SqsQueue(sqs, addresses),
        inbox=SqsInbox(sqs, addresses),
        views=DynamoViews(views, clock=clock, keep=keep_runs),
        logs=logs(names, config),
        artifacts=artifacts(artifacts_bucket, config),
        packs=packs(artifacts_bucket, config),
        secrets=KmsSecrets(partial(_client, config), names, readable=secret_arns),
    )
