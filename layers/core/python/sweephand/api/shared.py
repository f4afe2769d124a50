"""Objects that jobs share: calendars, pools, templates, and secrets, whose values are written and never read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies, schemas
from sweephand.api.asked import Answer, Asked, answer, asked, no_content
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.api.jobs import checked_definition
from sweephand.api.schemas import Cursor, InPath, Limit, says
from sweephand.api.shapes import moment, page
from sweephand.domain.definition import parse
from sweephand.domain.job import Job
from sweephand.domain.job_templates import check_template
from sweephand.engine.share import (
    CALENDAR,
    POOL,
    SECRET,
    TEMPLATE,
    delete_document,
    put_calendar,
    put_document,
    put_pool,
    put_secret,
)
from sweephand.errors import NotFound, StaleVersion

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_PAGE: Final = "DocumentPage"
_PUT: Final = {200: "Document", 201: "Document"}


@router.put("/calendars/<id>", **says("putCalendar", "Create or change a calendar", _PUT, tag="calendars"))
def put_calendar_document(id: InPath, body: Annotated[schemas.Calendar, Body()]) -> Answer:
    ask = asked()

    def write(expected: int) -> int:
        return put_calendar(ask.world, ask.namespace, id, body, expected=expected, actor=ask.caller.actor)

    return _put(ask, CALENDAR, id, body, write)


@router.get("/calendars", **says("listCalendars", "List calendars", {200: _PAGE}, tag="calendars"))
def list_calendars(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    return _list(CALENDAR, limit, cursor)


@router.get("/calendars/<id>", **says("getCalendar", "Show a calendar", {200: "Document"}, tag="calendars"))
def get_calendar(id: InPath) -> Answer:
    return _get(CALENDAR, id)


@router.delete("/calendars/<id>", **says("deleteCalendar", "Remove a calendar", {204: None}, tag="calendars"))
def delete_calendar(id: InPath) -> Answer:
    return _delete(CALENDAR, id)


@router.put("/pools/<id>", **says("putPool", "Create or resize a pool", _PUT, tag="pools"))
def put_pool_document(id: InPath, body: Annotated[bodies.PoolBody, Body()]) -> Answer:
    ask = asked()

    def write(expected: int) -> int:
        return put_pool(ask.world, ask.namespace, id, body.slots, expected=expected, actor=ask.caller.actor)

    return _put(ask, POOL, id, {"slots": body.slots}, write)


@router.get("/pools", **says("listPools", "List pools", {200: _PAGE}, tag="pools"))
def list_pools(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    return _list(POOL, limit, cursor)


@router.get("/pools/<id>", **says("getPool", "Show a pool", {200: "Document"}, tag="pools"))
def get_pool(id: InPath) -> Answer:
    return _get(POOL, id)


@router.delete("/pools/<id>", **says("deletePool", "Remove a pool", {204: None}, tag="pools"))
def delete_pool(id: InPath) -> Answer:
    return _delete(POOL, id)


@router.put("/templates/<id>", **says("putTemplate", "Create or change a template", _PUT, tag="templates"))
def put_template(id: InPath, body: Annotated[schemas.Template, Body()]) -> Answer:
    ask = asked()
    check_template(body, lambda job: _read(ask, job))

    def write(expected: int) -> int:
        return put_document(ask.world, ask.namespace, TEMPLATE, id, body, expected=expected, actor=ask.caller.actor)

    return _put(ask, TEMPLATE, id, body, write)


@router.get("/templates", **says("listTemplates", "List templates", {200: _PAGE}, tag="templates"))
def list_templates(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    return _list(TEMPLATE, limit, cursor)


@router.get("/templates/<id>", **says("getTemplate", "Show a template", {200: "Document"}, tag="templates"))
def get_template(id: InPath) -> Answer:
    return _get(TEMPLATE, id)


@router.delete("/templates/<id>", **says("deleteTemplate", "Remove a template", {204: None}, tag="templates"))
def delete_template(id: InPath) -> Answer:
    return _delete(TEMPLATE, id)


@router.put("/secrets/<id>", **says("putSecret", "Store a secret", {200: "Secret", 201: "Secret"}, tag="secrets"))
def put_secret_document(id: InPath, body: Annotated[bodies.SecretBody, Body()]) -> Answer:
    ask = asked()
    now, actor = ask.now, ask.caller.actor

    def write(expected: int) -> int:
        return put_secret(ask.world, ask.namespace, id, body.value, expected=expected, now=now, actor=actor)

    told = {"updatedAt": moment(now), "updatedBy": actor}
    return _put(ask, SECRET, id, told, write)


@router.get("/secrets", **says("listSecrets", "List secrets, without values", {200: "SecretPage"}, tag="secrets"))
def list_secrets(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    return _list(SECRET, limit, cursor)


@router.get("/secrets/<id>", **says("getSecret", "Show when a secret was stored", {200: "Secret"}, tag="secrets"))
def get_secret(id: InPath) -> Answer:
    return _get(SECRET, id)


@router.delete("/secrets/<id>", **says("deleteSecret", "Remove a secret", {204: None}, tag="secrets"))
def delete_secret(id: InPath) -> Answer:
    return _delete(SECRET, id)


def _put(ask: Asked, kind: str, name: str, given: Mapping[str, Any], write: Callable[[int], int]) -> Answer:
    """Without If-Match, the last writer wins; with it, only one who read what is there."""
    stored = ask.world.shared.get(ask.namespace, kind, name)
    current = stored[0] if stored else 0
    if ask.must_be_new and current:
        raise StaleVersion(f"{kind} {name}", 0, current)
    version = write(ask.if_match if ask.if_match is not None else current)
    shape = {**given, "id": name, "version": version}
    return answer(201 if version == 1 else 200, shape, ETag=f'"{version}"')


def _get(kind: str, name: str) -> Answer:
    ask = asked()
    stored = ask.world.shared.get(ask.namespace, kind, name)
    if stored is None:
        raise NotFound(f"There is no {kind} {name}.")
    return answer(200, _shape(name, *stored), ETag=f'"{stored[0]}"')


def _list(kind: str, limit: int, cursor: str | None) -> Answer:
    ask = asked()
    bound_to = (kind, ask.namespace)
    position = decode_cursor(cursor, bound_to, length=1)
    found = ask.world.shared.listed(ask.namespace, kind, after=position[0] if position else None, limit=limit + 1)
    items = [_shape(one.name, one.rev, one.document) for one in found[:limit]]
    more = encode_cursor([found[limit - 1].name], bound_to) if len(found) > limit else None
    return answer(200, page(items, more))


def _delete(kind: str, name: str) -> Answer:
    ask = asked()
    delete_document(ask.world, ask.namespace, kind, name, actor=ask.caller.actor, expected=ask.if_match)
    return no_content()


def _shape(name: str, version: int, document: Mapping[str, Any]) -> dict[str, Any]:
    return {**document.get("document", document), "id": name, "version": version}


def _read(ask: Asked, job: Mapping[str, Any]) -> Job:
    """The job, or all that would be refused if it were put."""
    return parse(checked_definition(ask, job), namespace=ask.namespace, now=ask.now, operators=ask.operators)
