"""A page of the list of jobs: those that are wanted, looked for among so many at the most."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from sweephand.api.shapes import just_ahead
from sweephand.domain.ids import JobName, Namespace
from sweephand.domain.job import Head, JobStatus
from sweephand.domain.words import folded
from sweephand.engine.lookup import job_of, read_versions
from sweephand.ports import Sought, World

LOOKED_AT_MAX: Final = 2_000
"""Heads that one page looks at, whatever it finds: where it stops, its cursor goes on."""
_BATCH: Final = 200


class Wanted(Struct, frozen=True):
    """Which jobs; whatever is None is not asked about."""

    prefix: str = ""
    tag: str | None = None
    status: str | None = None
    search: str | None = None


class Found(Struct, frozen=True):
    """The jobs of a page, and after which one the list goes on; None where it ends."""

    heads: list[Head]
    after: JobName | None


def find_jobs(
    world: World, namespace: Namespace, wanted: Wanted, *, after: JobName | None, limit: int, now: datetime
) -> Found:
    """So many of the jobs that are wanted, or fewer: a page may be empty although there are more behind it."""
    found: list[Head] = []
    place = after or _just_before(wanted.prefix)
    looked_at = 0
    while True:
        batch = _batch(world, namespace, wanted, place)
        within = [head for head in batch.heads if head.key.name.startswith(wanted.prefix)]
        for head in _those_wanted(world, within, wanted, now):
            found.append(head)
            if len(found) == limit:
                return Found(found, head.key.name)
        if batch.reached is None or _is_past(batch.reached, wanted.prefix):
            return Found(found, None)
        place = batch.reached
        looked_at += len(batch.heads)
        if looked_at >= LOOKED_AT_MAX or len(batch.heads) < _BATCH:  # a search that found less has looked at many
            return Found(found, place)


def _batch(world: World, namespace: Namespace, wanted: Wanted, after: JobName | None) -> Sought:
    if wanted.search is not None:
        return world.jobs.sought(namespace, folded(wanted.search), after=after, limit=_BATCH)
    heads = world.jobs.heads(namespace, after=after, limit=_BATCH)
    return Sought(heads, heads[-1].key.name if len(heads) == _BATCH else None)


def _those_wanted(world: World, heads: Sequence[Head], wanted: Wanted, now: datetime) -> list[Head]:
    status = wanted.status
    if status == "deleted":
        return [head for head in heads if head.status is JobStatus.DELETED and wanted.tag is None]
    left = [head for head in heads if head.status is not JobStatus.DELETED]
    if wanted.tag is not None:
        read_versions(world, left)
        left = [head for head in left if (job := job_of(world, head)) is not None and wanted.tag in job.tags]
    if status != "running":
        return [head for head in left if status is None or status == head.status]
    left = [head for head in left if head.status is JobStatus.ACTIVE]
    recent = world.runs.recent([head.key for head in left], until=just_ahead(now), limit=0)
    return [head for head, runs in zip(left, recent, strict=True) if runs.active]


def _is_past(name: str, prefix: str) -> bool:
    return name > prefix and not name.startswith(prefix)


def _just_before(prefix: str) -> JobName | None:
    """A text that sorts right before every name with this prefix."""
    return JobName(prefix[:-1] + chr(ord(prefix[-1]) - 1) + "~") if prefix else None
