"""The REST API as a function of API Gateway events; what stands around every call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.event_handler.api_gateway import Route
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from sweephand.api import (
    backfills,
    code,
    dags,
    datasets,
    files,
    jobs,
    leases,
    logs,
    openapi,
    people,
    plan,
    runs,
    shared,
    stats,
    tasks,
    upcoming,
    watching,
)
from sweephand.api.access import PUBLIC_CALLS, check_access
from sweephand.api.asked import Answer, Asked, Patience, asking
from sweephand.api.authorize import Gate, from_context
from sweephand.api.downloads import DOWNLOAD, Downloads
from sweephand.api.problems import problem, problem_of
from sweephand.api.reading import (
    BODY_BYTES_MAX,
    CODE_BYTES_MAX,
    JSON,
    SMALL_BYTES_MAX,
    Event,
    body_of,
    check_conditions,
    header,
    idempotency_key_of,
    path_of,
)
from sweephand.api.refusals import MethodNotAllowed, Unauthorized
from sweephand.api.repeats import once
from sweephand.api.resolver import Resolver
from sweephand.api.throttle import Throttle
from sweephand.domain.access import DEFAULT, Caller, PrincipalKind, Role
from sweephand.domain.addresses import NOWHERE
from sweephand.domain.fields import nearest
from sweephand.domain.headers import OURS
from sweephand.domain.kinds import Installed, http_within, sensor_within
from sweephand.domain.sensor import SENSOR
from sweephand.domain.targets import Targets
from sweephand.engine.look import KINDS as LOOKS
from sweephand.engine.quota import quota_of
from sweephand.errors import InvalidInput, NotFound, Refused, SweephandError
from sweephand.ports import World

if TYPE_CHECKING:
    from sweephand.api.sessions import Issuer, Verifier

__all__ = ["PUBLIC", "Api"]

PREFIX: Final = "/v1"
"""The stage is `api`: outside, paths begin with /api/v1."""
_TYPE: Final = "content-type"
PUBLIC: Final = frozenset({("GET", "/v1/health"), ("GET", "/v1/jwks.json"), ("GET", f"/v1{DOWNLOAD}")})
"""Methods and paths that need no token."""

_SAFE: Final = frozenset({"GET", "HEAD"})
_UNREPEATED: Final = frozenset(
    {"issueToken", "openSession", "putSecret", "putCode", "openUpload"}
    | {"leaseWork", "beat", "beatMany", "completeWork", "failWork"}
)
"""Answers that hold secrets are not kept, nor is a hash of a body that does; what a worker says is recognised by its
epoch, and code by its name."""
_DEFINING: Final = frozenset({"createJob", "putJob", "planJob", "createDag", "putTemplate", "putSecret"})
"""Their bodies may be as large as a definition can be; a secret of 64 KB may be written with six bytes for each."""
_BYTES_MAX: Final = {**dict.fromkeys(_DEFINING | {"completeWork"}, BODY_BYTES_MAX), "putCode": CODE_BYTES_MAX}
_BUILT_IN: Final = frozenset({"command", "python", "http", "external"}) | LOOKS
ON_AWS: Final = _BUILT_IN | {"container"}
"""What a deployment runs besides the AWS services that it lists; which images, its list says."""
_CAREFUL: Final[Installed] = MappingProxyType({"http": http_within(NOWHERE), SENSOR: sensor_within(NOWHERE)})
_NOBODY: Final = Caller("nobody", PrincipalKind.TOKEN, DEFAULT, Role.VIEWER)


class Api:
    """Authorises and answers. Safe for many threads; where only one calls at a time (`alone`), it begins faster: what a
    route needs is then made when the route is first called."""

    def __init__(
        self,
        world: World,
        *,
        verifiers: Sequence[Verifier] = (),
        issuer: Issuer | None = None,
        kinds: frozenset[str] = _BUILT_IN,
        operators: Installed = _CAREFUL,
        targets: Targets | None = None,
        downloads: Downloads | None = None,
        alone: bool = False,
    ) -> None:
        self._world = world
        self._gate = Gate(world, [*verifiers, *([issuer.verifier()] if issuer else [])])
        self._issuer = issuer
        self._kinds = kinds | (targets.kinds if targets else frozenset())
        self._targets = targets
        self._downloads = downloads
        self._operators = operators
        self._throttle = Throttle()
        self._resolver = _routes()
        self._document = openapi.attach(self._resolver, self._kinds, operators)
        self._resolver.exception_handler(RequestValidationError)(_invalid)
        self._resolver.exception_handler(Exception)(problem_of)
        if not alone:
            self._resolver.prepare()

    @property
    def document(self) -> Mapping[str, Any]:
        """The OpenAPI document."""
        return self._document()

    def authorize(self, event: Event) -> dict[str, Any]:
        """As the authorizer's function would; see `Gate.policy`."""
        return self._gate.policy(event)

    def handle(self, event: Event, *, patience: Patience | None = None) -> dict[str, Any]:
        """Answer a call that the authorizer has let through; with `patience`, its caller may be kept waiting."""
        try:
            return self._answer(event, patience)
        except SweephandError as error:
            return _built(problem_of(error))

    def _answer(self, event: Event, patience: Patience | None) -> dict[str, Any]:
        method, path = str(event["httpMethod"]).upper(), path_of(event)
        caller = from_context(event)
        route = self._route(method, path) if caller or (method, path) in PUBLIC else None
        if route is None or (caller is None and route.operation_id not in PUBLIC_CALLS):
            raise Unauthorized("A token is needed: Authorization: Bearer <token>.")
        if caller is not None and route.operation_id not in PUBLIC_CALLS:
            check_access(caller, route.operation_id)
            if patience is None or not patience.has_waited:
                rate = quota_of(self._world, caller.namespace).requests_per_second
                self._throttle.admit(caller.namespace, rate=rate, now=self._world.clock.now())
        _check_query(event, route)
        return self._carry_out(event, route, method, caller or _NOBODY, patience)

    def _carry_out(
        self, event: Event, route: Route, method: str, caller: Caller, patience: Patience | None
    ) -> dict[str, Any]:
        unsafe = method not in _SAFE
        if unsafe:
            _check_loop(event)
            check_conditions(event)
        bytes_max = _BYTES_MAX.get(route.operation_id, SMALL_BYTES_MAX)
        body = body_of(event, bytes_max=bytes_max) if unsafe else None
        key = idempotency_key_of(event) if unsafe else None
        asking(
            Asked(
                self._world,
                caller,
                event,
                self._kinds,
                self._operators,
                key,
                self._issuer,
                self._targets,
                self._downloads,
                patience,
            )
        )
        headers = {name: value for name, value in (event.get("headers") or {}).items() if name.lower() != _TYPE}
        told = {
            **event,
            "path": path_of(event),
            "headers": {**headers, _TYPE: JSON},  # which it is, however it was written
            "body": json.dumps(body) if unsafe else None,
            "isBase64Encoded": False,
        }

        def call() -> dict[str, Any]:
            return self._resolver.resolve(told, None)

        if key is None or route.operation_id in _UNREPEATED:
            return call()
        asked_for = {
            "method": method,
            "path": event["path"],
            "query": event.get("multiValueQueryStringParameters") or {},
            "body": body,
            "match": [header(event, "if-match"), header(event, "if-none-match")],
        }
        return once(self._world, caller.namespace, key, asked_for, call)

    def _route(self, method: str, path: str) -> Route:
        """The route of a call; a wrong method on a known path is told which are right."""
        inner = path.removeprefix(PREFIX) if path.startswith(f"{PREFIX}/") else ""
        fitting = [route for route in self._resolver.routes if route.rule.match(inner)] if path.isprintable() else []
        for route in fitting:
            if route.method == method:
                return route
        if fitting:
            raise MethodNotAllowed(method, {route.method for route in fitting})
        raise NotFound("There is nothing at this address.")


def _routes() -> Resolver:
    resolver = Resolver(enable_validation=True, strip_prefixes=[PREFIX])
    things = (shared, datasets, files, people, watching, stats, dags)
    for module in (jobs, upcoming, backfills, plan, code, runs, tasks, logs, leases, *things):
        resolver.include_router(module.router)
    return resolver


def document_alone() -> Mapping[str, Any]:
    """The OpenAPI document, for whoever has no world at hand."""
    return openapi.attach(_routes(), _BUILT_IN, _CAREFUL)()


def _check_loop(event: Event) -> None:
    """Refuse a change that a task's own request asks for: a job that starts jobs over HTTP would never end."""
    run = header(event, f"{OURS}run-id")
    if run is not None:
        raise Refused(f"This is a request of a task of run '{run[:128]}': tasks change nothing here over HTTP.")


def _check_query(event: Event, route: Route) -> None:
    """Refuse what would be ignored: a misspelt filter must not answer with everything."""
    known = [param.alias for param in route.dependant.query_params]
    for name, values in (event.get("multiValueQueryStringParameters") or {}).items():
        if name not in known:
            raise InvalidInput(f"There is no parameter '{name[:64]}' here{nearest(name, known)}", name[:64])
        if len(values) > 1:
            raise InvalidInput("This parameter is given twice.", name[:64])


def _invalid(error: RequestValidationError) -> Answer:
    """What pydantic found, as our own refusals look."""
    found = [(_path_of(one["loc"]), str(one["msg"])) for one in error.errors()]
    first = found[0] if found else ("", "")
    detail = f"{first[0]}: {first[1]}" if first[0] else first[1]
    return problem(HTTPStatus.BAD_REQUEST, detail or "The input is wrong.", errors=found)


def _path_of(location: Sequence[str | int]) -> str:
    text = ""
    for part in location[1:]:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def _built(answer: Answer) -> dict[str, Any]:
    headers = {name: [value] if isinstance(value, str) else list(value) for name, value in answer.headers.items()}
    headers["Content-Type"] = [str(answer.content_type)]
    return {
        "statusCode": answer.status_code,
        "multiValueHeaders": headers,
        "body": answer.body,
        "isBase64Encoded": False,
    }
