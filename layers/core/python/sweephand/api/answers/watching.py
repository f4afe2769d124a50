"""Answers about what goes on, and what is wrong."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from sweephand.api.answers.told import Told
from sweephand.api.schemas import Moment


class Problem(Told):
    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = Field(default_factory=list)


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
