"""Own a run for one attempt (004-O4)."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.job import Job
from sweephand.domain.run import Run
from sweephand.engine.complete import EXTERNAL, task_of
from sweephand.engine.insist import move
from sweephand.ports import Pace, World


def claim(world: World, run: Run, job: Job, *, version: int, now: datetime) -> Run | None:
    """The run under a new epoch and lease; None where somebody else moved it first.

    `version` is the job's; the first claim fixes it for the run. Claiming again after a lost answer is recognised by
    its nonce.
    """
    claimed = run.claimed(
        now=now,
        nonce=world.dice.nonce(),
        owner=world.owner,
        lease=lease_of(world, job, run, now=now),
        version=version,
    )
    return claimed if move(world, run, claimed) else None


def timeout_of(pace: Pace, job: Job, run: Run, *, now: datetime) -> timedelta:
    """How long an attempt that begins now may take: its own time-out, within what the run has left."""
    own = task_of(job).timeout or job.timeout
    if task_of(job).kind != EXTERNAL:
        own = min(own, pace.attempt_max)
    if job.run_timeout is None:
        return own
    return max(min(own, (run.started_at or now) + job.run_timeout - now), timedelta(0))


def lease_of(world: World, job: Job, run: Run, *, now: datetime) -> timedelta:
    """How long a claim lasts: longer than its attempt can, unless its owner renews it."""
    return world.pace.lease or timeout_of(world.pace, job, run, now=now) + world.pace.lease_grace
