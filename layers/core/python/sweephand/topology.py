"""The resources of a deployment, described once: `infra/` builds them from this, and so does the moto harness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct


class Table(Struct, frozen=True):
    """A DynamoDB table. Every one has a partition and a sort key, both texts, and bills by the request.

    `ttl` names the attribute (seconds since 1970) after which DynamoDB deletes an item at no cost. There is no
    secondary index: an index lags, throttles its table when it is hot, and is paid for at every change of a key.
    """

    name: str
    ttl: str | None = None
    stream: str | None = None
    partition_key: str = "pk"
    sort_key: str = "sk"


class Queue(Struct, frozen=True):
    """An SQS standard queue and its dead-letter queue.

    `receives_max` is generous because a throttled function also burns receives. `visibility` is only what a
    consumer gets that asks for nothing else: six times the time-out of the function behind the queue.
    """

    name: str
    visibility: timedelta
    receives_max: int = 20
    retention: timedelta = timedelta(days=14)

    @property
    def dead(self) -> str:
        """The name of its dead-letter queue."""
        return f"{self.name}-dead"


TTL: Final = "x"
"""The attribute that holds an item's end, in every table that expires items."""

JOBS: Final = Table("jobs")
"""Heads, versions, timelines, the audit log, and the registers that lists are read from."""
RUNS: Final = Table("runs", ttl=TTL, stream="NEW_IMAGE")
"""Runs, dropped stretches, ledger pages, remembered keys, and the answers to calls that may be repeated."""
DUE: Final = Table("due", ttl=TTL)
"""Hints: look at this job or run at that moment; this run waits for an external worker."""
CONTROL: Final = Table("control")
"""Shard leases, slots, and the documents that jobs and people refer to."""
VIEWS: Final = Table("views", ttl=TTL)
"""Pages of status rows, derived from the stream of runs."""

TABLES: Final = (JOBS, RUNS, DUE, CONTROL, VIEWS)


class Every(Struct, frozen=True):
    """A trigger: a schedule. It may come twice, late or never."""

    period: timedelta


class Messages(Struct, frozen=True):
    """A trigger: batches of a queue's messages. `at_once` bounds how many batches are dealt with side by side."""

    queue: str
    batch: int
    at_once: int
    may_wait: bool = False
    """Whether a deployment may let batches wait to fill."""


class Changes(Struct, frozen=True):
    """A trigger: batches of what changed in a table, in order per item; a batch waits up to `window` to fill.

    Only records that match one of `patterns` come. A batch that fails is halved; one record that fails `attempts` times
    is put aside in `UNDELIVERED`.
    """

    table: Table
    batch: int
    window: timedelta
    patterns: tuple[Mapping[str, Any], ...]
    attempts: int = 10


class Origin(StrEnum):
    """What of a deployment events of AWS are about."""

    CLUSTER = "cluster"
    BUCKET = "bucket"
    """The bucket of artifacts and job files."""


class Happens(Struct, frozen=True):
    """A trigger: events of AWS about something of the deployment's own, on the account's own bus, that match `pattern`.
    They may come twice, late or never."""

    pattern: Mapping[str, Any]
    origin: Origin = Origin.CLUSTER


class Listed(Struct, frozen=True):
    """A trigger: events that whoever deploys lists, as `EventFeed`s. They may come twice, late or never."""


class EventFeed(Struct, frozen=True):
    """Events on a bus of the account that match `pattern`, and the namespace whose jobs hear of them."""

    pattern: Mapping[str, Any]
    bus: str = "default"
    namespace: str = "default"


class Function(Struct, frozen=True):
    """A Lambda function: the folder of its name in `functions/`. What calls it besides its triggers is named there."""

    name: str
    timeout: timedelta
    memory_mb: int
    triggers: tuple[Every | Messages | Changes | Happens | Listed, ...] = ()


class Machine(Struct, frozen=True):
    """A Step Functions machine: `statemachines/<name>.asl.json`; `calls` are the functions that its text names, `told`
    those that the input of an execution may name. `lasts_max` is None where an execution may take as long as AWS lets
    one, which is a year."""

    name: str
    calls: tuple[str, ...]
    told: tuple[str, ...] = ()
    lasts_max: timedelta | None = timedelta(hours=1)


_A_MINUTE: Final = timedelta(minutes=1)

TICK: Final = Function("tick", timedelta(seconds=30), 256, (Every(_A_MINUTE),))
SWEEP: Final = Function("sweep", _A_MINUTE, 512, (Messages("sweep", batch=1, at_once=16),))
ATTEMPT: Final = Function(
    "attempt",
    15 * _A_MINUTE,
    512,
    (
        Messages("high", batch=10, at_once=100),
        Messages("normal", batch=10, at_once=60, may_wait=True),
        Messages("low", batch=10, at_once=20, may_wait=True),
    ),
)
EXECUTE: Final = Function("execute", 15 * _A_MINUTE, 512)
"""Runs users' code, with no right but to write what that leaves and to open its order; `attempt` and the machine of its
name call it."""
CALL: Final = Function("call", 15 * _A_MINUTE, 256)
"""Calls AWS services for tasks, with the rights that whoever deploys has listed; called as `execute` is."""
_RUN_CHANGED: Final = {
    "eventName": ["INSERT", "MODIFY"],
    "dynamodb": {"NewImage": {"sk": {"S": [{"prefix": "r#"}]}, "st": {"S": [{"anything-but": ["planned", "void"]}]}}},
}
"""A run that is listed was created or moved; other items of its table are nobody's news."""
_TASK_ENDED: Final = {
    "eventName": ["INSERT", "MODIFY"],
    "dynamodb": {
        "NewImage": {
            "sk": {"S": [{"prefix": "t#"}]},
            "st": {"S": ["succeeded", "failed", "cancelled", "skipped"]},
        }
    },
}
"""A task of a run ended, which whoever advances the run must hear of."""
_TASK_CHANGED: Final = {
    "eventName": ["INSERT", "MODIFY"],
    "dynamodb": {"NewImage": {"sk": {"S": [{"prefix": "t#"}]}}},
}
"""A task of a run was put or moved, which whoever looks at that run sees."""
PROJECT: Final = Function(
    "project",
    _A_MINUTE,
    256,
    (Changes(RUNS, batch=1_000, window=timedelta(seconds=5), patterns=(_RUN_CHANGED, _TASK_ENDED)),),
)
"""Some seconds' changes together, since what it writes is paid for by the batch; dependents wait no longer."""
ADVANCE: Final = Function("advance", 2 * _A_MINUTE, 512)
"""Lets a run of several tasks go on; the machine `dag_run` calls it, and its state's time-out is longer."""
SETTLE: Final = Function("settle", _A_MINUTE, 256)
"""Ends a run whose tasks are over; the same machine calls it."""
BACKFILL: Final = Function("backfill", 2 * _A_MINUTE, 512)
"""Goes on with a backfill; the machine of its name calls it, and `project` does the same whenever a run of it ends."""
AUDIT: Final = Function("audit", 5 * _A_MINUTE, 512, (Every(5 * _A_MINUTE),))
_TASK_STOPPED: Final = {
    "source": ["aws.ecs"],
    "detail-type": ["ECS Task State Change"],
    "detail": {"lastStatus": ["STOPPED"]},
}
WATCH: Final = Function("watch", _A_MINUTE, 256, (Every(5 * _A_MINUTE), Happens(_TASK_STOPPED)))
"""Dead letters, and tasks of ECS that stopped without a word of their agents."""
OCCUR: Final = Function("occur", _A_MINUTE, 256, (Listed(),))
"""Events of AWS, and of whoever else puts them on a bus, become runs of the jobs that listen for them."""
JOB_FILES_PREFIX: Final = "jobs/"
"""Where job files are that are scanned, each beneath its namespace, in the bucket of artifacts."""
_FILE_CHANGED: Final = {
    "source": ["aws.s3"],
    "detail-type": ["Object Created", "Object Deleted"],
    "detail": {"object": {"key": [{"prefix": JOB_FILES_PREFIX}]}},
}
SCAN: Final = Function("scan", 5 * _A_MINUTE, 512, (Every(60 * _A_MINUTE), Happens(_FILE_CHANGED, Origin.BUCKET)))
"""Job files that changed; every hour all of them, in case nobody said so."""
API: Final = Function("api", timedelta(seconds=29), 1_024)
AUTHORIZE: Final = Function("authorize", timedelta(seconds=10), 512)
LIVE: Final = Function(
    "live",
    timedelta(seconds=29),
    256,
    (Changes(RUNS, batch=100, window=timedelta(seconds=0), patterns=(_RUN_CHANGED, _TASK_CHANGED)),),
)
"""The WebSocket's routes, and what is pushed to those who listen."""

FUNCTIONS: Final = (
    TICK,
    SWEEP,
    ATTEMPT,
    EXECUTE,
    CALL,
    ADVANCE,
    SETTLE,
    BACKFILL,
    PROJECT,
    AUDIT,
    WATCH,
    OCCUR,
    SCAN,
    API,
    AUTHORIZE,
    LIVE,
)

EXECUTE_MAX: Final = 14 * _A_MINUTE
"""The longest time-out of a task in `execute` or `call`, which keep a minute for themselves."""

EXECUTION: Final = Machine("execute", calls=("attempt",), told=("execute", "call"))
DAG_RUN: Final = Machine("dag_run", calls=("advance", "settle"), lasts_max=None)
BACKFILLING: Final = Machine("backfill", calls=("backfill",), lasts_max=None)
MACHINES: Final = (EXECUTION, DAG_RUN, BACKFILLING)

UNDELIVERED: Final = "undelivered"
"""The queue of what could not be handed to a function: ticks, and batches of changes."""
ARCHIVE: Final = "archive"
"""The delivery stream that puts ended runs into the bucket where they outlive their items."""

AGENT: Final = "agent"
"""What does a long task, or waits beside a container: the image of `functions/agent`, launched for one attempt."""
AGENT_CONTAINER: Final = "agent"
TASK_CONTAINER: Final = "task"
"""The containers of a launched task: ours, and that of the task's own image."""

ARTIFACTS_PREFIX: Final = "attempts/"
"""Where the files that attempts leave behind are, in the bucket of artifacts."""
PACKS_PREFIX: Final = "code/"
"""Where the code of `python` tasks is, in the same bucket."""


def _queue(name: str) -> Queue:
    """The queue, with the time that the function behind it needs."""
    for function in FUNCTIONS:
        if any(isinstance(trigger, Messages) and trigger.queue == name for trigger in function.triggers):
            return Queue(name, visibility=6 * function.timeout)
    raise LookupError(name)


LANES: Final = ("high", "normal", "low", "sweep")
QUEUES: Final = tuple(map(_queue, LANES))


class Names(Struct, frozen=True):
    """What the resources of one deployment are called: several may share an account."""

    prefix: str = "sweephand"

    def table(self, table: Table) -> str:
        return f"{self.prefix}-{table.name}"

    def queue(self, name: str) -> str:
        """The name of the queue of a lane, or of a dead-letter queue."""
        return f"{self.prefix}-{name}"

    def queues(self) -> Iterator[tuple[str, str, Queue]]:
        """Each queue's name, the name of its dead-letter queue, and its description."""
        for queue in QUEUES:
            yield self.queue(queue.name), self.queue(queue.dead), queue

    def function(self, function: Function) -> str:
        return f"{self.prefix}-{function.name}"

    def machine(self, machine: Machine) -> str:
        return f"{self.prefix}-{machine.name}"

    @property
    def run_log(self) -> str:
        """The group of the logs of attempts."""
        return f"/sweephand/{self.prefix}/runs"

    @property
    def key(self) -> str:
        """The alias of the customer key."""
        return f"alias/{self.prefix}"

    def of(self, name: str) -> str:
        """The name of anything else."""
        return f"{self.prefix}-{name}"
