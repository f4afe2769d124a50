"""`sweephand up --jobs DIR`: a folder of job files, looked at every few seconds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Final

from sweephand.api.filing import FILE_BYTES_MAX, ApiFiling, is_job_file
from sweephand.domain.ids import DEFAULT
from sweephand.engine.scan import Found, scan
from sweephand.errors import InvalidInput, Unavailable
from sweephand.ports import World

logger: Final = logging.getLogger("sweephand.local")

SCAN_EVERY: Final = timedelta(seconds=3)
FILES_MAX: Final = 10_000


class JobFolder:
    """A folder on this machine. A file is read again only when its time or size has changed, and counts as changed only
    when its content has."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidInput(f"There is no folder {root}.", "jobs")
        self._root = root
        self._tags: dict[str, tuple[tuple[int, int], str]] = {}

    def listed(self) -> Sequence[Found]:
        """Every job file in it, however deep; a folder that is gone is no empty one."""
        if not self._root.is_dir():
            raise Unavailable(f"The folder {self._root} is gone: its jobs stay as they are.")
        found: dict[str, tuple[tuple[int, int], str]] = {}
        for path in sorted(self._root.rglob("*")):
            name = path.relative_to(self._root).as_posix()
            if not is_job_file(name) or not path.is_file():
                continue
            try:
                about = path.stat()
                stamp = (about.st_mtime_ns, about.st_size)
                known = self._tags.get(name)
                found[name] = known if known and known[0] == stamp else (stamp, _tag(path))
            except OSError:
                continue  # it was removed while we looked
            if len(found) > FILES_MAX:
                raise Unavailable(f"{self._root} has more than {FILES_MAX} job files: that is the most.")
        self._tags = found
        return [Found(name, tag) for name, (_, tag) in found.items()]

    def read(self, path: str) -> bytes | None:
        """A file's content; more than a file may have shows that it has too much."""
        try:
            with (self._root / path).open("rb") as file:
                return file.read(FILE_BYTES_MAX + 1)
        except OSError:
            return None


class Scanning:
    """Keeps the jobs in line with a folder's files."""

    def __init__(self, world: World, folder: JobFolder, filing: ApiFiling, *, removes: bool) -> None:
        self._world, self._folder, self._filing, self._removes = world, folder, filing, removes

    def step(self) -> timedelta:
        """Scan once. Two processes may scan the same folder: what one has put, the other finds unchanged."""
        did = scan(self._world, DEFAULT, self._folder, self._filing, removes=self._removes)
        if did.changed or did.removed:
            level = logging.WARNING if did.wrong else logging.INFO
            logger.log(level, "%d job files changed, %d jobs removed, %d wrong.", did.changed, did.removed, did.wrong)
        return SCAN_EVERY


def _tag(path: Path) -> str:
    with path.open("rb") as file:
        return blake2b(file.read(FILE_BYTES_MAX + 1), digest_size=16).hexdigest()
