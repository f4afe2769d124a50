"""The resources of a deployment, described once: `infra/` builds them from this, and so does the moto harness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Table:
    """A DynamoDB table. Every one has a partition and a sort key, both texts, and bills by the request.

    `ttl` names the attribute (seconds since 1970) after which DynamoDB deletes an item at no cost. There is no
    secondary index: an index lags, throttles its table when it is hot, and is paid for at every change of a key.
    """

    name: str
    ttl: str | None = None
    stream: str | None = None
    partition_key: str = "pk"
    sort_key: str = "sk"


@dataclass(frozen=True, slots=True)
class Queue:
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

LANES: Final = ("high", "normal", "low", "sweep")
QUEUES: Final = tuple(Queue(lane, visibility=timedelta(minutes=90)) for lane in LANES)


@dataclass(frozen=True, slots=True)
class Names:
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
