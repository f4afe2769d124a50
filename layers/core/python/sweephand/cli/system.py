"""Commands about the server itself, and about the shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import get_completion_class

from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.cli.show import NOTHING, Column, at, field, local
from sweephand.errors import InvalidInput

SHELLS: Final = ("bash", "zsh", "fish")


@program.command(example="sweephand up --port 8080 --data .sweephand", answers=False)
@click.option(
    "--engine",
    type=click.Choice(["sqlite", "moto"]),
    default="sqlite",
    show_default=True,
    help="moto: the Lambda functions, on AWS in memory.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free one.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), default=".sweephand", show_default=True)
@click.option("--workers", type=click.IntRange(1, 256), default=8, show_default=True, help="Attempts at a time.")
@click.option(
    "--http-may-reach",
    metavar="PLACE",
    multiple=True,
    help="A network or host that http tasks may reach besides public ones: 10.1.0.0/16, billing.internal:8443.",
)
@click.option(
    "--task-limit",
    metavar="NAME=N",
    multiple=True,
    help="What a program of a task may take: memory=512 (MB), cpuTime=10m, cpu=2, processes=200, file, output (MB).",
)
@click.option("--no-examples", is_flag=True, help="Begin without the example jobs.")
@click.option("--aws-target", multiple=True, metavar="ARN", help="AWS resources that tasks may call; * and ? match.")
@click.option("--aws-action", multiple=True, metavar="SERVICE:ACTION", help="What awsSdk tasks may call.")
@click.option(
    "--containers-as-processes", is_flag=True, help="Run the commands of containers here, without their images."
)
@click.option(
    "--container-image",
    multiple=True,
    metavar="IMAGE",
    help="Of which images containers may be made; * matches, as in team/* or *@sha256:*. Without it: of any.",
)
@click.option(
    "--jobs",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="A folder of job files (YAML, JSON) that is scanned for changes.",
)
@click.option("--keep-jobs", is_flag=True, help="Keep jobs whose files are removed.")
@click.option("-v", "--verbose", is_flag=True, help="Say what it does.")
@click.pass_context
def up(
    context: click.Context,
    engine: str,
    port: int,
    data: Path,
    workers: int,
    http_may_reach: tuple[str, ...],
    task_limit: tuple[str, ...],
    no_examples: bool,
    aws_target: tuple[str, ...],
    aws_action: tuple[str, ...],
    containers_as_processes: bool,
    container_image: tuple[str, ...],
    jobs: Path | None,
    keep_jobs: bool,
    verbose: bool,
) -> None:
    """Start Sweephand on this machine, for this machine only."""
    # Imported late: a command that asks a server needs no server.
    from sweephand.local.up import up as serve

    code = serve(
        data=data,
        port=port,
        examples=not no_examples,
        workers=workers,
        engine=engine,
        verbose=verbose,
        http_may_reach=http_may_reach,
        task_limits=task_limit,
        aws_targets=aws_target,
        aws_actions=aws_action,
        containers_as_processes=containers_as_processes,
        container_images=container_image,
        jobs=jobs,
        keep_jobs=keep_jobs,
    )
    context.exit(code)


def _counts(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {state}" for state, count in row["runs"].items()) or "none"


def _skew(row: Mapping[str, Any]) -> str:
    skew = row["skewMs"]
    return f"p50 {skew['p50']} ms, p99 {skew['p99']} ms" if skew["p50"] is not None else "-"


def _late(row: Mapping[str, Any]) -> str:
    late = row.get("late") or {"count": 0}
    return f"{late['count']}, the oldest since {local(late['oldestAt'])}" if late["count"] else NOTHING


def _rate(row: Mapping[str, Any]) -> str:
    rate = (row.get("lastDay") or {}).get("successRate")
    return NOTHING if rate is None else f"{rate:.1%}"


_STATS: Final = (
    field("jobs"),
    Column("runs of the last day", _counts),
    Column("succeeded of those that ended", _rate),
    field("running"),
    field("queued"),
    Column("kept waiting", _late),
    Column("start after fire time", _skew),
    field("throughputPerMinute", "runs per minute"),
)


@program.command(example="sweephand stats")
@pass_session
def stats(session: Session) -> None:
    """Show counts, lag and throughput."""
    answer = session.client.stats()
    session.output.record(answer, _STATS)


@program.command(example="sweephand health")
@pass_session
def health(session: Session) -> None:
    """Say whether the server answers; needs no token."""
    session.output.record(session.client.health(), (field("status"),))


@program.command(example="sweephand workers")
@pass_session
def workers(session: Session) -> None:
    """List the external workers."""
    columns = (field("workerId", "WORKER"), at("lastSeenAt", "LAST SEEN"), field("holds"))
    session.output.rows(session.client.workers(), columns, none="Nobody pulls work.")


@program.command(example="sweephand completion zsh > ~/.zfunc/_sweephand", answers=False)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands and names of jobs in a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise InvalidInput(f"There is no completion for {shell}.", "shell")
    click.echo(found(program, {}, "sweephand", "_SWEEPHAND_COMPLETE").source())
