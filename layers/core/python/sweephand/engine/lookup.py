"""Reading what is in force."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sweephand.domain.calendars import CalendarHistory
from sweephand.domain.dag import Graph, compiled
from sweephand.domain.ids import JobKey, RunKey
from sweephand.domain.job import Head, Job, JobStatus, JobVersion, Priority
from sweephand.domain.mapping import parts_of
from sweephand.domain.run import Run, Trigger
from sweephand.domain.timeline import Segment, in_force, segments
from sweephand.errors import Defect, NotFound
from sweephand.ports import Lane, World

CACHED_VERSIONS_MAX: Final = 20_000
CACHED_GRAPHS_MAX: Final = 500


def present_head(world: World, key: JobKey) -> Head:
    """The head of a job that exists and is not deleted."""
    head = world.jobs.head(key)
    if head is None or head.status is JobStatus.DELETED:
        raise NotFound(f"There is no job {key}.")
    return head


def present_job(world: World, key: JobKey) -> Job | None:
    """What defines the job now; None where there is none, or no longer."""
    head = world.jobs.head(key)
    return job_of(world, head) if head is not None and head.status is not JobStatus.DELETED else None


def version_of(world: World, key: JobKey, number: int) -> JobVersion:
    """A version; versions never change, so each is read once per process."""
    cached = world.versions.get((key, number))
    if cached is None:
        cached = world.jobs.version(key, number)
        if cached is None:
            raise Defect(f"Job {key} refers to version {number}, which is not stored.")
        if len(world.versions) >= CACHED_VERSIONS_MAX:
            world.versions.clear()
        world.versions[(key, number)] = cached
    return cached


def read_versions(world: World, heads: Sequence[Head]) -> None:
    """Read the versions in force of many jobs together, as far as this process has not read them yet."""
    wanted = [(head.key, head.version) for head in heads if (head.key, head.version) not in world.versions]
    if len(world.versions) + len(wanted) > CACHED_VERSIONS_MAX:
        world.versions.clear()
        wanted = [(head.key, head.version) for head in heads]
    world.versions.update({(one.key, one.number): one for one in world.jobs.each_version(wanted)})


def job_of(world: World, head: Head) -> Job | None:
    """What the head's version defines; None where it is deleted."""
    return version_of(world, head.key, head.version).job


def timeline_segments(world: World, key: JobKey, since: datetime | None = None) -> list[Segment]:
    """The stretches of a job's life, from the one in force at `since`."""
    changes = world.jobs.timeline(key, since=since)
    jobs = {number: version_of(world, key, number).job for number in {change.version for change in changes}}
    return segments(changes, jobs)


def segment_at(world: World, head: Head, job: Job | None, at: datetime) -> Segment | None:
    """The stretch that an instant lies in; only an instant before the last change needs the timeline."""
    if head.status is not JobStatus.DELETED and at >= head.in_force_since:
        return current_segment(head, job)
    return in_force(timeline_segments(world, head.key, at), at)


def current_segment(head: Head, job: Job | None) -> Segment | None:
    """The stretch of the version in force."""
    if job is None:
        return None
    return Segment(head.in_force_since, None, head.version, job.schedule, job.catchup)


def calendar_of(world: World, head: Head, job: Job) -> CalendarHistory | None:
    """The calendar that the job's schedule names, with all its versions."""
    if job.schedule is None or job.schedule.calendar is None:
        return None
    stored = world.shared.get(head.key.namespace, "calendar", job.schedule.calendar)
    return CalendarHistory.decode(stored[1]["versions"]) if stored else None


def definition_of(world: World, run: Run) -> Job | None:
    """What a run was started with; a task's run is that of a job with this one task."""
    if run.version is None:
        return None
    job = version_of(world, run.key.job, run.version).job
    if job is None or not run.key.task:
        return job
    graph = graph_of(world, run.key.job, run.version, job)
    return job.of_task(graph.tasks[graph.named(parts_of(run.key.task)[0])])


def graph_of(world: World, key: JobKey, version: int, job: Job) -> Graph:
    """The graph of a version's tasks, compiled once per process."""
    cached = world.graphs.get((key, version))
    if cached is None:
        if len(world.graphs) >= CACHED_GRAPHS_MAX:
            world.graphs.clear()
        cached = world.graphs[(key, version)] = compiled(job)
    return cached


def lane_of(run: Run | None, job: Job | None) -> Lane:
    """The lane of a run: its job's, but a backfill's runs delay nobody, whatever the job's priority."""
    if run is not None and run.trigger is Trigger.BACKFILL:
        return Lane.LOW
    return Lane(job.priority) if job else Lane(Priority.NORMAL)


def lane_of_run(world: World, key: RunKey) -> Lane:
    """The lane of a run that has started."""
    run = world.runs.get(key)
    return lane_of(run, definition_of(world, run)) if run is not None else Lane(Priority.NORMAL)
