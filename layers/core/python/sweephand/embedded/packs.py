"""Packs in files: FOLDER/<namespace>/<digest>.zip."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from sweephand.domain.ids import Namespace
from sweephand.errors import Unavailable
from sweephand.packs import PACK_BYTES_MAX, Pack, Platform, Upload

_HERE: Final = Platform(f"{sys.version_info.major}.{sys.version_info.minor}")


class FilePacks:
    """Every pack beneath one folder; without one, beneath a folder that goes when it is closed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._own: tempfile.TemporaryDirectory[str] | None = None

    @property
    def platform(self) -> Platform:
        return _HERE

    def keep(self, namespace: Namespace, pack: Pack) -> None:
        """Whole and on the disk, or not at all: a job that names it may be saved next."""
        target = self._path(namespace, pack.digest)
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
                file.write(pack.content)
                file.flush()
                os.fsync(file.fileno())
            Path(file.name).replace(target)
            descriptor = os.open(target.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise Unavailable(f"The code {pack.digest} cannot be kept: {error.strerror}.") from error

    def size(self, namespace: Namespace, digest: str) -> int | None:
        try:
            return self._path(namespace, digest).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"The code {digest} cannot be looked at: {error.strerror}.") from error

    def read(self, namespace: Namespace, digest: str) -> bytes | None:
        try:
            with self._path(namespace, digest).open("rb") as file:
                return file.read(PACK_BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"The code {digest} cannot be read: {error.strerror}.") from error

    def upload(self, namespace: Namespace, digest: str, size: int) -> Upload | None:  # noqa: ARG002 - as the port has it
        return None

    def close(self) -> None:
        if self._own is not None:
            self._own.cleanup()
            self._own = None

    def _path(self, namespace: Namespace, digest: str) -> Path:
        """Names of namespaces and digests are names of files: neither has a slash, nor begins with a dot."""
        if self._folder is None:
            self._own = self._own or tempfile.TemporaryDirectory(prefix="sweephand-code-")
        base = self._folder or Path(self._own.name if self._own else "")
        return base / namespace / f"{digest}.zip"
