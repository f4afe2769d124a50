"""Run an ended run again, as a new run beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import count

from msgspec.structs import replace

from sweephand.domain.ids import RunId, RunKey, run_id_of_rerun
from sweephand.domain.reruns import Marks
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.lookup import job_of, present_head
from sweephand.engine.mark import Verdict, ended_by
from sweephand.engine.trigger import REMEMBERED_FOR, queue_once
from sweephand.errors import Conflict, Defect, NotFound
from sweephand.ports import World


def rerun(
    world: World,
    key: RunKey,
    *,
    note: str | None = None,
    idempotency_key: str | None = None,
    start: str | None = None,
    marks: Marks | None = None,
) -> Run:
    """The next generation of the run's fire, with its parameters; two reruns at once become two generations.

    With `start`, a run of several tasks takes over what need not be done again: when it begins, since only then it is
    known which version is in force. So nothing is copied for a run that never starts, and a stop costs nothing. With
    `marks`, tasks of it are over by somebody's word; a run of one task is over with that.
    Repeating it makes another generation, unless it is done under the same idempotency key within a day.
    """
    head = present_head(world, key.job)
    job = job_of(world, head)
    old = world.runs.get(key)
    if old is None:
        raise NotFound(f"There is no run {key}.")
    if not old.is_terminal:
        raise Conflict(f"Run {key} is {old.state}: it can be run again once it has ended.")
    now = world.clock.now()
    for run_id in _own_ids(world, key, idempotency_key, until=now + REMEMBERED_FOR):
        chosen = run_id
        if idempotency_key is not None:
            name = f"rerun/{key.job.name}/{key.run_id}/{idempotency_key}"
            chosen = RunId(world.runs.remember(key.job.namespace, name, run_id, until=now + REMEMBERED_FOR))
        fresh = Run(
            RunKey(key.job, chosen),
            old.fire_at,
            old.fire_at,
            trigger=Trigger.RERUN,
            created_at=now,
            params=old.params,
            rerun_of=key.run_id,
            rerun_from=start,
            marks=marks.encode() if marks is not None else {},
            note=note,
            state=RunState.QUEUED,
            changed_at=now,
            nonce=world.dice.nonce(),
        )
        if marks is not None and start is None and job is not None and not job.is_dag:
            (state,) = marks.tasks.values()
            fresh = ended_by(world, replace(fresh, version=head.version), Verdict(state, marks.by, note or ""), now=now)
        queued, is_new = queue_once(world, fresh, job, now=now)
        if is_new or idempotency_key is not None:
            return queued
    raise Defect("There are only so many numbers.")


def _own_ids(world: World, key: RunKey, idempotency_key: str | None, *, until: datetime) -> Iterator[RunId]:
    """The ids of generations that are not there yet and that nobody else is about to put.

    Else two reruns under two keys would choose the same generation, and the second would pass for the first's
    repetition. A generation whose rerun stopped half way is left out.
    """
    mine = world.dice.nonce() if idempotency_key is None else f"{key.run_id}/{idempotency_key}"
    for generation in count(1):
        run_id = run_id_of_rerun(key.run_id, generation)
        if world.runs.get(RunKey(key.job, run_id)) is not None:
            continue
        name = f"generation/{key.job.name}/{run_id}"
        if world.runs.remember(key.job.namespace, name, mine, until=until) == mine:
            yield run_id
