"""A child process and its group: started, drained, ended, and nothing left of it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import IO, Final

KEPT_BYTES: Final = 65_536
"""What is kept of each stream: its end."""
GRACE: Final = timedelta(seconds=5)
"""How long a group has to end after SIGTERM."""
_DRAIN_S: Final = 1.0
"""How long the last output is waited for, where somebody who left the group holds on to the pipe."""
_CHUNK: Final = 65_536


class Cause(Enum):
    """Why the wait for a process was over."""

    EXITED = auto()
    TIMED_OUT = auto()
    STOPPED = auto()


class Tail:
    """The last bytes of a stream."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        self._bytes += data
        if len(self._bytes) > 2 * KEPT_BYTES:  # not each time: it moves what it keeps
            del self._bytes[:-KEPT_BYTES]

    def text(self) -> str:
        """What was kept, with a mark for every byte that is no text."""
        return self._bytes[-KEPT_BYTES:].decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


class Process:
    """A program in a session of its own. `wait` belongs to one thread; `stop` may come from any.

    Used with `with`: at its end no process of the group is alive, and no descriptor is open. What left the group by a
    session of its own is not followed.
    """

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self.out = Tail()
        self.err = Tail()
        self.code: int | None = None
        """The exit code, negative for a signal; None until the end, or where somebody else took it."""
        self._changed = threading.Condition()
        self._ended = False
        self._taken = False
        self._stop_asked = False
        self._drained = threading.Event()
        self._enough_read, self._enough_write = os.pipe()
        self._threads: list[threading.Thread] = []
        try:
            self._child = subprocess.Popen(
                list(argv),
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=dict(env),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._enough_write)
            os.close(self._enough_read)
            raise
        try:
            for work in (self._drain, self._watch):
                thread = threading.Thread(target=work, name=f"sweephand-{work.__name__.strip('_')}", daemon=True)
                thread.start()
                self._threads.append(thread)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def stop(self) -> None:
        """Have the waiting thread end the group; does not wait."""
        with self._changed:
            self._stop_asked = True
            self._changed.notify_all()

    def wait(self, timeout: timedelta, *, grace: timedelta = GRACE) -> Cause:
        """Return when the program ended by itself; else end its group, with a grace, when it is time or asked for."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._stop_asked, timeout.total_seconds())
            if self._ended:
                return Cause.EXITED
            cause = Cause.STOPPED if self._stop_asked else Cause.TIMED_OUT
        self._signal_group(signal.SIGTERM)
        with self._changed:
            ended = self._changed.wait_for(lambda: self._ended, grace.total_seconds())
        if ended:
            # Its children have a grace too: while they live, they hold the pipes.
            self._drained.wait(grace.total_seconds())
        return cause

    def close(self) -> None:
        """Kill what is left of the group, and let everything go."""
        # The number is still the group's own: the child is not reaped before the group is gone.
        self._signal_group(signal.SIGKILL)
        for thread in self._threads[1:]:
            thread.join()
        code = self._child.wait()
        self.code = None if self._taken else code
        if self._threads:
            self._drained.wait(_DRAIN_S)
        os.close(self._enough_write)
        for thread in self._threads[:1]:
            thread.join()
        os.close(self._enough_read)
        for pipe in self._pipes():
            pipe.close()

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left, or only the dead, as macOS puts it
            os.killpg(self._child.pid, number)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        return self._child.stdout, self._child.stderr

    def _watch(self) -> None:
        """Notice the end without reaping, so that the group's number cannot become another's before it is killed."""
        try:
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
            else:
                self._child.wait()  # macOS before Python 3.13
        except ChildProcessError:
            self._taken = True  # SIGCHLD is ignored in this process: the kernel reaps, and nobody learns the code
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _drain(self) -> None:
        """Read both streams until their ends, or until there is enough, so that the child never waits for a reader."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._enough_read, selectors.EVENT_READ)
            for pipe, tail in zip(self._pipes(), (self.out, self.err), strict=True):
                selector.register(pipe, selectors.EVENT_READ, tail)
            while len(selector.get_map()) > 1:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    data = os.read(key.fd, _CHUNK)
                    if data:
                        key.data.add(data)
                    else:
                        selector.unregister(key.fileobj)
        self._drained.set()
