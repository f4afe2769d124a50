"""Documents that jobs and people share: calendars, pools, templates, secrets, namespaces, members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from sweephand.domain.calendars import Calendar, CalendarHistory
from sweephand.domain.definition import STEP_FIELDS
from sweephand.domain.ids import JobKey, JobName, Namespace, check_name
from sweephand.domain.job import Job, JobStatus
from sweephand.domain.job_templates import WITH, filled
from sweephand.domain.limits import HOLDERS_MAX
from sweephand.domain.occasions import Needs, NeedsWindow
from sweephand.domain.secret import check_value
from sweephand.domain.shorthand import MAIN_TASK
from sweephand.domain.trail import Deed
from sweephand.engine.insist import insist
from sweephand.engine.lookup import job_of, present_job
from sweephand.errors import Conflict, InvalidInput, NotFound, StaleVersion
from sweephand.ports import World
from sweephand.secrets import secret_of

CALENDAR: Final = "calendar"
POOL: Final = "pool"
TEMPLATE: Final = "template"
NAMESPACE: Final = "namespace"
SECRET: Final = "secret"

_RIVALS: Final = (STEP_FIELDS, ("retry", "retries"))
"""Fields that say the same in other words: where a definition has one, it takes none of them from its template."""
_PAGE: Final = 500
_USERS_SHOWN: Final = 5
_PACKS_MAX: Final = 50
"""Packs that one job may name: each is looked for when the job is saved."""


def put_calendar(
    world: World,
    namespace: Namespace,
    name: str,
    document: Mapping[str, Any],
    *,
    expected: int,
    actor: str = "sweephand",
) -> int:
    """A new version of a calendar; it takes effect after the look-ahead, so that no planned fire changes its mind.

    Repeating it is refused as stale.
    """
    calendar = Calendar.parse(document, id=check_name(name, path="calendar"))
    stored = world.shared.get(namespace, CALENDAR, name)
    history = CalendarHistory.decode(stored[1]["versions"]) if stored else CalendarHistory()
    now = world.clock.now()
    effective_at = now + world.pace.lookahead if history.versions else now
    versions = history.with_version(effective_at, calendar).encode()
    kept = {"versions": versions, "document": dict(document)}
    return put_document(world, namespace, CALENDAR, name, kept, expected=expected, actor=actor)


def put_pool(
    world: World, namespace: Namespace, name: str, slots: int, *, expected: int, actor: str = "sweephand"
) -> int:
    """A pool of so many slots; a smaller size lets those who hold more finish. Repeating it is refused as stale."""
    check_name(name, path="pool")
    if isinstance(slots, bool) or not 1 <= slots <= HOLDERS_MAX:
        raise InvalidInput(f"slots must be 1 to {HOLDERS_MAX}.", "slots")
    return put_document(world, namespace, POOL, name, {"slots": slots}, expected=expected, actor=actor)


def with_template(world: World, namespace: Namespace, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A definition with the template that it names filled in; its own fields go before the template's."""
    given = {field: value for field, value in document.items() if field not in ("template", WITH)}
    named, values = document.get("template"), document.get(WITH)
    if named is None:
        if values is not None:
            raise InvalidInput("'with' gives values to a template's parameters: name the 'template' beside it.", WITH)
        return given
    stored = world.shared.get(namespace, TEMPLATE, named) if isinstance(named, str) else None
    if stored is None:
        raise InvalidInput(f"There is no template '{str(named)[:128]}': create it first.", "template")
    shared = filled(stored[1], values, template=named)
    for rivals in _RIVALS:
        if any(given.get(field) is not None for field in rivals):
            shared = {field: value for field, value in shared.items() if field not in rivals}
    return {**shared, **{field: value for field, value in given.items() if value is not None}}


def put_secret(
    world: World,
    namespace: Namespace,
    name: str,
    value: str,
    *,
    expected: int,
    now: datetime,
    actor: str = "sweephand",
) -> int:
    """A new value of a secret. It is stored sealed, and shown to nobody: not in its audit row either.

    Attempts that begin from now on get it. Repeating it is refused as stale.
    """
    check_name(name, path="secret")
    check_value(value)
    shown = {"updatedAt": now.isoformat().replace("+00:00", "Z"), "updatedBy": actor}
    sealed = insist(lambda: world.secrets.seal(value, secret_of(namespace, name)))
    kept = {"document": shown, "sealed": sealed}
    return put_document(world, namespace, SECRET, name, kept, expected=expected, actor=actor)


def put_document(
    world: World,
    namespace: Namespace,
    kind: str,
    name: str,
    document: Mapping[str, Any],
    *,
    expected: int,
    actor: str,
) -> int:
    """The next revision of a shared document, with its row in the audit log. Repeating it is refused as stale."""
    before = world.shared.get(namespace, kind, name) if expected else None
    deed = _deed(world, namespace, kind, name, actor, "put", before[1] if before else None, document)
    if not insist(lambda: world.shared.put(namespace, kind, name, document, expected=expected, deed=deed)):
        current = world.shared.get(namespace, kind, name)
        if current != (expected + 1, document):  # else the answer to our own write was lost
            raise StaleVersion(f"{kind} {name}", expected, current[0] if current else 0)
    return expected + 1


def delete_document(
    world: World, namespace: Namespace, kind: str, name: str, *, actor: str, expected: int | None = None
) -> None:
    """Remove a shared document that no job uses. Removing it again is refused as absent."""
    stored = world.shared.get(namespace, kind, name)
    if stored is None:
        raise NotFound(f"There is no {kind} {name}.")
    if expected is not None and stored[0] != expected:
        raise StaleVersion(f"{kind} {name}", expected, stored[0])
    used_by_jobs = kind in (CALENDAR, POOL)
    users = [job.name for job in jobs_in_force(world, namespace) if _uses(job, kind, name)] if used_by_jobs else []
    if users:
        shown = ", ".join(users[:_USERS_SHOWN]) + (" and others" if len(users) > _USERS_SHOWN else "")
        raise Conflict(f"The {kind} {name} is used by {shown}: change them first.")
    deed = _deed(world, namespace, kind, name, actor, "delete", stored[1], None)
    if not insist(lambda: world.shared.delete(namespace, kind, name, expected=stored[0], deed=deed)):
        raise Conflict(f"The {kind} {name} changed meanwhile: read it again and repeat the change.")


def check_references(world: World, namespace: Namespace, job: Job) -> None:
    """Refuse a job that names a calendar or a pool which is not there: it would wait for ever, or never close."""
    calendar = job.schedule.calendar if job.schedule else None
    if calendar is not None and world.shared.get(namespace, CALENDAR, calendar) is None:
        raise InvalidInput(f"There is no calendar '{calendar}': create it first.", "schedule.calendar")
    pool = job.concurrency.pool
    if pool is not None and world.shared.get(namespace, POOL, pool) is None:
        raise InvalidInput(f"There is no pool '{pool}': create it first.", "concurrency.pool")
    if job.needs is not None and job.needs.window is NeedsWindow.LATEST_BEFORE:
        _check_fires(world, namespace, job.needs)


def _check_fires(world: World, namespace: Namespace, needs: Needs) -> None:
    """Refuse to wait for the last fire of a job that has none of its own: it would wait for nothing."""
    for name in needs.jobs:
        other = present_job(world, JobKey(namespace, JobName(name)))
        if other is not None and other.schedule is None:
            raise InvalidInput(
                f"'{name}' has no fires of its own to wait for: say \"window: sameDay\".", "schedule.needs"
            )


def check_code(world: World, namespace: Namespace, job: Job) -> None:
    """Refuse a job whose functions are in packs that are not there: no attempt could begin."""
    named = {task.spec["code"]: n for n, task in reversed(list(enumerate(job.tasks))) if task.spec.get("code")}
    if len(named) > _PACKS_MAX:
        raise InvalidInput(f"Its tasks name {len(named)} packs of code: {_PACKS_MAX} are the most.", "tasks")
    for digest, n in named.items():
        if job.tasks[n].kind == "python" and world.packs.size(namespace, digest) is None:
            path = "run.code" if [task.id for task in job.tasks] == [MAIN_TASK] else f"tasks[{n}].run.code"
            raise InvalidInput(f"There is no code {digest}: store it first, as `sweephand apply` does.", path)


def jobs_in_force(world: World, namespace: Namespace) -> Iterator[Job]:
    """The definition of every job that is not deleted, by name."""
    after: JobName | None = None
    while heads := world.jobs.heads(namespace, after=after, limit=_PAGE):
        for head in heads:
            job = job_of(world, head) if head.status is not JobStatus.DELETED else None
            if job is not None:
                yield job
        after = heads[-1].key.name


def _uses(job: Job, kind: str, name: str) -> bool:
    if kind == CALENDAR:
        return job.schedule is not None and job.schedule.calendar == name
    return kind == POOL and job.concurrency.pool == name


def _deed(
    world: World,
    namespace: Namespace,
    kind: str,
    name: str,
    actor: str,
    verb: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> Deed:
    at, nonce = world.clock.now(), world.dice.nonce()
    where = Namespace(name) if kind == NAMESPACE else namespace  # its own admins read of it
    return Deed(where, at, nonce, actor, f"{kind}.{verb}", f"{kind}s/{name}", _shown(before), _shown(after))


def _shown(document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The document as its owner wrote it; a calendar's history is not part of it."""
    return document.get("document", document) if document is not None else None
