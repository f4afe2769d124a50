"""The ports over DynamoDB and SQS. Nothing of boto3, and no error of its, is seen outside this package."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config

from sweephand import ports
from sweephand.aws.archive import Archive
from sweephand.aws.calls import Abreast
from sweephand.aws.control import SHARDS_DEFAULT, DynamoShards, DynamoSlots
from sweephand.aws.due import DynamoDue
from sweephand.aws.jobs import DynamoJobs
from sweephand.aws.live import Connections
from sweephand.aws.offers import DynamoOffers
from sweephand.aws.queue import Addresses, SqsInbox, SqsQueue
from sweephand.aws.replies import DynamoReplies
from sweephand.aws.runs import DynamoRuns
from sweephand.aws.shared import DynamoShared
from sweephand.aws.stream import Changed, changed_runs
from sweephand.aws.table import Table
from sweephand.aws.target import Execute, outcome_of_machine
from sweephand.aws.trail import DynamoTrail
from sweephand.aws.views import DynamoViews
from sweephand.topology import ARCHIVE, CONTROL, DUE, EXECUTE_MAX, JOBS, RUNS, VIEWS, Names

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_sqs.client import SQSClient

__all__ = [
    "CONFIG",
    "KEEP_RUNS",
    "PACE",
    "Archive",
    "Changed",
    "Config",
    "Connections",
    "archive",
    "changed_runs",
    "clients",
    "config",
    "connect",
    "connections",
    "execute_target",
    "outcome_of_machine",
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


def config(caller: str) -> Config:
    """The usual configuration, with the caller's name in every request, as CloudTrail will show it."""
    return CONFIG.merge(Config(user_agent_extra=caller))


def execute_target(names: Names, machine: str, runs: ports.Runs, config: Config) -> Execute:
    """What runs tasks."""
    functions = boto3.client("lambda", config=config.merge(_WAITING))
    return Execute(functions, lambda: boto3.client("stepfunctions", config=config), runs, names, machine=machine)


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
) -> ports.Stores:
    """The stores of one deployment; `abreast` bounds the calls that one verb has under way at once."""
    side_by_side = Abreast(abreast)
    jobs, runs, due, control, views = (
        Table(dynamodb, names.table(table)) for table in (JOBS, RUNS, DUE, CONTROL, VIEWS)
    )
    trail = DynamoTrail(jobs)
    addresses = Addresses(sqs, names)
    return ports.Stores(
        jobs=DynamoJobs(jobs, due, trail, side_by_side),
        runs=DynamoRuns(runs, side_by_side, clock=clock, keep=keep_runs),
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
    )
