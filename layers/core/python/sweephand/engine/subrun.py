"""Runs that a task starts in another job: one for each run of the task, whatever happens, and the task waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from sweephand.domain.ids import JobKey, JobName, RunKey, run_id_of_trigger
from sweephand.domain.job import Task
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.hasten import hasten
from sweephand.engine.lookup import present_job
from sweephand.engine.trigger import queue_once
from sweephand.errors import Conflict, NotFound
from sweephand.ports import World

JOB: Final = "job"
"""The kind of a task that starts a run of another job."""
DEPTH_MAX: Final = 8
"""Runs that started each other, one within the other: a job that starts itself must end."""


def subrun_key(run: Run, task: Task) -> RunKey | None:
    """The run that this one's task starts; None before it has begun. Its id follows from the task's own run."""
    if task.kind != JOB or run.started_at is None:
        return None
    other = JobKey(run.key.job.namespace, JobName(str(task.spec["value"])))
    token = blake2b(f"{other}<{run.idempotency_key(task.id)}".encode(), digest_size=8).hexdigest()
    return RunKey(other, run_id_of_trigger(run.started_at, token))


def start_subrun(world: World, run: Run, task: Task, params: Mapping[str, Any]) -> Run:
    """The run that this one's task starts, or has started. Repeating it at any time starts no second one."""
    key = subrun_key(run, task)
    if key is None or run.started_at is None:
        raise Conflict(f"Run {run.key} has not begun, or starts no other.")
    stored = world.runs.get(key)
    if stored is not None:
        return stored
    job = present_job(world, key.job)
    if job is None:
        raise NotFound(f"There is no job {key.job}.")
    _check_depth(world, run, key.job)
    now, fire_at = world.clock.now(), run.started_at.replace(microsecond=0)
    fresh = Run(
        key,
        fire_at,
        fire_at,
        trigger=Trigger.DEPENDENCY,
        created_at=now,
        params=params,
        parent=str(run.key),
        state=RunState.QUEUED,
        changed_at=now,
        nonce=world.dice.nonce(),
    )
    queued, _ = queue_once(world, fresh, job, now=now)
    return queued


def tell_parent(world: World, run: Run) -> None:
    """The run has changed: where it is over, the task that waits for it looks at once. Repeating it does no harm."""
    if run.parent is not None and run.is_terminal:
        hasten(world, RunKey.of(run.parent))


def _check_depth(world: World, run: Run, other: JobKey) -> None:
    chain = [str(other.name), str(run.key.job.name)]
    above = world.runs.get(run.key.whole)
    while above is not None and above.parent is not None:
        parent = RunKey.of(above.parent)
        chain.append(str(parent.job.name))
        if len(chain) > DEPTH_MAX:
            shown = " → ".join(reversed(chain))
            raise Conflict(f"Jobs start each other more than {DEPTH_MAX} deep: {shown}.")
        above = world.runs.get(parent.whole)
