"""Commands about runs, and those that failed for good."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from json import JSONDecodeError
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import click

from sweephand.cli.documents import strict_json
from sweephand.cli.program import program
from sweephand.cli.session import Session, agreed, job_argument, job_names, moment, pass_session
from sweephand.cli.show import NOTHING, Column, at, field, progress, shown, visible
from sweephand.cli.tree import as_tree
from sweephand.errors import InvalidInput, SweephandError

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


def _cost(run: Mapping[str, Any]) -> str:
    """What it cost, where anybody charges for it."""
    cost = run.get("cost") or {}
    return f"about ${cost['dollars']:.6f}" if cost.get("charged") else NOTHING


_RUN: Final = (
    *_RUNS,
    field("attempt"),
    field("progress"),
    field("params"),
    field("output"),
    field("rerunOf", "RERUN OF"),
    Column("cost", _cost),
)
TASKS: Final = (
    field("id", "TASK"),
    field("needs"),
    field("state"),
    field("reason"),
    field("attempt"),
    at("startedAt", "STARTED"),
    at("endedAt", "ENDED"),
)


@program.command(example="sweephand runs --state failed --since 2h")
@click.option("--job", shell_complete=job_names, help="Runs of this job.")
@click.option("--state", type=click.Choice(STATES), help="Runs in this state.")
@click.option("--since", help="Fire times from then on: how long back, such as 2h, or a time; 1d if not given.")
@click.option("--until", help="Fire times before then: how long back, or a time.")
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
    """List runs by their fire time, the newest first.

    Without --since these are the runs of one day: the last, or the one before --until. A job's own runs (--job without
    --tag) are listed as far back as they go.
    """
    start, end = moment(since, path="since"), moment(until, path="until")
    none = "There are no such runs."
    if job is not None and tag is None:
        found = session.client.runs(job, state=state, start=start, end=end)
    else:
        found = session.client.all_runs(state=state, start=start, end=end, tag=tag, job=job)
        if start is None:
            day = "the last day" if end is None else "the day before --until"
            none = f"There are no such runs in {day}, by their fire time: --since looks further back."
    session.output.rows(islice(found, limit), _RUNS, none=none)


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
            params[key] = strict_json(text)
        except JSONDecodeError:
            params[key] = text
        except InvalidInput as refused:
            raise InvalidInput(f"{refused.message} As text, it goes in double quotes.", f"param {key}") from None
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
    fail_with(run)


def fail_with(run: Mapping[str, Any]) -> None:
    """Exit with 1, and with the reason on standard error, if the run did not do what it should."""
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
    """Look at one run, read its logs, end it or its tasks, approve what asks, or run it again."""


@run.command(example="sweephand run show daily-report 20261116T060000Z")
@job_argument
@click.argument("run_id", metavar="RUN")
@pass_session
def show(session: Session, job: str, run_id: str) -> None:
    """Show a run with its tasks."""
    _show(session, session.client.run(job, run_id))


def _show(session: Session, found: dict[str, Any]) -> None:
    session.output.record(found, _RUN)
    if session.as_json:
        return
    if found.get("error"):
        session.output.say(f"error: {_told(found['error'])}")
    if found.get("tasks"):
        session.output.say("")
        session.output.rows(as_tree(found["tasks"]), TASKS, none="")
    if found.get("moreTasks"):
        session.output.say(
            f"There are more tasks: sweephand run tasks {visible(found['jobId'])} {visible(found['runId'])}"
        )


@run.command(example="sweephand run cancel daily-report 20261116T060000Z")
@click.argument("job", required=False, shell_complete=job_names)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--task", help="Only this task of the run: the others go on.")
@click.option("--state", type=click.Choice(STATES), help="Without RUN: every run in this state.")
@click.option("--since", help="Without RUN: every run that fired since then, such as 2h; 1d if not given.")
@click.option("--tag", help="Without RUN: every run of jobs with this tag.")
@click.option("--dry-run", is_flag=True, help="Only say what would be cancelled.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def cancel(session: Session, /, job: str | None, run_id: str | None, task: str | None, **chosen: Any) -> None:
    """Cancel a run, one task of it, or every run that the options choose."""
    if job is not None and run_id is not None:
        _check_alone(chosen)
        if task is not None:
            answer = session.client.cancel_task(job, run_id, task)
            session.output.answer(answer, f"{visible(task)} {answer.get('state')}")
            return
        answer = session.client.cancel(job, run_id)
        session.output.answer(answer, f"{visible(run_id)} {answer.get('state')}")
        return
    if task is not None:
        raise click.UsageError("--task needs JOB and RUN.")
    _bulk(session, "cancel", job, **chosen)


@run.command(example="sweephand run rerun daily-report 20261116T060000Z --from failed")
@click.argument("job", required=False, shell_complete=job_names)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--from", "start", default="all", metavar="all|failed|TASK", help="Which tasks: all, what failed, or from one on."
)
@click.option("--task", help="With --from task: the first task to run again.")
@click.option("--mark", "marks", multiple=True, metavar="TASK=STATE", help="With --from failed: succeeded or skipped.")
@click.option("--note", help="Why, for the record.")
@click.option("--state", type=click.Choice(STATES), help="Without RUN: every run in this state; failed if not given.")
@click.option("--since", help="Without RUN: every run that fired since then, such as 2h; 1d if not given.")
@click.option("--tag", help="Without RUN: every run of jobs with this tag.")
@click.option("--dry-run", is_flag=True, help="Only say what would run again.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def rerun(
    session: Session,
    /,
    job: str | None,
    run_id: str | None,
    start: str,
    task: str | None,
    marks: tuple[str, ...],
    note: str | None,
    **chosen: Any,
) -> None:
    """Run a run's fire again, or every run that the options choose and that was not run again since.

    With --mark, a task that failed is not run again: it counts as TASK=succeeded or TASK=skipped, and what comes after
    it goes on.
    """
    if job is not None and run_id is not None:
        _check_alone(chosen)
        if task is None and start not in ("all", "failed", "task"):
            start, task = "task", start
        answer = session.client.rerun(job, run_id, start=start, task=task, mark=_marks(marks), note=note)
        session.output.answer(answer, f"{visible(job)} has the run {visible(answer['runId'])}.")
        return
    if start != "all" or task is not None or marks or note is not None:
        raise click.UsageError("--from, --task, --mark and --note need JOB and RUN.")
    _bulk(session, "rerun", job, **chosen)


def _marks(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for one in given:
        task, equals, state = one.partition("=")
        if not task or not equals:
            raise click.UsageError(f"--mark is TASK=succeeded or TASK=skipped, and not {one!r}.")
        found[task] = state
    return found


def _check_alone(chosen: Mapping[str, Any]) -> None:
    """Refuse options that one run has no use for: who asked for a dry run does not want a real one."""
    given = [f"--{name.replace('_', '-')}" for name, value in chosen.items() if value and name != "yes"]
    if given:
        raise click.UsageError(f"{' and '.join(given)} cannot be given with RUN.")


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
    if action == "rerun":
        state = state or "failed"
    chosen = {"job": job, "state": state, "since": since or "1d", "tag": tag}
    words = ", ".join(f"{name} {visible(value)}" for name, value in chosen.items() if value)
    start = moment(since, path="since")
    if not dry_run:
        agreed(f"{action.capitalize()} every run of {words}?", yes=yes)

    def change(cursor: str | None) -> dict[str, Any]:
        call = session.client.bulk
        return call(action, job=job, state=state, tag=tag, start=start, dry_run=dry_run, cursor=cursor)

    told, trouble = _to_the_end(change, f"{action.capitalize()} {words}")
    if told is not None:
        _tell_bulk(session, told)
    if trouble is not None:
        raise trouble


def _to_the_end(
    change: Callable[[str | None], dict[str, Any]], title: str
) -> tuple[dict[str, Any] | None, SweephandError | None]:
    """All pages as one answer, and what kept the rest from being done: what is done is told all the same."""
    total: dict[str, Any] | None = None
    cursor: str | None = None
    with progress(title, None) as told:
        while True:
            try:
                page = change(cursor)
            except SweephandError as trouble:
                return total, trouble
            if total is not None:
                page = {
                    **page,
                    "matched": total["matched"] + page["matched"],
                    "done": total["done"] + page["done"],
                    "items": [*total["items"], *page["items"]],
                }
            total = page
            told(total["matched"])
            cursor = page.get("nextCursor")
            if not cursor:
                return total, None


def _tell_bulk(session: Session, told: dict[str, Any]) -> None:
    if session.as_json:
        session.output.json(told)
        return
    dry_run, matched, done = told["dryRun"], told["matched"], told["done"]
    columns = (*_RUNS[:4], field("result.runId", "NEW RUN"), field("error"))
    session.output.rows(told["items"], columns[: 4 if dry_run else 6], none="No run fits.")
    left = f" {matched - done} could not be." if matched > done else ""
    session.output.say(f"{matched} would be changed." if dry_run else f"{done} changed.{left}")


_LETTERS: Final = (field("id"), field("jobId", "JOB"), field("runId", "RUN"), field("reason"), at("deadAt", "SINCE"))


@program.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")
@click.pass_context
def deadletters(context: click.Context, as_json: bool) -> None:
    """List the runs of two weeks that failed for good; `show` tells of one, `redrive` runs some or all again."""
    if context.invoked_subcommand is None:
        session = context.ensure_object(Session)
        session.as_json = as_json
        session.output.rows(session.client.deadletters(), _LETTERS, none="No run failed for good.")


@deadletters.command("show", example="sweephand deadletters show daily-report:20261116T060000Z")
@click.argument("letter", metavar="JOB:RUN")
@pass_session
def show_letter(session: Session, letter: str) -> None:
    """Show how a run failed."""
    _show(session, session.client.deadletter(letter))


@deadletters.command(example="sweephand deadletters redrive --all --dry-run")
@click.argument("letters", nargs=-1, metavar="[JOB:RUN...]")
@click.option("--all", "is_all", is_flag=True, help="All that are listed.")
@click.option("--job", metavar="JOB", help="With --all: only those of this job.")
@click.option("--dry-run", is_flag=True, help="With --all: only say which.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_session
def redrive(
    session: Session, letters: tuple[str, ...], is_all: bool, job: str | None, dry_run: bool, yes: bool
) -> None:
    """Run failed runs again, by their ids in `sweephand deadletters`, or all of them."""
    if is_all == bool(letters):
        raise click.UsageError("Name the runs, or say --all.")
    if not is_all and (job or dry_run):
        raise click.UsageError("--job and --dry-run go with --all.")
    if is_all:
        _redrive_all(session, job, dry_run=dry_run, yes=yes)
        return
    answers = []
    for letter in letters:
        answers.append(session.client.redrive(letter))
        session.output.say(f"{visible(letter)} has the new run {visible(answers[-1]['runId'])}.")
    if session.as_json:
        session.output.json(answers)


def _redrive_all(session: Session, job: str | None, *, dry_run: bool, yes: bool) -> None:
    of = f" of {visible(job)}" if job else ""
    if not dry_run:
        agreed(f"Run everything{of} again that failed for good?", yes=yes)
    call = session.client.redrive_all
    told, trouble = _to_the_end(lambda cursor: call(job=job, dry_run=dry_run, cursor=cursor), "Redrive")
    if told is not None and session.as_json:
        session.output.json(told)
    elif told is not None:
        columns = (*_LETTERS, field("result.runId", "NEW RUN"), field("error"))
        session.output.rows(told["items"], columns[: 5 if dry_run else 7], none="No run failed for good.")
        matched, done = told["matched"], told["done"]
        left = f" {matched - done} could not be." if matched > done else ""
        session.output.say(f"{matched} would be run again." if dry_run else f"{done} are run again.{left}")
    if trouble is not None:
        raise trouble
