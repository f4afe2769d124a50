"""Let external workers know that a run waits for one of them."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import RunKey
from sweephand.domain.job import Job
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState
from sweephand.domain.shares import ageing_of
from sweephand.engine.complete import set_timer
from sweephand.engine.insist import move
from sweephand.engine.whereabouts import task_of
from sweephand.ports import Offer, World

QUEUE_DEFAULT: Final = "default"
LEASE: Final = timedelta(seconds=60)
"""How long an external worker, or an agent, may be silent."""
LAUNCHED_WITHIN: Final = timedelta(minutes=10)
"""How long an agent may take until it is first heard of: capacity is found and images are pulled meanwhile."""
AGENT: Final = "agent"
"""What launched agents are called."""
HEAD_START: Final = timedelta(seconds=2)
"""How long a run that prefers a warm worker waits for the one that ran its job last."""
_LOOKED_BACK: Final = 10
_SEPARATOR: Final = "|"


class Puller(Struct, frozen=True):
    """The owner of a run that reports by REST: a worker's name, its lease's secret, and when the run was claimed."""

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


def lease_id(key: RunKey, secret: str) -> str:
    """How the owner of a lease names it: whoever has no secret cannot report about another's work."""
    return urlsafe_b64encode(f"{key}{_SEPARATOR}{secret}".encode()).decode().rstrip("=")


def read_lease_id(text: str) -> tuple[RunKey, str]:
    """The run and the secret that a lease's id holds; anything else is a `ValueError`."""
    plain = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    key, secret = plain.split(_SEPARATOR)
    return RunKey.of(key), secret


def queue_of(job: Job) -> str:
    """The name under which workers ask for the job's runs."""
    return str(task_of(job).spec.get("queue", QUEUE_DEFAULT))


def offer(world: World, run: Run, job: Job, *, now: datetime) -> bool:
    """Offer the run and park it until a worker comes; False where it moved meanwhile.

    The offer is written first: a run that is parked is always on offer. Offering again keeps it from being withdrawn
    by whoever read it before.
    """
    world.offers.offer(queue_of(job), _offer_of(world, run, job, now))
    reason = Reason(ReasonCode.WORKER, f"waits for an external worker of queue '{queue_of(job)}'")
    if run.state is RunState.RUNNING or run.reason == reason:
        return True  # its last worker is lost, or it waits already
    wake_at = _deadline(run, job, now)
    if wake_at is not None:
        set_timer(world, run, job, at=wake_at, now=now)
    return move(world, run, run.parked(reason, now=now, nonce=world.dice.nonce(), wake_at=wake_at))


def _offer_of(world: World, run: Run, job: Job, now: datetime) -> Offer:
    """Workers come for the first in time: a lower priority is as if it had come later."""
    warm = _warm_worker(world, run) if task_of(job).spec.get("prefer") == "warm" else None
    return Offer(
        run.start_at + ageing_of(job.priority),
        run.key,
        world.dice.nonce(),
        warm or "",
        now + HEAD_START if warm else None,
    )


def _warm_worker(world: World, run: Run) -> str | None:
    """Who ran the job last; nobody where this run has had its first attempt: that worker failed, or was lost."""
    if run.attempt:
        return None
    before = world.runs.of_job(run.key.job, until=run.key.run_id, limit=_LOOKED_BACK)
    return next((puller.worker for puller in map(Puller.of, before) if puller), None)


def _deadline(run: Run, job: Job, now: datetime) -> datetime | None:
    """When to look again: a start deadline must end the run even if no worker ever comes.

    Nothing else needs a timer here; least of all a run between two attempts, which a timer would keep from workers.
    """
    if job.start_deadline is None or not run.is_scheduled or run.state not in UNSTARTED:
        return None
    deadline = run.start_at + job.start_deadline
    # Where that has passed and the guard let it go on, a blackout held the run until a moment ago.
    return deadline if deadline > now else now + job.start_deadline
