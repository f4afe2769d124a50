"""Let external workers know that a run waits for one of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain.job import Job
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState
from sweephand.engine.complete import EXTERNAL, set_timer, task_of
from sweephand.engine.insist import move
from sweephand.ports import Offer, World

QUEUE_DEFAULT: Final = "default"
LEASE: Final = timedelta(seconds=60)
"""How long an external worker may be silent."""
_SEPARATOR: Final = "|"


class Puller(Struct, frozen=True):
    """The owner of a run that was pulled: the worker's name, its lease's secret, and when it claimed."""

    worker: str
    secret: str
    claimed_at: datetime

    def __str__(self) -> str:
        """As it is kept in the run."""
        return _SEPARATOR.join((self.worker, self.secret, str(int(self.claimed_at.timestamp() * 1000))))

    @classmethod
    def of(cls, run: Run) -> Puller | None:
        """Who pulled the run last; None where nobody did."""
        parts = (run.owner or "").rsplit(_SEPARATOR, 2)
        if len(parts) < 3:
            return None
        return cls(parts[0], parts[1], datetime.fromtimestamp(int(parts[2]) / 1000, UTC))


def is_external(job: Job) -> bool:
    """Whether the job's task is done by workers who come for it."""
    return task_of(job).kind == EXTERNAL


def queue_of(job: Job) -> str:
    """The name under which workers ask for the job's runs."""
    return str(task_of(job).spec.get("queue", QUEUE_DEFAULT))


def offer(world: World, run: Run, job: Job, *, now: datetime) -> bool:
    """Offer the run and park it until a worker comes; False where it moved meanwhile.

    The offer is written first: a run that is parked is always on offer. Offering again keeps it from being withdrawn
    by whoever read it before.
    """
    world.offers.offer(queue_of(job), Offer(run.start_at, run.key, world.dice.nonce()))
    reason = Reason(ReasonCode.WORKER, f"waits for an external worker of queue '{queue_of(job)}'")
    if run.state is RunState.RUNNING or run.reason == reason:
        return True  # its last worker is lost, or it waits already
    wake_at = _deadline(run, job, now)
    if wake_at is not None:
        set_timer(world, run, job, at=wake_at, now=now)
    return move(world, run, run.parked(reason, now=now, nonce=world.dice.nonce(), wake_at=wake_at))


def _deadline(run: Run, job: Job, now: datetime) -> datetime | None:
    """When to look again: a start deadline must end the run even if no worker ever comes.

    Nothing else needs a timer here; least of all a run between two attempts, which a timer would keep from workers.
    """
    if job.start_deadline is None or not run.is_scheduled or run.state not in UNSTARTED:
        return None
    deadline = run.start_at + job.start_deadline
    # Where that has passed and the guard let it go on, a blackout held the run until a moment ago.
    return deadline if deadline > now else now + job.start_deadline
