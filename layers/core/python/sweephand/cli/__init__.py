"""The command line: a thin layer of words and tables over the client."""

from __future__ import annotations

# Each module adds its commands to the program.
from sweephand.cli import (  # noqa: F401
    agent,
    apply,
    backfills,
    code,
    compile,
    datasets,
    files,
    jobs,
    logs,
    people,
    runs,
    secret,
    shared,
    system,
    tasks,
    worker,
)
from sweephand.cli.program import program as main

__all__ = ["main"]
