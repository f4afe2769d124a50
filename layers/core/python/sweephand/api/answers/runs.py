"""Answers about runs, their tasks, and the work that is pulled."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from sweephand.api.answers.jobs import Cost
from sweephand.api.answers.told import Told
from sweephand.api.schemas import Moment
from sweephand.domain.run import RunState, Trigger
from sweephand.logs import Stream


class Failed(Told):
    error: str
    message: str


class AttemptOfTask(Told):
    attempt: int
    state: str
    started_at: Moment | None


class TaskRun(Told):
    id: str
    state: str
    reason: str | None
    needs: list[str]
    attempt: int
    attempts: list[AttemptOfTask]
    started_at: Moment | None
    ended_at: Moment | None
    output: Any
    group: str = Field("", description="Only where the task is in one.")
    map: dict[str, int] = Field(default_factory=dict, description="Only of a mapped task that has begun.")
    error: Failed | None = Field(None, description="Only where it failed, in a run of several tasks.")
    carried_from: str = Field("", description="Only where a rerun took it over: the run in which it was done.")
    started: dict[str, str] = Field(default_factory=dict, description="Only where it started a run of another job.")


class Run(Told):
    run_id: str
    job_id: str
    state: RunState
    reason: str | None
    trigger: Trigger
    fire_at: Moment
    version: int | None
    attempt: int
    queued_at: Moment | None
    started_at: Moment | None
    ended_at: Moment | None
    progress: int | None
    params: dict[str, Any]
    output: Any
    error: Failed | None
    rerun_of: str | None
    rerun_from: str = Field("", description="Only of a rerun in part: `failed`, or `task:` and its id.")
    marked: dict[str, str] = Field(default_factory=dict, description="Tasks of a rerun that are over by a word.")
    backfill_id: str = Field("", description="Only of a run of a backfill.")
    interval_start: str = Field("", description="Only of a run that stands for several fires, as is intervalEnd.")
    interval_end: str = ""
    tasks: list[TaskRun]
    task_counts: dict[str, int] = Field(default_factory=dict, description="Only of a run of several tasks.")
    cost: Cost | None = Field(None, description="What it has cost so far; only of a run that is asked for by itself.")
    more_tasks: bool = Field(False, description="Whether there are more than are shown here.")


class RunRow(Told):
    run_id: str
    job_id: str
    state: RunState
    reason: str | None
    trigger: Trigger
    fire_at: Moment
    attempt: int
    started_at: Moment | None
    ended_at: Moment | None


class RunOnly(Told):
    run_id: str
    job_id: str
    state: RunState


class LogLine(Told):
    at: Moment
    stream: Stream
    text: str
    task: str
    attempt: int


class LogLines(Told):
    items: list[LogLine]
    next_cursor: str | None
    more: bool
    ended: bool
    truncated: bool


class ArtifactOfRun(Told):
    name: str
    size: int
    task: str
    attempt: int
    url: str


class Triggered(Told):
    run_id: str
    execution_id: str
    status: Literal["queued"]


class Bulk(Told):
    action: str
    dry_run: bool
    matched: int
    done: int
    items: list[dict[str, Any]]
    next_cursor: str | None


class Beat(Told):
    lease_until: Moment | None


class Beats(Told):
    items: list[dict[str, Any]]


class Work(Told):
    lease: str
    run_id: str
    job_id: str
    task_id: str
    attempt: int
    epoch: int
    lease_until: Moment
    run: dict[str, Any]
    params: dict[str, Any]
    idempotency_key: str
    checkpoint: Any
    secrets: dict[str, str] = Field(default_factory=dict, description="Only where the task declares some.")


class LeasedCall(Work):
    call: dict[str, Any]


class Worker(Told):
    worker_id: str
    last_seen_at: Moment
    holds: list[dict[str, Any]]


class DeadLetter(Told):
    id: str
    job_id: str
    run_id: str
    reason: str | None
    dead_at: Moment | None
