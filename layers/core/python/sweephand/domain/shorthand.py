"""The short forms of a definition, written out.

What contradicts itself or is of a wrong type stays as it is, for `parse` to refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sweephand.domain.kinds import argv
from sweephand.errors import InvalidInput

__all__ = ["MAIN_TASK", "written_out"]

MAIN_TASK: Final = "main"
"""The id of the only task of a job that says `run` or `command` instead of `tasks`."""


def written_out(given: dict[str, Any]) -> dict[str, Any]:
    """The same job in the long form, its fields in the same order."""
    document = {field: value for field, value in given.items() if value is not None}
    if isinstance(schedule := document.get("schedule"), str):
        document["schedule"] = {"cron": schedule}
    if isinstance(catchup := document.get("catchup"), str):
        document["catchup"] = {"policy": catchup}
    document = _renamed(document, "dependencies", "schedule", lambda jobs: {"after": jobs})
    schedule = document.get("schedule")
    if "dependencies" in document and isinstance(schedule, dict) and schedule.get("after") is None:
        document["schedule"] = {**schedule, "after": document.pop("dependencies")}
    document = _renamed(document, "retries", "retry", _attempts)
    document = _renamed(document, "command", "run", lambda words: {"command": words})
    document = _renamed(document, "run", "tasks", lambda run: [{"id": MAIN_TASK, "run": run}])
    if isinstance(tasks := document.get("tasks"), list):
        document["tasks"] = [_task_written_out(task) if isinstance(task, dict) else task for task in tasks]
    return document


def _task_written_out(given: dict[str, Any]) -> dict[str, Any]:
    task = _renamed(given, "retries", "retry", _attempts)
    task = _renamed(task, "command", "run", lambda words: {"command": words})
    run = task.get("run")
    if isinstance(run, dict) and isinstance(run.get("command"), str) and not run.get("shell"):
        try:
            task = {**task, "run": {**run, "command": list(argv(run["command"], "command"))}}
        except InvalidInput:
            pass  # it stays a line, which `parse` refuses with the reason
    return task


def _renamed(document: dict[str, Any], short: str, long: str, write: Callable[[Any], Any]) -> dict[str, Any]:
    """With the short field in its long form, at the same place."""
    if document.get(short) is None or document.get(long) is not None:
        return document
    return {
        long if field == short else field: write(value) if field == short else value
        for field, value in document.items()
        if field != long
    }


def _attempts(retries: Any) -> Any:
    return {"attempts": retries + 1} if isinstance(retries, int) else retries
