"""A line to a server that can be cut, as a network does it: for both sides, in the middle of whatever is said."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from urllib.parse import urlsplit


@dataclass
class Line:
    """Passes bytes on, for as long as it is whole."""

    listener: socket.socket
    to: tuple[str, int]
    _is_whole: Event = field(default_factory=Event)
    _ends: list[socket.socket] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def mend(self) -> None:
        self._is_whole.set()

    def cut(self) -> None:
        with self._lock:
            self._is_whole.clear()
            ends, self._ends = self._ends, []
        for end in ends:
            _hang_up(end)

    def serve(self) -> None:
        """Until the listener is closed."""
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return  # safe: this is how it is told to end
            with self._lock:
                if not self._is_whole.is_set():
                    near.close()
                    continue
                far = socket.create_connection(self.to)
                self._ends += [near, far]
            for one, other in ((near, far), (far, near)):
                Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    try:
        while said := one.recv(65536):
            other.sendall(said)
    except OSError:
        pass  # safe: it was cut, or one of them has gone
    finally:
        _hang_up(other)


def _hang_up(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # safe: it is closed already
    end.close()


@contextmanager
def line_to(url: str) -> Iterator[Line]:
    """A whole one at first."""
    address = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = Line(listener, (str(address.hostname), int(address.port or 80)))
        line.mend()
        thread = Thread(target=line.serve, daemon=True)
        thread.start()
        try:
            yield line
        finally:
            line.cut()
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)
