"""External workers: they come for runs, say that they are alive, and report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.calls import Call, Outcome
from sweephand.domain.ids import Namespace
from sweephand.domain.job import Job
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.engine.attempt import Attempted, Fate, begin, call_of, overdue
from sweephand.engine.checkpoint import read_checkpoint, save_checkpoint
from sweephand.engine.claim import timeout_of
from sweephand.engine.complete import complete
from sweephand.engine.heartbeat import heartbeat
from sweephand.engine.insist import insist
from sweephand.engine.lookup import definition_of
from sweephand.engine.offer import LEASE, Puller, lease_id, read_lease_id
from sweephand.engine.outputs import fitted, log_key_of, upstream_of
from sweephand.engine.reveal import redacted, redactor_of, reveal
from sweephand.engine.whereabouts import task_of
from sweephand.errors import NotFound, StaleEpoch, Unavailable
from sweephand.messages import AttemptRun
from sweephand.ports import Delivery, Lane, Offer, World
from sweephand.secrets import Redactor

_FOREVER: Final = timedelta(days=1)
_BY_HAND: Final = Delivery(body="", receipt="", lane=Lane.NORMAL, receives=1, hold=_FOREVER)
"""No message carries a run that is pulled: its lease's timer is sent before the claim."""
_LOOKED_AT: Final = 20
"""Offers that may be moot, on top of four for each run that is asked for."""


class Lease(Struct, frozen=True):
    """The right to do one attempt of a run. Its id holds a secret, so that nobody reports about another's work."""

    run: Run
    task_id: str
    secret: str

    @property
    def id(self) -> str:
        return lease_id(self.run.key, self.secret)


class Leased(Struct, frozen=True):
    """Work for a worker."""

    lease: Lease
    call: Call
    checkpoint: Any = None


def lease(world: World, namespace: Namespace, worker: str, queues: Sequence[str], *, most: int) -> list[Leased]:
    """Claim up to `most` runs that are on offer in these queues, by priority and age.

    Each lease's timer is sent before its claim, so that a worker which dies is always noticed. Repeating it claims
    others: a worker whose answer was lost leaves its runs to their timers.
    """
    leased: list[Leased] = []
    for queue in queues:
        try:
            for offered in world.offers.open(namespace, queue, limit=most * 4 + _LOOKED_AT):
                if len(leased) >= most:
                    return leased
                if offered.run in world.pulled or not offered.is_for(worker, now=world.clock.now()):
                    continue
                world.pulled.add(offered.run)
                try:
                    taken = _take(world, queue, offered, worker)
                finally:
                    world.pulled.discard(offered.run)
                if taken is not None:
                    leased.append(taken)
        except Unavailable:
            if not leased:
                raise
            return leased  # what is claimed must reach the worker: it would sit out its lease and count as lost
    return leased


def on_offer(world: World, namespace: Namespace, queues: Sequence[str], *, most: int) -> int:
    """How many runs are on offer in these queues, counted up to `most`; some may be moot. Reads only."""
    return sum(len(world.offers.open(namespace, queue, limit=most)) for queue in queues)


def beat(
    world: World, lease: str, namespace: Namespace, *, epoch: int, progress: int | None, checkpoint: Any = None
) -> Run:
    """The worker is alive: its lease is extended, up to the attempt's time-out, which ends it.

    What it leaves for the next attempt, if anything, is kept without the values of secrets. Repeating it only extends
    again.
    """
    run, claimed_at = _owned(world, lease, namespace, epoch)
    timeout = timeout_of(world.pace, _job(world, run), run, now=claimed_at)
    left = claimed_at + timeout - world.clock.now()
    if left <= timedelta(0):
        complete(world, run.key, epoch=epoch, outcome=overdue(timeout))
        raise StaleEpoch(str(run.key), epoch, run.epoch)
    beaten = heartbeat(world, run.key, epoch=epoch, lease=min(LEASE, left), progress=progress)
    if checkpoint is not None:
        save_checkpoint(world, beaten, _redactor(world, run).document(checkpoint))
    return beaten


def look(world: World, lease: str, namespace: Namespace, *, epoch: int) -> Leased:
    """The work of a lease, with its secrets, for the agent that was launched for it. Repeating it answers the same.

    Where a secret is missing, that is the attempt's outcome, and the lease is nobody's any more.
    """
    run, claimed_at = _owned(world, lease, namespace, epoch)
    job = _job(world, run)
    timeout = timeout_of(world.pace, job, run, now=claimed_at)
    _, secret = read_lease_id(lease)
    call = reveal(world, call_of(run, job, timeout, upstream_of(world, run), lease=lease))
    if isinstance(call, Failure):
        complete(world, run.key, epoch=epoch, outcome=call)
        raise StaleEpoch(str(run.key), epoch, run.epoch)
    return Leased(Lease(run, call.task.id, secret), call, read_checkpoint(world, run.key))


def report(world: World, lease: str, namespace: Namespace, *, epoch: int, outcome: Outcome) -> Run:
    """The attempt's outcome. The same report again answers the same; one under another epoch is refused.

    A large output is kept before the run ends, and never after: what an ended run gave stays as it is.
    """
    run, _ = _owned(world, lease, namespace, epoch)
    outcome = redacted(outcome, _redactor(world, run))
    if run.state is RunState.RUNNING:
        task = task_of(_job(world, run)).id
        outcome = fitted(outcome, log_key_of(run, task), world.artifacts.keep_output)
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
    revealed = reveal(world, begun)
    if isinstance(revealed, Failure):
        with suppress(StaleEpoch):  # it was cancelled meanwhile
            complete(world, run.key, epoch=begun.run.epoch, outcome=revealed, claimed=begun.run)
        return None
    checkpoint = insist(lambda: read_checkpoint(world, run.key))
    return Leased(Lease(begun.run, begun.task.id, secret), revealed, checkpoint)


def _is_moot(run: Run, now: datetime) -> bool:
    """Whether there is nothing to take: it ended, or somebody has it, or its next attempt's timer will offer it."""
    backs_off = run.state is RunState.RETRYING and run.wake_at is not None and now < run.wake_at
    return run.is_terminal or run.lease_is_live(now) or backs_off


def _owned(world: World, lease: str, namespace: Namespace, epoch: int) -> tuple[Run, datetime]:
    """The run of a lease, and when it was claimed; a lease that is not this run's is as absent as none."""
    try:
        key, secret = read_lease_id(lease)
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


def _redactor(world: World, run: Run) -> Redactor:
    """The worker was given the values of secrets: what it says is kept without them."""
    return redactor_of(world, run.key.job.namespace, task_of(_job(world, run)))


def _job(world: World, run: Run) -> Job:
    job = definition_of(world, run)
    if job is None:
        raise NotFound("There is no such lease.")
    return job
