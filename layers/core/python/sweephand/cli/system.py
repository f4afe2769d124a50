"""Commands about the server itself, and about the shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import get_completion_class

from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.cli.show import Column, at, field
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
@click.option("--no-examples", is_flag=True, help="Begin without the example jobs.")
@click.option("-v", "--verbose", is_flag=True, help="Say what it does.")
@click.pass_context
def up(
    context: click.Context, engine: str, port: int, data: Path, workers: int, no_examples: bool, verbose: bool
) -> None:
    """Start Sweephand on this machine, for this machine only."""
    # Imported late: a command that asks a server needs no server.
    from sweephand.local.up import up as serve

    context.exit(serve(data=data, port=port, examples=not no_examples, workers=workers, engine=engine, verbose=verbose))


def _counts(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {state}" for state, count in row["runs"].items()) or "none"


def _skew(row: Mapping[str, Any]) -> str:
    skew = row["skewMs"]
    return f"p50 {skew['p50']} ms, p99 {skew['p99']} ms" if skew["p50"] is not None else "-"


_STATS: Final = (
    field("jobs"),
    Column("runs of the last day", _counts),
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
