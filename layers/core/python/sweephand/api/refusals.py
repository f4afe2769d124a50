"""What only the API refuses; `problems` says how each is answered."""

from __future__ import annotations

from collections.abc import Iterable

from sweephand.errors import SweephandError


class Unauthorized(SweephandError):
    """Nobody known: there is no token, or none that opens anything."""


class VersionNeeded(SweephandError):
    """A change must say which version it is based on."""


class MethodNotAllowed(SweephandError):
    """The resource is there, but not for this method."""

    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        super().__init__(f"{method} is not possible here: use {self.allowed}.")


class TooLarge(SweephandError):
    """The body is larger than any that could be right."""


class UnsupportedMedia(SweephandError):
    """The body is not JSON, and says so."""
