"""Who does a job's task: whoever has its message, external workers who come for it, or an agent that is launched."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sweephand.domain.job import TIMEOUT_DEFAULT, Job, Task
from sweephand.ports import Pace

EXTERNAL: Final = "external"
"""The kind of a task that workers elsewhere come for."""
CONTAINER: Final = "container"
"""The kind of a task that runs in an image of its own."""
APPROVAL: Final = "approval"
"""The kind of a task that waits for a person's word."""
_PROGRAMS: Final = frozenset({"command", "python"})


def task_of(job: Job) -> Task:
    """The task of a one-task job."""
    return job.tasks[0]


def is_external(job: Job) -> bool:
    """Whether the job's task is done by workers who come for it."""
    return not job.is_dag and task_of(job).kind == EXTERNAL


def is_launched(pace: Pace, job: Job) -> bool:
    """Whether an agent of its own does the task, since it has an image, or is said to take longer than an attempt can
    here. Of most jobs nobody says it: those end in time, and an agent would be dear for them."""
    if not pace.launches or job.is_dag:
        return False
    task = task_of(job)
    if task.kind == CONTAINER:
        return True
    said = task.timeout or (job.timeout if job.timeout != TIMEOUT_DEFAULT else timedelta(0))
    return task.kind in _PROGRAMS and said > pace.attempt_max


def renews_by_itself(pace: Pace, job: Job) -> bool:
    """Whether whoever does the task says by REST that it is alive, and reports so."""
    return is_external(job) or is_launched(pace, job)
