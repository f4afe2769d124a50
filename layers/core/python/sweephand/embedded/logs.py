"""Logs in files: of each attempt a beginning, then segments of which only the last stay.

FOLDER/<2 hex digits>/<task run, hashed>/<attempt>/<segment>-<lines before it>-<bytes before it>

The first segment takes half of what is kept; the others, a quarter of the other half each, and the oldest of them goes
when a new one begins. A segment is complete once there is a later one. Other processes may read while one writes.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from sweephand.errors import InvalidInput, Unavailable
from sweephand.logs import KEPT_BYTES, PAGE_BYTES_MAX, Line, Log, LogKey, LogPage, Stream, left_out

_TAIL_SEGMENTS: Final = 4
_END: Final = "end"
_NAME: Final = re.compile(r"(\d{1,9})-(\d{1,15})-(\d{1,18})\Z", re.ASCII)
_PLACE: Final = re.compile(r"(\d{1,9})\.(\d{1,15})\.(\d{1,15})\.(\d{1,18})\Z", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class FileLogs:
    """Every log beneath one folder; without one, beneath a folder that goes when it is closed."""

    lag: Final = timedelta(0)

    def __init__(self, folder: Path | None, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._folder = folder
        self._kept_bytes = kept_bytes
        self._own: tempfile.TemporaryDirectory[str] | None = None

    def open(self, key: LogKey) -> Log:
        return _FileLog(self._place(key), self._kept_bytes)

    def read(self, key: LogKey, *, after: str | None, limit: int) -> LogPage:
        reader = _Reader(self._place(key), _place_of(after))
        while not reader.is_full(limit) and reader.take(limit):
            continue
        return reader.page()

    def tail(self, key: LogKey, *, limit: int) -> LogPage:
        folder = self._place(key)
        wanted, size = limit + 1, 0  # the mark of the end is no line
        segments = _segments(folder)
        if not segments:
            return LogPage([], _Place().text)
        start = segments[-1]
        for segment in reversed(segments):
            start = segment
            wanted -= segment.count()
            size += segment.size
            if wanted <= 0 or size > PAGE_BYTES_MAX:
                break
        reader = _Reader(folder, _Place(start.number, 0, start.lines, start.bytes))
        while reader.take(None):
            reader.forget(keep=limit)
        reader.forget(keep=limit)
        return reader.page()

    def forget(self, *, before: datetime, bytes_max: int) -> int:
        """Remove the logs that nobody wrote to since, and the oldest of what is too much; how many went."""
        if self._folder is None or not self._folder.is_dir():
            return 0
        found = sorted(_attempts(self._folder), reverse=True)
        total, removed = 0, 0
        for changed_at, size, path in found:
            total += size
            if changed_at < before or total > bytes_max:
                shutil.rmtree(path, ignore_errors=True)
                removed += 1
                for parent in (path.parent, path.parent.parent):
                    with suppress(OSError):  # another attempt's log is in it, or begins to be
                        parent.rmdir()
        return removed

    def close(self) -> None:
        if self._own is not None:
            self._own.cleanup()
            self._own = None

    def _place(self, key: LogKey) -> Path:
        if self._folder is None:
            self._own = self._own or tempfile.TemporaryDirectory(prefix="sweephand-logs-")
        base = self._folder or Path(self._own.name if self._own else "")
        return base / key.digest[:2] / key.digest[2:] / str(key.attempt)


class _Segment(Struct, frozen=True, order=True):
    number: int
    lines: int
    bytes: int
    path: Path

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0  # it was the oldest of the end, and went

    def count(self) -> int:
        """How many lines it has."""
        try:
            return self.path.read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0  # the same


def _segments(folder: Path) -> list[_Segment]:
    """In their order; none where there is no such log."""
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []
    matches = (match for match in map(_NAME.match, names) if match)
    return sorted(_Segment(int(one[1]), int(one[2]), int(one[3]), folder / one[0]) for one in matches)


def _attempts(folder: Path) -> Iterator[tuple[datetime, int, Path]]:
    """When each log was last written to, and how large it is."""
    for path in folder.glob("*/*/*"):
        try:
            stats = [entry.stat() for entry in os.scandir(path)]
        except (FileNotFoundError, NotADirectoryError):
            continue  # another process keeps house too
        latest = max((stat.st_mtime for stat in stats), default=0.0)
        yield datetime.fromtimestamp(latest, UTC), sum(stat.st_size for stat in stats), path


class _FileLog:
    """Appends. What cannot be written whole is taken back, so that a reader never meets half a line."""

    def __init__(self, folder: Path, kept_bytes: int) -> None:
        self._folder = folder
        self._head_max = kept_bytes // 2
        self._tail_max = kept_bytes // 2 // _TAIL_SEGMENTS
        self._file: int | None = None
        self._size = 0
        self._number = self._lines = self._bytes = 0

    def append(self, lines: Sequence[Line]) -> None:
        self._write([_encode((_micros(line.at), str(line.stream), line.text, line.missing)) for line in lines])

    def close(self, at: datetime, *, lost: int = 0) -> None:
        self._write([_encode((_micros(at), _END, "", lost))])
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, entries: Sequence[bytes]) -> None:
        try:
            self._open()
            chunk: list[bytes] = []
            size = self._size
            for entry in entries:
                if size and size + len(entry) > self._room:
                    self._put(chunk)
                    self._begin(self._number + 1)
                    chunk, size = [], 0
                chunk.append(entry)
                size += len(entry)
            self._put(chunk)
        except OSError as error:
            raise Unavailable(f"The log in {self._folder} cannot be written: {error.strerror}.") from error

    @property
    def _room(self) -> int:
        return self._tail_max if self._number else self._head_max

    def _open(self) -> None:
        """Go on where an earlier writer ended, or begin."""
        if self._file is not None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = _segments(self._folder)
        if not there:
            self._begin(0)
            return
        last = there[-1]
        self._number, self._size = last.number, last.size
        self._lines, self._bytes = last.lines + last.count(), last.bytes + last.size
        self._file = _opened(last.path)

    def _begin(self, number: int) -> None:
        file = _opened(self._folder / f"{number:06d}-{self._lines}-{self._bytes}")
        if self._file is not None:
            os.close(self._file)
        self._file, self._number, self._size = file, number, 0
        for segment in _segments(self._folder):
            if 0 < segment.number <= number - _TAIL_SEGMENTS:
                segment.path.unlink(missing_ok=True)

    def _put(self, entries: Sequence[bytes]) -> None:
        if not entries or self._file is None:
            return
        data = b"".join(entries)
        try:
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)
        self._bytes += len(data)
        self._lines += len(entries)


class _Place(Struct, frozen=True):
    """A segment, an offset in it, and how many lines and bytes there were before."""

    segment: int = 0
    offset: int = 0
    lines: int = 0
    bytes: int = 0

    @property
    def text(self) -> str:
        return f"{self.segment}.{self.offset}.{self.lines}.{self.bytes}"


def _place_of(text: str | None) -> _Place:
    if not text:
        return _Place()
    match = _PLACE.match(text)
    if match is None:
        raise InvalidInput("There is no such place in this log: begin anew.", "after")
    return _Place(*map(int, match.groups()))


class _Reader:
    """Walks through the segments from a place."""

    def __init__(self, folder: Path, place: _Place) -> None:
        self._folder = folder
        self._place = place
        self._lines: list[Line] = []
        self._size = 0
        self._missing: tuple[int, int] | None = None
        """Lines and bytes that went before the next line."""
        self._begun = self._closed = self._more = False
        self._segments: list[_Segment] = _segments(folder)

    def is_full(self, limit: int) -> bool:
        return len(self._lines) >= limit or self._size >= PAGE_BYTES_MAX

    def forget(self, *, keep: int) -> None:
        """Only the last lines are wanted, and no more of them than a page takes."""
        kept = size = 0
        for line in reversed(self._lines[-keep:]):
            size += _weight(line)
            if size > PAGE_BYTES_MAX:
                break
            kept += 1
        del self._lines[: len(self._lines) - kept]

    def page(self) -> LogPage:
        closed = self._closed and not self._more
        return LogPage(self._lines, self._place.text, self._more, self._begun, closed)

    def take(self, limit: int | None) -> bool:
        """Read on in the present segment, or turn to the next; whether there may be more to take."""
        self._begun = self._begun or bool(self._segments)
        following = [segment for segment in self._segments if segment.number >= self._place.segment]
        if not following:
            self._more = False
            return False
        segment = following[0]
        if segment.number > self._place.segment:
            self._enter(segment)
        try:
            with segment.path.open("rb") as file:
                file.seek(self._place.offset)
                data = file.read(2 * PAGE_BYTES_MAX)
        except FileNotFoundError:  # it was the oldest of the end, and went: look again
            self._segments = _segments(self._folder)
            return True
        whole = data[: data.rfind(b"\n") + 1]
        self._read(whole, limit)
        at_end = self._place.offset >= segment.size
        if at_end and len(following) > 1:
            self._enter(following[1])
            self._more = True
            return True
        self._more = not at_end
        return not at_end and bool(whole)

    def _enter(self, segment: _Segment) -> None:
        missing = segment.lines - self._place.lines
        if missing > 0:
            self._missing = missing, max(segment.bytes - self._place.bytes, 0)
        self._place = _Place(segment.number, 0, segment.lines, segment.bytes)

    def _read(self, data: bytes, limit: int | None) -> None:
        offset, lines = self._place.offset, self._place.lines
        for entry in data.splitlines(keepends=True):
            if limit is not None and self.is_full(limit):
                break
            offset += len(entry)
            lines += 1
            self._hear(entry)
        place = self._place
        self._place = _Place(place.segment, offset, lines, place.bytes + offset - place.offset)

    def _hear(self, entry: bytes) -> None:
        try:
            micros, stream, text, missing = msgspec.json.decode(entry)
            at = _EPOCH + micros * _MICROSECOND
            line = Line(at, Stream(stream), text, missing) if stream != _END else None
        except (ValueError, TypeError):  # a place that no page named may be in the middle of a line
            return
        if self._missing is not None:
            self._add(left_out(at, *self._missing))
            self._missing = None
        self._closed = line is None
        if line is not None:
            self._add(line)
        elif missing:
            self._add(left_out(at, missing))

    def _add(self, line: Line) -> None:
        self._lines.append(line)
        self._size += _weight(line)


def _weight(line: Line) -> int:
    return len(line.text) + 64


_encoder: Final = msgspec.json.Encoder()


def _encode(entry: tuple[Any, ...]) -> bytes:
    return _encoder.encode(entry) + b"\n"


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
