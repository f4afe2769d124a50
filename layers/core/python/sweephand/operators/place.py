"""The folder that an attempt works in: made before it, emptied after it; only a checkpoint outlives a failure.

FOLDER/<task run>/<epoch>/work        the current folder, unless the task names another
                         /tmp         TMPDIR
                         /artifacts   what to keep
                         /output /progress /checkpoint
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Container, Iterator
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final

from sweephand.calls import Call, Files

_NUMBER_BYTES_MAX: Final = 32


class Place:
    """The paths of one attempt. Its epoch names it, so that an attempt that lost its lease disturbs no later one."""

    __slots__ = ("files", "root", "task_run")

    def __init__(self, folder: Path, call: Call) -> None:
        key = call.run.key
        # Readable, and no longer than a file's name may be.
        digest = blake2b(f"{key}/{call.task.id}".encode(), digest_size=12).hexdigest()
        self.task_run = folder.absolute() / f"{key.job.name[:64]}.{key.run_id[:64]}.{digest}"
        """Of all attempts of the task run."""
        self.root = self.task_run / str(call.run.epoch)
        self.files = Files(self.root)

    @property
    def work(self) -> Path:
        return self.files.work

    @property
    def tmp(self) -> Path:
        return self.files.tmp

    @property
    def artifacts(self) -> Path:
        return self.files.artifacts

    @property
    def output(self) -> Path:
        return self.files.output

    @property
    def progress(self) -> Path:
        return self.files.progress

    @property
    def checkpoint(self) -> Path:
        return self.files.checkpoint

    def make(self) -> None:
        """Folders that only we can read, with the checkpoint of the newest attempt before this one."""
        _remove(self.root)
        for folder in (self.work, self.tmp, self.artifacts):
            folder.mkdir(mode=0o700, parents=True)
        for earlier in self._earlier():
            with suppress(FileNotFoundError):  # that attempt left none, or somebody cleared it away
                Files(earlier).checkpoint.rename(self.checkpoint)
                return

    def percent(self) -> int | None:
        """How far the task says that it is, from 0 to 100; None where it says nothing of the kind."""
        try:
            number = float(beginning_of(self.progress, _NUMBER_BYTES_MAX) or b"nothing")
        except ValueError:
            return None
        return int(number) if 0 <= number <= 100 else None

    def clear(self, *, keep_checkpoint: bool) -> None:
        """Remove everything, or all but what the next attempt begins with.

        Of attempts before this one too: one that was killed has left its folder, with what it was told in it.
        """
        if not keep_checkpoint:
            _remove(self.task_run)
            return
        for earlier in self._earlier():
            _empty(earlier, keep=Files(earlier).checkpoint)
            with suppress(OSError):  # it has a checkpoint, or is written to again: it goes with its run's folder
                earlier.rmdir()
        if not self.checkpoint.exists():
            _remove(self.root)
            with suppress(OSError):  # another attempt's folder is in it
                self.task_run.rmdir()
            return
        _empty(self.root, keep=self.checkpoint)

    def _earlier(self) -> Iterator[Path]:
        epochs = sorted((int(one.name) for one in self.task_run.iterdir()), reverse=True)
        return (self.task_run / str(epoch) for epoch in epochs if epoch < int(self.root.name))


def beginning_of(path: Path, size: int) -> bytes | None:
    """What a task has written so far; None where there is no file, or it is being replaced.

    A link is not followed, since it may lead to what is not the task's, and a pipe is not waited for.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None


def forget_places(folder: Path, *, before: datetime, but: Container[Path] = ()) -> int:
    """Remove what attempts left beneath a folder and nobody has changed since then; of how many runs' tasks.

    Checkpoints of those that failed for good, and the folders of those that were killed and never begun again.
    """
    removed = 0
    for path in list(folder.iterdir()) if folder.is_dir() else []:
        if path not in but and _changed_at(path) < before.timestamp():
            _remove(path)
            removed += 1
    return removed


def _changed_at(path: Path) -> float:
    latest = 0.0
    for one in (path, *path.rglob("*")):
        with suppress(OSError):  # it is gone, or locked
            latest = max(latest, one.lstat().st_mtime)
    return latest


def _empty(folder: Path, *, keep: Path) -> None:
    for entry in list(folder.iterdir()):
        if entry != keep:
            _remove(entry)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        return
    # The task made folders that nothing can be removed from.
    for folder in [path, *path.rglob("*/")]:
        if not folder.is_symlink():
            with suppress(OSError):  # what stays locked stays behind
                folder.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
