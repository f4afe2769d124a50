"""Jobs: what to run and when."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, Asked, answer, asked, no_content
from sweephand.api.costs import month_shape
from sweephand.api.cursors import decode_cursor, encode_cursor, instant_in_cursor
from sweephand.api.listing import Wanted, find_jobs
from sweephand.api.schemas import Change, Cursor, Definition, InPath, Limit, Since, Until, says
from sweephand.api.shapes import (
    RECENT_RUNS,
    active_runs,
    day_shape,
    fire_shape,
    job_shape,
    job_shapes,
    just_ahead,
    ledger_shape,
    moment,
    page,
    version_shape,
    why_shape,
)
from sweephand.domain.ids import JobKey, JobName
from sweephand.domain.job import Head, Job, JobStatus
from sweephand.domain.kinds import KINDS, read_step
from sweephand.domain.sensor import SENSOR
from sweephand.domain.targets import AWS_KINDS, Targets
from sweephand.engine.cancel import cancel
from sweephand.engine.delete import delete
from sweephand.engine.ledger import days, ledger_page
from sweephand.engine.lookup import job_of, present_head
from sweephand.engine.pause import pause
from sweephand.engine.put import put
from sweephand.engine.resume import resume
from sweephand.engine.rollback import rollback
from sweephand.engine.share import with_template
from sweephand.engine.spending import cost_per_month
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_job
from sweephand.errors import Conflict, InvalidInput, NotFound, StaleVersion

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "jobs"
_LEDGER_BACK: Final = timedelta(days=1)
_A_DAY: Final = timedelta(days=1)
_DAYS_MAX: Final = timedelta(days=400)
_FIRES_MAX: Final = 1_000
_A_TICK: Final = timedelta(microseconds=1)

Status = Literal["active", "paused", "running", "deleted"]


@router.post("/jobs", **says("createJob", "Create a job", {201: "Job"}, tag=_TAG))
def create_job(body: Annotated[Definition, Body()]) -> Answer:
    ask = asked()
    head = put_definition(ask, body, expected=None)
    shape = {**job_shape(ask.world, head, now=ask.now), "status": "scheduled"}
    return answer(201, shape, Location=f"/api/v1/jobs/{head.key.name}", ETag=f'"{head.version}"')


@router.put(
    "/jobs/<job>",
    **says("putJob", "Give a job a new version, or create it", {200: "Job", 201: "Job"}, tag=_TAG),
)
def put_job(job: InPath, body: Annotated[Change, Body()]) -> Answer:
    ask = asked()
    given = {"name": job, **body}
    if given["name"] != job:
        raise InvalidInput(f"The name is '{job}' in the path: it cannot be another here.", "name")
    expected = _expected(ask, job)
    head = put_definition(ask, given, expected=expected)
    return answer(201 if expected is None else 200, job_shape(ask.world, head, now=ask.now), ETag=f'"{head.version}"')


@router.get("/jobs", **says("listJobs", "List jobs by name", {200: "JobPage"}, tag=_TAG))
def list_jobs(
    prefix: Annotated[str, Query(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,127})?$")] = "",
    tag: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
    status: Annotated[Status | None, Query()] = None,
    search: Annotated[str | None, Query(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")] = None,
    include: Annotated[Literal["recentRuns"] | None, Query()] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Answer:
    """A page that looked at many and found none is empty, and its cursor goes on."""
    ask = asked()
    bound_to = ("jobs", ask.namespace, prefix, tag, status, search)
    position = decode_cursor(cursor, bound_to, length=1)
    after = JobName(position[0]) if position else None
    wanted = Wanted(prefix, tag, status, search)
    found = find_jobs(ask.world, ask.namespace, wanted, after=after, limit=limit, now=ask.now)
    shapes = job_shapes(ask.world, found.heads, now=ask.now, with_runs=include is not None)
    return answer(200, page(shapes, encode_cursor([found.after], bound_to) if found.after else None))


@router.get("/jobs/<job>", **says("getJob", "Show a job", {200: "Job"}, tag=_TAG))
def get_job(
    job: InPath, include: Annotated[str | None, Query(pattern="^(deleted|cost|deleted,cost|cost,deleted)$")] = None
) -> Answer:
    ask = asked()
    included = (include or "").split(",")
    head = ask.world.jobs.head(ask.job(job)) if "deleted" in included else present_head(ask.world, ask.job(job))
    if head is None:
        raise NotFound(f"There is no job {ask.job(job)}.")
    shape = {**job_shape(ask.world, head, now=ask.now), "nextFires": _next_fires(ask, head)}
    if "cost" in included:
        shape["costPerMonth"] = _cost_per_month(ask, head)
    return answer(200, shape, ETag=f'"{head.version}"')


@router.delete("/jobs/<job>", **says("deleteJob", "Delete a job: nothing fires after it", {204: None}, tag=_TAG))
def delete_job(job: InPath, cancel: Annotated[Literal["true", "false"], Query()] = "false") -> Answer:
    ask = asked()
    delete(ask.world, ask.job(job), actor=ask.caller.actor, expected=ask.if_match)
    if cancel == "true":
        _cancel_active(ask, ask.job(job))
    return no_content()


@router.post("/jobs/<job>/pause", **says("pauseJob", "Stop a job's schedule", {200: "Job"}, tag=_TAG))
def pause_job(job: InPath, body: Annotated[bodies.PauseBody, Body()]) -> Answer:
    ask = asked()
    head = pause(ask.world, ask.job(job), actor=ask.caller.actor, note=body.note)
    return answer(200, job_shape(ask.world, head, now=ask.now))


@router.post("/jobs/<job>/resume", **says("resumeJob", "Let a schedule go on", {200: "Resumed"}, tag=_TAG))
def resume_job(job: InPath, body: Annotated[bodies.ResumeBody, Body()]) -> Answer:
    ask = asked()
    resumed = resume(ask.world, ask.job(job), catchup=body.policy, actor=ask.caller.actor, dry_run=body.dry_run)
    dropped = [
        {"from": moment(one.first), "to": moment(one.last), "count": one.count, "reason": str(one.reason)}
        for one in resumed.dropped
    ]
    shape = job_shape(ask.world, resumed.head, now=ask.now)
    return answer(200, {**shape, "fires": [moment(fire) for fire in resumed.fires], "dropped": dropped})


@router.post("/jobs/<job>/trigger", **says("triggerJob", "Run a job now", {202: "Triggered"}, tag=_TAG))
def trigger_job(job: InPath, body: Annotated[bodies.TriggerBody, Body()]) -> Answer:
    ask = asked()
    return answer(202, triggered(ask, job, body))


@router.get(
    "/jobs/<job>/versions",
    **says("listVersions", "List a job's versions", {200: "VersionPage"}, tag=_TAG),
)
def list_versions(job: InPath, limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    key = _known(ask, job).key
    bound_to = ("versions", key)
    position = decode_cursor(cursor, bound_to, length=1)
    before = _number(position[0]) if position else None
    found = ask.world.jobs.versions(key, before=before, limit=limit + 1)
    pairs = zip(found, [*found[1:], None], strict=True)
    items = [version_shape(version, older) for version, older in pairs][:limit]
    more = encode_cursor([str(found[limit - 1].number)], bound_to) if len(found) > limit else None
    return answer(200, page(items, more))


@router.post("/jobs/<job>/rollback", **says("rollbackJob", "Go back to a version", {200: "Job"}, tag=_TAG))
def rollback_job(job: InPath, body: Annotated[bodies.RollbackBody, Body()]) -> Answer:
    ask = asked()
    head = rollback(ask.world, ask.job(job), body.version, actor=ask.caller.actor, expected=ask.if_match)
    return answer(200, job_shape(ask.world, head, now=ask.now), ETag=f'"{head.version}"')


@router.get("/jobs/<job>/fires", **says("listFires", "List fires to come", {200: "FirePage"}, tag=_TAG))
def list_fires(
    job: InPath, since: Since = None, until: Until = None, count: Annotated[int, Query(ge=1, le=_FIRES_MAX)] = 10
) -> Answer:
    ask = asked()
    defined = job_of(ask.world, present_head(ask.world, ask.job(job)))
    schedule = defined.schedule if defined else None
    items: list[dict[str, Any]] = []
    if schedule is not None:
        begin = (since or ask.now) - _A_TICK
        for fire_at in schedule.fires(begin, until):
            items.append(fire_shape(schedule, fire_at))
            if len(items) == count:
                break
    return answer(200, page(items, None))


@router.get(
    "/jobs/<job>/ledger",
    **says("getLedger", "Every fire and what became of it", {200: "LedgerLinePage"}, tag=_TAG),
)
def get_ledger(
    job: InPath, since: Since = None, until: Until = None, limit: Limit = 1000, cursor: Cursor = None
) -> Answer:
    ask = asked()
    head = _known(ask, job)
    end = until or ask.now
    begin = since or max(head.created_at, end - _LEDGER_BACK)
    bound_to = ("ledger", head.key, since, until)
    position = decode_cursor(cursor, bound_to, length=2)
    if position:
        begin, end = map(instant_in_cursor, position)
    rows, reached = ledger_page(ask.world, head.key, since=begin, until=max(begin, end), fires_max=limit)
    more = encode_cursor([reached.isoformat(), end.isoformat()], bound_to) if reached < end else None
    return answer(200, page([ledger_shape(row) for row in rows], more))


@router.get(
    "/jobs/<job>/ledger/days",
    **says("listLedgerDays", "The ledger, counted by UTC day", {200: "LedgerDayPage"}, tag=_TAG),
)
def list_ledger_days(job: InPath, since: Since = None, until: Until = None) -> Answer:
    ask = asked()
    head = _known(ask, job)
    end = (until or ask.now).date() + _A_DAY
    begin = max((since or ask.now - _DAYS_MAX).date(), end - _DAYS_MAX)
    return answer(200, page([day_shape(one) for one in days(ask.world, head.key, since=begin, until=end)], None))


@router.get("/jobs/<job>/why", **says("explainJob", "Why a job does not run", {200: "Why"}, tag=_TAG))
def explain_job(job: InPath) -> Answer:
    ask = asked()
    return answer(200, why_shape(why_job(ask.world, ask.job(job))))


def put_definition(ask: Asked, document: Mapping[str, Any], *, expected: int | None) -> Head:
    """Put a definition in force, after a template it names has been filled in."""
    given = checked_definition(ask, document)
    named = document.get("template")
    return put(
        ask.world,
        ask.namespace,
        given,
        actor=ask.caller.actor,
        expected=expected,
        note=f"from template {named}" if named else "",
        operators=ask.operators,
    )


def checked_definition(ask: Asked, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A definition with its template filled in, of which everything can be run here."""
    given = with_template(ask.world, ask.namespace, document)
    _check_kinds(ask, given)
    return given


def triggered(ask: Asked, job: str, body: bodies.TriggerBody) -> dict[str, Any]:
    """Run a job now; what the caller hears."""
    present_head(ask.world, ask.job(job))
    ask.record(
        "job.trigger", f"jobs/{job}", note=body.note or "", after={"params": body.params} if body.params else None
    )
    run = trigger(ask.world, ask.job(job), params=body.params, idempotency_key=ask.idempotency_key, note=body.note)
    return {"runId": run.key.run_id, "executionId": run.key.run_id, "jobId": job, "status": "queued"}


def _check_kinds(ask: Asked, document: Mapping[str, Any]) -> None:
    """Refuse at once what could only fail here: a step that nothing in this place can run."""
    tasks = document.get("tasks")
    steps: list[tuple[str, Any]] = [("run", document.get("run"))]
    if isinstance(tasks, list):
        steps += [(f"tasks[{n}].run", one.get("run")) for n, one in enumerate(tasks) if isinstance(one, Mapping)]
    for path, step in steps:
        named = [kind for kind in step if kind in KINDS] if isinstance(step, Mapping) else []
        if len(named) == 1 and named[0] in AWS_KINDS | {SENSOR} and ask.targets is not None:
            _check_target(ask.targets, step, f"{path}.{named[0]}")
        if len(named) == 1 and named[0] not in ask.kinds:
            known = ", ".join(sorted(ask.kinds | ask.operators.keys()))
            raise InvalidInput(f"Nothing here can run a '{named[0]}' step: use one of {known}.", f"{path}.{named[0]}")
        if named == [SENSOR] and ask.targets is None and isinstance(step[SENSOR], Mapping) and step[SENSOR].get("s3"):
            raise InvalidInput("Nothing here can look at S3: install sweephand[aws].", f"{path}.{SENSOR}.s3")


def _check_target(targets: Targets, step: Any, path: str) -> None:
    """Refuse at once what tasks may not call."""
    try:
        kind, spec = read_step(step, path)
    except InvalidInput:
        return  # told with all else that is wrong, when the definition is read
    targets.check_step(kind, spec, path)


def _expected(ask: Asked, job: str) -> int | None:
    """The version that a put is based on, which it must say; None where it is to create the job."""
    head = ask.world.jobs.head(ask.job(job))
    current = head.version if head is not None and head.status is not JobStatus.DELETED else 0
    if not ask.must_be_new:
        return ask.based_on(current)
    if current:
        raise StaleVersion(str(ask.job(job)), 0, current)
    return None


def _known(ask: Asked, job: str) -> Head:
    """A job that exists or did: its history stays."""
    head = ask.world.jobs.head(ask.job(job))
    if head is None:
        raise NotFound(f"There is no job {ask.job(job)}.")
    return head


def _next_fires(ask: Asked, head: Head) -> list[dict[str, Any]]:
    defined: Job | None = job_of(ask.world, head)
    if defined is None or defined.schedule is None or head.status is not JobStatus.ACTIVE:
        return []
    fires = defined.schedule.fires(ask.now)
    return [fire_shape(defined.schedule, fire_at) for fire_at, _ in zip(fires, range(5), strict=False)]


def _cost_per_month(ask: Asked, head: Head) -> dict[str, Any] | None:
    """As if it were not paused."""
    defined = job_of(ask.world, head)
    if defined is None:
        return None
    (recent,) = ask.world.runs.recent([head.key], until=just_ahead(ask.now), limit=RECENT_RUNS)
    return month_shape(ask.world, cost_per_month(defined, now=ask.now, recent=recent.listed))


def _cancel_active(ask: Asked, key: JobKey) -> None:
    """End what has started; what has not is skipped when its time comes, since its job is gone."""
    while active := active_runs(ask.world, key, now=ask.now):
        for run in active:
            with suppress(Conflict):  # it ended by itself meanwhile
                cancel(ask.world, run.key, actor=ask.caller.actor, note="its job was deleted")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidInput("The cursor is not from this list: leave it out to begin anew.", "cursor")
    return int(text)
