"""Answers about jobs: what they are, when they fire, what became of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sweephand.api.answers.told import Told
from sweephand.api.schemas import Moment
from sweephand.domain.backfill import BackfillState, Only, Order
from sweephand.domain.ledger import FireStatus
from sweephand.domain.run import RunState


class Cost(Told):
    dollars: float
    write_units: int
    transitions: int
    basis: str
    charged: bool = Field(description="Whether this place is charged for runs at all: on one machine it is not.")


class LastRun(Told):
    run_id: str
    state: RunState
    fire_at: Moment
    started_at: Moment | None
    ended_at: Moment | None


class Job(Told):
    job_id: str
    name: str
    version: int
    status: Literal["active", "paused", "running", "deleted", "scheduled"]
    created_at: Moment
    created_by: str
    updated_at: Moment
    next_fire_at: Moment | None
    last_run: LastRun | None
    started_at: Moment | None
    progress: int | None
    cost_per_month: Cost | None = Field(None, description="Only where it is asked for; null without a schedule.")
    recent_runs: list[LastRun] = Field(
        default_factory=list, description="Only where they are asked for: up to ten, newest first."
    )


class Resumed(Job):
    fires: list[Moment]
    dropped: list[dict[str, Any]]


class Version(Told):
    version: int
    created_at: Moment
    created_by: str
    definition: dict[str, Any] | None
    changes: list[dict[str, Any]]
    summary: list[str]


class Fire(Told):
    fire_at: Moment
    local: str
    note: str


class ComingFire(Fire):
    job_id: str


class Upcoming(Told):
    items: list[ComingFire]
    next_cursor: str | None
    truncated: bool = Field(description="Whether there were too many jobs to look at them all: some may fire sooner.")


class LedgerLine(Told):
    fire_at: Moment
    status: FireStatus
    run_id: str | None
    skew_ms: int | None
    reason: str | None


class LedgerDay(Told):
    day: Annotated[str, Field(json_schema_extra={"format": "date"})]
    judged_at: Moment
    counts: dict[str, int]
    """By status; days that have no fire, or are not judged yet, are left out."""


class Backfill(Told):
    backfill_id: str
    job_id: str
    state: BackfillState
    reason: str | None
    from_: Moment = Field(alias="from")
    to: Moment
    only: Only
    order: Order
    max_active: int
    collapse: bool
    count: int
    made: int
    active: list[str]
    succeeded: int
    failed: int
    cancelled: int
    skipped: int
    progress: int
    created_at: Moment
    created_by: str
    ended_at: Moment | None
    note: str | None


class BackfillEstimate(Told):
    dry_run: Literal[True]
    from_: Moment = Field(alias="from")
    to: Moment
    only: Only
    collapse: bool
    count: int = Field(description="Fires that it would make up for.")
    runs: int = Field(description="Runs that this takes.")
    undone: int = Field(description="Fires of the window that are missing or failed.")
    fires: dict[str, int] = Field(description="What became of the fires of the window, and of how many.")
    first_fire_at: Moment | None
    last_fire_at: Moment | None
    cost: Cost


class Blocking(Told):
    code: str
    detail: str
    remedy: str


class Why(Told):
    status: str
    summary: str
    blockers: list[Blocking]
    next_fire_at: Moment | None


class Plan(Told):
    fires: list[Fire]
    notes: list[str]
    runs_per_day: float
    load_per_hour: list[int]
    difference: dict[str, Any]
    cost_per_month: Cost | None = Field(description="What the schedule would cost; null where there is none.")


class FileJob(Told):
    job_id: str
    version: int


class File(Told):
    path: str
    status: Literal["applied", "error"]
    jobs: list[FileJob]
    errors: list[dict[str, str]]
    scanned_at: Moment
