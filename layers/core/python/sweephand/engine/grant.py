"""Namespaces and their members: who belongs where, in which role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sweephand.documents import SharedDocument
from sweephand.domain.access import DEFAULT, Role, check_member
from sweephand.domain.ids import Namespace, check_name
from sweephand.engine.edit import Document, edit
from sweephand.engine.issue import OWN, revoke, tokens_of
from sweephand.engine.share import NAMESPACE, SECRET, delete_document, put_document
from sweephand.errors import Conflict, NotFound, Refused
from sweephand.ports import World

MEMBER: Final = "member"
_ADMINS: Final = "admins"
_GONE: Final = "deleted"
_PAGE: Final = 500


def put_namespace(
    world: World, name: str, document: Mapping[str, Any], *, actor: str, expected: int | None = None
) -> int:
    """Create a namespace or change its description and limits."""
    check_name(name, path="namespace")
    current = world.shared.get(OWN, NAMESPACE, name)
    if current and _is_gone(current[1]):
        raise Conflict(f"There was a namespace {name}, and its history stays: choose another name.")
    based_on = expected if expected is not None else (current[0] if current else 0)
    return put_document(world, OWN, NAMESPACE, name, document, expected=based_on, actor=actor)


def delete_namespace(world: World, name: str, *, actor: str) -> None:
    """Remove a namespace that has no jobs, with its members, tokens and secrets.

    Its name is not given away again: whoever got it would read the history of those who had it before. Removing it
    again is refused as absent; where it stopped half way, repeating it does the rest.
    """
    if name == DEFAULT:
        raise Conflict("The default namespace stays.")
    stored = world.shared.get(OWN, NAMESPACE, name)
    if stored is None or _is_gone(stored[1]):
        raise NotFound(f"There is no namespace {name}.")
    jobs = world.jobs.count(Namespace(name))
    if jobs:
        raise Conflict(f"Namespace {name} has {jobs} jobs: delete them first.")
    for member in members_of(world, Namespace(name)):
        delete_document(world, Namespace(name), MEMBER, member.name, actor=actor)
    for token in tokens_of(world, [Namespace(name)]):
        revoke(world, [Namespace(name)], token.id, actor=actor)
    while secrets := world.shared.listed(Namespace(name), SECRET, limit=_PAGE):
        for secret in secrets:
            delete_document(world, Namespace(name), SECRET, secret.name, actor=actor)
    put_document(world, OWN, NAMESPACE, name, {_GONE: True}, expected=stored[0], actor=actor)


def namespace_document(world: World, name: Namespace) -> tuple[int, Mapping[str, Any]] | None:
    """A namespace's revision and document; the default one is there unwritten."""
    stored = world.shared.get(OWN, NAMESPACE, name)
    if stored and _is_gone(stored[1]):
        return None
    return stored or ((0, {}) if name == DEFAULT else None)


def _is_gone(document: Mapping[str, Any]) -> bool:
    return bool(document.get(_GONE))


def role_of(world: World, namespace: Namespace, member: str) -> Role | None:
    """A member's role; None for a stranger."""
    stored = world.shared.get(namespace, MEMBER, member)
    return Role(stored[1]["role"]) if stored else None


def put_member(world: World, namespace: Namespace, member: str, role: Role, *, actor: str, self_id: str) -> int:
    """Give a member a role. Nobody changes their own, and the last admin stays one."""
    check_member(member, path="member")
    if member == self_id:
        raise Refused("Nobody changes their own role: ask another admin.")
    stored = world.shared.get(namespace, MEMBER, member)
    if stored and stored[1]["role"] == Role.ADMIN and role is not Role.ADMIN:
        _strike_off(world, namespace, member)
    expected = stored[0] if stored else 0
    version = put_document(world, namespace, MEMBER, member, {"role": str(role)}, expected=expected, actor=actor)
    if role is Role.ADMIN:
        _change_admins(world, namespace, lambda admins: sorted({*admins, member}))
    return version


def remove_member(world: World, namespace: Namespace, member: str, *, actor: str, self_id: str) -> None:
    """Take a member's role away. Removing a stranger is refused as absent."""
    if member == self_id:
        raise Refused("Nobody removes themselves: ask another admin.")
    if role_of(world, namespace, member) is Role.ADMIN:
        _strike_off(world, namespace, member)
    delete_document(world, namespace, MEMBER, member, actor=actor)


def members_of(world: World, namespace: Namespace) -> list[SharedDocument]:
    """Every member, by id."""
    found: list[SharedDocument] = []
    after: str | None = None
    while page := world.shared.listed(namespace, MEMBER, after=after, limit=_PAGE):
        found += page
        after = page[-1].name
    return found


def _strike_off(world: World, namespace: Namespace, member: str) -> None:
    """Take a member off the list of admins, unless nobody would be left on it.

    The list is changed before a role is taken away and after one is given, so that a stop in between leaves an admin
    too few on it, never one too many: of two admins who remove each other at once, one is refused.
    """

    def without(admins: list[str]) -> list[str]:
        left = [one for one in admins if one != member]
        if not left:
            raise Conflict(f"{member} is the last admin of namespace {namespace}: name another first.")
        return left

    _change_admins(world, namespace, without)


def _change_admins(world: World, namespace: Namespace, change: Callable[[list[str]], list[str]]) -> None:
    def changed(document: Document | None) -> Document:
        if document is not None:
            return {"members": change(list(document["members"]))}
        return {"members": change([one.name for one in members_of(world, namespace) if _is_admin(one)])}

    edit(world, namespace, _ADMINS, _ADMINS, changed)


def _is_admin(member: SharedDocument) -> bool:
    return bool(member.document["role"] == Role.ADMIN)


def namespaces(world: World) -> list[SharedDocument]:
    """Every namespace, by name."""
    found: list[SharedDocument] = []
    after: str | None = None
    while page := world.shared.listed(OWN, NAMESPACE, after=after, limit=_PAGE):
        found += [one for one in page if not _is_gone(one.document)]
        after = page[-1].name
    if not any(one.name == DEFAULT for one in found):
        found.append(SharedDocument(DEFAULT, 0, {}))
    return sorted(found, key=lambda one: one.name)


def namespaces_of_member(world: World, member: str) -> list[SharedDocument]:
    """The namespaces that have made somebody a member, by name. They are looked for in one after the other, in batches:
    nothing is kept of a person, so that nothing can say otherwise than the namespaces do."""
    known = namespaces(world)
    roles = world.shared.in_each([Namespace(one.name) for one in known], MEMBER, member)
    return [one for one, role in zip(known, roles, strict=True) if role is not None]


def check_namespace(world: World, name: Namespace) -> None:
    """Refuse a namespace that is not there."""
    if namespace_document(world, name) is None:
        raise NotFound(f"There is no namespace {name}.")
