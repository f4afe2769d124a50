"""Own a run for one attempt (004-O4)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sweephand.domain.job import Job
from sweephand.domain.run import Run
from sweephand.engine.insist import move
from sweephand.engine.whereabouts import renews_by_itself, task_of
from sweephand.ports import Pace, World

LOOKS: Final = frozenset({"stateMachine"})
"""Kinds whose attempts go on elsewhere, and are looked at. The time-out is of all of it, and each look is short."""
LOOK_MAX: Final = timedelta(minutes=2)
_BRIEF: Final = LOOKS | {"wait", "sensor"}
"""Kinds of which an attempt is a look: when a worker is lost in the midst of one, the next need not wait for long."""


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
    if not move(world, run, claimed):
        return None
    if claimed.attempt == 1:
        world.lately.start(run.key.job.namespace, now=now)
    return claimed


def timeout_of(pace: Pace, job: Job, run: Run, *, now: datetime) -> timedelta:
    """How long an attempt that begins now may take: its own time-out, within what the run has left."""
    own = task_of(job).timeout or job.timeout
    if task_of(job).kind in LOOKS:
        is_over = job.run_timeout is not None and now >= (run.started_at or now) + job.run_timeout
        return timedelta(0) if is_over else own
    if not renews_by_itself(pace, job):
        own = min(own, pace.attempt_max)
    if job.run_timeout is None:
        return own
    return max(min(own, (run.started_at or now) + job.run_timeout - now), timedelta(0))


def lease_of(world: World, job: Job, run: Run, *, now: datetime) -> timedelta:
    """How long a claim lasts: longer than its attempt can, unless its owner renews it."""
    most = LOOK_MAX if task_of(job).kind in _BRIEF else timedelta.max
    return world.pace.lease or min(timeout_of(world.pace, job, run, now=now), most) + world.pace.lease_grace
