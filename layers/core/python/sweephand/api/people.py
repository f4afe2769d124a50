"""Namespaces, their members, tokens and sessions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, Asked, answer, asked, no_content
from sweephand.api.authorize import TOKEN_ID
from sweephand.api.cursors import cut, decode_cursor, encode_cursor
from sweephand.api.schemas import Cursor, InPath, Limit, says
from sweephand.api.shapes import moment, page
from sweephand.documents import SharedDocument
from sweephand.domain.access import DEFAULT, EVERYWHERE, PrincipalKind, Token
from sweephand.domain.ids import JobName, Namespace
from sweephand.domain.job import CatchupPolicy, Head, JobEvent, JobStatus
from sweephand.engine.grant import (
    check_namespace,
    delete_namespace,
    members_of,
    namespace_document,
    namespaces,
    namespaces_of_member,
    put_member,
    put_namespace,
    remove_member,
)
from sweephand.engine.issue import issue, revoke, tokens_of
from sweephand.engine.pause import pause
from sweephand.engine.resume import resume
from sweephand.errors import InvalidInput, NotFound, Refused, StaleVersion

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "people"
_SWITCHED_MAX: Final = 500
"""Jobs that one call pauses or resumes; the answer says where to go on."""
_NAMED_MAX: Final = 1_000
"""Namespaces that `GET /session` names; `GET /namespaces` lists them all."""
_NOTE: Final = "the namespace was paused"

MemberId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$")]
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@router.get(
    "/namespaces",
    **says("listNamespaces", "Namespaces that the caller may use", {200: "NamespaceInfoPage"}, tag=_TAG),
)
def list_namespaces(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    bound_to = ("namespaces", ask.namespace)
    shown, more = cut(_open_to(ask), lambda one: one.name, limit=limit, cursor=cursor, bound_to=bound_to)
    return answer(200, page([_namespace(one.name, one.rev, one.document) for one in shown], more))


@router.get("/namespaces/<ns>", **says("getNamespace", "Show a namespace", {200: "NamespaceInfo"}, tag=_TAG))
def get_namespace(ns: InPath) -> Answer:
    ask = asked()
    stored = namespace_document(ask.world, _own(ask, ns))
    if stored is None:
        raise NotFound(f"There is no namespace {ns}.")
    return answer(200, {**_namespace(ns, *stored), "jobs": ask.world.jobs.count(Namespace(ns))})


@router.put(
    "/namespaces/<ns>",
    **says(
        "putNamespace",
        "Create a namespace, or change it",
        {200: "NamespaceInfo", 201: "NamespaceInfo"},
        tag=_TAG,
    ),
)
def put_namespace_document(ns: InPath, body: Annotated[bodies.NamespaceBody, Body()]) -> Answer:
    ask = asked()
    document = body.model_dump(by_alias=True, exclude_none=True)
    current = namespace_document(ask.world, Namespace(ns))
    if ask.must_be_new and current is not None:
        raise StaleVersion(f"namespace {ns}", 0, current[0])
    version = put_namespace(ask.world, ns, document, actor=ask.caller.actor, expected=ask.if_match)
    return answer(201 if version == 1 else 200, _namespace(ns, version, document))


@router.delete("/namespaces/<ns>", **says("deleteNamespace", "Remove an empty namespace", {204: None}, tag=_TAG))
def remove_namespace(ns: InPath) -> Answer:
    ask = asked()
    delete_namespace(ask.world, ns, actor=ask.caller.actor)
    return no_content()


@router.post(
    "/namespaces/<ns>/pause",
    **says("pauseNamespace", "Pause every job of a namespace", {200: "Switched"}, tag=_TAG),
)
def pause_namespace(ns: InPath, body: Annotated[bodies.SwitchNamespaceBody, Body()]) -> Answer:
    ask = asked()
    namespace = _existing(ask, ns)

    def switch(head: Head) -> bool:
        if head.status is not JobStatus.ACTIVE:
            return False
        pause(ask.world, head.key, actor=ask.caller.actor, note=_NOTE)
        return True

    return _switch_all(ask, namespace, body.cursor, switch)


@router.post(
    "/namespaces/<ns>/resume",
    **says("resumeNamespace", "Resume what the namespace's pause stopped", {200: "Switched"}, tag=_TAG),
)
def resume_namespace(ns: InPath, body: Annotated[bodies.SwitchNamespaceBody, Body()]) -> Answer:
    ask = asked()
    namespace = _existing(ask, ns)

    def switch(head: Head) -> bool:
        if head.status is not JobStatus.PAUSED or not _was_paused_with_all(ask, head):
            return False  # a job that somebody paused by itself stays paused
        resume(ask.world, head.key, catchup=CatchupPolicy(body.catchup), actor=ask.caller.actor)
        return True

    return _switch_all(ask, namespace, body.cursor, switch)


@router.get("/namespaces/<ns>/members", **says("listMembers", "List members", {200: "MemberPage"}, tag=_TAG))
def list_members(ns: InPath, limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    found = members_of(ask.world, _existing(ask, ns))
    shown, more = cut(found, lambda one: one.name, limit=limit, cursor=cursor, bound_to=("members", ns))
    return answer(200, page([{"member": one.name, "role": one.document["role"]} for one in shown], more))


@router.put(
    "/namespaces/<ns>/members/<member>",
    **says("putMember", "Give a member a role", {200: "Member", 201: "Member"}, tag=_TAG),
)
def put_member_role(ns: InPath, member: MemberId, body: Annotated[bodies.MemberBody, Body()]) -> Answer:
    ask = asked()
    version = put_member(
        ask.world, _existing(ask, ns), member, body.as_role, actor=ask.caller.actor, self_id=_user_id(ask)
    )
    return answer(201 if version == 1 else 200, {"member": member, "role": body.role})


@router.delete("/namespaces/<ns>/members/<member>", **says("removeMember", "Remove a member", {204: None}, tag=_TAG))
def remove_member_role(ns: InPath, member: MemberId) -> Answer:
    ask = asked()
    remove_member(ask.world, _existing(ask, ns), member, actor=ask.caller.actor, self_id=_user_id(ask))
    return no_content()


@router.get("/tokens", **says("listTokens", "List tokens", {200: "TokenInfoPage"}, tag=_TAG))
def list_tokens(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    found = tokens_of(ask.world, _reach(ask))
    bound_to = ("tokens", ask.namespace)
    shown, more = cut(found, lambda one: f"{one.name} {one.id}", limit=limit, cursor=cursor, bound_to=bound_to)
    return answer(200, page([_token(one) for one in shown], more))


@router.post("/tokens", **says("issueToken", "Issue a token: its text is shown once", {201: "NewToken"}, tag=_TAG))
def issue_token(body: Annotated[bodies.TokenBody, Body()]) -> Answer:
    ask = asked()
    if body.expires_at is not None and body.expires_at <= ask.now:
        raise InvalidInput("expiresAt is over: name a time to come.", "expiresAt")
    if not ask.caller.role.covers(body.as_role):
        raise Refused("Nobody gives more than they have.")
    issued = issue(
        ask.world,
        namespace=ask.namespace,
        role=body.as_role,
        name=body.name,
        actor=ask.caller.actor,
        expires_at=body.expires_at,
    )
    return answer(201, {**_token(issued.token), "token": issued.text}, Cache_Control="no-store")


@router.delete("/tokens/<token>", **says("revokeToken", "Revoke a token", {204: None}, tag=_TAG))
def revoke_token(token: TokenId) -> Answer:
    ask = asked()
    revoke(ask.world, _reach(ask), token, actor=ask.caller.actor)
    return no_content()


@router.post("/session", **says("openSession", "A JWT of one hour", {201: "Session"}, tag=_TAG))
def open_session() -> Answer:
    ask = asked()
    if ask.issuer is None:
        raise NotFound("Sessions are opened by the user pool here.")
    if ask.caller.kind is not PrincipalKind.TOKEN:
        raise Refused("A session is opened with a token that lasts, not with another session.")
    text, ends_at = ask.issuer.issue(f"token:{ask.caller.id}", **{TOKEN_ID: ask.caller.id})
    return answer(201, {"token": text, "expiresAt": moment(ends_at)}, Cache_Control="no-store")


@router.get("/session", **says("getSession", "Who the caller is, and what they may do", {200: "Myself"}, tag=_TAG))
def get_session() -> Answer:
    """Nothing in it is secret; it is not to be kept, since roles are given and taken at any time."""
    ask = asked()
    names = [one.name for one in _open_to(ask)]
    return answer(
        200,
        {
            "caller": ask.caller.id,
            "kind": "person" if ask.caller.kind is PrincipalKind.USER else "token",
            "role": str(ask.caller.role),
            "namespace": ask.namespace,
            "namespaces": names[:_NAMED_MAX],
            "moreNamespaces": len(names) > _NAMED_MAX,
            "platform": ask.caller.is_platform,
            "expiresAt": moment(ask.caller.expires_at),
        },
        Cache_Control="no-store",
    )


@router.get("/jwks.json", **says("getKeys", "Public keys", {200: None}, tag=_TAG, public=True))
def get_keys() -> Answer:
    issuer = asked().issuer
    if issuer is None:
        raise NotFound("The user pool publishes its keys itself.")
    return answer(200, issuer.jwks())


def _own(ask: Asked, ns: str) -> Namespace:
    """The namespace, if it is the caller's; another's is as absent as none."""
    if not ask.caller.is_platform and ns != ask.namespace:
        raise NotFound(f"There is no namespace {ns}.")
    return Namespace(ns)


def _open_to(ask: Asked) -> list[SharedDocument]:
    """The namespaces that the caller may name in X-Namespace."""
    if ask.caller.is_platform:
        return namespaces(ask.world)
    if ask.caller.kind is PrincipalKind.USER:
        return namespaces_of_member(ask.world, ask.caller.id)
    stored = namespace_document(ask.world, ask.namespace)
    return [SharedDocument(ask.namespace, *stored)] if stored else []


def _existing(ask: Asked, ns: str) -> Namespace:
    namespace = _own(ask, ns)
    check_namespace(ask.world, namespace)
    return namespace


def _reach(ask: Asked) -> frozenset[Namespace]:
    """Whose tokens the caller decides about: the platform's own are seen from the default namespace."""
    own = {EVERYWHERE} if ask.caller.is_platform and ask.namespace == DEFAULT else set()
    return frozenset({ask.namespace, *own})


def _user_id(ask: Asked) -> str:
    """Whom the caller must not promote: a user is known by id, a token is no member."""
    return ask.caller.id if ask.caller.kind is PrincipalKind.USER else ""


def _was_paused_with_all(ask: Asked, head: Head) -> bool:
    changes = ask.world.jobs.timeline(head.key, since=head.paused_since)
    return any(one.event is JobEvent.PAUSED and one.at == head.paused_since and one.note == _NOTE for one in changes)


def _switch_all(ask: Asked, namespace: Namespace, cursor: str | None, switch: Callable[[Head], bool]) -> Answer:
    bound_to = ("switch", namespace)
    position = decode_cursor(cursor, bound_to, length=1)
    after = JobName(position[0]) if position else None
    heads = ask.world.jobs.heads(namespace, after=after, limit=_SWITCHED_MAX)
    changed = 0
    for head in heads:
        with suppress(NotFound):  # it was deleted meanwhile
            changed += switch(head)
    is_more = len(heads) == _SWITCHED_MAX
    more = encode_cursor([heads[-1].key.name], bound_to) if is_more else None
    return answer(200, {"changed": changed, "nextCursor": more})


def _namespace(name: str, version: int, document: Any) -> dict[str, Any]:
    return {"namespace": name, "version": version, "description": "", "limits": {}, "weight": 1, **document}


def _token(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "namespace": token.namespace,
        "role": str(token.role),
        "createdAt": moment(token.created_at),
        "createdBy": token.created_by,
        "expiresAt": moment(token.expires_at),
    }
