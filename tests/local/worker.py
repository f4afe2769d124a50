"""A process that runs a runtime on a file until its standard input ends: what the tests kill.

`python -m tests.local.worker FILE EFFECTS`: every execution is a line in EFFECTS. A line is one append, so that it
survives the process.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from threading import Event
from typing import Final

from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.embedded import PACE, open_stores
from sweephand.local import Runtime

LEASE: Final = timedelta(seconds=3)
"""Short, so that the tests need not wait long for what a killed process held."""
PACE_HERE: Final = replace(PACE, lease=LEASE, sweep_lease=timedelta(seconds=2))
TASK_S: Final = 0.004
"""How long a task takes, so that a kill finds some of them half way."""


class Lines:
    """A file that lines are appended to, each at once."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def add(self, *words: object) -> None:
        os.write(self._descriptor, (" ".join(map(str, words)) + "\n").encode())


class Effects:
    """The target: its side effect, then the rest of its work."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def execute(self, call: Call) -> Outcome:
        self._lines.add(call.idempotency_key, call.run.attempt, os.getpid())
        Event().wait(TASK_S)
        return Succeeded({"pid": os.getpid()})


def main(file: str, effects: str) -> None:
    clock = SystemClock()
    stores = open_stores(file, clock=clock)
    with Runtime(stores, target=Effects(Lines(effects)), clock=clock, dice=SystemDice(), pace=PACE_HERE):
        sys.stdin.read()
    stores.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
