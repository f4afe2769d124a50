"""Secrets sealed with a key that is not in the database: neither opens them without the other.

The key is a text of one or more lines, each a Fernet key; the first seals, and all of them open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from sweephand.domain.ids import Namespace
from sweephand.domain.secret import Elsewhere
from sweephand.errors import InvalidInput, Refused
from sweephand.secrets import Bound, unwrapped, wrapped

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class Secrets:
    """The port over a key; it is asked for when the first secret is sealed or opened."""

    def __init__(self, key: Callable[[], str]) -> None:
        self._key = key

    @cached_property
    def _box(self) -> MultiFernet:
        from cryptography.fernet import Fernet, MultiFernet

        try:
            return MultiFernet([Fernet(line) for line in self._key().split()])
        except ValueError:
            raise InvalidInput("The key of secrets is wrong: each of its lines must be a Fernet key.", "key") from None

    def seal(self, text: str, bound_to: Bound) -> str:
        return self._box.encrypt(wrapped(text, bound_to)).decode()

    def unseal(self, sealed: str, bound_to: Bound) -> str | None:
        from cryptography.fernet import InvalidToken

        try:
            return unwrapped(self._box.decrypt(sealed), bound_to)
        except InvalidToken:
            return None

    def fetch(self, namespace: Namespace, place: Elsewhere) -> str | None:  # noqa: ARG002 - the port's
        raise Refused(f"This place knows no secrets of AWS, such as {place.store}:{place.name}: name one of its own.")


def new_key() -> str:
    """A key that nobody else has."""
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode()
