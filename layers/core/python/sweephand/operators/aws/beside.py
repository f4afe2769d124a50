"""What a target is told about the run, beside what the task says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sweephand.calls import Call

NAME: Final = "sweephand"


def run_of(call: Call) -> dict[str, Any]:
    """Who calls: the same names as a command has in its environment."""
    key = call.run.key
    return {
        "job": key.job.name,
        "namespace": key.job.namespace,
        "runId": key.run_id,
        "taskId": call.task.id,
        "attempt": call.run.attempt,
        "fireAt": call.run.fire_at.isoformat().replace("+00:00", "Z"),
        "idempotencyKey": call.idempotency_key,
    }


def with_run(document: Any, call: Call) -> Any:
    """The document with the run beside its own fields; what is no object, or has such a field, is left as it is."""
    if not isinstance(document, Mapping) or NAME in document:
        return document
    return {**document, NAME: run_of(call)}
