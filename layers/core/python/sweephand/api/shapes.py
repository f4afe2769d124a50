"""Domain objects as the API shows them: plain JSON, camelCase, times in UTC with a Z."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sweephand.api.costs import spent_shape
from sweephand.domain.changes import in_words
from sweephand.domain.dag import state_of
from sweephand.domain.ids import JobKey, RunId, run_id_of_fire
from sweephand.domain.job import Head, Job, JobStatus, JobVersion
from sweephand.domain.ledger import LedgerPage, LedgerRow
from sweephand.domain.output import Kept
from sweephand.domain.run import Run
from sweephand.domain.schedule import Schedule
from sweephand.domain.status import StatusRow
from sweephand.engine.lookup import read_versions, version_of
from sweephand.engine.outputs import output_of
from sweephand.engine.overview import Overview, TaskSeen, overview_of
from sweephand.engine.spending import cost_of_run
from sweephand.engine.subrun import subrun_key
from sweephand.engine.why import Explained
from sweephand.ports import Recent, World

Shape = dict[str, Any]

RECENT_RUNS: Final = 10
"""Runs that a job in a list shows, where they are asked for."""
_JUST_AHEAD: Final = timedelta(seconds=1)


def moment(at: datetime | None) -> str | None:
    """RFC 3339, in UTC; fractions only where there are some."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def job_shape(world: World, head: Head, *, now: datetime) -> Shape:
    """A job: its definition's fields, and what it is up to."""
    return job_shapes(world, [head], now=now)[0]


def job_shapes(world: World, heads: Sequence[Head], *, now: datetime, with_runs: bool = False) -> list[Shape]:
    """Jobs, whose versions and runs are read together; with their newest runs, where those are asked for."""
    read_versions(world, heads)
    recent = world.runs.recent(
        [head.key for head in heads], until=just_ahead(now), limit=RECENT_RUNS if with_runs else 1
    )
    return [
        _job_shape(world, head, runs, now=now)
        | ({"recentRuns": [_last_run(run) for run in runs.listed]} if with_runs else {})
        for head, runs in zip(heads, recent, strict=True)
    ]


def _job_shape(world: World, head: Head, recent: Recent, *, now: datetime) -> Shape:
    version = version_of(world, head.key, head.version)
    if head.status is JobStatus.DELETED and head.version > 1:
        version = version_of(world, head.key, head.version - 1)
    active = next(iter(recent.active), None)
    status = "running" if active is not None and head.status is JobStatus.ACTIVE else str(head.status)
    is_scheduled = head.status is JobStatus.ACTIVE and version.job is not None and version.job.schedule is not None
    return {
        **(version.document or {}),
        "name": head.key.name,
        "jobId": head.key.name,
        "version": head.version,
        "status": status,
        "createdAt": moment(head.created_at),
        "createdBy": version.created_by,
        "updatedAt": moment(head.changed_at),
        "nextFireAt": moment(_next_fire(version.job, now)) if is_scheduled else None,
        "lastRun": _last_run(recent.listed[0]) if recent.listed else None,
        "startedAt": moment(active.started_at) if active else None,
        "progress": overview_of(world, active).percent if active else None,
    }


def active_runs(world: World, key: JobKey, *, now: datetime) -> list[Run]:
    """Runs that have started and not ended, newest first; many that were skipped may have come since."""
    return world.runs.active(key, until=just_ahead(now))


def just_ahead(now: datetime) -> RunId:
    """The id that the runs whose time has come are below."""
    return run_id_of_fire(now + _JUST_AHEAD)


TASKS_SHOWN: Final = 200
"""Tasks that a run shows with itself; `GET …/tasks` lists them all."""


def run_shape(world: World, run: Run) -> Shape:
    """A run with its tasks, up to a bound. Of many, an output that is too large for its run is null."""
    seen = overview_of(world, run)
    return _run_shape(seen, *seen.page(limit=TASKS_SHOWN))


def _run_shape(seen: Overview, tasks: Sequence[TaskSeen], more: bool) -> Shape:
    shape = {**run_row(seen.run), "progress": seen.percent, "tasks": [task_shape(one) for one in tasks]}
    return {**shape, **_counts(seen), "moreTasks": more} if seen.is_dag else shape


def run_in_list(world: World, run: Run) -> Shape:
    """A run among others: one of several tasks only counts them."""
    seen = overview_of(world, run)
    if not seen.is_dag:
        return run_shape(world, run)
    return {**run_row(run), "progress": seen.percent, "tasks": [], **_counts(seen), "moreTasks": True}


def _counts(seen: Overview) -> Shape:
    counts = Counter(str(state_of(byte)) for byte in seen.states)
    return {"taskCounts": {"total": len(seen.states), **dict(sorted(counts.items()))}}


def whole_shape(world: World, run: Run) -> Shape:
    """The same with what it cost, and its output, wherever that is; a task's own is shown with it where the run is that
    task."""
    seen = overview_of(world, run)
    seen_tasks, more = seen.page(limit=TASKS_SHOWN)
    cost = cost_of_run(seen, seen_tasks, is_all=not more)
    shape = {**_run_shape(seen, seen_tasks, more), "cost": spent_shape(world, cost)}
    if not isinstance(run.output, Kept):
        return shape
    output = output_of(world.artifacts, run)
    tasks = shape["tasks"] if "taskCounts" in shape else [{**task, "output": output} for task in shape["tasks"]]
    return {**shape, "output": output, "tasks": tasks}


def run_row(run: Run) -> Shape:
    """A run without its tasks."""
    return {
        "runId": run.key.run_id,
        "jobId": run.key.job.name,
        "state": str(run.state),
        "reason": str(run.reason) if run.reason else None,
        "trigger": str(run.trigger),
        "fireAt": moment(run.fire_at),
        "version": run.version,
        "attempt": run.attempt,
        "queuedAt": moment(run.created_at),
        "startedAt": moment(run.started_at),
        "endedAt": moment(run.ended_at),
        "progress": run.progress,
        "params": dict(run.params),
        "output": None if isinstance(run.output, Kept) else run.output,
        "error": run.failure.encode() if run.failure else None,
        "rerunOf": run.rerun_of,
        **({"rerunFrom": run.rerun_from} if run.rerun_from else {}),
        **({"marked": run.marks["tasks"]} if run.marks else {}),
        **({"startedBy": run.parent.split("/", 1)[1]} if run.parent else {}),
        **({"backfillId": run.backfill} if run.backfill else {}),
        **(
            {"intervalStart": moment(run.interval_start), "intervalEnd": moment(run.fire_at)}
            if run.interval_start
            else {}
        ),
        "note": run.note,
    }


def task_shape(seen: TaskSeen) -> Shape:
    """A task of a run, or an instance of a mapped one."""
    run, definition = seen.run, seen.definition
    attempt = run.attempt if run else 0
    attempts = [{"attempt": attempt, "state": str(seen.state), "startedAt": moment(run.started_at)}] if run else []
    shape: Shape = {
        "id": seen.name,
        "state": str(seen.state),
        "reason": str(seen.reason) if seen.reason else None,
        "needs": list(definition.needs),
        "attempt": attempt,
        "attempts": attempts if attempt else [],
        "startedAt": moment(run.started_at) if run else None,
        "endedAt": moment(run.ended_at) if run else None,
        "output": None if run is None or isinstance(run.output, Kept) else run.output,
    }
    started = subrun_key(run, definition) if run else None
    extras: Shape = {
        "group": definition.group,
        "map": dict(seen.counts) if seen.counts else None,
        "error": run.failure.encode() if run and run.key.task and run.failure else None,
        "carriedFrom": run.rerun_of if run and run.key.task else None,
        "started": {"jobId": started.job.name, "runId": started.run_id} if started else None,
    }
    return shape | {name: value for name, value in extras.items() if value is not None}


def status_shape(row: StatusRow) -> Shape:
    """A run as the status view has it."""
    return {
        "runId": row.run.run_id,
        "jobId": row.run.job.name,
        "state": str(row.state),
        "reason": row.reason,
        "trigger": str(row.trigger),
        "fireAt": moment(row.fire_at),
        "attempt": row.attempt,
        "startedAt": moment(row.started_at),
        "endedAt": moment(row.ended_at),
    }


def fire_shape(schedule: Schedule, fire_at: datetime) -> Shape:
    local = schedule.local(fire_at).isoformat()
    return {"fireAt": moment(fire_at), "local": local, "note": schedule.note_of(fire_at)}


def ledger_shape(row: LedgerRow) -> Shape:
    return {
        "fireAt": moment(row.fire_at),
        "status": str(row.status),
        "runId": row.run_id,
        "skewMs": row.skew_ms,
        "reason": row.reason,
    }


def day_shape(page: LedgerPage) -> Shape:
    counts = {str(status): count for status, count in page.counts.items() if count}
    return {"day": page.day.isoformat(), "judgedAt": moment(page.judged_at), "counts": counts}


def why_shape(explained: Explained) -> Shape:
    return {
        "status": explained.status,
        "summary": explained.summary,
        "blockers": [{"code": str(one.code), "detail": one.detail, "remedy": one.remedy} for one in explained.blockers],
        "nextFireAt": moment(explained.next_fire_at),
    }


def version_shape(version: JobVersion, before: JobVersion | None) -> Shape:
    return {
        "version": version.number,
        "createdAt": moment(version.created_at),
        "createdBy": version.created_by,
        "definition": version.document,
        "changes": differences(before.document if before else None, version.document),
        "summary": in_words(before.document if before else None, version.document),
    }


def differences(before: Any, after: Any, path: str = "") -> list[Shape]:
    """What changed between two documents, field by field."""
    if before == after:
        return []
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = [*before, *(name for name in after if name not in before)]
        return [
            one
            for name in names
            for one in differences(before.get(name), after.get(name), f"{path}.{name}" if path else name)
        ]
    if _are_lists(before, after) and len(before) == len(after):
        return [
            one for n, pair in enumerate(zip(before, after, strict=True)) for one in differences(*pair, f"{path}[{n}]")
        ]
    return [{"path": path, "before": before, "after": after}]


def page(items: Sequence[Shape], next_cursor: str | None) -> Shape:
    """A page of a list."""
    return {"items": list(items), "nextCursor": next_cursor}


def _are_lists(before: Any, after: Any) -> bool:
    return isinstance(before, list) and isinstance(after, list)


def _next_fire(job: Job | None, now: datetime) -> datetime | None:
    return job.schedule.next_after(now) if job and job.schedule else None


def _last_run(run: Run) -> Shape:
    return {
        "runId": run.key.run_id,
        "state": str(run.state),
        "fireAt": moment(run.fire_at),
        "startedAt": moment(run.started_at),
        "endedAt": moment(run.ended_at),
    }
