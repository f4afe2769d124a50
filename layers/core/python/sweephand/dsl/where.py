"""The line of a job file that said something, for errors that name it."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Final, NamedTuple

from sweephand.errors import InvalidInput

_OWN: Final = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - pathlib takes longer to import than all of this


class Where(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def here() -> Where:
    """The line of the user's that called us."""
    frame = _caller()
    return Where(frame.f_code.co_filename, frame.f_lineno)


def module_file() -> str:
    """The file whose own lines, not a function of theirs alone, are being run: it made what is being made."""
    frame: FrameType = _caller()
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename


def wrong(message: str, where: Where | None = None) -> InvalidInput:
    """What the file says is wrong, at the line that is being run, or at another."""
    return InvalidInput(message, str(where or here()))


def nearest(wrong: str, known: tuple[str, ...]) -> str:
    """The end of a sentence that says what may have been meant."""
    from difflib import get_close_matches  # late: it is for errors only

    close = get_close_matches(wrong, known, 1)
    return f": did you mean '{close[0]}'?" if close else f": use one of {', '.join(known)}."


def _caller() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_OWN) and frame.f_back is not None:
        frame = frame.f_back
    return frame
