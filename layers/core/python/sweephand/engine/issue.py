"""Tokens: issue one, revoke one, and recognise whoever brings one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.access import DEFAULT, EVERYWHERE, Role, Token, digest_of, parts_of_token, token_text
from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed
from sweephand.engine.insist import insist
from sweephand.errors import Conflict, NotFound
from sweephand.ports import World

OWN: Final = Namespace("_sweephand")
"""Where the platform keeps its own documents: no user's namespace begins like this."""
TOKEN: Final = "token"
_TOKENS: Final = 500


class Issued(Struct, frozen=True):
    """A new token, and its text, which is not kept."""

    text: str
    token: Token


def issue(
    world: World,
    *,
    namespace: Namespace,
    role: Role,
    name: str,
    actor: str,
    expires_at: datetime | None = None,
) -> Issued:
    """A token with a role in a namespace. Repeating it issues another."""
    secret, token_id = world.dice.secret(), _token_id(world)
    token = Token(token_id, digest_of(secret), namespace, role, name, world.clock.now(), actor, expires_at)
    deed = _deed(world, token, actor, "token.issue", after=described(token))
    if not insist(lambda: world.shared.put(OWN, TOKEN, token_id, _encode(token), expected=0, deed=deed)):
        stored = world.shared.get(OWN, TOKEN, token_id)
        if stored is None or stored[1] != _encode(token):  # else the answer to our own write was lost
            raise Conflict("The token's id is taken: try again.")
    return Issued(token_text(token_id, secret), token)


def revoke(world: World, reach: Collection[Namespace], token_id: str, *, actor: str) -> None:
    """A token of one of these namespaces opens nothing any more. Revoking it again is refused as absent."""
    stored = world.shared.get(OWN, TOKEN, token_id)
    token = _decode(token_id, stored[1]) if stored else None
    if stored is None or token is None or token.namespace not in reach:
        raise NotFound(f"There is no token {token_id}.")
    deed = _deed(world, token, actor, "token.revoke", before=described(token))
    if not insist(lambda: world.shared.delete(OWN, TOKEN, token_id, expected=stored[0], deed=deed)):
        raise Conflict(f"Token {token_id} changed meanwhile: try again.")


def recognise(world: World, text: str) -> Token | None:
    """The token that this text opens; None for any other text."""
    parts = parts_of_token(text)
    token = find_token(world, parts[0]) if parts else None
    return token if parts and token and token.is_opened_by(parts[1]) else None


def find_token(world: World, token_id: str) -> Token | None:
    """A token that is in force."""
    stored = world.shared.get(OWN, TOKEN, token_id)
    token = _decode(token_id, stored[1]) if stored else None
    if token is None or (token.expires_at is not None and token.expires_at <= world.clock.now()):
        return None
    return token


def tokens_of(world: World, reach: Collection[Namespace]) -> list[Token]:
    """The tokens of these namespaces, by name."""
    found: list[Token] = []
    after: str | None = None
    while page := world.shared.listed(OWN, TOKEN, after=after, limit=_TOKENS):
        found += [_decode(one.name, one.document) for one in page]
        after = page[-1].name
    return sorted((one for one in found if one.namespace in reach), key=lambda one: f"{one.name} {one.id}")


def described(token: Token) -> dict[str, Any]:
    """What people see of a token."""
    return {"id": token.id, "name": token.name, "namespace": token.namespace, "role": str(token.role)}


def _token_id(world: World) -> str:
    return world.dice.nonce()[:16].rjust(16, "0")


def _deed(
    world: World,
    token: Token,
    actor: str,
    action: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Deed:
    where = DEFAULT if token.namespace == EVERYWHERE else token.namespace
    at, nonce = world.clock.now(), world.dice.nonce()
    return Deed(where, at, nonce, actor, action, f"tokens/{token.id}", before, after)


def _encode(token: Token) -> dict[str, Any]:
    return {
        "digest": token.digest,
        "namespace": token.namespace,
        "role": str(token.role),
        "name": token.name,
        "createdAt": token.created_at.isoformat(),
        "createdBy": token.created_by,
        "expiresAt": token.expires_at.isoformat() if token.expires_at else None,
    }


def _decode(token_id: str, stored: Mapping[str, Any]) -> Token:
    return Token(
        token_id,
        stored["digest"],
        Namespace(stored["namespace"]),
        Role(stored["role"]),
        stored["name"],
        datetime.fromisoformat(stored["createdAt"]),
        stored["createdBy"],
        datetime.fromisoformat(stored["expiresAt"]) if stored["expiresAt"] else None,
    )
