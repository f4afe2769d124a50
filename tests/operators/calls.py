"""Calls of tasks as the engine would make them, and what their processes left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sweephand.calls import Call, Outcome
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import Job, Task
from sweephand.domain.run import Run
from sweephand.domain.templates import run_facts
from sweephand.operators import Operators

FIRE_AT = datetime(2026, 10, 3, 23, 30, tzinfo=UTC)
RUN = Run(
    RunKey(JobKey(Namespace("team"), JobName("report")), RunId("20261003T233000Z")),
    FIRE_AT,
    FIRE_AT,
    created_at=FIRE_AT,
    changed_at=FIRE_AT,
).claimed(now=FIRE_AT, nonce="c", owner="w", lease=timedelta(minutes=1), version=1)


def call(
    kind: str,
    value: Any,
    *,
    params: Mapping[str, Any] | None = None,
    timeout_s: float = 60,
    attempt: int = 1,
    job: Job | None = None,
    **options: Any,
) -> Call:
    task = Task("main", kind, {"value": value, **options})
    run = replace(RUN, attempt=attempt, epoch=attempt)
    facts = run_facts(run, job or Job("report", (task,)), task)
    return Call(run, task, params or {}, run.idempotency_key("main"), timedelta(seconds=timeout_s), facts)


def command(value: Any, **options: Any) -> Call:
    return call("command", value, **options)


def script(source: str, *words: str, **options: Any) -> Call:
    """A command that is a Python program."""
    return call("command", [sys.executable, "-c", source, *words], **options)


def execute(folder: Path, call: Call) -> Outcome:
    return Operators(folder).execute(call)


def is_alive(pid: int) -> bool:
    """A zombie that nobody has reaped yet is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
