"""The folder that an attempt works in: made before it, emptied after it; only a checkpoint outlives a failure.

FOLDER/<task run>/<epoch>/work        the current folder, unless the task names another
                         /tmp         TMPDIR
                         /artifacts   what to keep
                         /output /progress /checkpoint
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from sweephand.calls import Call, Files


class Place:
    """The paths of one attempt. Its epoch names it, so that an attempt that lost its lease disturbs no later one."""

    __slots__ = ("_task_run", "files", "root")

    def __init__(self, folder: Path, call: Call) -> None:
        key = call.run.key
        # Readable, and no longer than a file's name may be.
        digest = blake2b(f"{key}/{call.task.id}".encode(), digest_size=12).hexdigest()
        self._task_run = folder.absolute() / f"{key.job.name[:64]}.{key.run_id[:64]}.{digest}"
        self.root = self._task_run / str(call.run.epoch)
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

    def clear(self, *, keep_checkpoint: bool) -> None:
        """Remove everything, or all but what the next attempt begins with."""
        if not keep_checkpoint:
            _remove(self._task_run)
            return
        if not self.checkpoint.exists():
            _remove(self.root)
            with suppress(OSError):  # another attempt's folder is in it
                self._task_run.rmdir()
            return
        for entry in list(self.root.iterdir()):
            if entry != self.checkpoint:
                _remove(entry)

    def _earlier(self) -> Iterator[Path]:
        epochs = sorted((int(one.name) for one in self._task_run.iterdir()), reverse=True)
        return (self._task_run / str(epoch) for epoch in epochs if epoch < int(self.root.name))


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
