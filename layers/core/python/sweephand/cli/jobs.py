"""Commands about jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from sweephand.cli.apply import in_words
from sweephand.cli.documents import read_one, shown_yaml, to_yaml
from sweephand.cli.program import program
from sweephand.cli.session import Session, agreed, job_argument, job_names, moment, pass_session
from sweephand.cli.show import Column, at, field, local, progress, visible
from sweephand.domain.ids import check_name
from sweephand.errors import Conflict, InvalidInput

__all__ = ["definition_of"]

CATCHUPS: Final = ("none", "latest", "all")

_ABOUT_JOB: Final = frozenset(
    {
        *("jobId", "version", "status", "createdAt", "createdBy", "updatedAt"),
        *("nextFireAt", "nextFires", "lastRun", "startedAt", "progress"),
    }
)
"""What the server says about a job beside its definition."""

_HEAD: Final = (
    field("jobId", "job"),
    field("status"),
    field("version"),
    at("nextFireAt", "next fire"),
    field("lastRun.state", "last run"),
    at("lastRun.endedAt", "ended"),
    at("startedAt", "running since"),
    field("progress"),
    at("updatedAt", "changed"),
    field("createdBy", "created by"),
)


def definition_of(job: dict[str, Any]) -> dict[str, Any]:
    """The definition alone, as a file would say it."""
    return {name: value for name, value in job.items() if name not in _ABOUT_JOB}


def _occasion(said: Any) -> str:
    """A schedule's main value: a text, the names of jobs or datasets, or the sources of events."""
    if isinstance(said, dict):
        quantity = "any" if said.get("any") else "all"
        window = f" {said['window']}" if said.get("window") else ""
        return f"{quantity} of {_occasion(said.get(quantity) or [])}{window}"
    if not isinstance(said, list):
        return str(said)
    return ", ".join(str(one.get("source")) if isinstance(one, dict) else str(one) for one in said)


def _when(job: Any) -> str:
    schedule = job.get("schedule")
    if isinstance(schedule, str):
        return visible(schedule)
    said = schedule or {}
    for kind in ("cron", "every", "at", "after", "datasets", "events"):
        if said.get(kind):
            zone = said.get("timezone")
            text = _occasion(said[kind])
            return visible(f"{text if kind == 'cron' else f'{kind} {text}'}{f' {zone}' if zone else ''}")
    return "-"


@program.command("list", example="sweephand list --tag finance --status paused")
@click.option("--prefix", help="Names that begin so.")
@click.option("--tag", help="Jobs with this tag.")
@click.option("--status", type=click.Choice(["active", "paused", "running"]), help="Jobs of this status.")
@click.option("--search", help="Jobs with this text in their name, a tag or the beginning of their description.")
@pass_session
def list_(session: Session, prefix: str | None, tag: str | None, status: str | None, search: str | None) -> None:
    """List the jobs."""
    columns = (
        field("jobId", "JOB"),
        field("status"),
        Column("SCHEDULE", _when),
        at("nextFireAt", "NEXT FIRE"),
        field("lastRun.state", "LAST RUN"),
        field("tags"),
    )
    jobs = session.client.jobs(prefix=prefix, tag=tag, status=status, search=search)
    session.output.rows(jobs, columns, none="There are no such jobs. `sweephand apply -f FILE` makes one.")


@program.command(example="sweephand get daily-report")
@job_argument
@pass_session
def get(session: Session, job: str) -> None:
    """Show a job: how it is, and its definition."""
    found = session.client.get(job)
    session.output.record(found, _HEAD)
    session.output.say("\n" + shown_yaml(definition_of(found)))


@program.command(example="sweephand delete daily-report --yes")
@click.argument("jobs", nargs=-1, required=True, shell_complete=job_names)
@click.option("--cancel", is_flag=True, help="Cancel active runs too; else they finish.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def delete(session: Session, jobs: tuple[str, ...], cancel: bool, yes: bool) -> None:
    """Delete jobs; what they did stays on record."""
    agreed(f"Delete {', '.join(map(visible, jobs))}?", yes=yes)
    for job in jobs:
        session.client.delete(job, cancel=cancel)
        session.output.say(f"{visible(job)} is deleted: nothing of it fires any more.")
    if session.as_json:
        session.output.json([{"jobId": job, "status": "deleted"} for job in jobs])


def _chosen(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose jobs."""
    command = click.option("--all", "everything", is_flag=True, help="Every job of the namespace.")(command)
    command = click.option("--tag", help="Every job with this tag.")(command)
    return click.argument("jobs", nargs=-1, shell_complete=job_names)(command)


def _choose(session: Session, jobs: tuple[str, ...], tag: str | None, everything: bool) -> list[str]:
    if sum([bool(jobs), tag is not None, everything]) != 1:
        raise click.UsageError("Give names of jobs, or --tag, or --all.")
    return [*jobs] if jobs else [job["jobId"] for job in session.client.jobs(tag=tag)] if tag else []


@program.command(example="sweephand pause --tag finance")
@_chosen
@pass_session
def pause(session: Session, jobs: tuple[str, ...], tag: str | None, everything: bool) -> None:
    """Pause jobs: nothing of them fires until they are resumed."""
    names = _choose(session, jobs, tag, everything)
    if everything:
        pages = session.client.namespaces.pause(session.namespace)
        tell_pages(session, pages, "Paused")
        return
    _each(session, names, session.client.pause, "paused")


@program.command(example="sweephand resume daily-report --catchup latest")
@_chosen
@click.option("--catchup", type=click.Choice(CATCHUPS), default="none", help="What of the pause is made up for.")
@click.option("--dry-run", is_flag=True, help="Only say what would run.")
@pass_session
def resume(
    session: Session, jobs: tuple[str, ...], tag: str | None, everything: bool, catchup: str, dry_run: bool
) -> None:
    """Resume jobs."""
    names = _choose(session, jobs, tag, everything)
    if everything:
        if dry_run:
            raise click.UsageError("--dry-run needs names of jobs, or --tag.")
        tell_pages(session, session.client.namespaces.resume(session.namespace, catchup=catchup), "Resumed")
        return
    done = "would be resumed" if dry_run else "active"
    _each(session, names, lambda job: session.client.resume(job, catchup=catchup, dry_run=dry_run), done)


def tell_pages(session: Session, pages: Iterable[dict[str, Any]], done: str) -> None:
    """Follow a call that changes one page of jobs at a time to its end."""
    changed = 0
    with progress(done, None) as told:
        for page in pages:
            changed += int(page.get("changed") or 0)
            told(changed)
    session.output.answer({"changed": changed}, f"{done} {changed} {'job' if changed == 1 else 'jobs'}.")


def _each(session: Session, names: list[str], change: Callable[[str], dict[str, Any]], done: str) -> None:
    answers = []
    with progress("Changing", len(names)) as told:
        for count, name in enumerate(names, 1):
            answers.append(change(name))
            told(count)
    if session.as_json:
        session.output.json(answers)
    for name, answer in zip(names, answers, strict=True):
        fires = answer.get("fires")
        extra = f", and makes up for {len(fires)} fires" if isinstance(fires, list) and fires else ""
        session.output.say(f"{visible(name)} is {done}{extra}.")
    if not names:
        session.output.say("There are no such jobs.")


@program.command(example="sweephand fires daily-report --count 5")
@job_argument
@click.option("--from", "start", help="A time; now if not given.")
@click.option("--to", "end", help="A time.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many.")
@pass_session
def fires(session: Session, job: str, start: str | None, end: str | None, count: int) -> None:
    """Show when a job will fire."""
    found = session.client.fires(job, start=moment(start, path="from"), end=moment(end, path="to"), count=count)
    columns = (at("fireAt", "FIRE"), field("fireAt", "UTC"), field("local", "IN ITS ZONE"), field("note"))
    session.output.rows(found, columns, none="It fires at no time of its own.")


@program.command(example="sweephand upcoming --within 2h")
@click.option("--within", default="1h", show_default=True, help="How far ahead, such as 2h or 7d.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="The most to show.")
@pass_session
def upcoming(session: Session, within: str, limit: int) -> None:
    """Show what fires next, whichever job it is."""
    found = session.client.upcoming(within=within, limit=limit)
    columns = (at("fireAt", "FIRE"), field("jobId", "JOB"), field("local", "IN ITS ZONE"), field("note"))
    session.output.rows(found["items"], columns, none=f"Nothing fires within {within}.")
    if found["truncated"]:
        click.echo("There are too many jobs to look at them all: others may fire sooner.", err=True)


@program.command(example="sweephand ledger daily-report --from 2d")
@job_argument
@click.option("--from", "start", help="A time, or how long ago.")
@click.option("--to", "end", help="A time, or how long ago.")
@pass_session
def ledger(session: Session, job: str, start: str | None, end: str | None) -> None:
    """Show what became of every nominal fire of a job."""
    rows = session.client.ledger(job, start=moment(start, path="from"), end=moment(end, path="to"))
    columns = (
        at("fireAt", "FIRE"),
        field("status"),
        field("runId", "RUN"),
        field("skewMs", "SKEW MS"),
        field("reason"),
    )
    session.output.rows(rows, columns, none="No fire falls in that time.")


@program.command(example="sweephand why daily-report")
@job_argument
@click.argument("run", required=False)
@click.option("--task", help="A task of the run.")
@pass_session
def why(session: Session, job: str, run: str | None, task: str | None) -> None:
    """Say why a job, a run or a task is not running."""
    if task is not None and run is None:
        raise click.UsageError("A task belongs to a run: give the run too.")
    answer = session.client.why(job, run, task)
    if session.as_json:
        session.output.json(answer)
        return
    session.output.say(visible(str(answer.get("summary") or answer.get("status"))))
    for blocker in answer.get("blockers") or ():
        session.output.say(f"  {visible(str(blocker.get('code')))}: {visible(str(blocker.get('detail') or ''))}")
        if blocker.get("remedy"):
            session.output.say(f"    do: {visible(str(blocker['remedy']))}")
    if answer.get("nextFireAt"):
        session.output.say(f"Next fire: {local(answer['nextFireAt'])}")


@program.command(example="sweephand plan -f daily-report.yaml")
@click.option("-f", "--file", "name", required=True, metavar="FILE", help="A job file, or -.")
@pass_session
def plan(session: Session, name: str) -> None:
    """Say what a definition would mean: its fires, notes and load; nothing is stored."""
    answer = session.client.plan(read_one(name))
    if session.as_json:
        session.output.json(answer)
        return
    session.output.say(in_words(answer))
    for note in answer.get("notes") or ():
        session.output.say(f"note: {visible(str(note))}")
    for line in answer["difference"].get("summary") or ["no change"]:
        session.output.say(visible(line))


@program.command(example="sweephand versions daily-report")
@job_argument
@pass_session
def versions(session: Session, job: str) -> None:
    """List the versions of a job's definition, with what each changed."""
    if session.as_json:
        session.output.rows(session.client.versions(job), (field("version"),), none="")
        return
    for version in session.client.versions(job):
        session.output.say(
            f"version {version['version']}  {local(version['createdAt'])}  {visible(version['createdBy'])}"
        )
        for line in version.get("summary") or ["no change"]:
            session.output.say(f"    {visible(line)}")


@program.command(example="sweephand rollback daily-report 3")
@job_argument
@click.argument("version", type=click.IntRange(min=1))
@pass_session
def rollback(session: Session, job: str, version: int) -> None:
    """Go back to an old version, as a new one."""
    answer = session.client.rollback(job, version)
    session.output.answer(answer, f"{visible(job)} is at version {answer.get('version')}: as version {version} was.")


@program.command(example="sweephand export jobs/")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite files that say something else.")
@pass_session
def export(session: Session, folder: str, force: bool) -> None:
    """Write a job file for every job to a folder; `sweephand apply -f` takes them back."""
    written = []
    jobs = [*session.client.jobs()]
    with progress("Writing", len(jobs)) as told:
        for done, job in enumerate(jobs, 1):
            # A name from the server becomes a path: it must be a name.
            name = check_name(job["jobId"], path="jobId")
            written.append(_write(Path(folder), name, to_yaml(definition_of(job)), force))
            told(done)
    answer = {"files": [str(path) for path in written]}
    session.output.answer(answer, f"Wrote {len(written)} {'file' if len(written) == 1 else 'files'} to {folder}.")


def _write(folder: Path, name: str, text: str, force: bool) -> Path:
    path = folder / f"{name}.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not force and path.exists() and path.read_text(encoding="utf-8") != text:
            raise Conflict(f"{path} is there and says something else: --force overwrites it.")
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
    return path
