"""Files that attempts leave behind: kept for each attempt, listed, and fetched."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from sweephand.logs import LogKey

FILES_MAX: Final = 100
BYTES_MAX: Final = 64 * 1024 * 1024
"""Of all files of one attempt together."""
NAME_CHARS_MAX: Final = 256


class Artifact(Struct, frozen=True, order=True):
    """A file: its path in the folder that the task left it in, with slashes."""

    name: str
    size: int


class Found(Struct, frozen=True):
    """A file to keep."""

    artifact: Artifact
    path: Path


class LeftOut(Struct, frozen=True):
    """A file that is not kept, and why."""

    name: str
    why: str


class Artifacts(Protocol):
    """The files of all attempts. Keeping may raise `Unavailable`; reading never finds what was not listed."""

    def keep(self, key: LogKey, files: list[Found]) -> None:
        """Keep these; where they were, they may be gone afterwards."""

    def keep_output(self, key: LogKey, content: bytes) -> None:
        """Keep the attempt's output, which no list of files shows; again, it replaces what was kept."""

    def read_output(self, key: LogKey) -> bytes | None:
        """The attempt's output; None where there is none, or no more."""

    def listed(self, key: LogKey) -> list[Artifact]:
        """In the order of their names."""

    def url(self, key: LogKey, name: str) -> str | None:
        """An address that serves the file to whoever has it, for a few minutes; None where only the API does."""

    def read(self, key: LogKey, name: str) -> bytes | None:
        """What is in it; None where there is no such file."""


def left_behind(folder: Path) -> tuple[list[Found], list[LeftOut]]:
    """What a task left in its folder: files, as many as are kept, and the others. Links are not followed."""
    found: list[Found] = []
    others: list[LeftOut] = []
    total = 0
    for path in _entries(folder):
        name, about = path.relative_to(folder).as_posix(), path.lstat()
        if not stat.S_ISREG(about.st_mode):
            others.append(LeftOut(name, "it is no file"))
        elif len(name) > NAME_CHARS_MAX or not name.isprintable():
            others.append(LeftOut(ascii(name[:64]), "its name is too long, or is no text"))
        elif len(found) >= FILES_MAX:
            others.append(LeftOut(name, f"{FILES_MAX} files are the most"))
        elif total + about.st_size > BYTES_MAX:
            others.append(LeftOut(name, f"{BYTES_MAX:,} bytes are the most, together"))
        else:
            total += about.st_size
            found.append(Found(Artifact(name, about.st_size), path))
    return found, others


def _entries(folder: Path) -> Iterator[Path]:
    """Everything but the folders themselves, in the order of names."""
    for here, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if (Path(here) / name).is_symlink()]
        for name in sorted([*files, *links]):
            yield Path(here) / name
