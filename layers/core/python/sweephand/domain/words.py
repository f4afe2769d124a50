"""What a job is found by: its name, its tags, the beginning of its description, compared without case."""

from __future__ import annotations

from typing import Final
from unicodedata import normalize

from sweephand.domain.job import Job

DESCRIBED_CHARS_MAX: Final = 300
"""Characters of the description that are looked at: its words lie beside the name, where lists are read from."""
WORDS_CHARS_MAX: Final = 1_000


def folded(text: str) -> str:
    """The text as it is compared: whatever its case, and however its accents are written."""
    return normalize("NFC", text.casefold())


def words_of(name: str, job: Job | None) -> str:
    """The words of a job, one line for each of its fields; what is looked for has no line ends."""
    lines = [name, *job.tags, job.description[:DESCRIBED_CHARS_MAX].replace("\n", " ")] if job is not None else [name]
    return folded("\n".join(lines))[:WORDS_CHARS_MAX]
