"""Commands about datasets."""

from __future__ import annotations

from typing import Any

import click

from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.cli.show import Column, at, field, visible


def _publishers(dataset: Any) -> str:
    named = (f"{one['jobId']}/{one['taskId']}" if one["taskId"] else one["jobId"] for one in dataset["publishers"])
    return visible(", ".join(named)) or "-"


def _subscribers(dataset: Any) -> str:
    return visible(", ".join(one["jobId"] for one in dataset["subscribers"])) or "-"


@program.command(example="sweephand datasets")
@pass_session
def datasets(session: Session) -> None:
    """List the datasets: who publishes them, who runs when they are updated."""
    columns = (
        field("id", "DATASET"),
        Column("PUBLISHED BY", _publishers),
        Column("RUNS", _subscribers),
        at("updatedAt", "LAST UPDATE"),
        field("updateId", "UPDATE"),
    )
    session.output.rows(
        session.client.datasets(), columns, none="There are no datasets: a job that publishes one makes it."
    )


@program.command(example="sweephand publish sales.daily --id 2027-06-15")
@click.argument("dataset")
@click.option("--id", "id_", metavar="ID", help="What names the update: the same again is the same update.")
@pass_session
def publish(session: Session, dataset: str, id_: str | None) -> None:
    """Say that a dataset was updated; who subscribes to it runs."""
    answer = session.client.update_dataset(dataset, id_=id_)
    made = ", ".join(f"{visible(run['jobId'])} ({visible(run['runId'])})" for run in answer["runs"])
    session.output.answer(answer, f"{visible(dataset)} is updated. " + (f"It runs {made}." if made else "Nobody runs."))
