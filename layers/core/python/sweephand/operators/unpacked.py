"""The code of `python` tasks on this machine: packs that were fetched, checked and unpacked once, up to a bound.

FOLDER/<namespace>/<digest>     what attempts import from
      /locks/<2 digits>         shared while something of it is used, exclusive to remove something

Several processes may share the folder: what is unpacked appears by one rename, and is removed only by who has the lock
of its digest alone, which nobody gets while an attempt uses it. A process that dies gives its locks back.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from sweephand.domain.ids import Namespace
from sweephand.errors import InvalidInput, NotFound, Unavailable

__all__ = ["CACHE_BYTES_MAX", "Fetch", "Unpacked"]

CACHE_BYTES_MAX: Final = 1024 * 1024 * 1024
_LOCKS: Final = "locks"

Fetch = Callable[[Namespace, str], bytes | None]
"""The bytes of a pack; None where there is none."""


class Unpacked:
    """Any thread may use it. The pack that was used least lately goes first, where there is too much."""

    def __init__(self, folder: Path, fetch: Fetch, *, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._folder = folder
        self._fetch = fetch
        self._bytes_max = bytes_max
        self._fetching = threading.Lock()

    @contextmanager
    def using(self, namespace: Namespace, digest: str) -> Iterator[Path]:
        """The folder of a pack, which stays for as long as it is used.

        `NotFound` where there is none, `InvalidInput` where it is no good, `Unavailable` where another try may help.
        """
        path = self._folder / namespace / digest
        with ExitStack() as held:
            try:
                held.enter_context(self._locked(digest, fcntl.LOCK_SH))
                if not path.is_dir():
                    with self._fetching:  # a hundred instances of a map begin at once: one of them fetches
                        if not path.is_dir():
                            self._unpack(namespace, digest, path)
                            self._make_room()
                os.utime(path)
            except OSError as error:
                raise Unavailable(f"The code {digest} could not be unpacked here: {error.strerror}.") from error
            yield path

    def _unpack(self, namespace: Namespace, digest: str, path: Path) -> None:
        from sweephand.domain.zips import contents, digest_of  # late: most attempts find it unpacked

        content = self._fetch(namespace, digest)
        if content is None:
            raise NotFound(f"There is no code {digest} in {namespace}.")
        if digest_of(content) != digest:
            raise Unavailable(f"The code {digest} came damaged.")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{digest}.new-"))
        try:
            for name, chunks in contents(content):
                target = fresh / name
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with target.open("xb") as file:
                    file.writelines(chunks)
            with suppress(OSError):  # another process was first: theirs has the same bytes
                fresh.rename(path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        if not path.is_dir():
            raise InvalidInput(f"The code {digest} could not be put in its place.", "code")

    def _make_room(self) -> None:
        """Remove what was used least lately until the rest fits, but nothing that is being used."""
        kept = sorted(self._entries(), key=lambda entry: entry[0], reverse=True)
        total = 0
        for _, size, path in kept:
            total += size
            if total <= self._bytes_max:
                continue
            try:
                with self._locked(path.name, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    gone = path.with_name(f"{path.name[:64]}.gone-{os.getpid()}")
                    path.rename(gone)
                    shutil.rmtree(gone, ignore_errors=True)
                    total -= size
            except OSError:
                continue  # it is being used, or another process removes it: the next one to fetch looks again

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """When each was last used, how large it is, and where; what a dead process left half done too."""
        for path in self._folder.glob("*/*"):
            if path.parent.name != _LOCKS:
                with suppress(FileNotFoundError):
                    size = sum(one.lstat().st_size for one in path.rglob("*") if not one.is_dir())
                    yield path.stat().st_mtime_ns, size, path

    @contextmanager
    def _locked(self, digest: str, how: int) -> Iterator[None]:
        folder = self._folder / _LOCKS
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / digest[:2], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)
