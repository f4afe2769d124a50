"""Headers of a task's HTTP request: what may be written, and what is not for tasks to say."""

from __future__ import annotations

import re
from typing import Any, Final

from sweephand.domain.fields import shown
from sweephand.errors import InvalidInput

__all__ = ["HEADER_NAME", "OURS", "header_name", "header_value"]

HEADER_NAME: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}"
VALUE_CHARS_MAX: Final = 8_192
OURS: Final = "sweephand-"
"""Headers that begin so say which run it is."""

_NAME: Final = re.compile(HEADER_NAME)
_UNFIT: Final = re.compile(r"[^\t\x20-\x7e]")
_RESERVED: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def header_name(value: Any, path: str) -> str:
    """A header's name that a task may use."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidInput(f"{shown(value)} is no name of a header.", path)
    if value.lower() in _RESERVED or value.lower().startswith(OURS):
        raise InvalidInput(f"The header '{value}' is set by Sweephand: leave it out.", path)
    return value


def header_value(value: Any, path: str) -> str:
    """A header's value: one line of ASCII, since nothing else means the same to everybody."""
    if not isinstance(value, str):
        raise InvalidInput(f"{shown(value)} is not text.", path)
    if len(value) > VALUE_CHARS_MAX:
        raise InvalidInput(f"The value has {len(value)} characters: at most {VALUE_CHARS_MAX} are right.", path)
    if _UNFIT.search(value):
        raise InvalidInput("A header's value is one line of ASCII: encode what is not.", path)
    return value.strip()
