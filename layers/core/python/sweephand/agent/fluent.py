"""What a container beside the agent prints, as the log driver of its engine brings it: the protocol of Fluentd.

Each line is a message of MessagePack on a Unix socket: [tag, time, {"source": "stdout", "log": …}, options]. A line of
more than 16 KB comes in parts. What cannot be read is counted, and said in the log.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from sweephand.logs import Stream
from sweephand.operators.lines import Lines
from sweephand.operators.process import Tail

SOCKET: Final = Path("/var/run/fluent.sock")
"""Where the driver expects whoever routes its logs."""
MESSAGE_BYTES_MAX: Final = 1_048_576
_CHUNK: Final = 65_536
_A_MOMENT_S: Final = 0.2
_DRAIN_S: Final = 2.0
"""How long the last lines are waited for, where the container has not ended and goes on printing."""
_DEPTH_MAX: Final = 16

_FIXED: Final = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8} | {
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xD4: 2,
    0xD5: 3,
    0xD6: 5,
    0xD7: 9,
    0xD8: 17,
}
"""Bytes that follow a kind of a fixed size."""
_SIZED: Final = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_EXTENDED: Final = {0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}
_LISTS: Final = {0xDC: ">H", 0xDD: ">I"}
_MAPS: Final = {0xDE: ">H", 0xDF: ">I"}


class Unreadable(Exception):
    """These bytes are no messages."""


class _Short(Exception):
    """The message has not come to its end."""


def messages(buffer: bytearray) -> Iterator[Any]:
    """The whole messages in a buffer, which keeps the beginning of the next one."""
    while buffer:
        try:
            end = _end_of(buffer, 0, 0)
        except _Short:
            if len(buffer) > MESSAGE_BYTES_MAX:
                raise Unreadable("A message is too long.") from None
            return
        whole = bytes(buffer[:end])
        del buffer[:end]
        try:
            yield msgspec.msgpack.decode(whole)
        except UnicodeDecodeError:
            yield _marked(whole)
        except msgspec.DecodeError:
            yield None  # it is no map that could be read


def _marked(whole: bytes) -> Any:
    """A message with a mark for every byte of its record that is no text; None where there is no record.

    Programs print what they like, and the driver passes it on as if it were text.
    """
    try:
        parts = msgspec.msgpack.decode(whole, type=list[msgspec.Raw])
        record = msgspec.msgpack.decode(parts[2], type=dict[str, msgspec.Raw])
        return [None, None, {name: _text(bytes(value)) for name, value in record.items()}]
    except (msgspec.DecodeError, UnicodeDecodeError, IndexError):
        return None


def _text(value: bytes) -> Any:
    try:
        return msgspec.msgpack.decode(value)
    except UnicodeDecodeError:
        before = 1 + struct.calcsize(_SIZED.get(value[0], ""))  # a short text has its size in its kind
        return value[before:].decode(errors="replace")


def _end_of(data: bytearray, at: int, depth: int) -> int:
    """Where the value ends that begins at a place."""
    if depth > _DEPTH_MAX:
        raise Unreadable("A message is nested too deeply.")
    if at >= len(data):
        raise _Short
    kind, at = data[at], at + 1
    if kind < 0x80 or kind >= 0xE0:
        return at
    if kind < 0xA0:
        return _skip(data, at, (kind & 0x0F) * (2 if kind < 0x90 else 1), depth)
    if kind < 0xC0:
        return _within(data, at + (kind & 0x1F))
    if kind in _FIXED:
        return _within(data, at + _FIXED[kind])
    for table, extra in ((_SIZED, 0), (_EXTENDED, 1)):
        if kind in table:
            size, at = _size(data, at, table[kind])
            return _within(data, at + size + extra)
    for table, times in ((_LISTS, 1), (_MAPS, 2)):
        if kind in table:
            size, at = _size(data, at, table[kind])
            return _skip(data, at, size * times, depth)
    raise Unreadable(f"There is no kind {kind:#x}.")


def _skip(data: bytearray, at: int, values: int, depth: int) -> int:
    for _ in range(values):
        at = _end_of(data, at, depth + 1)
    return at


def _size(data: bytearray, at: int, form: str) -> tuple[int, int]:
    end = _within(data, at + struct.calcsize(form))
    (size,) = struct.unpack_from(form, data, at)
    return size, end


def _within(data: bytearray, end: int) -> int:
    if end > len(data):
        raise _Short
    return end


class Printed:
    """Listens until it is closed, and hands lines on as those of a process would be."""

    def __init__(self, path: Path, lines: Lines, *, note: Callable[[str], None]) -> None:
        self.out = Tail()
        self.err = Tail()
        self._lines = lines
        self._note = note
        self._path = path
        self._unread = 0
        self._begun: dict[str, bytes] = {}
        self._enough = threading.Event()
        self._ending_read, self._ending_write = os.pipe()
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)
        self._listening.bind(str(path))
        path.chmod(0o666)
        self._listening.listen()
        self._thread = threading.Thread(target=self._listen, name="sweephand-printed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Read what has come, and hear no more: whoever goes on printing is not waited for."""
        os.close(self._ending_write)
        self._thread.join(_DRAIN_S)
        self._enough.set()
        self._thread.join()
        os.close(self._ending_read)
        self._listening.close()
        with suppress(OSError):
            self._path.unlink()
        self._lines.end()
        if self._unread:
            self._note(f"{self._unread} lines could not be read.")

    def _listen(self) -> None:
        buffers: dict[socket.socket, bytearray] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._ending_read, selectors.EVENT_READ)
            ending = False
            while True:
                ready = [
                    key.fileobj for key, _ in selector.select(_A_MOMENT_S if ending or self._lines.waits else None)
                ]
                if self._ending_read in ready:
                    ready.remove(self._ending_read)
                    selector.unregister(self._ending_read)
                    ending = True
                if ending and (not ready or self._enough.is_set()):
                    return
                if not ready:
                    self._lines.idle()
                for one in ready:
                    if one is self._listening:
                        connection, _ = self._listening.accept()
                        buffers[connection] = bytearray()
                        selector.register(connection, selectors.EVENT_READ)
                    elif isinstance(one, socket.socket) and not self._hear(one, buffers[one]):
                        selector.unregister(one)
                        del buffers[one]
                        one.close()

    def _hear(self, connection: socket.socket, buffer: bytearray) -> bool:
        """Whether there may be more of it."""
        try:
            data = connection.recv(_CHUNK)
            buffer += data
            for message in messages(buffer):
                self._take(message)
        except (OSError, Unreadable):
            self._unread += 1
            return False
        return bool(data)

    def _take(self, message: Any) -> None:
        record = message[2] if isinstance(message, list) and len(message) > 2 else None
        if not isinstance(record, Mapping) or not isinstance(record.get("log"), str):
            self._unread += 1
            return
        stream, tail = (Stream.STDERR, self.err) if record.get("source") == "stderr" else (Stream.STDOUT, self.out)
        data = record["log"].encode(errors="replace")
        if record.get("partial_message") != "true" or record.get("partial_last") == "true":
            data += b"\n"
        tail.add(data)
        self._lines.feed(stream, data)
