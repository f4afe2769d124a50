"""What a task is asked to do once, who does it, and what can come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from sweephand.domain.job import Task
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run
from sweephand.messages import Again, Elsewhere, Unstarted
from sweephand.secrets import NOTHING, Values


class Succeeded(Struct, frozen=True):
    """The task ended well."""

    output: Any = None
    taken_from: str | None = None
    """The id of the run whose output it is, where the task was not run; nobody outside the engine says so."""
    in_part: str = ""
    """Which of a run's tasks failed, where others made up for it; nobody outside the engine says so."""


class Skipped(Struct, frozen=True):
    """The task found that there is nothing to do, and says why."""

    reason: str


Outcome = Succeeded | Skipped | Failure | Unstarted | Again


class Call(Struct, frozen=True):
    """What an operator needs to know to run a task once."""

    run: Run
    task: Task
    params: Mapping[str, Any]
    idempotency_key: str
    timeout: timedelta
    context: Mapping[str, Any] = MappingProxyType({})
    """What templates call `run`, as plain JSON."""
    upstream: Mapping[str, Any] = MappingProxyType({})
    """What templates know besides: of a run of several, `tasks`, and of a mapped task's instance `item` and `index`."""
    lease: str | None = None
    """What an agent that is launched for it reports under."""
    secrets: Values = NOTHING
    """Given on the way to whoever runs it, and stored nowhere."""

    @property
    def known(self) -> dict[str, Any]:
        """What its templates know."""
        return {"params": self.params, "run": self.context, "secrets": self.secrets.by_name, **self.upstream}


class Files(Struct, frozen=True):
    """Where a task and whoever runs it leave things for each other: beneath one folder."""

    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def progress(self) -> Path:
        return self.root / "progress"

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def secrets(self) -> Path:
        """A file for each secret of a container, whose variables others may see."""
        return self.root / "secrets"


def variables(call: Call, files: Files) -> dict[str, str]:
    """What every program knows of its call; nothing overrides these."""
    promised = {
        "JOB": call.run.key.job.name,
        "NAMESPACE": call.run.key.job.namespace,
        "RUN_ID": call.run.key.run_id,
        "TASK_ID": call.task.id,
        "ATTEMPT": str(call.run.attempt),
        "FIRE_AT": call.run.fire_at.isoformat().replace("+00:00", "Z"),
        "IDEMPOTENCY_KEY": call.idempotency_key,
        "PARAMS": json.dumps(dict(call.params)),
        "OUTPUT": str(files.output),
        "PROGRESS": str(files.progress),
        "CHECKPOINT": str(files.checkpoint),
        "ARTIFACTS": str(files.artifacts),
    }
    return {f"SWEEPHAND_{name}": value for name, value in promised.items()}


MOUNTED: Final = Files(Path("/sweephand"))
"""Where a container finds what it shares with its attempt."""


def container_variables(call: Call, files: Files = MOUNTED) -> dict[str, str]:
    """The same for a container, whose secrets are files: whoever may look at a container sees its variables."""
    return variables(call, files) | {"SWEEPHAND_SECRETS": str(files.secrets)}


class Target(Protocol):
    """What runs a task: the operators, or a user's function in a test."""

    def execute(self, call: Call) -> Outcome | Elsewhere: ...


@runtime_checkable
class Cancellable(Protocol):
    """A target that can stop what it runs."""

    def cancel(self, call: Call) -> None:
        """Nobody waits for this call any more: its run was cancelled or taken over, or it is out of time."""


@runtime_checkable
class Abandoning(Protocol):
    """A target whose tasks may go on elsewhere while nobody works on them."""

    def abandon(self, call: Call) -> None:
        """The run ended between two looks: have what the call waits for stopped. Must not wait; may come twice."""


@runtime_checkable
class Forgetting(Protocol):
    """A target that keeps things for attempts to come, which may never come."""

    def forget(self, *, before: datetime) -> int:
        """Remove what nobody has touched since then; of how many task runs."""


@runtime_checkable
class Progressing(Protocol):
    """A target that knows how far a task is while it runs."""

    def progress(self, call: Call) -> int | None:
        """From 0 to 100; None where nothing is known."""
