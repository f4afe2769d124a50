"""A job: what to run and when. Definitions are immutable versions; one small head says what is in force."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.domain.events import EventRule
from sweephand.domain.ids import JobKey
from sweephand.domain.lifecycle import Lifecycle
from sweephand.domain.limits import MAPPED_USUAL_MAX
from sweephand.domain.occasions import AfterRule, Needs, Quantity
from sweephand.domain.retry import Retry
from sweephand.domain.schedule import Schedule

A_MOMENT: Final = timedelta(milliseconds=1)
"""The resolution of changes: two changes of one job are at least this far apart."""


class JobStatus(StrEnum):
    """Stored values: never renamed."""

    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class JobEvent(StrEnum):
    """The changes that people make, each one row of the job's timeline."""

    PUT = "put"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"


_S, _E = JobStatus, JobEvent

JOB_LIFECYCLE: Final = Lifecycle(
    name="Job",
    states=JobStatus,
    events=JobEvent,
    arrows={
        (_S.ACTIVE, _E.PUT): _S.ACTIVE,
        (_S.ACTIVE, _E.PAUSED): _S.PAUSED,
        (_S.ACTIVE, _E.DELETED): _S.DELETED,
        (_S.PAUSED, _E.PUT): _S.PAUSED,
        (_S.PAUSED, _E.RESUMED): _S.ACTIVE,
        (_S.PAUSED, _E.DELETED): _S.DELETED,
        (_S.DELETED, _E.PUT): _S.ACTIVE,
    },
    stuck={
        _S.ACTIVE: "its cursor's due entry was lost; the auditor re-arms every overdue cursor",
        _S.PAUSED: "nothing fires; a person resumes it",
        _S.DELETED: "nothing fires; it can be created again and its version numbers go on",
    },
)


class Overlap(StrEnum):
    """What a scheduled fire does while another run of its job is active."""

    ALLOW = "allow"
    """It starts beside the other."""
    SKIP = "skip"
    """It is skipped, with the reason."""
    QUEUE = "queue"
    """It waits."""
    REPLACE = "replace"
    """It cancels the other, unless the other belongs to a later fire."""


class CatchupPolicy(StrEnum):
    """What becomes of fires that were missed."""

    NONE = "none"
    """They are dropped, with the reason."""
    LATEST = "latest"
    """The newest runs, the others are dropped."""
    ALL = "all"
    """The newest run, up to `max`."""


class Guarantee(StrEnum):
    """How often a target is called."""

    AT_MOST_ONCE = "at-most-once"
    """The claim is the acknowledgement: a lost worker ends the run."""
    AT_LEAST_ONCE = "at-least-once"
    """A lost worker's run starts again as soon as its lease ends, with the same idempotency key."""
    EFFECTIVELY_ONCE = "effectively-once"
    """As at-least-once, but never two attempts at the same time, even with clocks apart: a target that looks its
    idempotency key up before it acts has exactly one effect, with no lock of its own."""


class Priority(StrEnum):
    """The lane that a run waits in."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class TriggerRule(StrEnum):
    """When a task starts, by how the tasks that it needs ended; names and results are Airflow's."""

    ALL_SUCCESS = "all_success"
    ALL_FAILED = "all_failed"
    ALL_DONE = "all_done"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    ONE_DONE = "one_done"
    NONE_FAILED = "none_failed"
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    NONE_SKIPPED = "none_skipped"
    ALWAYS = "always"


class OnFailure(StrEnum):
    """What becomes of the other tasks of a run once one has failed for good."""

    FINISH = "finish"
    """What can still run runs."""
    STOP = "stop"
    """What has not started is cancelled; what runs comes to its end."""


class Catchup(Struct, frozen=True):
    """How missed fires are made up for."""

    policy: CatchupPolicy = CatchupPolicy.LATEST
    max: int = 100
    window: timedelta = timedelta(days=1)


class Concurrency(Struct, frozen=True):
    """How many runs may be active at a time; `slots` is what one run takes of the pool."""

    runs: int | None = None
    pool: str | None = None
    slots: int = 1


class Cache(Struct, frozen=True):
    """That a result is taken over: under which key, in which templates stand for values, and for how long."""

    key: str
    ttl: timedelta


TIMEOUT_DEFAULT: Final = timedelta(hours=1)
"""How long an attempt may take where nobody says it; a place that ends them sooner does so then."""


class Map(Struct, frozen=True):
    """A task once for each item of a list; one that is longer than `max` fails the task."""

    over: Any
    """A template that gives the list, or the list itself, whose items may have templates."""
    max: int = MAPPED_USUAL_MAX


class Task(Struct, frozen=True):
    """One step: `kind` names the operator, `spec` is what it gets."""

    id: str
    kind: str
    spec: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    retry: Retry | None = None
    timeout: timedelta | None = None
    cache: Cache | None = None
    when: TriggerRule = TriggerRule.ALL_SUCCESS
    condition: str | None = None
    """What `if` says: where it is false, the task is skipped."""
    map: Map | None = None
    branch: bool = False
    """Whether its output names the tasks that go on after it."""
    pool: str | None = None
    slots: int = 1
    """What the task takes of its pool; an instance of a mapped task takes as many."""
    priority: Priority | None = None
    labels: tuple[str, ...] = ()
    group: str | None = None
    """Where people see it: `ingest.raw` is the group `raw` within the group `ingest`."""
    publishes: tuple[str, ...] = ()
    """Datasets that its success updates."""


class Job(Struct, frozen=True):
    """A definition with its defaults filled in."""

    name: str
    tasks: tuple[Task, ...]
    schedule: Schedule | None = None
    after: tuple[str, ...] = ()
    """Jobs whose success makes this one run."""
    after_rule: AfterRule = field(default_factory=AfterRule)
    """How their successes are taken together."""
    datasets: tuple[str, ...] = ()
    """Datasets whose updates make this one run."""
    datasets_quantity: Quantity = Quantity.ALL
    events: tuple[EventRule, ...] = ()
    """Events that make this one run."""
    needs: Needs | None = None
    """What its schedule's fires wait for."""
    publishes: tuple[str, ...] = ()
    """Datasets that a success of a run updates."""
    description: str = ""
    catchup: Catchup = field(default_factory=Catchup)
    overlap: Overlap = Overlap.ALLOW
    start_deadline: timedelta | None = None
    concurrency: Concurrency = field(default_factory=Concurrency)
    priority: Priority = Priority.NORMAL
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    retry: Retry = field(default_factory=Retry)
    timeout: timedelta = TIMEOUT_DEFAULT
    run_timeout: timedelta | None = None
    on_failure: OnFailure = OnFailure.FINISH
    pause_after_failures: int | None = None
    cache: Cache | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    @property
    def is_dag(self) -> bool:
        """Whether its runs are of tasks that have runs of their own: several, or one that is mapped or conditional."""
        return len(self.tasks) > 1 or self.tasks[0].map is not None or self.tasks[0].condition is not None

    @property
    def updates(self) -> tuple[str, ...]:
        """The datasets that a success updates, of a run or, where this is the job of one task, of that task's run."""
        of_its_task = () if self.is_dag else self.tasks[0].publishes
        return tuple(dict.fromkeys((*self.publishes, *of_its_task)))

    def of_task(self, task: Task) -> Job:
        """The job of this one task, of which the task's runs are runs: what is about whole runs is left out."""
        return replace(
            self,
            tasks=(replace(task, needs=(), map=None, condition=None),),
            after=(),
            after_rule=AfterRule(),
            datasets=(),
            events=(),
            needs=None,
            publishes=(),
            overlap=Overlap.ALLOW,
            start_deadline=None,
            concurrency=Concurrency(pool=task.pool, slots=task.slots),
            priority=task.priority or self.priority,
            run_timeout=None,
            pause_after_failures=None,
            cache=None,
        )

    @property
    def active_max(self) -> int | None:
        """How many runs may be active: any overlap policy but `allow` means one at a time."""
        return self.concurrency.runs if self.overlap is Overlap.ALLOW else 1


class JobVersion(Struct, frozen=True):
    """An immutable revision: the document as it was given, and the job that it means; a tombstone has neither."""

    key: JobKey
    number: int
    created_at: datetime
    created_by: str
    document: Mapping[str, Any] | None
    job: Job | None


class Head(Struct, frozen=True):
    """A job's mutable state, well under 1 KB: which version is in force, and how far its fires are accounted for.

    Every fire up to `planned_upto` is a run or has a recorded reason. `plan_at` is when to plan next (None: nothing
    to plan). After a resume, fires before `catchup_upto` wait for a decision under `catchup`.
    """

    key: JobKey
    status: JobStatus
    version: int
    created_at: datetime
    in_force_since: datetime
    changed_at: datetime
    planned_upto: datetime
    plan_at: datetime | None
    paused_since: datetime | None = None
    catchup: CatchupPolicy | None = None
    catchup_upto: datetime | None = None
    rev: int = 0
    nonce: str = ""

    def may_fire_from(self, now: datetime) -> datetime | None:
        """No fire that is to come lies before this moment; None where none is known to come.

        What is planned already may come at any time, and what is not is planned before it comes.
        """
        if self.status is not JobStatus.ACTIVE:
            return None
        if self.planned_upto > now:
            return now
        return None if self.plan_at is None else max(self.plan_at, now)

    def next_change_at(self, now: datetime) -> datetime:
        """When a change made now takes effect: after the previous one, whatever the clock says."""
        return max(now, self.changed_at + A_MOMENT)

    def changed(self, event: JobEvent, *, at: datetime, nonce: str, **changes: Any) -> Head:
        """The head after a person's change, or a refusal."""
        status = JOB_LIFECYCLE.after(self.status, event, what=f"Job {self.key}")
        return replace(self, status=status, changed_at=at, rev=self.rev + 1, nonce=nonce, **changes)

    def advanced(self, *, planned_upto: datetime, plan_at: datetime | None, nonce: str) -> Head:
        """The head after a planning pass; once it is past a resume, nothing waits for that decision any more."""
        undecided = self.catchup_upto is not None and planned_upto < self.catchup_upto - A_MOMENT
        return replace(
            self,
            planned_upto=planned_upto,
            plan_at=plan_at,
            catchup=self.catchup if undecided else None,
            catchup_upto=self.catchup_upto if undecided else None,
            rev=self.rev + 1,
            nonce=nonce,
        )


class Change(Struct, frozen=True):
    """A row of the timeline: what was in force from when, who changed it, and why."""

    key: JobKey
    at: datetime
    event: JobEvent
    version: int
    actor: str
    catchup: CatchupPolicy | None = None
    note: str = ""
