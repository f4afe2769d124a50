"""A program and all that comes of it: started by a warden, drained, ended, and nothing left of it."""

from __future__ import annotations

import os
import selectors
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from sweephand.domain.bounds import Bounds
from sweephand.logs import Stream
from sweephand.operators.lines import Lines, text_of
from sweephand.operators.wardens import WARDENS, WardenLost

KEPT_BYTES: Final = 65_536
"""What is kept of each stream: its end."""
GRACE: Final = timedelta(seconds=5)
"""How long a group has to end after SIGTERM."""
_DRAIN_S: Final = 1.0
"""How long the last output is waited for, where somebody who could not be found holds on to the pipe."""
_ENDS_S: Final = 10.0
"""How long a warden has to kill what it watches."""
_MEGABYTE: Final = 1_048_576
_CHUNK: Final = 65_536
_A_MOMENT_S: Final = 0.2
"""How long the rest of a line is waited for before its beginning is handed on."""


class Cause(Enum):
    """Why the wait for a process was over."""

    EXITED = auto()
    TIMED_OUT = auto()
    STOPPED = auto()
    BEYOND = auto()
    """It took more than a limit allows."""


class Tail:
    """The last bytes of a stream."""

    __slots__ = ("_bytes", "_cut")

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        self._bytes += data
        if len(self._bytes) > 2 * KEPT_BYTES:  # not each time: it moves what it keeps
            del self._bytes[:-KEPT_BYTES]
            self._cut = True

    @property
    def is_cut(self) -> bool:
        """Whether there was something before what is kept."""
        return self._cut or len(self._bytes) > KEPT_BYTES

    def text(self) -> str:
        """What was kept, with a mark for every byte that is no text."""
        return text_of(self._bytes[-KEPT_BYTES:])


class Process:
    """A program in a session of its own, under a warden. `wait` belongs to one thread; `stop` may come from any.

    Used with `with`: at its end nothing of it is alive, and no descriptor is open. On Linux that includes what left the
    group by a session of its own. What it writes is handed to `lines` as it comes.
    """

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, lines: Lines, bounds: Bounds) -> None:
        self._lines = lines
        self.out = Tail()
        self.err = Tail()
        self.code: int | None = None
        """The exit code, negative for a signal; None until the end, or where its warden was lost."""
        self.beyond: str | None = None
        """The limit that it went beyond."""
        self._room = bounds.output * _MEGABYTE if bounds.output else None
        self._changed = threading.Condition()
        self._ended = False
        self._stop_asked = False
        self._lost = False
        self._drained = threading.Event()
        self._over = threading.Event()
        self._enough_read, self._enough_write = os.pipe()
        out, err = os.pipe(), os.pipe()
        self._pipes: Final = (out[0], err[0])
        try:
            self._warden = WARDENS.take()
        except BaseException:
            self._close_descriptors(out[1], err[1])
            raise
        try:
            self._pid = self._start(argv, env, cwd, bounds, (out[1], err[1]))
            self._thread = threading.Thread(target=self._listen, name="sweephand-listen", daemon=True)
            self._thread.start()
        except BaseException as error:
            if isinstance(error, OSError | ValueError) and not isinstance(error, WardenLost):
                WARDENS.give_back(self._warden)
            else:
                self._warden.close()
            self._close_descriptors()
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
            self._changed.wait_for(lambda: self._ended or self._stop_asked or self.beyond, timeout.total_seconds())
            if self.beyond:
                return Cause.BEYOND
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
        """Have what is left killed, and let everything go."""
        try:
            self._warden.say({})
        except WardenLost:
            self._lose()
        if self._over.wait(_ENDS_S) and not self._lost:
            self._drained.wait(_DRAIN_S)
        os.close(self._enough_write)
        self._thread.join()
        os.close(self._enough_read)
        if self._over.is_set() and not self._lost:
            WARDENS.give_back(self._warden)
        else:
            # Without a warden this is all that can be done; the number is the group's own while any of it lives.
            self._signal_group(signal.SIGKILL)
            self._warden.close()
        self._lines.end()
        for pipe in self._pipes:
            os.close(pipe)

    def _start(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, bounds: Bounds, ends: tuple[int, int]
    ) -> int:
        """Have the warden start the program; its number."""
        limits = {
            "cpu": bounds.cpu,
            "cpuTime": bounds.cpu_time.total_seconds() if bounds.cpu_time else None,
            "memory": bounds.memory,
            "processes": bounds.processes,
            "file": bounds.file,
        }
        order = {
            "argv": list(argv),
            "env": dict(env),
            "cwd": str(cwd),
            "limits": {name: limit for name, limit in limits.items() if limit is not None},
        }
        try:
            self._warden.say(order, ends)
        finally:
            for end in ends:
                os.close(end)
        heard: list[dict[str, Any]] = []
        while not heard:
            heard = self._warden.hear()
        answer = heard[0]
        if "errno" in answer:
            raise OSError(answer["errno"], answer["strerror"], answer["filename"])
        if "invalid" in answer:
            raise ValueError(answer["invalid"])
        for message in heard[1:]:
            self._understand(message)
        pid: int = answer["pid"]
        return pid

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left, or only the dead, as macOS puts it
            os.killpg(self._pid, number)

    def _close_descriptors(self, *more: int) -> None:
        for descriptor in (self._enough_write, self._enough_read, *self._pipes, *more):
            os.close(descriptor)

    def _understand(self, message: Mapping[str, Any]) -> None:
        with self._changed:
            self._ended = True
            if "code" in message:
                self.code = message["code"]
                self.beyond = self.beyond or message["beyond"]
                self._over.set()
            self._changed.notify_all()

    def _lose(self) -> None:
        with self._changed:
            self._lost = self._ended = True
            self._changed.notify_all()
        self._over.set()

    def _listen(self) -> None:
        """Read both streams and the warden until their ends, or until there is enough, so that nobody waits for us."""
        streams = 2
        with selectors.DefaultSelector() as selector:
            selector.register(self._enough_read, selectors.EVENT_READ)
            selector.register(self._warden, selectors.EVENT_READ, self._warden)
            kept = ((Stream.STDOUT, self.out), (Stream.STDERR, self.err))
            for pipe, about in zip(self._pipes, kept, strict=True):
                selector.register(pipe, selectors.EVENT_READ, about)
            while len(selector.get_map()) > 1:
                ready = selector.select(_A_MOMENT_S if self._lines.waits else None)
                if not ready:
                    self._lines.idle()
                for key, _ in ready:
                    if key.data is None:
                        return
                    if key.data is self._warden:
                        if self._hear():
                            selector.unregister(key.fileobj)
                    elif not self._read(key.fd, *key.data):
                        selector.unregister(key.fileobj)
                        streams -= 1
                        if not streams:
                            self._drained.set()

    def _hear(self) -> bool:
        """Whether this was the last that the warden says."""
        try:
            for message in self._warden.hear():
                self._understand(message)
        except WardenLost:
            self._lose()
        return self._over.is_set()

    def _read(self, pipe: int, stream: Stream, tail: Tail) -> bool:
        """Whether there may be more."""
        data = os.read(pipe, _CHUNK)
        if not data:
            return False
        tail.add(data)
        self._lines.feed(stream, data)
        if self._room is not None:
            self._room -= len(data)
            if self._room < 0 and not self.beyond:
                with self._changed:
                    self.beyond = "output"
                    self._changed.notify_all()
        return True
