"""Datasets: a success updates them, and the jobs that subscribe to them run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import Job, JobStatus
from sweephand.domain.occasions import Quantity
from sweephand.domain.run import Run, RunState
from sweephand.engine.edit import Document, edit
from sweephand.engine.gate import Mark, Marks, caused_run, in_force_since, pass_gate, put_once, second_of, stamp
from sweephand.engine.lookup import definition_of
from sweephand.engine.trigger import REMEMBERED_FOR
from sweephand.engine.wire import DATASET, subscribers_in
from sweephand.errors import NotFound
from sweephand.ports import World

DATASET_GATE: Final = "dataset-gate"


class Update(Struct, frozen=True):
    """That some datasets were updated at once; `id` names the update, so that it is recognised when told again."""

    id: str
    at: datetime
    datasets: tuple[str, ...]


def publish_success(world: World, run: Run) -> int:
    """Update what a run's or a task's success publishes; how many new runs that made.

    What a rerun carried over was published when it was done. Repeating it makes nothing twice: the update is named by
    the run.
    """
    is_carried = bool(run.key.task) and run.rerun_of is not None
    if run.state is not RunState.SUCCEEDED or run.ended_at is None or is_carried:
        return 0
    job = definition_of(world, run)
    if job is None or not job.updates:
        return 0
    _, _, name = str(run.key).partition("/")
    return len(publish(world, run.key.job.namespace, Update(name, run.ended_at, job.updates)))


def publish_outside(world: World, namespace: Namespace, dataset: str, id: str | None) -> tuple[Update, list[Run]]:
    """Update a dataset from outside; the update, and the runs it made. The same id within a day is the same update.

    Its moment is remembered with the id, so that repeating it comes to the same runs.
    """
    if world.shared.get(namespace, DATASET, dataset) is None:
        raise NotFound(f"There is no dataset {dataset}: no job publishes it or subscribes to it.")
    now = world.clock.now()
    at = now
    if id is not None:
        first = world.runs.remember(namespace, f"update/{dataset}/{id}", stamp(now), until=now + REMEMBERED_FOR)
        at = datetime.fromisoformat(first)
    update = Update(id if id is not None else world.dice.nonce(), at, (dataset,))
    return update, publish(world, namespace, update)


def publish(world: World, namespace: Namespace, update: Update) -> list[Run]:
    """Note an update and run who subscribes; the new runs.

    Repeating it makes nothing twice: the runs' ids follow from the updates that made them.
    """
    subscribers: dict[str, None] = {}
    for dataset in update.datasets:
        subscribers |= dict.fromkeys(_note_update(world, namespace, dataset, update))
    return [run for name in sorted(subscribers) for run in _told(world, JobKey(namespace, JobName(name)), update)]


def _note_update(world: World, namespace: Namespace, dataset: str, update: Update) -> list[str]:
    """Who may subscribe to the dataset, after its last update was noted; an older one changes nothing."""
    found: list[str] = []
    mark = {"at": stamp(update.at), "id": update.id}

    def noted(document: Document | None) -> Document | None:
        found[:] = subscribers_in(document)
        known: Any = (document or {}).get("updated")
        if known is not None and (known["at"], known["id"]) >= (mark["at"], mark["id"]):
            return None
        return {**(document or {}), "updated": mark}

    edit(world, namespace, DATASET, dataset, noted)
    return found


def _told(world: World, key: JobKey, update: Update) -> list[Run]:
    """The new runs of a subscriber. An update belongs to the definition that was in force when it came."""
    head = world.jobs.head(key)
    if head is None or head.status is JobStatus.DELETED or update.at < head.created_at:
        return []
    jobs = in_force_since(world, head, update.at)
    then, present = jobs[0], jobs[-1]
    mark = Mark(stamp(update.at), update.id)
    marks = {name: mark for name in update.datasets if name in then.datasets}
    if not marks:
        return []  # it was edited since it was noted down
    if not _is_gated(then):
        return put_once(world, present, _run_of(world, key, marks))
    # A dataset that was taken out meanwhile begins anew where it comes back.
    still = {name: mark for name in marks if all(name in job.datasets for job in jobs)}
    names = present.datasets if _is_gated(present) else ()
    return pass_gate(world, DATASET_GATE, head, present, names, still, partial(_run_of, world, key))


def _is_gated(job: Job) -> bool:
    """Whether updates wait for each other; of one dataset, or of any, each makes a run by itself."""
    return len(job.datasets) > 1 and job.datasets_quantity is Quantity.ALL


def _run_of(world: World, key: JobKey, marks: Marks) -> Run:
    """The run that these updates make, under an id of theirs."""
    updates = sorted(marks.items())
    causes = "&".join(f"{name}@{mark.id}" for name, mark in updates)
    params = {"datasets": {name: {"id": mark.id, "at": _shown(mark.at)} for name, mark in updates}}
    return caused_run(world, key, f"datasets:{causes}", params, fire_at=second_of(marks))


def _shown(at: str) -> str:
    return at.replace("+00:00", "Z")


def publishing_tasks(job: Job | None) -> Iterable[str]:
    """The tasks of a run of several that publish something themselves."""
    return [task.id for task in job.tasks if task.publishes] if job is not None and job.is_dag else ()
