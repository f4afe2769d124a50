"""Commands about backfills."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import click

from sweephand.cli.program import program
from sweephand.cli.session import Session, agreed, job_argument, moment, pass_session
from sweephand.cli.show import at, field, progress, visible
from sweephand.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from sweephand.client import Client

_OVER: Final = frozenset({"done", "cancelled"})
_FIRST_LOOK_S: Final = 0.2
_LOOK_S_MAX: Final = 5.0

_BACKFILLS: Final = (
    field("backfillId", "BACKFILL"),
    field("state"),
    at("from", "FROM"),
    at("to", "TO"),
    field("only"),
    field("count"),
    field("made"),
    field("succeeded"),
    field("failed"),
    field("progress"),
)
_BACKFILL: Final = (
    *_BACKFILLS[:5],
    field("order"),
    field("maxActive", "AT ONCE"),
    field("collapse"),
    *_BACKFILLS[5:],
    field("cancelled"),
    field("skipped"),
    field("active"),
    field("reason"),
    field("note"),
    field("createdBy", "BY"),
    at("createdAt", "SINCE"),
    at("endedAt", "ENDED"),
)
_id_argument: Final = click.argument("backfill_id", metavar="BACKFILL")
_note: Final = click.option("--note", default="", help="Why, for the record.")


@program.command(example="sweephand backfill daily-report --from 2026-01-01 --to 2026-02-01 --dry-run")
@job_argument
@click.option("--from", "since", required=True, help="Fires from then on: a time, or how long back, such as 30d.")
@click.option("--to", "until", required=True, help="Fires before then: a time, or how long back, such as 0s.")
@click.option(
    "--only",
    type=click.Choice(["missing", "failed", "all"]),
    default="missing",
    show_default=True,
    help="Fires that became no run, fires whose runs failed, or all.",
)
@click.option("--max-active", type=click.IntRange(1, 100), help="The most runs at once; 4 if not given.")
@click.option("--order", type=click.Choice(["oldest", "newest"]), default="oldest", show_default=True)
@click.option("--collapse", is_flag=True, help="One run over all of it, instead of one for each fire.")
@click.option("--dry-run", is_flag=True, help="Only say how many runs that takes, and what they cost.")
@click.option("--wait", is_flag=True, help="Wait for the end; exit code 1 if a run failed, or it was cancelled.")
@click.option("--note", help="Why, for the record.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def backfill(
    session: Session, /, job: str, since: str, until: str, dry_run: bool, wait: bool, yes: bool, **how: Any
) -> None:
    """Make up for fires of a job, a few at a time, beside its schedule; also while it is paused.

    What was before the job was there is made up for by the schedule that it has now.
    """
    start, end = _time(since, "from"), _time(until, "to")
    if dry_run or not yes:
        estimate = session.client.backfill(job, start=start, end=end, dry_run=True, **how)
        if dry_run:
            _tell_estimate(session, estimate)
            return
        agreed(f"{_words(job, estimate)}. Begin?", yes=yes)
    made = session.client.backfill(job, start=start, end=end, **how)
    if wait:
        made = _ended(session.client, made)
    session.output.answer(made, _said(made))
    if wait and (made["failed"] or made["state"] == "cancelled"):
        click.get_current_context().exit(1)


@program.group()
def backfills() -> None:
    """Look at a job's backfills, pause, resume or cancel them; `sweephand backfill` begins one."""


@backfills.command("list", example="sweephand backfills list daily-report")
@job_argument
@pass_session
def list_(session: Session, job: str) -> None:
    """List a job's backfills, the newest first."""
    session.output.rows(session.client.backfills(job), _BACKFILLS, none="There are no backfills.")


@backfills.command(example="sweephand backfills show daily-report 20261116T060000Z-0f3a9c1d")
@job_argument
@_id_argument
@pass_session
def show(session: Session, job: str, backfill_id: str) -> None:
    """Show how far a backfill is."""
    session.output.record(session.client.get_backfill(job, backfill_id), _BACKFILL)


@backfills.command(example="sweephand backfills pause daily-report 20261116T060000Z-0f3a9c1d")
@job_argument
@_id_argument
@_note
@pass_session
def pause(session: Session, job: str, backfill_id: str, note: str) -> None:
    """Put no more runs; those under way go on."""
    _tell(session, session.client.pause_backfill(job, backfill_id, note=note))


@backfills.command(example="sweephand backfills resume daily-report 20261116T060000Z-0f3a9c1d")
@job_argument
@_id_argument
@_note
@pass_session
def resume(session: Session, job: str, backfill_id: str, note: str) -> None:
    """Go on where it was paused."""
    _tell(session, session.client.resume_backfill(job, backfill_id, note=note))


@backfills.command(example="sweephand backfills cancel daily-report 20261116T060000Z-0f3a9c1d --running")
@job_argument
@_id_argument
@click.option("--running", is_flag=True, help="End those of its runs too that have started.")
@_note
@pass_session
def cancel(session: Session, job: str, backfill_id: str, running: bool, note: str) -> None:
    """End a backfill: what has not started never does."""
    _tell(session, session.client.cancel_backfill(job, backfill_id, running=running, note=note))


def _time(text: str, path: str) -> datetime:
    found = moment(text, path=path)
    if found is None:
        raise InvalidInput("A time is needed.", path)
    return found


def _ended(client: Client, made: dict[str, Any]) -> dict[str, Any]:
    """The backfill once it is over, looked at less and less often."""
    look_s = _FIRST_LOOK_S
    with progress(f"{made['jobId']} {made['backfillId']}", 100) as told:
        while made["state"] not in _OVER or made["active"]:
            told(made["progress"])
            Event().wait(look_s)
            look_s = min(look_s * 1.5, _LOOK_S_MAX)
            made = client.get_backfill(made["jobId"], made["backfillId"])
    return made


def _tell_estimate(session: Session, estimate: Mapping[str, Any]) -> None:
    if session.as_json:
        session.output.json(estimate)
        return
    fires = {"missing": 0, "failed": 0, **estimate["fires"]}
    session.output.say(f"Fires of the window: {', '.join(f'{count} {fate}' for fate, count in fires.items())}.")
    session.output.say(f"{_counted(estimate)}, for about ${estimate['cost']['dollars']:.6f} on AWS.")


def _words(job: str, estimate: Mapping[str, Any]) -> str:
    return f"{visible(job)}: {_counted(estimate)}, for about ${estimate['cost']['dollars']:.6f} on AWS"


def _counted(estimate: Mapping[str, Any]) -> str:
    count, runs = estimate["count"], estimate["runs"]
    return f"{count} {'fire' if count == 1 else 'fires'} in {runs} {'run' if runs == 1 else 'runs'}"


def _tell(session: Session, told: Mapping[str, Any]) -> None:
    session.output.answer(told, _said(told))


def _said(told: Mapping[str, Any]) -> str:
    came = f"{told['succeeded']} of {told['count']} succeeded, {told['failed']} failed"
    return f"Backfill {visible(told['backfillId'])} of {visible(told['jobId'])}, {came}: {told['state']}"
