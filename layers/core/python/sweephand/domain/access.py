"""Who may do what: roles, ordered, per namespace; and the texts of tokens."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import DEFAULT, Namespace
from sweephand.errors import InvalidInput

__all__ = [
    "DEFAULT",
    "EVERYWHERE",
    "Caller",
    "PrincipalKind",
    "Role",
    "Token",
    "check_member",
    "digest_of",
    "parts_of_token",
    "token_text",
]

EVERYWHERE: Final = Namespace("*")
"""The namespace of a token that may use them all: the platform's administrators have one."""

_TOKEN: Final = re.compile(r"swh_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_MEMBER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}", re.ASCII)


class Role(StrEnum):
    """Stored values: never renamed. Each may do what those before it may."""

    VIEWER = "viewer"
    """Sees everything in the namespace, and changes nothing."""
    OPERATOR = "operator"
    """Runs what is there: triggers, cancels, reruns, pauses; pulls work."""
    EDITOR = "editor"
    """Changes what is there: jobs, calendars, pools, templates."""
    ADMIN = "admin"
    """Decides about people, tokens and limits."""

    def covers(self, needed: Role) -> bool:
        """Whether this role may do what asks for another."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


class PrincipalKind(StrEnum):
    """How somebody came."""

    TOKEN = "token"
    USER = "user"
    AGENT = "agent"
    """By the lease of one run, for as long as it is its own."""
    FILE = "file"
    """By a job file that is scanned; nobody calls as one."""


class Caller(Struct, frozen=True):
    """Somebody known, in the namespace that the call is about."""

    id: str
    kind: PrincipalKind
    namespace: Namespace
    role: Role
    is_platform: bool = False
    """Whether every namespace is open to this caller."""
    expires_at: datetime | None = None
    """When what they showed opens nothing any more, where that is known."""

    @property
    def actor(self) -> str:
        """How the audit log names the caller."""
        return f"{self.kind}:{self.id}"


class Token(Struct, frozen=True):
    """What is kept of a token: never its text, only the hash of its secret part."""

    id: str
    digest: str
    namespace: Namespace
    role: Role
    name: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None

    def is_opened_by(self, secret: str) -> bool:
        """Compared in constant time. The secret has 256 bits of chance, so a plain hash of it keeps it."""
        return compare_digest(self.digest, digest_of(secret))


def token_text(token_id: str, secret: str) -> str:
    """What its owner sees, once."""
    return f"swh_{token_id}_{secret}"


def parts_of_token(text: str) -> tuple[str, str] | None:
    """The id and the secret of a token's text; None where it is none."""
    found = _TOKEN.fullmatch(text)
    return (found[1], found[2]) if found else None


def digest_of(secret: str) -> str:
    """What is stored of a secret."""
    return sha256(secret.encode()).hexdigest()


def check_member(text: object, *, path: str) -> str:
    """The text itself, if it can be a member: a user's id or e-mail address."""
    if not isinstance(text, str) or not _MEMBER.fullmatch(text):
        raise InvalidInput(f"{path} must be a user's id or e-mail address, of 1 to 128 characters.", path)
    return text
