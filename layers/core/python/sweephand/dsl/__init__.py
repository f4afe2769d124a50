"""Jobs written in Python: a job's body is run once, when it is applied, and becomes the same document as a job file's.

Only the standard library is needed here: a task's own process imports this too, wherever it runs.
"""

from __future__ import annotations

from sweephand.dsl.jobs import Job, job
from sweephand.dsl.recording import group
from sweephand.dsl.steps import step
from sweephand.dsl.tasks import Task, task
from sweephand.dsl.values import Condition, Value, index, item, params, run

__all__ = ["Condition", "Job", "Task", "Value", "group", "index", "item", "job", "params", "run", "step", "task"]
