"""Another process on the same file: `python -m tests.contract.rival <what> <path> <owner>`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from typing import Final

from sweephand.clock import SystemClock
from sweephand.embedded import Stores, open_stores
from sweephand.messages import AttemptRun
from sweephand.ports import Lane, Letter
from tests.contract.samples import HOUR, MINUTE, NOW, SECOND, claimed, key_of, run_at

ROUNDS: Final = 150
WRITERS: Final = 4


@contextmanager
def rival(what: str, path: Path, owner: str = "rival") -> Iterator[Popen[str]]:
    """The process, which is killed in the end."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", __name__, what, str(path), owner]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=root) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: Popen[str]) -> str:
    """The next line that the process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: Popen[str]) -> None:
    """Have the process go on."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def all_told(process: Popen[str]) -> list[str]:
    """All that the process says until its end."""
    return list(iter(lambda: told(process), "end"))


# What the process does.


def say(text: str) -> None:
    """One call: two threads' lines must not mix."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def ready() -> None:
    """Both are there: go."""
    say("ready")
    sys.stdin.readline()


def open_file(path: str, owner: str) -> None:
    """Open the file at the same moment as the others."""
    ready()
    stores = open_stores(path, clock=SystemClock())
    say(f"{owner} {stores.shards.count()}")
    stores.close()


def race(path: str, owner: str) -> None:
    """Create, claim and receive what another process creates, claims and receives as well; say what was won."""
    stores = open_stores(path, clock=SystemClock())
    ready()
    for n in range(ROUNDS):
        run = run_at(NOW + n * SECOND, nonce=owner)
        if stores.runs.create([run]) == [True]:
            say(f"created {n}")
        if stores.runs.move(run, claimed(run, f"{owner}-{n}", owner=owner)):
            say(f"claimed {n}")
        for delivery in stores.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE):
            say(f"received {delivery.receipt.partition('.')[0]}")
    _climb(stores, owner)
    say("end")


def _climb(stores: Stores, owner: str) -> None:
    """Move one run step by step, against the other; say which steps were won."""
    key = run_at(NOW - HOUR).key
    stores.runs.create([run_at(NOW - HOUR, nonce=owner)])
    while (run := stores.runs.get(key)) is not None and run.rev < ROUNDS:
        if stores.runs.move(run, run.fenced(now=NOW, nonce=f"{owner}-{run.rev}")):
            say(f"climbed {run.rev}")


def write(path: str, owner: str) -> None:
    """Write until killed, saying what was acknowledged."""
    stores = open_stores(path, clock=SystemClock())
    threads = [Thread(target=_write_on, args=(stores, f"{owner}-{n}")) for n in range(WRITERS)]
    for thread in threads:
        thread.start()


def _write_on(stores: Stores, name: str) -> None:
    n = 0
    while True:
        run = run_at(NOW + n * SECOND, key_of(name))
        stores.runs.create([run])
        stores.queue.send([Letter(AttemptRun(run.key))])
        say(str(run.key))
        n += 1


def send(path: str, owner: str) -> None:
    """Send one message when told to."""
    stores = open_stores(path, clock=SystemClock())
    ready()
    stores.queue.send([Letter(AttemptRun(run_at(nonce=owner).key), delay=timedelta(0))])
    sys.stdin.readline()


if __name__ == "__main__":
    {"open": open_file, "race": race, "write": write, "send": send}[sys.argv[1]](*sys.argv[2:])
