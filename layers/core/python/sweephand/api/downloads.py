"""Addresses that serve one file to whoever has them, for a few minutes: on one machine, what S3 does on AWS.

A browser that downloads sends no token. Such an address therefore says itself which file it is for and until when, and
is signed: it cannot be guessed, altered to name another file, or made to last.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Any, Final

from sweephand.domain.ids import RunKey
from sweephand.errors import Refused
from sweephand.logs import LogKey

__all__ = ["DOWNLOAD", "TICKET_PATTERN", "Downloads"]

DOWNLOAD: Final = "/artifacts/file"
"""One exact path for every file: no other needs no token."""
SERVES_FOR: Final = timedelta(minutes=5)
"""As long as an address of S3 does."""
TICKET_PATTERN: Final = r"^[A-Za-z0-9._-]{1,4000}$"
_PURPOSE: Final = b"sweephand:downloads"
_REFUSED: Final = "This address serves no file, or no longer: list the artifacts again."


class Downloads:
    """Signs addresses, and opens those that it signed; so does any other with the same secret."""

    def __init__(self, secret: bytes) -> None:
        # Derived: whatever else the secret signs says nothing about these, and these nothing about it.
        self._key: Final = hmac.digest(secret, _PURPOSE, "sha256")

    def address(self, key: LogKey, name: str, *, now: datetime) -> str:
        """Where a file of an attempt is, from now on for a while."""
        until = int((now + SERVES_FOR).timestamp())
        told = json.dumps([str(key.run), key.task, key.attempt, name, until], separators=(",", ":"))
        content = _text(told.encode())
        return f"/api/v1{DOWNLOAD}?ticket={content}.{self._signature(content)}"

    def opened(self, ticket: str, *, now: datetime) -> tuple[LogKey, str]:
        """The attempt and the file that an address is for; refused where it was not signed here, or is over."""
        content, _, signature = ticket.partition(".")
        if not hmac.compare_digest(signature, self._signature(content)):
            raise Refused(_REFUSED)
        told: list[Any] = json.loads(urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        run, task, attempt, name, until = told
        if now.timestamp() >= until:
            raise Refused(_REFUSED)
        return LogKey(RunKey.of(run), task, attempt), name

    def _signature(self, content: str) -> str:
        return _text(hmac.digest(self._key, content.encode(), "sha256"))


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")
