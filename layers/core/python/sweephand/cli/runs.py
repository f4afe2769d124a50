"""Commands about runs, and what could not be handled."""

from __future__ import annotations

import json
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import click

from sweephand.cli.program import program
from sweephand.cli.session import Session, agreed, job_argument, job_names, moment, pass_session
from sweephand.cli.show import at, field, progress, shown, visible
from sweephand.errors import InvalidInput

if TYPE_CHECKING:
    from sweephand.client import Client

STATES: Final = ("queued", "running", "retrying", "succeeded", "failed", "cancelled", "skipped")
ENDED: Final = frozenset({"succeeded", "failed", "cancelled", "skipped"})
NOT_DONE: Final = frozenset({"failed", "cancelled"})

_FIRST_LOOK_S: Final = 0.1
_LOOK_S_MAX: Final = 2.0

_RUNS: Final = (
    field("jobId", "JOB"),
    field("runId", "RUN"),
    field("state"),
    field("reason"),
    field("trigger"),
    at("fireAt", "FIRE"),
    at("startedAt", "STARTED"),
    at("endedAt", "ENDED"),
)
_RUN: Final = (
    *_RUNS,
    field("attempt"),
    field("progress"),
    field("params"),
    field("output"),
    field("rerunOf", "RERUN OF"),
)
_TASKS: Final = (
    field("id", "TASK"),
    field("state"),
    field("reason"),
    field("attempt"),
    at("startedAt", "STARTED"),
    at("endedAt", "ENDED"),
)


@program.command(example="sweephand runs --state failed --since 2h")
@click.option("--job", shell_complete=job_names, help="Runs of this job.")
@click.option("--state", type=click.Choice(STATES), help="Runs in this state.")
@click.option("--since", help="How long back, such as 2h, or a time.")
@click.option("--until", help="How long back, or a time.")
@click.option("--tag", help="Runs of jobs with this tag.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="The most to show.")
@pass_session
def runs(
    session: Session,
    job: str | None,
    state: str | None,
    since: str | None,
    until: str | None,
    tag: str | None,
    limit: int,
) -> None:
    """List runs, the newest first."""
    start, end = moment(since, path="since"), moment(until, path="until")
    if job is not None and tag is None:
        found = session.client.runs(job, state=state, start=start, end=end)
    else:
        found = session.client.all_runs(state=state, start=start, end=end, tag=tag, job=job)
    session.output.rows(islice(found, limit), _RUNS, none="There are no such runs.")


@program.command(example="sweephand trigger daily-report --param region=eu --wait")
@job_argument
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="A parameter; JSON, or else text.")
@click.option("--note", help="Why, for the record.")
@click.option("--wait", is_flag=True, help="Wait for the run to end; exit code 1 if it fails.")
@pass_session
def trigger(session: Session, job: str, params: tuple[str, ...], note: str | None, wait: bool) -> None:
    """Run a job now."""
    answer = session.client.trigger(job, params=_params(params), note=note)
    run = answer["runId"]
    if not wait:
        session.output.answer(answer, f"{visible(job)} has the run {visible(run)}.")
        return
    if not session.as_json:
        click.echo(f"Run {visible(run)} of {visible(job)}", err=True)
    _end(session, _ended(session.client, job, run))


def _params(given: tuple[str, ...]) -> dict[str, Any] | None:
    params: dict[str, Any] = {}
    for one in given:
        key, equals, text = one.partition("=")
        if not key or not equals:
            raise InvalidInput(f"{one!r} is not KEY=VALUE.", "param")
        try:
            params[key] = json.loads(text)
        except ValueError:
            params[key] = text
    return params or None


def _ended(client: Client, job: str, run: str) -> dict[str, Any]:
    """The run once it has ended, looked at less and less often."""
    look_s = _FIRST_LOOK_S
    with progress(f"{job} {run}", 100) as told:
        while True:
            found = client.run(job, run)
            if found["state"] in ENDED:
                return found
            told(found.get("progress") or 0)
            Event().wait(look_s)
            look_s = min(look_s * 1.5, _LOOK_S_MAX)


def _end(session: Session, run: dict[str, Any]) -> None:
    took = f"{visible(run['runId'])} {run['state']}"
    session.output.answer(run, took)
    if run["state"] in NOT_DONE:
        why = run.get("error") or run.get("reason") or "no reason is recorded"
        click.echo(f"Error: the run {run['state']}: {_told(why)}", err=True)
        click.get_current_context().exit(1)


def _told(error: object) -> str:
    if isinstance(error, dict) and error.get("message"):
        name = error.get("error")
        return visible(f"{name}: {error['message']}" if name else str(error["message"]))
    return shown(error)


@program.group()
def run() -> None:
    """Look at one run, cancel it, or run it again."""


@run.command(example="sweephand run show daily-report 20261116T060000Z")
@job_argument
@click.argument("run_id", metavar="RUN")
@pass_session
def show(session: Session, job: str, run_id: str) -> None:
    """Show a run with its tasks."""
    found = session.client.run(job, run_id)
    session.output.record(found, _RUN)
    if session.as_json:
        return
    if found.get("error"):
        session.output.say(f"error: {_told(found['error'])}")
    if found.get("tasks"):
        session.output.say("")
        session.output.rows(found["tasks"], _TASKS, none="")


@run.command(example="sweephand run cancel daily-report 20261116T060000Z")
@click.argument("job", required=False, shell_complete=job_names)
@click.argument("run_id", metavar="RUN", required=False)
@click.option("--state", type=click.Choice(STATES), help="Without RUN: every run in this state.")
@click.option("--since", help="Without RUN: every run since then, such as 2h.")
@click.option("--tag", help="Without RUN: every run of jobs with this tag.")
@click.option("--dry-run", is_flag=True, help="Only say what would be cancelled.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def cancel(session: Session, /, job: str | None, run_id: str | None, **chosen: Any) -> None:
    """Cancel a run, or every run that the options choose."""
    if job is not None and run_id is not None:
        answer = session.client.cancel(job, run_id)
        session.output.answer(answer, f"{visible(run_id)} {answer.get('state')}")
        return
    _bulk(session, "cancel", job, **chosen)


@run.command(example="sweephand run rerun daily-report 20261116T060000Z --from failed")
@click.argument("job", required=False, shell_complete=job_names)
@click.argument("run_id", metavar="RUN", required=False)
@click.option("--from", "start", type=click.Choice(["all", "failed", "task"]), default="all", help="Which tasks.")
@click.option("--task", help="With --from task: the first task to run again.")
@click.option("--state", type=click.Choice(STATES), help="Without RUN: every run in this state.")
@click.option("--since", help="Without RUN: every run since then, such as 2h.")
@click.option("--tag", help="Without RUN: every run of jobs with this tag.")
@click.option("--dry-run", is_flag=True, help="Only say what would run again.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def rerun(
    session: Session, /, job: str | None, run_id: str | None, start: str, task: str | None, **chosen: Any
) -> None:
    """Run a run's fire again, or every run that the options choose."""
    if job is not None and run_id is not None:
        answer = session.client.rerun(job, run_id, start=start, task=task)
        session.output.answer(answer, f"{visible(job)} has the run {visible(answer['runId'])}.")
        return
    _bulk(session, "rerun", job, **chosen)


def _bulk(
    session: Session,
    action: str,
    job: str | None,
    *,
    state: str | None,
    since: str | None,
    tag: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    if not state and not since and not tag:
        raise click.UsageError("Give JOB and RUN, or choose runs by --state, --since or --tag.")
    start = moment(since, path="since")
    chosen = {"job": job, "state": state, "since": since, "tag": tag}
    words = ", ".join(f"{name} {visible(value)}" for name, value in chosen.items() if value)
    if not dry_run:
        agreed(f"{action.capitalize()} every run of {words}?", yes=yes)
    with progress(f"{action.capitalize()} {words}", None):
        answer = session.client.bulk(action, job=job, state=state, tag=tag, start=start, dry_run=dry_run)
    if session.as_json:
        session.output.json(answer)
        return
    columns = (*_RUNS[:4], field("result.runId", "NEW RUN"), field("error"))
    session.output.rows(answer["items"], columns[: 4 if dry_run else 6], none="No run fits.")
    done = "would be changed" if dry_run else "changed"
    session.output.say(
        f"{answer['matched' if dry_run else 'done']} {done}.{' There are more.' if answer['more'] else ''}"
    )


@program.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")
@click.pass_context
def deadletters(context: click.Context, as_json: bool) -> None:
    """List the messages that could not be handled; `redrive` sends one again."""
    if context.invoked_subcommand is None:
        session = context.ensure_object(Session)
        session.as_json = as_json
        columns = (field("id"), field("jobId", "JOB"), field("runId", "RUN"), field("reason"), at("deadAt", "SINCE"))
        session.output.rows(session.client.deadletters(), columns, none="There are none.")


@deadletters.command(example="sweephand deadletters redrive 5f0c")
@click.argument("letters", nargs=-1, required=True, metavar="ID...")
@pass_session
def redrive(session: Session, letters: tuple[str, ...]) -> None:
    """Send dead messages again."""
    answers = []
    for letter in letters:
        answers.append(session.client.redrive(letter))
        session.output.say(f"{visible(letter)} is sent again.")
    if session.as_json:
        session.output.json(answers)
