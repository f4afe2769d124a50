"""Create a job or give it a new version (004-O1)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sweephand.domain.definition import document_of, parse
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import A_MOMENT, Change, Head, Job, JobEvent, JobStatus, JobVersion
from sweephand.domain.kinds import NOTHING_INSTALLED, Installed
from sweephand.engine.change import Switch, switch
from sweephand.engine.pause import pause
from sweephand.engine.quota import check_quota
from sweephand.engine.share import check_code, check_references
from sweephand.engine.wire import cycle_of, wire
from sweephand.errors import Conflict, Defect, StaleVersion
from sweephand.ports import World


def put(
    world: World,
    namespace: Namespace,
    document: Mapping[str, Any],
    *,
    actor: str,
    expected: int | None,
    note: str = "",
    operators: Installed = NOTHING_INSTALLED,
) -> Head:
    """Put a definition in force; `expected` is the version that it is based on, None where the job must be new.

    `operators` are kinds of steps that are installed beside the built-in ones, and what this place checks of those.
    Repeating a put that took effect is refused as stale (or as existing), and changes nothing.
    """
    job = parse(document, namespace=namespace, now=world.clock.now(), operators=operators)
    key = JobKey(namespace, JobName(job.name))
    plain = document_of(document)
    _check_expected(key, world.jobs.head(key), expected)
    check_references(world, namespace, job)
    check_code(world, namespace, job)
    check_quota(world, key, job, is_new=expected is None)
    wire(world, key, job)

    def work_out(head: Head | None, at: datetime) -> Switch:
        _check_expected(key, head, expected)
        return new_version(world, key, head, job, plain, at=at, actor=actor, note=note)

    head = switch(world, key, work_out)
    if head is None:
        raise Defect(f"Putting {key} came to nothing.")
    return held_if_circular(world, head, job)


def new_version(
    world: World,
    key: JobKey,
    head: Head | None,
    job: Job,
    document: Mapping[str, Any],
    *,
    at: datetime,
    actor: str,
    note: str,
) -> Switch:
    """The switch that puts a definition in force; numbering goes on where a job is created again."""
    number = head.version + 1 if head else 1
    version = JobVersion(key, number, at, actor, document, job)
    change = Change(key, at, JobEvent.PUT, number, actor, note=note)
    plan_at = at if job.schedule is not None else None
    nonce = world.dice.nonce()
    if head is not None and head.status is JobStatus.PAUSED:
        # Resume decides about the whole pause, so the cursor stays where the pause left it.
        after = head.changed(JobEvent.PUT, at=at, nonce=nonce, version=number, in_force_since=at)
        return Switch(after, change, version, settles=False)
    fresh: dict[str, Any] = {
        "version": number,
        "in_force_since": at,
        "planned_upto": at - A_MOMENT,
        "plan_at": plan_at,
    }
    if head is None:
        after = Head(key, JobStatus.ACTIVE, created_at=at, changed_at=at, nonce=nonce, **fresh)
    else:
        created_at = at if head.status is JobStatus.DELETED else head.created_at
        after = head.changed(
            JobEvent.PUT, at=at, nonce=nonce, created_at=created_at, catchup=None, catchup_upto=None, **fresh
        )
    return Switch(after, change, version)


def held_if_circular(world: World, head: Head, job: Job) -> Head:
    """The head; paused, where two puts at once made jobs come after each other, and neither saw the other's.

    Whichever took effect last sees both here. Repeating it changes nothing.
    """
    cycle = cycle_of(world, head.key, job) if job.after or job.datasets or job.needs else None
    if cycle is None:
        return head
    return pause(world, head.key, actor="sweephand", note=f"these jobs come after each other: {cycle}")


def _check_expected(key: JobKey, head: Head | None, expected: int | None) -> None:
    exists = head is not None and head.status is not JobStatus.DELETED
    if expected is None and exists:
        raise Conflict(f"Job {key} exists already.")
    if expected is not None and (head is None or not exists or head.version != expected):
        raise StaleVersion(str(key), expected, head.version if head is not None else 0)
