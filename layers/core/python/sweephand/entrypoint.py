"""Cold starts, and the one shell around every handler: what a function is made of, what it logs, what comes back."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import wraps
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.request import urlopen

from msgspec import Struct
from msgspec.structs import asdict, replace

from sweephand import aws
from sweephand.calls import Call, Outcome
from sweephand.domain.images import Images
from sweephand.domain.targets import Targets
from sweephand.engine.look import Looking
from sweephand.errors import Defect, Unavailable
from sweephand.ports import Delivery, Lane, World
from sweephand.surroundings import begin, caller, clock, dice, function, names, region, settings
from sweephand.topology import EXECUTE_MAX

if TYPE_CHECKING:
    from sweephand.aws.filed import S3JobFiles
    from sweephand.operators import Operators

__all__ = [
    "Context",
    "Event",
    "NoTarget",
    "attempting",
    "begin",
    "calling",
    "dag_machine",
    "deal_with",
    "deployed",
    "entrypoint",
    "images",
    "job_files",
    "live_connections",
    "logger",
    "measure",
    "names",
    "published_keys",
    "run_archive",
    "settings",
    "targets",
    "time_is_up_at",
]

logger: Final = logging.getLogger("sweephand")

Event = Mapping[str, Any]

_KEYS_WITHIN_S: Final = 3
_ENDS_WITHIN: Final = timedelta(seconds=15)
_RETURN_MAX: Final = timedelta(minutes=5)


class Context(Protocol):
    """What Lambda says about an invocation."""

    def get_remaining_time_in_millis(self) -> int: ...


class NoTarget:
    """What runs tasks where none are run."""

    def execute(self, call: Call) -> Outcome:
        raise Defect(f"No tasks are run here, and {call.run.key} was to be run.")


def deployed(machine: aws.StepFunctions | None = None) -> World:
    """The world of this deployment, as a function sees it that runs no tasks."""
    own, now, chance = settings(), clock(), dice()
    stores = aws.connect(
        names(),
        *aws.clients(_config()),
        clock=now,
        keep_runs=timedelta(days=own.keep_runs_days),
        shards=own.shards,
        config=_config(),
        artifacts_bucket=own.artifacts,
        secret_arns=[pattern for pattern in own.secret_arns.split(",") if pattern],
    )
    pace = replace(aws.PACE, lookahead=timedelta(minutes=own.lookahead_minutes), attempt_max=EXECUTE_MAX, launches=True)
    world = World.over(stores, clock=now, dice=chance, target=NoTarget(), pace=pace, owner=chance.nonce())
    fillers = aws.backfill_machine(own.backfill_machine, _config())
    return replace(world, machines=machine or dag_machine(), fillers=fillers)


def dag_machine() -> aws.StepFunctions:
    """What advances runs of several tasks; it connects when it is first needed."""
    return aws.dag_machine(settings().dag_machine, _config())


def attempting() -> World:
    """The same, where tasks are run: by the function `execute`."""
    world = deployed()
    own = settings()
    cluster = aws.Cluster.of(own, region=region()) if own.cluster else None
    working = aws.execute_target(names(), own.machine, world, _config(), cluster, gathers=own.batch_seconds > 0)
    return replace(world, target=Looking(working, world))


def images() -> Images:
    """What containers may be made of."""
    return aws.images_of(settings())


def targets() -> Targets:
    """What tasks may call on AWS; nothing of ours."""
    own = settings()
    return Targets.of(own.targets.split(), own.sdk_actions.split(), own=own.name)


def calling() -> Operators:
    """What calls AWS services for tasks, and runs nothing else."""
    from sweephand.operators import Operators
    from sweephand.operators.aws import aws_operators

    known = aws_operators(targets(), clock=clock(), agent=caller())
    return Operators(Path(tempfile.gettempdir()) / "sweephand", only=known)


def job_files() -> S3JobFiles:
    """The job files of this deployment."""
    return aws.job_files(settings().artifacts, _config())


def run_archive() -> aws.Archive:
    """Where ended runs outlive their items."""
    return aws.archive(names(), _config())


def live_connections() -> aws.Connections:
    """Who listens, and the way to them."""
    return aws.connections(names(), settings().live, _config(), clock=clock())


def _config() -> aws.Config:
    """Every call says which function made it."""
    return aws.config(caller())


def entrypoint(handler: Callable[[Event, Context], Any]) -> Callable[[Event, Context], Any]:
    """Log what a handler did, or why it did not; an error leaves it, so that AWS tries again and counts it."""
    verb = function()

    @wraps(handler)
    def shell(event: Event, context: Context) -> Any:
        try:
            result = handler(event, context)
        except Unavailable as error:
            logger.warning("%s: %s", verb, error.message)
            raise
        except Exception:
            logger.exception("%s failed", verb)
            raise
        did = asdict(result) if isinstance(result, Struct) else result
        plain = json.loads(json.dumps(did, default=_plain))
        logger.info(verb, extra={"did": plain})
        return plain

    return shell


def deal_with(world: World, event: Event, deal: Callable[[Delivery], bool]) -> dict[str, Any]:
    """A batch of messages, side by side; `deal` says whether one has done its work. The others stay in their queue.

    One that raises comes back by itself, soon at first, and is nobody else's trouble.
    """
    deliveries = {record["messageId"]: _delivery(record) for record in event["Records"]}

    def is_done(delivery: Delivery) -> bool:
        try:
            return deal(delivery)
        except Unavailable as error:
            logger.warning("A message of %s comes back: %s", delivery.lane, error.message)
        except Exception:
            logger.exception("A message of %s could not be dealt with: %s", delivery.lane, delivery.body)
        with suppress(Unavailable):  # safe: then it comes back later
            world.inbox.keep(delivery, min(timedelta(seconds=2**delivery.receives), _RETURN_MAX))
        return False

    left = set(deliveries)

    def work(name: str, delivery: Delivery) -> None:
        if is_done(delivery):
            left.remove(name)

    # Daemons, which the threads of `concurrent.futures` are not: where a process stops, it need not wait for a program.
    threads = [Thread(target=work, args=item, daemon=True) for item in deliveries.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"batchItemFailures": [{"itemIdentifier": name} for name in deliveries if name in left]}


def _delivery(record: Mapping[str, Any]) -> Delivery:
    """Its hold is as good as over, so that whoever claims with it sets it to the lease's time."""
    lane = Lane(str(record["eventSourceARN"]).rpartition("-")[2])
    receives = int(record["attributes"]["ApproximateReceiveCount"])
    return Delivery(record["body"], record["receiptHandle"], lane, receives)


def time_is_up_at(context: Context) -> datetime:
    """When to stop, so that what was begun can still be ended."""
    return clock().now() + timedelta(milliseconds=context.get_remaining_time_in_millis()) - _ENDS_WITHIN


def measure(metric: str, value: float, unit: str = "Count") -> None:
    """A custom metric, in the format that CloudWatch takes from a log line."""
    at = int(clock().now().timestamp() * 1000)
    named = [{"Name": metric, "Unit": unit}]
    described = [{"Namespace": "Sweephand", "Dimensions": [["Deployment"]], "Metrics": named}]
    line = {"_aws": {"Timestamp": at, "CloudWatchMetrics": described}, "Deployment": settings().name, metric: value}
    sys.stdout.write(f"{json.dumps(line)}\n")


def published_keys() -> Mapping[str, Any]:
    """The keys that the issuer of people's tokens publishes."""
    address = f"{settings().issuer}/.well-known/jwks.json"
    if not address.startswith("https://"):
        raise Defect(f"The issuer's address must begin with https: {address}.")
    try:
        with urlopen(address, timeout=_KEYS_WITHIN_S) as answer:
            keys: Mapping[str, Any] = json.load(answer)
    except HTTPException as error:
        raise OSError(f"The issuer's answer was cut off: {error!r}.") from error
    return keys


def _plain(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else str(value)
