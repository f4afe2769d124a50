"""Documents that jobs and people refer to, under revisions: what the engine needs of whoever keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed


class SharedDocument(Struct, frozen=True):
    """A document at a revision."""

    name: str
    rev: int
    document: Mapping[str, Any]


class Shared(Protocol):
    """Documents that jobs and people refer to: pools, calendars, templates, namespaces, members, tokens."""

    def get(self, namespace: Namespace, kind: str, name: str) -> tuple[int, Mapping[str, Any]] | None:
        """The revision and the document."""

    def in_each(
        self, namespaces: Sequence[Namespace], kind: str, name: str
    ) -> list[tuple[int, Mapping[str, Any]] | None]:
        """What `get` says of each namespace, in their order, read together."""

    def listed(self, namespace: Namespace, kind: str, *, after: str | None = None, limit: int) -> list[SharedDocument]:
        """Documents of a kind in the order of their names, beginning after a name."""

    def put(
        self,
        namespace: Namespace,
        kind: str,
        name: str,
        document: Mapping[str, Any],
        *,
        expected: int,
        deed: Deed | None = None,
    ) -> bool:
        """Revision `expected` + 1; False where another revision is there (0 means absent). With its audit row, in one
        transaction."""

    def delete(self, namespace: Namespace, kind: str, name: str, *, expected: int, deed: Deed | None = None) -> bool:
        """False where another revision is there; true where it is gone already."""
