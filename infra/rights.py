"""What each function may do: the calls that it makes, on the resources it makes them on, and nothing else.

Each becomes one role. What is not here, a function cannot do; `execute`, which runs users' code, can only write down
what that prints, keep its files, and open the secrets of the orders that it is given, and `call`, which calls AWS
services for tasks, what the options list: see `reach.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from sweephand.topology import CONTROL, DUE, FUNCTIONS, JOBS, LANES, QUEUES, RUNS, VIEWS

Actions = tuple[str, ...]
_NONE: Final[Mapping[str, Actions]] = MappingProxyType({})

GET: Final = "dynamodb:GetItem"
GET_ALL: Final = "dynamodb:BatchGetItem"
QUERY: Final = "dynamodb:Query"
PUT: Final = "dynamodb:PutItem"
PUT_ALL: Final = "dynamodb:BatchWriteItem"
UPDATE: Final = "dynamodb:UpdateItem"
DELETE: Final = "dynamodb:DeleteItem"

SEND: Final = ("sqs:GetQueueUrl", "sqs:SendMessage")
KEEP: Final = ("sqs:ChangeMessageVisibility",)
EMPTY: Final = ("sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "sqs:DeleteMessage")

POLL_QUEUE: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""What Lambda does with a function's role to bring it messages."""
POLL_STREAM: Final = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)
"""What Lambda does with a function's role to bring it a table's changes."""
PUT_ASIDE: Final = ("sqs:SendMessage",)
"""What Lambda does with a function's role when it could not deal with something."""
LOG: Final = ("logs:CreateLogStream", "logs:PutLogEvents")
_READ_OUTPUTS: Final = ("s3:ListBucket", "s3:GetObject")
"""Who may not list is told of what is gone that it may not be read."""
USE_KEY: Final = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""What DynamoDB and SQS do with the key in the name of whoever calls them, and only they: see `role.py`."""

WRITE_KEY: Final = ("kms:GenerateDataKey",)
"""What S3 does with the key in the name of whoever only writes."""
READ_KEY: Final = ("kms:Decrypt",)
"""The same, of whoever reads too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Actions by the name of a table or queue; the functions and machines it starts; and what there is one of."""

    tables: Mapping[str, Actions] = field(default_factory=lambda: _NONE)
    queues: Mapping[str, Actions] = field(default_factory=lambda: _NONE)
    invokes: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    wakes: bool = False
    """Whether it answers the tokens of executions that sleep over runs of several tasks."""
    archives: bool = False
    tells: bool = False
    """Whether it speaks to WebSocket connections."""
    run_log: Actions = ()
    """What it does with the logs of attempts."""
    job_files: Actions = ()
    """What it does with the job files that are scanned."""
    artifacts: Actions = ()
    """What it does with the files that attempts leave behind."""
    packs: Actions = ()
    """What it does with the code of `python` tasks."""
    seals: tuple[str, ...] = ()
    """What it makes data keys for: secrets, or the orders of long tasks."""
    opens: tuple[str, ...] = ()
    """What it opens data keys of."""
    refers: bool = False
    """Whether it reads what the option secretArns names."""
    launches: bool = False
    """Whether it launches agents, and stops them."""


_RUN_LANES: Final = tuple(lane for lane in LANES if lane != "sweep")
_SEND_RUNS: Final = dict.fromkeys(_RUN_LANES, SEND)

_EMPTY_DEAD: Final = {queue.dead: EMPTY for queue in QUEUES}

RIGHTS: Final[Mapping[str, Rights]] = MappingProxyType(
    {
        "tick": Rights(
            tables={CONTROL.name: (GET,)},
            queues={"sweep": SEND},
        ),
        "sweep": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY, UPDATE),
                RUNS.name: (GET, QUERY, PUT, UPDATE),
                DUE.name: (QUERY, PUT_ALL),
                CONTROL.name: (GET, UPDATE),
            },
            queues={**_SEND_RUNS, "sweep": SEND + KEEP},
        ),
        "attempt": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY, PUT),
                RUNS.name: (GET, GET_ALL, QUERY, PUT, UPDATE),
                DUE.name: (PUT, PUT_ALL),
                CONTROL.name: (GET, PUT, DELETE),
            },
            queues=dict.fromkeys(_RUN_LANES, SEND + KEEP),
            invokes=("execute", "call"),
            starts=("execute", "dag_run"),
            wakes=True,
            seals=("order",),
            opens=("secret",),
            artifacts=_READ_OUTPUTS,
            refers=True,
            launches=True,
        ),
        "execute": Rights(run_log=LOG, artifacts=("s3:PutObject",), packs=("s3:GetObject",), opens=("order",)),
        "call": Rights(),
        "advance": Rights(
            tables={
                JOBS.name: (GET, GET_ALL),
                RUNS.name: (GET, GET_ALL, QUERY, PUT, UPDATE),
                CONTROL.name: (GET, PUT, DELETE),
            },
            queues=_SEND_RUNS,
            starts=("dag_run",),
            wakes=True,
            artifacts=_READ_OUTPUTS,
        ),
        "settle": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY, PUT),
                RUNS.name: (GET, QUERY, PUT, UPDATE),
                DUE.name: (PUT_ALL,),
                CONTROL.name: (GET, PUT),
            },
            queues=_SEND_RUNS,
        ),
        "backfill": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY),
                RUNS.name: (GET, GET_ALL, QUERY, PUT, UPDATE),
                DUE.name: (PUT_ALL,),
                CONTROL.name: (GET, PUT),
            },
            queues={"low": SEND},
            starts=("backfill",),
        ),
        "project": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY),
                RUNS.name: (GET, GET_ALL, QUERY, PUT, UPDATE),
                DUE.name: (PUT_ALL,),
                CONTROL.name: (GET, PUT),
                VIEWS.name: (PUT_ALL,),
            },
            queues=_SEND_RUNS,
            wakes=True,
            archives=True,
        ),
        "audit": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY, UPDATE),
                RUNS.name: (GET, GET_ALL, QUERY, PUT, UPDATE),
                DUE.name: (PUT_ALL,),
                CONTROL.name: (GET, QUERY, PUT),
            },
            queues=_SEND_RUNS,
        ),
        "watch": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY, PUT),
                RUNS.name: (GET, QUERY, UPDATE),
                DUE.name: (PUT, PUT_ALL),
                CONTROL.name: (GET, PUT, DELETE),
            },
            queues={**_SEND_RUNS, **_EMPTY_DEAD},
            wakes=True,
        ),
        "occur": Rights(
            tables={
                JOBS.name: (GET, GET_ALL),
                RUNS.name: (GET, PUT),
                DUE.name: (PUT_ALL,),
                CONTROL.name: (GET,),
            },
            queues=_SEND_RUNS,
        ),
        "scan": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY, PUT, UPDATE),
                RUNS.name: (GET, QUERY, PUT, UPDATE),
                DUE.name: (PUT, PUT_ALL),
                CONTROL.name: (GET, QUERY, PUT, DELETE),
            },
            queues=_SEND_RUNS,
            job_files=("s3:ListBucket", "s3:GetObject"),
            packs=("s3:GetObject",),
        ),
        "api": Rights(
            tables={
                JOBS.name: (GET, GET_ALL, QUERY, PUT, UPDATE),
                RUNS.name: (GET, GET_ALL, QUERY, PUT, UPDATE, DELETE),
                DUE.name: (QUERY, PUT, PUT_ALL, DELETE),
                CONTROL.name: (GET, GET_ALL, QUERY, PUT, DELETE),
                VIEWS.name: (QUERY,),
            },
            queues=_SEND_RUNS,
            starts=("backfill",),
            wakes=True,
            run_log=("logs:GetLogEvents",),
            artifacts=(*_READ_OUTPUTS, "s3:PutObject"),
            packs=("s3:GetObject", "s3:PutObject"),
            seals=("secret",),
            opens=("secret",),
            refers=True,
        ),
        "authorize": Rights(
            tables={
                CONTROL.name: (GET, GET_ALL, QUERY),
                JOBS.name: (PUT,),
            },
        ),
        "live": Rights(
            tables={
                CONTROL.name: (GET,),
                JOBS.name: (PUT,),
                VIEWS.name: (GET, QUERY, PUT_ALL),
            },
            tells=True,
        ),
    }
)
if RIGHTS.keys() != {function.name for function in FUNCTIONS}:
    raise LookupError("Every function of the topology has its rights here, and nobody else.")
