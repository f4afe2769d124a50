"""What people do in a virtual world: what they can ask of the API, as methods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sweephand.domain.backfill import ACTIVE_USUAL, Backfill, Only, Order, Wanted
from sweephand.domain.definition import parse
from sweephand.domain.events import Event
from sweephand.domain.fields import choice, instant
from sweephand.domain.ids import JobKey, JobName, Namespace, check_name
from sweephand.domain.job import CatchupPolicy, Head, JobStatus
from sweephand.domain.job_templates import check_template
from sweephand.domain.run import Run
from sweephand.domain.task import TaskState
from sweephand.dsl import Job
from sweephand.engine import share
from sweephand.engine.backfills import (
    backfills_of,
    cancel_backfill,
    pause_backfill,
    resume_backfill,
    start_backfill,
)
from sweephand.engine.cancel import cancel
from sweephand.engine.delete import delete
from sweephand.engine.hasten import retry_now
from sweephand.engine.mark import Verdict, decide, mark
from sweephand.engine.occur import occur
from sweephand.engine.overview import overview_of
from sweephand.engine.pause import pause
from sweephand.engine.publish import publish_outside
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.restart import ALL, TASK, restart_of
from sweephand.engine.resume import Resumed, resume
from sweephand.engine.trigger import trigger
from sweephand.errors import InvalidInput
from sweephand.ports import World
from sweephand.testing.tasks import Tasks, called

__all__ = ["People", "as_instant"]

_ACTOR: Final = "test"
_BEGINNINGS: Final = (ALL, "failed")


class People:
    """Whoever may do anything. What they ask for begins when time goes on, be it by nothing."""

    def __init__(self, world: World, namespace: Namespace, tasks: Tasks) -> None:
        self._world = world
        self._namespace = namespace
        self._tasks = tasks

    # Jobs.

    def apply(self, definition: Mapping[str, Any] | Job) -> Head:
        """Create the job that the definition names, or give it a new version.

        Of a job that is written in Python, the tasks are its functions, until `on` says something else.
        """
        if isinstance(definition, Job):
            self._tasks.set(JobName(definition.name), called, timedelta(0))
            definition = definition.document()
        name = definition.get("name")
        head = self._world.jobs.head(self._key(name)) if isinstance(name, str) else None
        expected = head.version if head is not None and head.status is not JobStatus.DELETED else None
        given = share.with_template(self._world, self._namespace, definition)
        return put(self._world, self._namespace, given, actor=_ACTOR, expected=expected)

    def pause(self, job: str) -> Head:
        """Stop the job's schedule."""
        return pause(self._world, self._key(job), actor=_ACTOR)

    def resume(self, job: str, *, catchup: str = "none") -> Resumed:
        """Let the schedule go on; `catchup` (none, latest, all) decides about the fires that the pause held."""
        policy = choice(CatchupPolicy)(catchup, "catchup")
        return resume(self._world, self._key(job), catchup=policy, actor=_ACTOR)

    def delete(self, job: str) -> Head:
        """Delete the job; its history stays."""
        return delete(self._world, self._key(job), actor=_ACTOR)

    # Runs.

    def trigger(self, job: str, params: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None) -> Run:
        """Have the job run now."""
        return trigger(self._world, self._key(job), params=params, idempotency_key=idempotency_key)

    def cancel(self, run: Run, task: str | None = None, *, note: str = "") -> Run:
        """End a run, or one of its tasks, while the others go on."""
        if task is None:
            return cancel(self._world, run.key, actor=_ACTOR, note=note)
        return self._marked(run, task, TaskState.CANCELLED, note)

    def rerun(self, run: Run, start: str = ALL, *, mark: Mapping[str, str] | None = None, note: str = "") -> Run:
        """Run an ended run again: `all` of it, what `failed` and what comes after, or from the task of this id on.

        With `failed`, tasks that `mark` names count as `succeeded` or `skipped`, without being run.
        """
        begin, task = (start, None) if start in _BEGINNINGS else (TASK, start)
        asked = restart_of(self._world, self._present(run), begin, task=task, marks=mark, actor=_ACTOR)
        return rerun(self._world, run.key, note=note or None, start=asked.start, marks=asked.marks)

    # Tasks.

    def mark(self, run: Run, task: str, state: str, *, note: str = "") -> Run:
        """End a task that has not ended, as succeeded, failed or skipped."""
        known = {str(one): one for one in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SKIPPED)}
        if state not in known:
            raise InvalidInput(f"'{state}' is unknown: use {', '.join(known)}.", "state")
        return self._marked(run, task, known[state], note)

    def approve(self, run: Run, task: str, *, note: str = "") -> Run:
        """Say yes to a task that asks, whomever it asks."""
        decide(self._world, run.key, task, approved=True, actor=_ACTOR, note=note)
        return self._present(run)

    def reject(self, run: Run, task: str, *, note: str = "") -> Run:
        """Say no to a task that asks."""
        decide(self._world, run.key, task, approved=False, actor=_ACTOR, note=note)
        return self._present(run)

    def retry(self, run: Run, task: str | None = None) -> Run:
        """Begin the next attempt at once of a run, or of its task, that waits for it."""
        key = run.key if task is None else overview_of(self._world, self._present(run)).key_of(task)
        retry_now(self._world, key)
        return self._present(run)

    # Backfills.

    def backfill(
        self,
        job: str,
        since: str | datetime,
        until: str | datetime,
        *,
        only: str = Only.MISSING,
        order: str = Order.OLDEST,
        max_active: int = ACTIVE_USUAL,
        collapse: bool = False,
    ) -> Backfill:
        """Make up for the job's fires with since <= F < until: those `missing`, those that `failed`, or `all`."""
        wanted = Wanted(
            as_instant(since, "since"),
            as_instant(until, "until"),
            choice(Only)(str(only), "only"),
            choice(Order)(str(order), "order"),
            max_active,
            collapse,
        )
        return start_backfill(self._world, self._key(job), wanted, actor=_ACTOR)

    def backfills(self, job: str) -> list[Backfill]:
        """The job's backfills as they are, newest first."""
        return backfills_of(self._world, self._key(job))

    def pause_backfill(self, backfill: Backfill) -> Backfill:
        """Let it put no more runs."""
        return pause_backfill(self._world, backfill.key, actor=_ACTOR)

    def resume_backfill(self, backfill: Backfill) -> Backfill:
        """Let it go on."""
        return resume_backfill(self._world, backfill.key, actor=_ACTOR)

    def cancel_backfill(self, backfill: Backfill, *, running: bool = False) -> Backfill:
        """End it: what has not started never does, and with `running`, what has ends too."""
        return cancel_backfill(self._world, backfill.key, actor=_ACTOR, running=running)

    # What happens elsewhere.

    def publish(self, dataset: str, *, id: str | None = None) -> list[Run]:
        """Update a dataset from outside; the runs that this made. The same id within a day is the same update."""
        _, runs = publish_outside(self._world, self._namespace, dataset, id)
        return runs

    def event(
        self, source: str, type: str, detail: Mapping[str, Any] | None = None, *, id: str | None = None
    ) -> list[Run]:
        """Say that something happened; the runs of those who listen. The same id within a day is the same event."""
        return occur(self._world, self._namespace, Event(source, type, detail or {}, id))

    # What jobs share.

    def pool(self, name: str, slots: int) -> None:
        """Create a pool, or change its size."""
        share.put_pool(self._world, self._namespace, name, slots, expected=self._revision(share.POOL, name))

    def calendar(self, name: str, definition: Mapping[str, Any]) -> None:
        """Create a calendar, or give it a new version."""
        expected = self._revision(share.CALENDAR, name)
        share.put_calendar(self._world, self._namespace, name, definition, expected=expected)

    def template(self, name: str, definition: Mapping[str, Any]) -> None:
        """Create a template, or give it a new version, which jobs that are applied from now on take."""
        now, expected = self._world.clock.now(), self._revision(share.TEMPLATE, check_name(name, path="template"))
        check_template(definition, lambda job: parse(job, namespace=self._namespace, now=now))
        share.put_document(
            self._world, self._namespace, share.TEMPLATE, name, dict(definition), expected=expected, actor=_ACTOR
        )

    def secret(self, name: str, value: str) -> None:
        """Store a secret: the call of a task that declares it has its value in `call.secrets.by_name`."""
        now, expected = self._world.clock.now(), self._revision(share.SECRET, name)
        share.put_secret(self._world, self._namespace, name, value, expected=expected, now=now)

    # Behind these.

    def _key(self, job: str) -> JobKey:
        return JobKey(self._namespace, JobName(job))

    def _present(self, run: Run) -> Run:
        return self._world.runs.get(run.key) or run

    def _marked(self, run: Run, task: str, state: TaskState, note: str) -> Run:
        mark(self._world, run.key, task, Verdict(state, _ACTOR, note))
        return self._present(run)

    def _revision(self, kind: str, name: str) -> int:
        stored = self._world.shared.get(self._namespace, kind, name)
        return stored[0] if stored else 0


def as_instant(value: str | datetime, path: str) -> datetime:
    """A time as tests write it."""
    if isinstance(value, str):
        return instant(value, path)
    if value.tzinfo is None:
        raise InvalidInput("The time has no zone: give it one, such as UTC.", path)
    return value.astimezone(UTC)
