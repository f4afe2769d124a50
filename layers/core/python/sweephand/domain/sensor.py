"""What a sensor looks for, and who looks: the engine for another job's run, an operator for what is outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sweephand.domain.job import Task

__all__ = ["SENSOR", "SENSORS", "SUBJECTS", "looked_for", "operator_of"]

SENSOR: Final = "sensor"
SUBJECTS: Final = ("job", "s3", "http")
"""What a sensor can look for: each names exactly one."""
SENSORS: Final = frozenset({"sensor.s3", "sensor.http"})
"""The operators that look; no step is written so."""


def looked_for(spec: Mapping[str, Any]) -> str:
    """Which of the subjects a sensor names."""
    return next((subject for subject in SUBJECTS if spec.get(subject) is not None), "job")


def operator_of(task: Task) -> str:
    """The name of whoever runs a task: its kind, or of a sensor whoever can look for what it names."""
    return f"{SENSOR}.{looked_for(task.spec)}" if task.kind == SENSOR else task.kind
