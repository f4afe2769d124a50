"""What runs printed."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final

import click

from sweephand.cli.runs import fail_with, run
from sweephand.cli.session import Session, job_argument, pass_session
from sweephand.cli.show import local, visible

_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, and the cursor's way
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]?"
)
"""What a terminal would obey."""


@run.command(answers=False, example="sweephand run logs daily-report 20261116T060000Z --follow")
@job_argument
@click.argument("run_id", metavar="RUN")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends; exit code 1 if it failed.")
@click.option("--task", help="Only what this task printed.")
@click.option("--attempt", type=click.IntRange(1), help="Only what this attempt printed; else all in their order.")
@click.option("--tail", type=click.IntRange(1, 1000), metavar="N", help="Begin with the last N lines.")
@click.option("-t", "--times", is_flag=True, help="Begin each line with its time, its stream and its attempt.")
@click.option("--raw", is_flag=True, help="On a terminal, too, pass on what steers it, such as colours.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document in each line, for programs.")
@pass_session
def logs(session: Session, /, job: str, run_id: str, follow: bool, **how: Any) -> None:
    """Show what a run's attempts printed.

    On a terminal, control sequences are taken out, since they come from other people's programs; a pipe gets what was
    printed as it was.
    """
    client, out = session.client, sys.stdout
    as_it_is = how["raw"] or not out.isatty()
    chosen = {name: how[name] for name in ("task", "attempt", "tail")}
    for line in client.log_lines(job, run_id, **chosen, follow=follow):
        if how["as_json"]:
            out.write(json.dumps(line) + "\n")
        else:
            text = str(line["text"])
            about = f"{local(line['at'])} {line['stream']:<6} {line['attempt']}  " if how["times"] else ""
            out.write(about + (text if as_it_is else harmless(text)) + "\n")
        if follow:
            out.flush()
    if follow:
        fail_with(client.run(job, run_id))


def harmless(text: str) -> str:
    """The text without control sequences; what else would not be seen is written out, but for tabs."""
    return "\t".join(visible(part) for part in _SEQUENCE.sub("", text).split("\t"))
