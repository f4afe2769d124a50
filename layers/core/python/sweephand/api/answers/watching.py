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


class LateRuns(Told):
    count: int = Field(description="Runs whose time was over a minute ago, and that nobody told to wait.")
    oldest_at: Moment | None


class CountsOfRuns(Told):
    succeeded: int
    failed: int
    skipped: int


class LastDay(CountsOfRuns):
    success_rate: float | None = Field(description="Succeeded of those that succeeded or failed.")


class HourOfRuns(CountsOfRuns):
    hour: Moment


class Stats(Told):
    jobs: int
    runs: dict[str, int]
    skew_ms: dict[str, int | None]
    throughput_per_minute: float
    since: Moment = Field(description="From when on runs are counted; lag and throughput are those of the newest.")
    running: int = Field(description="Of those counted, as is all that follows: by the hour that they are named for.")
    queued: int
    late: LateRuns
    last_day: LastDay
    hours: list[HourOfRuns] = Field(description="Oldest first, with the present hour; none before `since`.")


class Health(Told):
    status: Literal["ok"]
