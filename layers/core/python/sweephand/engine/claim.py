"""Own a run for one attempt (004-O4)."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.job import Job
from sweephand.domain.run import Run
from sweephand.engine.complete import task_of
from sweephand.engine.insist import move
from sweephand.errors import Defect
from sweephand.ports import World


def claim(world: World, run: Run, job: Job, *, now: datetime) -> Run | None:
    """The run under a new epoch and lease; None where somebody else moved it first.

    The first claim fixes the version that the run uses. Claiming again after a lost answer is recognised by its nonce.
    """
    claimed = run.claimed(
        now=now,
        nonce=world.dice.nonce(),
        owner=world.owner,
        lease=lease_of(world, job),
        version=run.version or _version_in_force(world, run),
    )
    return claimed if move(world, run, claimed) else None


def timeout_of(job: Job) -> timedelta:
    """How long an attempt may take."""
    own = task_of(job).timeout or job.timeout
    return own if job.run_timeout is None else min(own, job.run_timeout)


def lease_of(world: World, job: Job) -> timedelta:
    """How long a claim lasts: longer than its attempt can, unless its owner renews it."""
    return world.pace.lease or timeout_of(job) + world.pace.lease_grace


def _version_in_force(world: World, run: Run) -> int:
    head = world.jobs.head(run.key.job)
    if head is None:
        raise Defect(f"Run {run.key} has no job.")
    return head.version
