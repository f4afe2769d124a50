"""What API Gateway does in front of the API, on one machine: events, the authorizer and its cache, and answers.

The API sees the same events here as behind a REST API whose stage is `api` (`/api/v1/jobs` has the path `/v1/jobs`),
with a REQUEST authorizer and one `{proxy+}` resource. Everything goes through the authorizer first, in whatever form
it comes, except the exact methods and paths that are public.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, unquote_to_bytes

from msgspec import Struct

from sweephand.api.asked import Patience
from sweephand.api.refusals import Unauthorized
from sweephand.errors import Defect
from sweephand.local.answers import Answer, Turned, problem
from sweephand.ports import Clock, Dice

STAGE: Final = "api"
RESOURCE: Final = "/{proxy+}"
_ARN: Final = f"arn:aws:execute-api:local:000000000000:sweephand/{STAGE}"
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

REMEMBER_FOR: Final = timedelta(seconds=5)
"""How long an authorizer's answer counts, and so a revoked token."""
REMEMBER_MAX: Final = 1_000

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS: Final = {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", "upgrade"}
"""Headers that the server writes, or nobody."""

Event = dict[str, Any]


class Api(Protocol):
    """What is behind the gateway."""

    def authorize(self, event: Event) -> Mapping[str, Any]: ...

    def handle(self, event: Event, *, patience: Patience | None = None) -> Mapping[str, Any]: ...


class Request(Struct, frozen=True):
    """A request's head."""

    method: str
    path: str
    """As it was sent: percent-encoded, never resolved."""
    query: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case."""
    client: str = "127.0.0.1"
    http_version: str = "1.1"

    def values(self, name: str) -> tuple[str, ...]:
        """Every value of a header."""
        return tuple(value for own, value in self.headers if own == name)

    def header(self, name: str) -> str | None:
        """The last value of a header, which is the one that API Gateway hands on."""
        values = self.values(name)
        return values[-1] if values else None


Context = Mapping[str, str]
"""What the authorizer says about the caller, for the API."""
NOBODY: Final[Context] = {}


class Gateway:
    """Authorizes requests, and turns them into events and the API's replies into answers. Threads may share it.

    `public` are methods and paths, as the API sees them, that need no token.
    """

    def __init__(self, api: Api, *, public: Collection[tuple[str, str]], clock: Clock, dice: Dice) -> None:
        self._api = api
        self._public = frozenset(public)
        self._clock = clock
        self._dice = dice
        self._remembered = _Remembered()

    def authorize(self, request: Request) -> Context:
        """Who calls, or `Turned` where nobody known does, or somebody who may not."""
        if (request.method, _staged(request.path)) in self._public:
            return NOBODY
        now = self._clock.now()
        key = (request.values("authorization"), request.values("x-namespace"))
        said = self._remembered.get(key, now)
        event = self._authorizer_event(request, now)
        if said is None:
            try:
                said = self._api.authorize(event)
            except Unauthorized as error:
                raise Turned(_unauthorized(str(error))) from error
            self._remembered.put(key, said, now)
        context = _context(said)
        if not allows(said.get("policyDocument", {}), event["methodArn"]):
            raise Turned(problem(403, context.get("reason", "You may not do this.")))
        return context

    def handle(self, request: Request, body: bytes, context: Context, *, patience: Patience | None = None) -> Answer:
        """The API's answer to an authorized request; `Turned` where it is none that it could understand."""
        return answer_of(self._api.handle(self._proxy_event(request, body, context), patience=patience))

    def _proxy_event(self, request: Request, body: bytes, context: Context) -> Event:
        if _staged(request.path) is None:
            raise Turned(problem(404, "There is nothing here: every path begins with /api/v1/."))
        if _BROKEN_ESCAPE.search(request.path) or not _is_utf8(request):
            raise Turned(problem(400, "The path and the query must be percent-encoded UTF-8."))
        event = self._event(request, self._clock.now())
        if context:
            event["requestContext"]["authorizer"] = dict(context)
        try:
            text, encoded = body.decode() or None, False
        except UnicodeDecodeError:
            text, encoded = base64.b64encode(body).decode(), True
        return {**event, "body": text, "isBase64Encoded": encoded}

    def _authorizer_event(self, request: Request, now: datetime) -> Event:
        event = self._event(request, now)
        arn = f"{_ARN}/{request.method}{event['path']}"
        return {"type": "REQUEST", "methodArn": arn, **event}

    def _event(self, request: Request, now: datetime) -> Event:
        """What both events have in common."""
        path = _staged(request.path) or request.path
        query = parse_qsl(request.query, keep_blank_values=True, errors="replace")
        return {
            "resource": RESOURCE,
            "path": path,
            "httpMethod": request.method,
            "headers": dict(request.headers),
            "multiValueHeaders": _many(request.headers),
            "queryStringParameters": dict(query) or None,
            "multiValueQueryStringParameters": _many(query) or None,
            "pathParameters": {"proxy": path.removeprefix("/")},
            "stageVariables": None,
            "requestContext": self._request_context(request, now),
        }

    def _request_context(self, request: Request, now: datetime) -> dict[str, Any]:
        request_id = self._dice.nonce()
        return {
            "accountId": "000000000000",
            "apiId": "sweephand",
            "domainName": (request.header("host") or "").partition(":")[0],
            "domainPrefix": "sweephand",
            "extendedRequestId": request_id,
            "httpMethod": request.method,
            "identity": {"sourceIp": request.client, "userAgent": request.header("user-agent")},
            "path": request.path,
            "protocol": f"HTTP/{request.http_version}",
            "requestId": request_id,
            "requestTime": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "requestTimeEpoch": int(now.timestamp() * 1000),
            "resourceId": "proxy",
            "resourcePath": RESOURCE,
            "stage": STAGE,
        }


_Key = tuple[tuple[str, ...], tuple[str, ...]]
"""Everything that an authorizer's answer may depend on: the token, and the namespace that is asked for."""


class _Remembered:
    """The authorizer's last answers, oldest first, so that the bound drops those that end soonest."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._said: OrderedDict[_Key, tuple[datetime, Mapping[str, Any]]] = OrderedDict()

    def get(self, key: _Key, now: datetime) -> Mapping[str, Any] | None:
        with self._lock:
            at, said = self._said.get(key, (None, None))
            # A clock that was set back makes an answer look young for ever: then ask again.
            return said if at is not None and timedelta(0) <= now - at < REMEMBER_FOR else None

    def put(self, key: _Key, said: Mapping[str, Any], now: datetime) -> None:
        with self._lock:
            self._said[key] = (now, said)
            self._said.move_to_end(key)
            while len(self._said) > REMEMBER_MAX:
                self._said.popitem(last=False)


def allows(policy: Mapping[str, Any], arn: str) -> bool:
    """Whether a policy lets a method be called: something allows it, and nothing denies it."""
    effects = {
        statement.get("Effect")
        for statement in policy.get("Statement", ())
        if any(_covers(pattern, arn) for pattern in _listed(statement.get("Resource", ())))
    }
    return effects == {"Allow"}


def answer_of(reply: Mapping[str, Any]) -> Answer:
    """What the API replied, as an answer; never with a header that lets other origins in."""
    status = reply.get("statusCode")
    if not isinstance(status, int) or not 200 <= status <= 599:
        raise Defect(f"The API replied with the status {status!r}.")
    many = {name.lower(): values for name, values in (reply.get("multiValueHeaders") or {}).items()}
    one = {name.lower(): [value] for name, value in (reply.get("headers") or {}).items()}
    headers = [(name, str(value)) for name, values in {**one, **many}.items() for value in values]
    for name, value in headers:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise Defect(f"The API replied with the header {name!r}: {value!r}.")
    kept = tuple(pair for pair in headers if pair[0] not in _OURS and not pair[0].startswith("access-control-"))
    body = reply.get("body") or ""
    try:
        content = base64.b64decode(body, validate=True) if reply.get("isBase64Encoded") else body.encode()
    except (binascii.Error, UnicodeEncodeError) as error:
        raise Defect(f"The API replied with a body that cannot be sent: {error}.") from error
    return Answer(status, kept, content)


def _unauthorized(detail: str) -> Answer:
    return problem(401, detail, headers=[("www-authenticate", 'Bearer realm="sweephand"')])


def _context(said: Mapping[str, Any]) -> Context:
    """Flat strings, as API Gateway hands them on."""
    context = {"principalId": str(said["principalId"])}
    for name, value in (said.get("context") or {}).items():
        if isinstance(value, bool):
            context[name] = str(value).lower()
        elif isinstance(value, str | int | float):
            context[name] = str(value)
        else:
            raise Defect(f"The authorizer's {name} is no text, number or boolean: {value!r}.")
    return context


def _staged(path: str) -> str | None:
    """The path behind the stage; None where it is not this stage's."""
    stage, slash, rest = path.removeprefix("/").partition("/")
    return f"/{rest}" if path.startswith("/") and stage == STAGE and slash else None


def _is_utf8(request: Request) -> bool:
    try:
        unquote_to_bytes(request.path).decode()
        unquote_to_bytes(request.query).decode()
    except UnicodeDecodeError:
        return False
    return True


def _many(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    many: dict[str, list[str]] = {}
    for name, value in pairs:
        many.setdefault(name, []).append(value)
    return many


def _listed(value: Any) -> Iterable[str]:
    return [value] if isinstance(value, str) else value


def _covers(pattern: str, arn: str) -> bool:
    """Whether an IAM pattern, of `*` and `?`, matches a name."""
    parts = (".*" if part == "*" else "." if part == "?" else re.escape(part) for part in re.split(r"([*?])", pattern))
    return re.fullmatch("".join(parts), arn, re.DOTALL) is not None
