"""Run a job now, whatever its schedule says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sweephand.domain.ids import JobKey, RunId, RunKey, run_id_of_trigger
from sweephand.domain.job import Job
from sweephand.domain.run import UNSTARTED, Run, RunState, Trigger
from sweephand.engine.insist import insist
from sweephand.engine.lookup import job_of, present_head
from sweephand.engine.planning import letter_for, run_entry
from sweephand.errors import Defect
from sweephand.ports import World

REMEMBERED_FOR: Final = timedelta(hours=24)
UNSENT_FOR: Final = timedelta(minutes=1)
"""How long a run whose trigger died before sending it lies there."""


def trigger(
    world: World,
    key: JobKey,
    *,
    params: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    note: str | None = None,
    cause: Trigger = Trigger.MANUAL,
) -> Run:
    """A new run of the job, queued at once; the same idempotency key within a day gives the same run."""
    job = job_of(world, present_head(world, key))
    now = world.clock.now()
    fire_at = now.replace(microsecond=0)
    run_id = run_id_of_trigger(now, world.dice.nonce()[:8])
    if idempotency_key is not None:
        run_id = _remembered(world, key, f"trigger/{key.name}/{idempotency_key}", run_id, now)
    run = Run(
        RunKey(key, run_id),
        fire_at,
        fire_at,
        trigger=cause,
        created_at=now,
        params=params or {},
        note=note,
        state=RunState.QUEUED,
        changed_at=now,
        nonce=world.dice.nonce(),
    )
    queued, _ = queue_once(world, run, job, now=now)
    return queued


def queue_once(world: World, run: Run, job: Job | None, *, now: datetime) -> tuple[Run, bool]:
    """Put the run if it is absent and send it unless it has started; the run as stored, and whether it is new.

    Whoever put it may have died before sending, so it is sent whoever put it. Nothing else owes this run, so a due
    entry comes first: dying between the put and the message costs minutes.
    """
    world.due.arm([run_entry(world, run.key, at=now + UNSENT_FOR, now=now)])
    (created,) = insist(lambda: world.runs.create([run]))
    stored = run if created else world.runs.get(run.key)
    if stored is None:
        raise Defect(f"Run {run.key} was there and is gone.")
    if stored.state in UNSTARTED:
        world.queue.send([letter_for(stored, job, now=now)])
    return stored, created


def _remembered(world: World, key: JobKey, name: str, run_id: RunId, now: datetime) -> RunId:
    return RunId(world.runs.remember(key.namespace, name, run_id, until=now + REMEMBERED_FOR))
