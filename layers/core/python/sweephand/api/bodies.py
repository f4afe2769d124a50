"""The bodies of calls: what may be in them, and nothing else."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from sweephand.api.schemas import CURSOR_PATTERN, Instant, Name, Note, Params, bounded, small_enough_to_keep
from sweephand.domain.access import Role
from sweephand.domain.backfill import ACTIVE_MAX, ACTIVE_USUAL, Only, Order, Wanted
from sweephand.domain.job import CatchupPolicy
from sweephand.domain.reruns import MARKS_MAX
from sweephand.domain.retry import FailureClass
from sweephand.domain.shares import WEIGHT_MAX
from sweephand.packs import PACK_BYTES_MAX


class _Given(BaseModel):
    """A body: nothing that is not asked for, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, defer_build=True)


class PauseBody(_Given):
    note: Note = ""


class ResumeBody(_Given):
    catchup: Literal["none", "latest", "all"] = "none"
    dry_run: bool = False

    @property
    def policy(self) -> CatchupPolicy:
        return CatchupPolicy(self.catchup)


class TriggerBody(_Given):
    params: Params = Field(default_factory=dict)
    note: Note | None = None


class RollbackBody(_Given):
    version: int = Field(ge=1, le=1_000_000)


class CancelBody(_Given):
    note: Note = ""


_NO_MARKS: Final[JsonDict] = {"maxProperties": 0}
_TASK_IS_NAMED: Final[JsonDict] = {
    "anyOf": [
        {
            "properties": {"from": {"const": "task"}, "task": {"type": "string"}, "mark": _NO_MARKS},
            "required": ["from", "task"],
        },
        {"properties": {"from": {"const": "all"}, "task": {"type": "null"}, "mark": _NO_MARKS}},
        {"properties": {"from": {"const": "failed"}, "task": {"type": "null"}}, "required": ["from"]},
    ]
}


class RerunBody(_Given):
    model_config = ConfigDict(json_schema_extra=_TASK_IS_NAMED)

    from_: Literal["all", "failed", "task"] = Field("all", alias="from")
    task: Name | None = None
    mark: dict[str, Literal["succeeded", "skipped"]] = Field(default_factory=dict, max_length=MARKS_MAX)
    note: Note | None = None


class MarkBody(_Given):
    state: Literal["succeeded", "failed", "skipped"]
    note: Note = ""


class NoteBody(_Given):
    note: Note = ""


class BackfillBody(_Given):
    from_: Instant = Field(alias="from")
    to: Instant
    only: Literal["missing", "failed", "all"] = "missing"
    order: Literal["oldest", "newest"] = "oldest"
    max_active: int = Field(ACTIVE_USUAL, ge=1, le=ACTIVE_MAX)
    collapse: bool = False
    dry_run: bool = False
    note: Note = ""

    @property
    def wanted(self) -> Wanted:
        only, order = Only(self.only), Order(self.order)
        return Wanted(self.from_, self.to, only, order, self.max_active, self.collapse)


class CancelBackfillBody(_Given):
    running: bool = False
    """Whether those of its runs end too that have started."""
    note: Note = ""


class RunFilter(_Given):
    job: Name | None = None
    state: Literal["queued", "running", "retrying", "succeeded", "failed", "cancelled", "skipped"] | None = None
    tag: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    from_: Instant | None = Field(None, alias="from")
    to: Instant | None = None


class BulkBody(_Given):
    action: Literal["cancel", "rerun"]
    filter: RunFilter
    dry_run: bool = False
    limit: int = Field(1000, ge=1, le=1000)
    cursor: Annotated[str, Field(max_length=2000)] | None = None


class RedriveBody(_Given):
    job: Name | None = None
    from_: Instant | None = Field(None, alias="from")
    to: Instant | None = None
    dry_run: bool = False
    limit: int = Field(100, ge=1, le=1000)
    cursor: Annotated[str, Field(max_length=2000)] | None = None


class EventBody(_Given):
    source: str = Field(min_length=1, max_length=256)
    type: str = Field(min_length=1, max_length=256)
    detail: Params = Field(default_factory=dict)
    id: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class UpdateBody(_Given):
    id: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class LeaseBody(_Given):
    worker_id: Name
    labels: list[Name] = Field(default_factory=list, max_length=20)
    max: int = Field(1, ge=1, le=100)
    at_least: int = Field(1, ge=1, le=100)
    wait_seconds: int = Field(0, ge=0, le=20)


class BeatBody(_Given):
    epoch: int = Field(ge=1, le=1_000_000_000)
    progress: int | None = Field(None, ge=0, le=100)
    checkpoint: Annotated[Any, BeforeValidator(bounded)] = None


class LeaseBeat(BeatBody):
    lease: str = Field(min_length=1, max_length=2000)


class BeatManyBody(_Given):
    leases: list[LeaseBeat] = Field(min_length=1, max_length=100)


class CompleteBody(_Given):
    epoch: int = Field(ge=1, le=1_000_000_000)
    output: Annotated[Any, BeforeValidator(small_enough_to_keep)] = None
    skipped: str | None = Field(None, min_length=1, max_length=200)
    """Why there was nothing to do, where that is so."""


class ErrorBody(_Given):
    name: str = Field("Error", min_length=1, max_length=256)
    message: str = Field("", max_length=1_000)


class FailBody(_Given):
    epoch: int = Field(ge=1, le=1_000_000_000)
    error: ErrorBody | Annotated[str, Field(max_length=1_000)] = ""
    class_: Literal["transient", "permanent"] = Field("transient", alias="class")

    @property
    def kind(self) -> FailureClass:
        return FailureClass(self.class_)


class PoolBody(_Given):
    slots: int = Field(ge=1, le=500)


class SecretBody(_Given):
    # No NUL in it: no environment variable can hold one.
    value: str = Field(
        min_length=4,
        max_length=65_536,
        json_schema_extra={"writeOnly": True, "pattern": r"^[^\x00]*$"},
        repr=False,
    )


class CodeBody(_Given):
    content: str = Field(
        min_length=1,
        json_schema_extra={"contentEncoding": "base64", "format": "zip"},
        description="A zip, as base64; on AWS up to 3 MB, and what is larger by openUpload.",
        repr=False,
    )


class UploadBody(_Given):
    size: int = Field(ge=1, le=PACK_BYTES_MAX)


class LimitsBody(_Given):
    jobs: int | None = Field(None, ge=0, le=10_000_000)
    frequent_jobs: int | None = Field(None, ge=0, le=1_000)
    requests_per_second: int | None = Field(None, ge=1, le=1_000_000)
    backfills: int | None = Field(None, ge=0, le=1_000)


class NamespaceBody(_Given):
    description: str = Field("", max_length=4096)
    limits: LimitsBody = Field(default_factory=LimitsBody)
    weight: int = Field(1, ge=1, le=WEIGHT_MAX)


class SwitchNamespaceBody(_Given):
    catchup: Literal["none", "latest", "all"] = "none"
    cursor: Annotated[str, Field(pattern=CURSOR_PATTERN)] | None = None


class MemberBody(_Given):
    role: Literal["viewer", "operator", "editor", "admin"]

    @property
    def as_role(self) -> Role:
        return Role(self.role)


class TokenBody(MemberBody):
    name: str = Field(min_length=1, max_length=128)
    expires_at: Instant | None = None
