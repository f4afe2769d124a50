"""Commands about the tasks of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import click

from sweephand.cli.runs import TASKS, run
from sweephand.cli.session import Session, job_argument, pass_session
from sweephand.cli.show import visible
from sweephand.cli.tree import as_tree
from sweephand.errors import Conflict

_OPEN: Final = ("queued", "running", "retrying")
_run_argument: Final = click.argument("run_id", metavar="RUN")
_task_argument: Final = click.argument("task")
_note: Final = click.option("--note", default="", help="Why, for the record.")


@run.command(example="sweephand run tasks daily-report 20261116T060000Z")
@job_argument
@_run_argument
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="The most to show.")
@pass_session
def tasks(session: Session, job: str, run_id: str, limit: int) -> None:
    """List a run's tasks, and the instances of mapped ones."""
    found = list(islice(session.client.tasks(job, run_id), limit))
    session.output.rows(found if session.as_json else as_tree(found), TASKS, none="There are no tasks.")


@run.command(example="sweephand run mark daily-report 20261116T060000Z load succeeded --note 'done by hand'")
@job_argument
@_run_argument
@_task_argument
@click.argument("state", type=click.Choice(["succeeded", "failed", "skipped"]))
@_note
@pass_session
def mark(session: Session, job: str, run_id: str, task: str, state: str, note: str) -> None:
    """End a task that has not ended: the run goes on as if it had come to that by itself."""
    answer = session.client.mark_task(job, run_id, task, state, note=note)
    session.output.answer(answer, f"{visible(task)} {answer.get('state')}")


@run.command(example="sweephand run retry daily-report 20261116T060000Z load")
@job_argument
@_run_argument
@_task_argument
@_note
@pass_session
def retry(session: Session, job: str, run_id: str, task: str, note: str) -> None:
    """Begin the next attempt of a task at once, which would wait for its turn."""
    answer = session.client.retry_task(job, run_id, task, note=note)
    session.output.answer(answer, f"The next attempt of {visible(task)} begins.")


@run.command(example="sweephand run approve release 20261116T060000Z --note 'looks good'")
@job_argument
@_run_argument
@click.argument("task", required=False)
@_note
@pass_session
def approve(session: Session, job: str, run_id: str, task: str | None, note: str) -> None:
    """Say yes to a task that asks for it; without TASK, to the only one that does."""
    _decide(session, session.client.approve_task, job, run_id, task, note)


@run.command(example="sweephand run reject release 20261116T060000Z --note 'not on a Friday'")
@job_argument
@_run_argument
@click.argument("task", required=False)
@_note
@pass_session
def reject(session: Session, job: str, run_id: str, task: str | None, note: str) -> None:
    """Say no to a task that asks for approval; without TASK, to the only one that does."""
    _decide(session, session.client.reject_task, job, run_id, task, note)


def _decide(
    session: Session, call: Callable[..., Mapping[str, Any]], job: str, run_id: str, task: str | None, note: str
) -> None:
    name = task or _only(list(session.client.tasks(job, run_id)), run_id)
    answer = dict(call(job, run_id, name, note=note))
    session.output.answer(answer, f"{visible(name)} {answer.get('state')}")


def _only(found: Sequence[Mapping[str, Any]], run_id: str) -> str:
    """The task that asks."""
    asking = [one for one in found if one["state"] in _OPEN and str(one["reason"] or "").startswith("approval")]
    if len(asking) != 1:
        names = ", ".join(visible(str(one["id"])) for one in asking) or "none"
        raise Conflict(f"Name the task: of run {visible(run_id)}, these ask for approval: {names}.")
    return str(asking[0]["id"])
