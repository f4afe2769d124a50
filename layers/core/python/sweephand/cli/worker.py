"""`sweephand worker`: an external worker that runs a command for every run that it is given."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, Final

import click

from sweephand.cli.documents import strict_json
from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.cli.show import visible
from sweephand.clock import SystemDice
from sweephand.domain.fields import json_bytes
from sweephand.domain.limits import OUTPUT_BYTES_MAX, OUTPUT_KEPT_MAX
from sweephand.errors import Conflict, Defect, InvalidInput, NotFound, Refused, SweephandError, TooMany, Unavailable
from sweephand.secrets import Redactor

if TYPE_CHECKING:
    from sweephand.client import Client

ASK_S: Final = 5
"""How long the server may hold a question for work: as long as this, a worker that is to stop goes on."""
BEAT_S: Final = 10.0
PATIENCE_S: Final = 5.0
ERROR_CHARS_MAX: Final = 1_000
"""Of what is wrong, as much as the server takes."""

_SECRETS: Final = frozenset({"SWEEPHAND_TOKEN"})
_KEPT_BACK: Final = frozenset({"lease", "secrets"})


@program.command(example="sweephand worker --queue reports -- python make_report.py", answers=False)
@click.option("--queue", "queues", multiple=True, default=["default"], show_default=True, help="Where work comes from.")
@click.option("--id", "worker_id", help="The worker's name; else made of this machine's.")
@click.option("--max", "most", type=click.IntRange(1, 100), default=1, show_default=True, help="Runs at a time.")
@click.option("--once", is_flag=True, help="End after the first run.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@pass_session
def worker(
    session: Session, queues: tuple[str, ...], worker_id: str | None, most: int, once: bool, command: tuple[str, ...]
) -> None:
    """Run COMMAND for every run of a queue, until Ctrl-C.

    The run is JSON on the command's standard input, and SWEEPHAND_… variables; its secrets are variables of the names
    that its task gives them. What it prints becomes the run's
    output, as JSON if it is JSON; an exit code other than 0 is a failure.
    """
    name = worker_id or f"{socket.gethostname()}-{os.getpid()}-{SystemDice().nonce()[:6]}"
    pulling = Pulling(session.client, name, queues, command, once=once)
    with _until_told(pulling):
        click.echo(f"Worker {visible(name)} pulls from {visible(', '.join(queues))}.", err=True)
        threads = [Thread(target=pulling.pull, daemon=True) for _ in range(1 if once else most)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if pulling.error is not None:
        raise pulling.error


class Pulling:
    """What the threads of one worker share."""

    def __init__(self, client: Client, name: str, queues: Sequence[str], command: Sequence[str], *, once: bool) -> None:
        self.stopping = Event()
        self.killing = Event()
        self.error: SweephandError | None = None
        self._client = client
        self._name = name
        self._queues = queues
        self._command = command
        self._once = once

    def pull(self) -> None:
        """Ask for work and do it, one run at a time. A thread that cannot go on ends the worker, with its error."""
        try:
            while not self.stopping.is_set():
                self._pull_once()
        except SweephandError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001  # it is told by the main thread, where it ends the program
            self.error = Defect(f"The worker cannot go on: {_told(error)}")
        finally:
            self.stopping.set()

    def _pull_once(self) -> None:
        try:
            leases = self._client.leases.lease(self._name, labels=self._queues, max_=1, wait_s=ASK_S)
        except (Unavailable, TooMany) as trouble:
            _log(f"{trouble.message} Asking again.")
            self.stopping.wait(PATIENCE_S)
            return
        for lease in leases:
            self._do(lease)
        if leases and self._once:
            self.stopping.set()

    def _do(self, lease: Mapping[str, Any]) -> None:
        """One piece of work, whatever happens to it: the next one is not to suffer."""
        about = f"{_field(lease, 'jobId')} {_field(lease, 'runId')}"
        try:
            try:
                _log(f"{about}: {self._attempt(lease)}")
            except (Conflict, NotFound, Refused, TooMany, Unavailable):
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is, the run has failed here, and says so
                _log(f"{about}: failed: {_told(error)}")
                self._fail(lease, f"The worker failed: {_told(error)}")
        except (Conflict, NotFound) as gone:
            # Safe: whoever has the run now reports about it.
            _log(f"{about}: not ours any more. {gone.message}")
        except Exception as trouble:  # noqa: BLE001  # safe: the lease ends by itself, and the run is tried again
            _log(f"{about}: the report was not taken. {_told(trouble)}")

    def _fail(self, lease: Mapping[str, Any], error: str, class_: str = "transient") -> None:
        self._client.leases.fail(str(lease["lease"]), int(lease["epoch"]), _sendable(error)[:ERROR_CHARS_MAX], class_)

    def _attempt(self, lease: Mapping[str, Any]) -> str:
        id_, epoch = str(lease["lease"]), int(lease["epoch"])
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
            # Without the lease's own id, since only the worker reports; and secrets are in no file.
            given.write(json.dumps({name: value for name, value in lease.items() if name not in _KEPT_BACK}).encode())
            given.seek(0)
            try:
                process = subprocess.Popen(
                    self._command, stdin=given, stdout=printed, env=_environ(lease), start_new_session=True
                )
            except OSError as error:
                self._fail(lease, f"{self._command[0]}: {error.strerror}", "permanent")
                return f"failed: {error.strerror}"
            with _ended(process):
                code = self._wait(process, id_, epoch)
            if code != 0:
                self._fail(lease, f"The command exited with {code}.")
                return f"failed with exit code {code}"
            self._client.leases.complete(id_, epoch, _output(printed, Redactor(_values(lease).values())))
            return "completed"

    def _wait(self, process: subprocess.Popen[bytes], lease: str, epoch: int) -> int:
        """The exit code; while it is awaited, the lease is kept."""
        since_beat_s, step_s = 0.0, 1.0
        while True:
            try:
                return process.wait(step_s)
            except subprocess.TimeoutExpired:
                since_beat_s += step_s
            if self.killing.is_set():
                process.terminate()
            if since_beat_s >= BEAT_S:
                since_beat_s = 0.0
                try:
                    self._client.leases.heartbeat(lease, epoch)
                except (Unavailable, TooMany):
                    pass  # safe: the lease outlives some lost heartbeats


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave no process behind: one whose lease is lost must not go on."""
    try:
        yield
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # safe: it ended with all its children
        process.wait()


@contextmanager
def _until_told(pulling: Pulling) -> Iterator[None]:
    """The first signal lets what is under way end, the second ends it."""

    def hear(_number: int, _frame: FrameType | None) -> None:
        if pulling.stopping.is_set():
            pulling.killing.set()
        pulling.stopping.set()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _log(text: str) -> None:
    try:
        click.echo(visible(text), err=True)
    except (OSError, ValueError):
        pass  # safe: nobody reads it any more, and the work goes on


def _told(error: Exception) -> str:
    return error.message if isinstance(error, SweephandError) else f"{type(error).__name__}: {error}"


def _sendable(text: str) -> str:
    """The text without what UTF-8 cannot carry."""
    return text.encode(errors="replace").decode()


def _field(lease: Mapping[str, Any], name: str) -> str:
    value = lease.get(name)
    return "" if value is None else str(value)


def _environ(lease: Mapping[str, Any]) -> dict[str, str]:
    """What a command of Sweephand knows of its run; the worker's own token is none of its business."""
    known = {
        "JOB": _field(lease, "jobId"),
        "RUN_ID": _field(lease, "runId"),
        "TASK_ID": _field(lease, "taskId"),
        "ATTEMPT": _field(lease, "attempt"),
        "FIRE_AT": _field(lease, "fireAt"),
        "IDEMPOTENCY_KEY": _field(lease, "idempotencyKey"),
        "PARAMS": json.dumps(lease.get("params") or {}),
    }
    inherited = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    return inherited | _values(lease) | {f"SWEEPHAND_{name}": value.replace("\0", "") for name, value in known.items()}


def _values(lease: Mapping[str, Any]) -> dict[str, str]:
    """The secrets of the run, by the names that its task gives them."""
    return {str(name): str(value) for name, value in (lease.get("secrets") or {}).items()}


def _output(printed: IO[bytes], redact: Redactor) -> object:
    """JSON where it is that, and can be kept, else text; of more text than a run can keep, its end.

    Values of secrets are taken out here too: of one that was cut, the server would not recognise the rest.
    """
    size = printed.seek(0, os.SEEK_END)
    if size <= OUTPUT_KEPT_MAX:
        printed.seek(0)
        text = redact(printed.read().decode(errors="replace")).strip()
        try:
            return strict_json(text) if text else None
        except (json.JSONDecodeError, InvalidInput):
            pass  # safe: the text itself is kept
    printed.seek(max(0, size - OUTPUT_BYTES_MAX))
    text = redact(printed.read().decode(errors="replace"), cut_before=size > OUTPUT_BYTES_MAX).strip()
    # What is written as an escape takes more than it did.
    while json_bytes(text) > OUTPUT_BYTES_MAX:
        text = text[len(text) // 4 + 1 :]
    return text or None
