"""The code of `python` tasks: packs, zips that are named by the SHA-256 of their bytes, kept for each namespace.

A pack is written once and never changes, so whoever has one under its name has the right one. It is kept for as long as
versions of jobs are, which is for ever: a version that names it can be gone back to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec import Struct, field

from sweephand.domain.ids import Namespace

__all__ = ["INLINE_BYTES_MAX", "ON_LAMBDA", "PACK_BYTES_MAX", "Pack", "Packs", "Platform", "Upload"]

PACK_BYTES_MAX: Final = 64 * 1024 * 1024
INLINE_BYTES_MAX: Final = 3 * 1024 * 1024
"""What fits into the body of a call on AWS; what is larger goes straight to S3."""


class Platform(Struct, frozen=True):
    """What packs are run by: a version of Python, and the platforms of wheels; none of them: this machine's own."""

    python: str
    wheels: tuple[str, ...] = ()


ON_LAMBDA: Final = Platform("3.13", ("manylinux2014_aarch64", "manylinux_2_28_aarch64"))
"""What `execute` and the agents run on: see the functions of `infra/`, and the agent's image."""


class Upload(Struct, frozen=True):
    """An address that takes one pack, by PUT, for a few minutes."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Pack(Struct, frozen=True):
    """A pack to keep: checked, and with the name that its bytes have."""

    digest: str
    content: bytes


class Packs(Protocol):
    """The packs of all namespaces; none sees another's. Every call may raise `Unavailable`."""

    @property
    def platform(self) -> Platform:
        """What to pack for."""

    def keep(self, namespace: Namespace, pack: Pack) -> None:
        """Keep it; again, it changes nothing."""

    def size(self, namespace: Namespace, digest: str) -> int | None:
        """How large it is; None where there is none."""

    def read(self, namespace: Namespace, digest: str) -> bytes | None:
        """What is in it, as it was kept: whoever uses it checks that; None where there is none."""

    def upload(self, namespace: Namespace, digest: str, size: int) -> Upload | None:
        """An address that takes this pack and no other; None where only the API does."""
