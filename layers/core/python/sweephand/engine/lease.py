"""External workers: they come for runs, say that they are alive, and report."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.ids import Namespace, RunKey
from sweephand.domain.job import Job
from sweephand.domain.run import Run, RunState
from sweephand.engine.attempt import Attempted, Fate, begin, overdue
from sweephand.engine.checkpoint import read_checkpoint
from sweephand.engine.claim import timeout_of
from sweephand.engine.complete import complete
from sweephand.engine.heartbeat import heartbeat
from sweephand.engine.insist import insist
from sweephand.engine.lookup import version_of
from sweephand.engine.offer import LEASE, Puller
from sweephand.errors import NotFound, StaleEpoch, Unavailable
from sweephand.messages import AttemptRun
from sweephand.ports import Call, Delivery, Lane, Offer, Outcome, World

_FOREVER: Final = timedelta(days=1)
_BY_HAND: Final = Delivery(body="", receipt="", lane=Lane.NORMAL, receives=1, hold=_FOREVER)
"""No message carries a run that is pulled: its lease's timer is sent before the claim."""
_SEPARATOR: Final = "|"
_LOOKED_AT: Final = 20
"""Offers that may be moot, on top of four for each run that is asked for."""


class Lease(Struct, frozen=True):
    """The right to do one attempt of a run. Its id holds a secret, so that nobody reports about another's work."""

    run: Run
    task_id: str
    secret: str

    @property
    def id(self) -> str:
        plain = f"{self.run.key}{_SEPARATOR}{self.secret}"
        return urlsafe_b64encode(plain.encode()).decode().rstrip("=")


class Leased(Struct, frozen=True):
    """Work for a worker."""

    lease: Lease
    call: Call
    checkpoint: Any = None


def lease(world: World, namespace: Namespace, worker: str, queues: Sequence[str], *, most: int) -> list[Leased]:
    """Claim up to `most` runs that are on offer in these queues, the oldest first.

    Each lease's timer is sent before its claim, so that a worker which dies is always noticed. Repeating it claims
    others: a worker whose answer was lost leaves its runs to their timers.
    """
    leased: list[Leased] = []
    for queue in queues:
        try:
            for offered in world.offers.open(namespace, queue, limit=most * 4 + _LOOKED_AT):
                if len(leased) >= most:
                    return leased
                taken = _take(world, queue, offered, worker)
                if taken is not None:
                    leased.append(taken)
        except Unavailable:
            if not leased:
                raise
            return leased  # what is claimed must reach the worker: it would sit out its lease and count as lost
    return leased


def beat(world: World, lease_id: str, namespace: Namespace, *, epoch: int, progress: int | None) -> Run:
    """The worker is alive: its lease is extended, up to the attempt's time-out, which ends it.

    Repeating it only extends again.
    """
    run, claimed_at = _owned(world, lease_id, namespace, epoch)
    timeout = timeout_of(world.pace, _job(world, run), run, now=claimed_at)
    left = claimed_at + timeout - world.clock.now()
    if left <= timedelta(0):
        complete(world, run.key, epoch=epoch, outcome=overdue(timeout))
        raise StaleEpoch(str(run.key), epoch, run.epoch)
    return heartbeat(world, run.key, epoch=epoch, lease=min(LEASE, left), progress=progress)


def report(world: World, lease_id: str, namespace: Namespace, *, epoch: int, outcome: Outcome) -> Run:
    """The attempt's outcome. The same report again answers the same; one under another epoch is refused."""
    run, _ = _owned(world, lease_id, namespace, epoch)
    return complete(world, run.key, epoch=epoch, outcome=outcome)


def worker_of(run: Run) -> str | None:
    """Who works on the run, without the secret that is kept beside the name."""
    puller = Puller.of(run)
    return puller.worker if puller else run.owner


def _take(world: World, queue: str, offered: Offer, worker: str) -> Leased | None:
    run = world.runs.get(offered.run)
    now = world.clock.now()
    if run is None or _is_moot(run, now):
        world.offers.withdraw(queue, [offered])
        return None
    secret = world.dice.secret()
    as_worker = replace(world, owner=str(Puller(worker, secret, now)), pace=replace(world.pace, lease=LEASE))
    begun = begin(as_worker, AttemptRun(run.key, run.wake_at), _BY_HAND, pulled=queue)
    if isinstance(begun, Attempted):
        if begun.fate is Fate.DELETE:
            world.offers.withdraw(queue, [offered])  # it ended, or it waits for something else and is offered again
        return None
    with suppress(Unavailable):  # safe: whoever meets the offer finds the lease
        world.offers.withdraw(queue, [offered])
    checkpoint = insist(lambda: read_checkpoint(world, run.key))
    return Leased(Lease(begun.run, begun.task.id, secret), begun, checkpoint)


def _is_moot(run: Run, now: datetime) -> bool:
    """Whether there is nothing to take: it ended, or somebody has it, or its next attempt's timer will offer it."""
    backs_off = run.state is RunState.RETRYING and run.wake_at is not None and now < run.wake_at
    return run.is_terminal or run.lease_is_live(now) or backs_off


def _owned(world: World, lease_id: str, namespace: Namespace, epoch: int) -> tuple[Run, datetime]:
    """The run of a lease, and when it was claimed; a lease that is not this run's is as absent as none."""
    try:
        plain = urlsafe_b64decode(lease_id + "=" * (-len(lease_id) % 4)).decode()
        text, secret = plain.split(_SEPARATOR)
        key = RunKey.of(text)
    except ValueError:
        raise NotFound("There is no such lease.") from None
    run = world.runs.get(key) if key.job.namespace == namespace else None
    puller = Puller.of(run) if run else None
    if run is None or puller is None:
        raise NotFound("There is no such lease.")
    is_ours = compare_digest(puller.secret.encode(), secret.encode())
    if not is_ours or run.epoch != epoch or run.state is RunState.CANCELLED:
        raise StaleEpoch(str(key), epoch, run.epoch)
    return run, puller.claimed_at


def _job(world: World, run: Run) -> Job:
    job = version_of(world, run.key.job, run.version or 0).job
    if job is None:
        raise NotFound("There is no such lease.")
    return job
