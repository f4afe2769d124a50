"""The answers of calls, as the OpenAPI document describes them; `shapes` makes them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sweephand.api.schemas import Moment
from sweephand.domain.access import Role
from sweephand.domain.backfill import BackfillState, Only, Order
from sweephand.domain.ledger import FireStatus
from sweephand.domain.occasions import Quantity
from sweephand.domain.run import RunState, Trigger
from sweephand.logs import Stream


class Told(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True, defer_build=True)


@cache
def named(name: str) -> type[BaseModel]:
    """The answer of this name; `JobPage` is a page of `Job`."""
    model: type[BaseModel] = globals()[name.removesuffix("Page")]
    return model if model.__name__ == name else _page_of(model)


def _page_of(item: type[BaseModel]) -> type[BaseModel]:
    annotations = {"items": list[item], "next_cursor": str | None}  # type: ignore[valid-type]
    return type(f"{item.__name__}Page", (Told,), {"__annotations__": annotations, "__module__": __name__})


class Problem(Told):
    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = Field(default_factory=list)


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
    backfill_id: str = Field("", description="Only of a run of a backfill.")
    interval_start: str = Field("", description="Only of a run that stands for several fires, as is intervalEnd.")
    interval_end: str = ""
    tasks: list[TaskRun]
    task_counts: dict[str, int] = Field(default_factory=dict, description="Only of a run of several tasks.")
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


class LogLine(Told):
    at: Moment
    stream: Stream
    text: str
    task: str
    attempt: int


class ArtifactOfRun(Told):
    name: str
    size: int
    task: str
    attempt: int
    url: str


class LogLines(Told):
    items: list[LogLine]
    next_cursor: str | None
    more: bool
    ended: bool
    truncated: bool


class Triggered(Told):
    run_id: str
    execution_id: str
    status: Literal["queued"]


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


class Cost(Told):
    dollars: float
    write_units: int
    transitions: int
    basis: str


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


class Document(Told):
    id: str
    version: int


class Secret(Document):
    updated_at: Moment
    updated_by: str


class CodeTarget(Told):
    python: str
    wheels: list[str]
    max_bytes: int
    inline_bytes: int


class Code(Told):
    sha256: str
    size: int


class CodeUpload(Told):
    sha256: str
    url: str | None
    headers: dict[str, str]


class Bulk(Told):
    action: str
    dry_run: bool
    matched: int
    done: int
    items: list[dict[str, Any]]
    next_cursor: str | None


class Published(Told):
    runs: list[dict[str, str]]


class Updated(Published):
    id: str


class Publisher(Told):
    job_id: str
    task_id: str | None


class Subscriber(Told):
    job_id: str
    quantity: Quantity


class Dataset(Told):
    id: str
    publishers: list[Publisher]
    subscribers: list[Subscriber]
    updated_at: Moment | None
    update_id: str | None


class FileJob(Told):
    job_id: str
    version: int


class File(Told):
    path: str
    status: Literal["applied", "error"]
    jobs: list[FileJob]
    errors: list[dict[str, str]]
    scanned_at: Moment


class Switched(Told):
    changed: int
    next_cursor: str | None


class NamespaceInfo(Told):
    namespace: str
    version: int
    description: str
    limits: dict[str, int]
    weight: int


class Beat(Told):
    lease_until: Moment | None


class Beats(Told):
    items: list[dict[str, Any]]


class RunOnly(Told):
    run_id: str
    job_id: str
    state: RunState


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


class AuditRow(Told):
    at: Moment
    actor: str
    action: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    note: str


class Stats(Told):
    jobs: int
    runs: dict[str, int]
    skew_ms: dict[str, int | None]
    throughput_per_minute: float


class Health(Told):
    status: Literal["ok"]


class Member(Told):
    member: str
    role: Role


class TokenInfo(Told):
    id: str
    name: str
    namespace: str
    role: Role
    created_at: Moment
    created_by: str
    expires_at: Moment | None


class NewToken(TokenInfo):
    token: str


class Myself(Told):
    caller: str
    kind: Literal["person", "token"]
    role: Role
    namespace: str
    namespaces: list[str] = Field(description="Those that X-Namespace may name.")
    more_namespaces: bool
    platform: bool = Field(description="Whether every namespace is open to the caller.")
    expires_at: Moment | None


class Session(Told):
    token: str
    expires_at: Moment
