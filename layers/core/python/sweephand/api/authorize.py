"""Who is calling? A token or a JWT becomes a caller with a role in one namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.api.reading import Event, header, path_of
from sweephand.api.refusals import Unauthorized
from sweephand.api.throttle import Throttle
from sweephand.domain.access import DEFAULT, EVERYWHERE, Caller, PrincipalKind, Role, Token
from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed
from sweephand.engine.grant import namespace_document, namespaces_of_member, role_of
from sweephand.engine.issue import find_token, recognise
from sweephand.engine.offer import Puller, read_lease_id
from sweephand.errors import Refused, TooMany
from sweephand.ports import World

if TYPE_CHECKING:
    from sweephand.api.sessions import Verifier

_BEARER: Final = "bearer "
_TEXT_CHARS_MAX: Final = 8_192
BY_LEASE: Final = "lease."
"""What the token of an agent begins with; the id of its lease follows."""
TOKEN_ID: Final = "tid"
"""The claim of a session that names the token which opened it: where that is revoked, the session ends with it."""
WHO_AM_I: Final = ("GET", "/v1/session")
"""Whoever is in some namespace may ask which ones they are in, before they can name one."""


class Gate(Struct, frozen=True):
    """Recognises callers. Roles are read at each call, so that a change holds as soon as no answer is cached."""

    world: World
    verifiers: Sequence[Verifier]
    refusals: Throttle = field(default_factory=Throttle)

    def caller(self, event: Event) -> Caller:
        """Whoever brings this request, or a refusal."""
        text = _bearer(header(event, "authorization"))
        wanted = header(event, "x-namespace")
        if text.startswith(BY_LEASE):
            return self._by_lease(text.removeprefix(BY_LEASE))
        token = recognise(self.world, text)
        if token is not None:
            return self._by_token(token, wanted)
        for verifier in self.verifiers:
            claims = verifier.claims(text)
            if claims is not None:
                return self._by_claims(claims, wanted, anywhere=_asks_who(event))
        raise Unauthorized("The token opens nothing: it is wrong, revoked or expired.")

    def policy(self, event: Event) -> dict[str, Any]:
        """As a REQUEST authorizer: a policy for the whole stage, which API Gateway keeps for a while.

        Raises `Unauthorized` where nobody known calls; one who is known and may not use the namespace is denied.
        """
        try:
            caller = self.caller(event)
        except Refused as refused:
            return _policy(event, "anonymous", "Deny", {"reason": refused.message})
        return _policy(event, caller.id, "Allow", to_context(caller))

    def _by_lease(self, lease: str) -> Caller:
        """An agent, by the lease that it was launched with; whether it is still its own is decided with each report."""
        try:
            key, secret = read_lease_id(lease)
        except ValueError:
            raise Unauthorized("This is no lease.") from None
        run = self.world.runs.get(key)
        puller = Puller.of(run) if run is not None else None
        if puller is None or not compare_digest(puller.secret.encode(), secret.encode()):
            raise Unauthorized("This lease is nobody's, or another's by now.")
        return Caller(f"agent of {key}", PrincipalKind.AGENT, key.job.namespace, Role.OPERATOR)

    def _by_claims(self, claims: Mapping[str, Any], wanted: str | None, *, anywhere: bool) -> Caller:
        ends_at = datetime.fromtimestamp(int(claims["exp"]), UTC)
        if TOKEN_ID in claims:
            token = find_token(self.world, str(claims[TOKEN_ID]))
            if token is None:
                raise Unauthorized("The token that opened this session is gone.")
            caller = self._by_token(token, wanted)
            return replace(caller, expires_at=min(caller.expires_at or ends_at, ends_at))
        member = str(claims.get("username") or claims["sub"])
        namespace = self._existing(DEFAULT if wanted is None else wanted)
        role = role_of(self.world, namespace, member) if namespace else None
        if role is None and wanted is None and anywhere and (own := namespaces_of_member(self.world, member)):
            namespace = Namespace(own[0].name)
            role = role_of(self.world, namespace, member)
        if namespace is None or role is None:
            raise Refused(_no_access(DEFAULT if wanted is None else wanted))
        return Caller(member, PrincipalKind.USER, namespace, role, expires_at=ends_at)

    def _by_token(self, token: Token, wanted: str | None) -> Caller:
        everywhere = token.namespace == EVERYWHERE
        if not everywhere and wanted is not None and wanted != token.namespace:
            self._record_refusal(token, wanted)
            raise Refused(_no_access(wanted))
        asked_for = (DEFAULT if wanted is None else wanted) if everywhere else token.namespace
        namespace = self._existing(asked_for)
        if namespace is None:
            raise Refused(_no_access(asked_for))
        return Caller(token.id, PrincipalKind.TOKEN, namespace, token.role, everywhere, token.expires_at)

    def _existing(self, name: str) -> Namespace | None:
        namespace = Namespace(name)
        return namespace if namespace_document(self.world, namespace) is not None else None

    def _record_refusal(self, token: Token, wanted: str) -> None:
        """One row a second is enough to be noticed: who may only ask must not fill the log."""
        at, nonce = self.world.clock.now(), self.world.dice.nonce()
        try:
            self.refusals.admit(token.namespace, rate=1, now=at)
        except TooMany:
            return
        deed = Deed(
            token.namespace,
            at,
            nonce,
            f"token:{token.id}",
            "access.refuse",
            "namespaces",
            note=f"asked for {wanted[:128]}",
        )
        self.world.trail.append(deed)


def to_context(caller: Caller) -> dict[str, str]:
    """What the authorizer hands to the function behind it: flat texts, as API Gateway has them."""
    return {
        "callerId": caller.id,
        "callerKind": str(caller.kind),
        "namespace": caller.namespace,
        "role": str(caller.role),
        "platform": "true" if caller.is_platform else "false",
        **({"expiresAt": caller.expires_at.isoformat()} if caller.expires_at else {}),
    }


def from_context(event: Event) -> Caller | None:
    """The caller that the authorizer handed on; None where no authorizer was asked."""
    context: Mapping[str, Any] = (event.get("requestContext") or {}).get("authorizer") or {}
    if "callerId" not in context:
        return None
    return Caller(
        context["callerId"],
        PrincipalKind(context["callerKind"]),
        Namespace(context["namespace"]),
        Role(context["role"]),
        is_platform=context["platform"] == "true",
        expires_at=datetime.fromisoformat(context["expiresAt"]) if "expiresAt" in context else None,
    )


def _asks_who(event: Event) -> bool:
    return (event.get("httpMethod"), path_of(event) if "path" in event else None) == WHO_AM_I


def _bearer(authorization: str | None) -> str:
    if authorization is None or len(authorization) > _TEXT_CHARS_MAX:
        raise Unauthorized("A token is needed: Authorization: Bearer <token>.")
    if authorization[: len(_BEARER)].lower() != _BEARER:
        raise Unauthorized("The Authorization header must be: Bearer <token>.")
    return authorization[len(_BEARER) :].strip()


def _no_access(namespace: str) -> str:
    return f"This token may not use namespace {namespace[:128]}."


def _policy(event: Event, principal: str, effect: str, context: Mapping[str, str]) -> dict[str, Any]:
    arn = str(event.get("methodArn", ""))
    api, _, rest = arn.partition("/")
    stage = rest.partition("/")[0]
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": f"{api}/{stage}/*"}
    return {
        "principalId": principal,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": dict(context),
    }
