"""The OpenAPI document: what Powertools derives from the routes, with what it cannot know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, Final

from aws_lambda_powertools.event_handler.api_gateway import Route

from sweephand import __version__
from sweephand.api import definitions
from sweephand.api.access import LEAST_ROLE, PUBLIC_CALLS
from sweephand.api.asked import Answer, answer
from sweephand.api.downloads import DOWNLOAD
from sweephand.api.problems import PROBLEM
from sweephand.api.reading import IDEMPOTENCY_KEY, VERSION
from sweephand.api.resolver import Resolver
from sweephand.api.schemas import ANSWER, says
from sweephand.api.vocabulary import NAME, Schema
from sweephand.domain.kinds import Installed

_PROBLEMS: Final = {
    400: "The input is wrong; `errors` names the fields.",
    401: "No token, or none that opens anything.",
    403: "Not allowed.",
    404: "Absent, or not yours.",
    409: "It does not fit the present state.",
    412: "Based on an old version.",
    413: "Too large.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    428: "Say which version this is based on.",
    429: "Too many: come back later.",
    431: "The headers are too long.",
    503: "Try again.",
}
_ONLY_UNSAFE: Final = frozenset({413, 415})
_PUBLIC: Final = frozenset({400, 404, 503})
_UNSAFE: Final = frozenset({"post", "put", "delete"})
_UNKNOWN_TO_US: Final = ("HTTPValidationError", "ValidationError", "ResponseValidationError")

_CREATING: Final = frozenset({"putJob", "putCalendar", "putPool", "putTemplate", "putNamespace"})
_VERSIONED: Final = _CREATING | {
    "deleteJob",
    "rollbackJob",
    "deleteCalendar",
    "deletePool",
    "deleteTemplate",
}


def _header(name: str, description: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


_NAMESPACE: Final = _header("X-Namespace", "One of the namespaces that the token may use.", NAME)
_IDEMPOTENCY_KEY: Final = _header(
    "Idempotency-Key",
    "The same call again under the same key, within 24 hours, is answered again and done once.",
    {"type": "string", "pattern": f"^{IDEMPOTENCY_KEY}$"},
)
_HIDDEN: Final = ("/jwks.json", DOWNLOAD)
"""For verifiers of sessions, who know where keys are published; and for whoever was given an address."""
_IF_MATCH: Final = _header(
    "If-Match", "The version that the change is based on; `*`: any.", {"type": "string", "pattern": f"^({VERSION})$"}
)
_IF_NONE_MATCH: Final = _header(
    "If-None-Match", "`*`: create, and change nothing that is there.", {"type": "string", "enum": ["*"]}
)
_HEADERS: Final = {"Namespace": _NAMESPACE, "Key": _IDEMPOTENCY_KEY, "IfMatch": _IF_MATCH, "IfNone": _IF_NONE_MATCH}


def attach(resolver: Resolver, kinds: Collection[str], operators: Installed) -> Callable[[], Mapping[str, Any]]:
    """Add the route that serves the document; and the document itself, made when it is first asked for."""

    @cache
    def document() -> Mapping[str, Any]:
        return _document(resolver, kinds, operators)

    @resolver.get("/openapi.json", **says("getOpenapi", "This document", {200: None}, tag="watching"))
    def get_openapi() -> Answer:
        return answer(200, document())

    return document


def _document(resolver: Resolver, kinds: Collection[str], operators: Installed) -> dict[str, Any]:
    # Not before, since a cold start would pay for models that only this document needs.
    from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer

    from sweephand.api import answers

    for route in resolver.routes:
        _name_answers(route, answers.named)
    schemes: dict[str, Any] = {"bearer": HTTPBearer()}
    made = resolver.get_openapi_schema(title="Sweephand", version=__version__, security_schemes=schemes)
    document: dict[str, Any] = made.model_dump(by_alias=True, exclude_none=True, mode="json")
    document["servers"] = [{"url": "/api/v1"}]
    for hidden in _HIDDEN:
        document["paths"].pop(hidden)
    components = document["components"]["schemas"]
    for name in _UNKNOWN_TO_US:
        components.pop(name, None)
    components |= definitions.components(kinds, operators)
    components["Problem"] = answers.Problem.model_json_schema(by_alias=True)
    document["components"]["responses"] = {f"Problem{status}": _problem(text) for status, text in _PROBLEMS.items()}
    document["components"]["parameters"] = _HEADERS
    for operations in document["paths"].values():
        for method, operation in operations.items():
            _complete(operation, is_unsafe=method in _UNSAFE)
            _tell_whether_body_is_needed(operation, components)
    return document


def _name_answers(route: Route, named: Callable[[str], Any]) -> None:
    """Put models where a route has only their names; what Powertools has derived from it is derived anew."""
    said: dict[int, Any] = {**(route.responses or {})}
    for status, about in said.items():
        model = named(about[ANSWER]) if about.get(ANSWER) else None
        content = {"content": {"application/json": {"model": model}}} if model else {}
        said[status] = {"description": about["description"], **content}
    route.responses = said
    route._dependant = None


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _complete(operation: dict[str, Any], *, is_unsafe: bool) -> None:
    """What holds for every call: its problems, its headers, the role that it asks for."""
    call = operation["operationId"]
    responses = operation["responses"]
    responses.pop("422", None)
    for status in responses.keys() & {"204"}:
        responses[status].pop("content", None)
    for status in _problems_of(call, is_unsafe=is_unsafe):
        responses[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}
    parameters = operation.setdefault("parameters", [])
    for parameter in parameters:
        parameter["schema"] = _never_null(parameter["schema"])
    if call in PUBLIC_CALLS:
        return
    operation["x-least-role"] = str(LEAST_ROLE[call])
    asked_for = {"Namespace": True, "Key": is_unsafe, "IfMatch": call in _VERSIONED, "IfNone": call in _CREATING}
    parameters += [{"$ref": f"#/components/parameters/{name}"} for name, holds in asked_for.items() if holds]


def _problems_of(call: str, *, is_unsafe: bool) -> Collection[int]:
    if call in PUBLIC_CALLS:
        return _PUBLIC
    left_out = set() if is_unsafe else set(_ONLY_UNSAFE)
    left_out |= set() if call in _VERSIONED else {412}
    left_out |= set() if call == "putJob" else {428}
    return _PROBLEMS.keys() - left_out


def _never_null(schema: Schema) -> Schema:
    """A parameter's schema: what is not in a query is absent, and never null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**rest, **options[0]} if len(options) == 1 else schema


def _tell_whether_body_is_needed(operation: dict[str, Any], components: Mapping[str, Schema]) -> None:
    """An empty body is an object without fields: where no field is needed, neither is a body."""
    body = operation.get("requestBody")
    if body is not None:
        schema = components[body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
        body["required"] = "required" in schema or schema is components["JobChange"]
