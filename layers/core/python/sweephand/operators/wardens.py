"""The wardens of this process: each serves one program after another, so that few of them are ever started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sweephand.operators.warden import LENGTH

_PROGRAM: Final = Path(__file__).with_name("warden.py")
"""Run as a file: it needs nothing of ours."""
_NEEDED: Final = ("LD_LIBRARY_PATH",)
"""Where Python itself may be found, as in Lambda; programs have variables of their own."""
_IDLE_MAX: Final = 64
_ENDS_S: Final = 10.0
_CHUNK: Final = 65_536


class WardenLost(OSError):
    """The warden ended, and its program with it."""

    def __init__(self) -> None:
        super().__init__(None, "the process that watches it was lost")


class Warden:
    """The near end of one warden. What it says comes in parts: `hear` gives whole messages."""

    def __init__(self) -> None:
        self._channel, other = socket.socketpair()
        self._heard = bytearray()
        try:
            with other:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_PROGRAM)],
                    stdin=other.fileno(),
                    stdout=subprocess.DEVNULL,
                    env={name: os.environ[name] for name in _NEEDED if name in os.environ},
                    cwd="/",
                    start_new_session=True,
                )
        except BaseException:
            self._channel.close()
            raise

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def is_there(self) -> bool:
        """Whether nobody has killed it."""
        return self._process.poll() is None

    def say(self, message: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        data = json.dumps(message).encode()
        try:
            if descriptors:
                socket.send_fds(self._channel, [LENGTH.pack(len(data))], descriptors)
                self._channel.sendall(data)
            else:
                self._channel.sendall(LENGTH.pack(len(data)) + data)
        except OSError as error:
            raise WardenLost from error

    def hear(self) -> list[dict[str, Any]]:
        """The messages that are whole after waiting for one part more."""
        try:
            part = self._channel.recv(_CHUNK)
        except OSError as error:
            raise WardenLost from error
        if not part:
            raise WardenLost
        self._heard += part
        found = []
        while len(self._heard) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._heard)[0]
            if len(self._heard) < end:
                break
            found.append(json.loads(self._heard[LENGTH.size : end]))
            del self._heard[:end]
        return found

    def close(self) -> None:
        """Let it end, and what it watches with it."""
        self._channel.close()
        try:
            self._process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Wardens:
    """Those that are idle; one that was lost is not among them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Warden] = []
        os.register_at_fork(after_in_child=self._forget)

    def take(self) -> Warden:
        while True:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is None:
                return Warden()
            if found.is_there:
                return found
            found.close()

    def give_back(self, warden: Warden) -> None:
        with self._lock:
            if len(self._idle) < _IDLE_MAX:
                self._idle.append(warden)
                return
        warden.close()

    def _forget(self) -> None:
        """In a fork of this process: they are its parent's."""
        self._lock = threading.Lock()
        for warden in self._idle:
            os.close(warden.fileno())
        self._idle = []


WARDENS: Final = Wardens()
"""They end with this process."""
