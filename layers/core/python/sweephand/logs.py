"""What attempts print: lines with their time, one log for each attempt, read while it is written.

A log may be cut: where more comes than is kept, its beginning and its end stay, and a line says what is missing.
Nothing relies on a log, so whoever writes one never fails for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Final, Protocol

from msgspec import Struct

from sweephand.domain.ids import RunKey

KEPT_BYTES: Final = 8 * 1024 * 1024
"""What is kept of one attempt's log, unless it is told otherwise: half of it from the beginning, half from the end."""
LINE_CHARS_MAX: Final = 16_384
"""A longer line is cut."""
PAGE_BYTES_MAX: Final = 524_288
"""About as much text is in one page at the most: a function can answer it even where JSON writes six bytes for one."""


class Stream(StrEnum):
    """Where a line comes from. Stored values: never renamed."""

    STDOUT = "stdout"
    STDERR = "stderr"
    SYSTEM = "system"
    """An operator, or the log itself, where it says what is missing."""


class Line(Struct, frozen=True):
    """One line, and when it came."""

    at: datetime
    stream: Stream
    text: str
    missing: int = 0
    """How many lines are missing in its place."""


class LogKey(Struct, frozen=True):
    """Whose log it is: one try of a task. A task that looks again later goes on with its attempt, and with its log."""

    run: RunKey
    task: str
    attempt: int

    @property
    def digest(self) -> str:
        """A name for the task's logs of which nothing can be guessed, cut off or climbed out of.

        No name can contain the separator, so no two tasks share one.
        """
        return blake2b(f"{self.run}/{self.task}".encode(), digest_size=20).hexdigest()


class LogPage(Struct, frozen=True):
    """Some lines of a log, and where they end."""

    lines: list[Line]
    after: str
    """Behind the last of them: what comes later is read from here."""
    more: bool = False
    """Whether there is more already."""
    begun: bool = False
    """Whether there is such a log."""
    closed: bool = False
    """Whether it was closed behind these lines, as far as they go."""

    @property
    def truncated(self) -> bool:
        """Whether something is missing among these lines."""
        return any(line.missing for line in self.lines)


class Log(Protocol):
    """One attempt's log as its only writer sees it. Either call may raise `Unavailable`, and may have taken effect."""

    def append(self, lines: Sequence[Line]) -> None:
        """These come next; who reads sees them at once, or after the store's lag."""

    def close(self, at: datetime, *, lost: int = 0) -> None:
        """No more will come; so many lines never got here. Doing it again after a failure is safe."""


class Logs(Protocol):
    """The logs of all attempts."""

    @property
    def lag(self) -> timedelta:
        """How long after it was written a line may become visible."""

    def open(self, key: LogKey) -> Log:
        """To write; one that is there is gone on with."""

    def read(self, key: LogKey, *, after: str | None, limit: int) -> LogPage:
        """Lines behind a place; `InvalidInput` where that is none."""

    def tail(self, key: LogKey, *, limit: int) -> LogPage:
        """The last lines."""


def left_out(at: datetime, lines: int, amount: int | None = None) -> Line:
    """What stands where lines are missing."""
    size = "" if amount is None else f" ({amount:,} bytes)"
    are = "line is" if lines == 1 else "lines are"
    return Line(at, Stream.SYSTEM, f"… {lines:,} {are} missing here{size} …", lines)
