"""Run an ended run again, as a new run beside it."""

from __future__ import annotations

from itertools import count

from sweephand.domain.ids import RunKey, run_id_of_rerun
from sweephand.domain.run import Run, Trigger
from sweephand.engine.lookup import job_of, present_head
from sweephand.engine.trigger import queue_once
from sweephand.errors import Conflict, Defect, NotFound
from sweephand.ports import World


def rerun(world: World, key: RunKey, *, note: str | None = None) -> Run:
    """The next generation of the run's fire, with its parameters; two reruns at once become two generations.

    Repeating it makes another generation: callers that retry hand an idempotency key to the API.
    """
    job = job_of(world, present_head(world, key.job))
    old = world.runs.get(key)
    if old is None:
        raise NotFound(f"There is no run {key}.")
    if not old.is_terminal:
        raise Conflict(f"Run {key} is {old.state}: it can be run again once it has ended.")
    now = world.clock.now()
    for generation in count(1):
        fresh = Run(
            RunKey(key.job, run_id_of_rerun(key.run_id, generation)),
            old.fire_at,
            old.fire_at,
            Trigger.RERUN,
            created_at=now,
            params=old.params,
            rerun_of=key.run_id,
            note=note,
            changed_at=now,
            nonce=world.dice.nonce(),
        )
        queued, is_new = queue_once(world, fresh, job, now=now)
        if is_new:
            return queued
    raise Defect("There are only so many numbers.")
