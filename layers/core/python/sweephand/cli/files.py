"""Commands about job files that are scanned."""

from __future__ import annotations

from typing import Any

import click

from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.cli.show import Column, at, field, visible


def _jobs(file: Any) -> str:
    return visible(", ".join(f"{one['jobId']} (version {one['version']})" for one in file["jobs"])) or "-"


def _errors(file: Any) -> str:
    told = (f"{one['path']}: {one['message']}" if one["path"] else one["message"] for one in file["errors"])
    return visible("; ".join(told)) or "-"


@program.command(example="sweephand files --wrong")
@click.option("--wrong", is_flag=True, help="Only those with errors.")
@pass_session
def files(session: Session, wrong: bool) -> None:
    """List the job files that the server scans, and what became of each."""
    columns = (
        field("path", "FILE"),
        field("status"),
        Column("JOBS", _jobs),
        Column("ERRORS", _errors),
        at("scannedAt", "SCANNED"),
    )
    found = session.client.files(status="error" if wrong else None)
    session.output.rows(found, columns, none="No such files are scanned here.")
