"""Artifacts in folders: FOLDER/<2 hex digits>/<task run, hashed>/<attempt>/<as the task named them>."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sweephand.artifacts import BYTES_MAX, Artifact, Found, left_behind
from sweephand.errors import Unavailable
from sweephand.logs import LogKey


class FileArtifacts:
    """Every artifact beneath one folder; without one, beneath a folder that goes when it is closed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._own: tempfile.TemporaryDirectory[str] | None = None

    def keep(self, key: LogKey, files: list[Found]) -> None:
        place = self._place(key)
        try:
            for file in files:
                target = place / file.artifact.name
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.move(file.path, target)
                target.chmod(0o600)
        except OSError as error:
            raise Unavailable(f"The artifacts in {place} cannot be kept: {error.strerror}.") from error

    def keep_output(self, key: LogKey, content: bytes) -> None:
        """Whole or not at all: who reads it meanwhile finds what was there before."""
        target = self._output(key)
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
                file.write(content)
            Path(file.name).replace(target)
        except OSError as error:
            raise Unavailable(f"The output {target} cannot be kept: {error.strerror}.") from error

    def read_output(self, key: LogKey) -> bytes | None:
        try:
            return self._output(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"The output of {key.run} cannot be read: {error.strerror}.") from error

    def listed(self, key: LogKey) -> list[Artifact]:
        found, _ = left_behind(self._place(key))
        return sorted(file.artifact for file in found)

    def url(self, key: LogKey, name: str) -> str | None:  # noqa: ARG002 - as the port has it
        return None

    def read(self, key: LogKey, name: str) -> bytes | None:
        """By its name in the list, never by a path that is asked for."""
        found, _ = left_behind(self._place(key))
        path = next((file.path for file in found if file.artifact.name == name), None)
        if path is None:
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None  # it went, or became a link, meanwhile
        with os.fdopen(descriptor, "rb") as file:
            return file.read(BYTES_MAX) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None

    def forget(self, *, before: datetime, bytes_max: int) -> int:
        """Remove the artifacts of attempts that ended before then, and the oldest of what is too much; of how many."""
        total, removed = 0, 0
        for changed_at, size, path in sorted(self._attempts(), reverse=True):
            total += size
            if changed_at < before or total > bytes_max:
                _remove(path)
                removed += 1
        return removed

    def close(self) -> None:
        if self._own is not None:
            self._own.cleanup()
            self._own = None

    def _attempts(self) -> Iterator[tuple[datetime, int, Path]]:
        """When each attempt's folder was last changed, and how much is in it."""
        for path in self._folder.glob("*/*/*") if self._folder is not None else ():
            with suppress(FileNotFoundError):  # another process keeps house too
                size = sum(one.lstat().st_size for one in (path, *path.rglob("*")) if not one.is_dir())
                yield datetime.fromtimestamp(path.stat().st_mtime, UTC), size, path

    def _output(self, key: LogKey) -> Path:
        """Beside the folder of the attempt's files, so that it is none of them."""
        place = self._place(key)
        return place.with_name(f"{place.name}.output")

    def _place(self, key: LogKey) -> Path:
        if self._folder is None:
            self._own = self._own or tempfile.TemporaryDirectory(prefix="sweephand-artifacts-")
        base = self._folder or Path(self._own.name if self._own else "")
        return base / key.digest[:2] / key.digest[2:] / str(key.attempt)


def _remove(path: Path) -> None:
    """An attempt's folder, or its output."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):  # safe: what stays is tried again
        path.unlink(missing_ok=True)
