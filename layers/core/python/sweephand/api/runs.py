"""Runs: of one job, across jobs, and what people do to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies, schemas
from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.api.schemas import Cursor, InPath, Limit, Since, Until, says
from sweephand.api.shapes import page, run_in_list, run_row, run_shape, status_shape, whole_shape, why_shape
from sweephand.api.walk import LOOKED_AT_MAX, Having, Walk, is_superseded
from sweephand.domain.ids import JobKey, RunId, RunKey, run_id_of_fire
from sweephand.domain.run import Run, RunState
from sweephand.domain.status import StatusRow, listed
from sweephand.engine.cancel import cancel
from sweephand.engine.rerun import rerun
from sweephand.engine.restart import restart_of
from sweephand.engine.why import why_run
from sweephand.errors import Conflict, NotFound

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "runs"
_BATCH: Final = 500

State = Literal["queued", "running", "retrying", "succeeded", "failed", "cancelled", "skipped"]


@router.get(
    "/jobs/<job>/runs",
    **says("listRunsOfJob", "List a job's runs, newest first", {200: "RunPage"}, tag=_TAG),
)
def list_runs_of_job(
    job: InPath,
    state: Annotated[State | None, Query()] = None,
    since: Since = None,
    until: Until = None,
    include: Annotated[Literal["planned"] | None, Query()] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Answer:
    ask = asked()
    key = ask.job(job)
    _check_job(ask, key)
    bound_to = ("runs", key, state, since, until, include)
    position = decode_cursor(cursor, bound_to, length=1)
    low = run_id_of_fire(since) if since else None
    high = RunId(position[0]) if position else (run_id_of_fire(until) if until else None)
    items: list[dict[str, Any]] = []
    last: RunId | None = None
    for number, run in enumerate(_newest_first(ask, key, low, high)):
        if last is not None and (len(items) == limit or number == LOOKED_AT_MAX):
            return answer(200, page(items, encode_cursor([last], bound_to)))
        if _is_shown(run, state, include is not None):
            items.append(run_in_list(ask.world, run))
        last = run.key.run_id
    return answer(200, page(items, None))


@router.get("/jobs/<job>/runs/<run>", **says("getRun", "Show a run", {200: "Run"}, tag=_TAG))
def get_run(job: InPath, run: InPath) -> Answer:
    ask = asked()
    return answer(200, whole_shape(ask.world, found_run(ask, job, run)))


@router.get("/jobs/<job>/runs/<run>/why", **says("explainRun", "Why a run does not go on", {200: "Why"}, tag=_TAG))
def explain_run(job: InPath, run: InPath) -> Answer:
    ask = asked()
    return answer(200, why_shape(why_run(ask.world, ask.run(job, run))))


@router.post("/jobs/<job>/runs/<run>/cancel", **says("cancelRun", "End a run", {200: "Run"}, tag=_TAG))
def cancel_run(job: InPath, run: InPath, body: Annotated[bodies.CancelBody, Body()]) -> Answer:
    ask = asked()
    found_run(ask, job, run)
    ask.record("run.cancel", f"jobs/{job}/runs/{run}", note=body.note)
    ended = cancel(ask.world, ask.run(job, run), actor=ask.caller.actor, note=body.note)
    return answer(200, run_shape(ask.world, ended))


@router.post("/jobs/<job>/runs/<run>/rerun", **says("rerunRun", "Run an ended run again", {202: "Run"}, tag=_TAG))
def rerun_run(job: InPath, run: InPath, body: Annotated[bodies.RerunBody, Body()]) -> Answer:
    ask = asked()
    old = found_run(ask, job, run)
    asked_for = restart_of(ask.world, old, body.from_, task=body.task, marks=body.mark, actor=ask.caller.actor)
    start, marks = asked_for.start, asked_for.marks
    after = {**({"from": start} if start else {}), **({"mark": body.mark} if marks else {})}
    ask.record("run.rerun", f"jobs/{job}/runs/{run}", note=body.note or "", after=after or None)
    key = ask.idempotency_key
    fresh = rerun(ask.world, old.key, note=body.note, idempotency_key=key, start=start, marks=marks)
    return answer(202, run_shape(ask.world, fresh))


@router.get("/runs", **says("listRuns", "List runs across jobs, newest first", {200: "RunRowPage"}, tag=_TAG))
def list_runs(
    state: Annotated[State | None, Query()] = None,
    job: Annotated[str | None, Query(pattern=schemas.NAME_PATTERN)] = None,
    tag: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Answer:
    ask = asked()
    walk = Walk(ask, ("all runs", state, job, tag), cursor=cursor, since=since, until=until)
    having = Having(ask, state=state, job=job, tag=tag)
    shown: list[StatusRow] = []
    for row in filter(having, walk.rows()):
        if len(shown) == limit:
            return answer(200, page([status_shape(one) for one in shown], walk.cursor(shown[-1])))
        shown.append(row)
    return answer(200, page([status_shape(row) for row in shown], walk.cursor()))


@router.post("/runs/bulk", **says("changeRuns", "Cancel or rerun many runs", {200: "Bulk"}, tag=_TAG))
def change_runs(body: Annotated[bodies.BulkBody, Body()]) -> Answer:
    ask = asked()
    wanted = body.filter
    state = wanted.state or ("failed" if body.action == "rerun" else None)
    bound_to = ("bulk", body.action, state, wanted.job, wanted.tag)
    walk = Walk(ask, bound_to, cursor=body.cursor, since=wanted.from_, until=wanted.to)
    having = Having(ask, state=state, job=wanted.job, tag=wanted.tag)
    rows: list[StatusRow] = []
    for row in filter(having, walk.rows()):
        if len(rows) == body.limit:
            break
        if _can_be(ask, body.action, row):
            rows.append(row)
    items = []
    if not body.dry_run:
        ask.record(f"runs.{body.action}", "runs", after={"matched": len(rows)})
        items = [_change(ask, body.action, row.run) for row in rows]
    done = [one for one in items if one["error"] is None]
    return answer(
        200,
        {
            "action": body.action,
            "dryRun": body.dry_run,
            "matched": len(rows),
            "done": len(done),
            "items": items if items else [status_shape(row) for row in rows],
            "nextCursor": walk.cursor(rows[-1] if len(rows) == body.limit else None),
        },
    )


def found_run(ask: Asked, job: str, run: str) -> Run:
    """A run of the caller's namespace."""
    found = ask.world.runs.get(ask.run(job, run))
    if found is None or found.state is RunState.VOID:
        raise NotFound(f"There is no run {ask.run(job, run)}.")
    return found


def _can_be(ask: Asked, action: str, row: StatusRow) -> bool:
    """Whether the action makes sense for the run: what was run again already is not run again by many hands."""
    is_open = row.state in (RunState.QUEUED, RunState.RUNNING, RunState.RETRYING)
    return is_open if action == "cancel" else not is_open and not is_superseded(ask.world, row.run)


def _change(ask: Asked, action: str, key: RunKey) -> dict[str, Any]:
    shape: dict[str, Any] = {"jobId": key.job.name, "runId": key.run_id, "error": None}
    try:
        if action == "cancel":
            changed = cancel(ask.world, key, actor=ask.caller.actor, note="bulk")
        else:
            changed = rerun(ask.world, key, note="bulk", idempotency_key=ask.idempotency_key)
    except (Conflict, NotFound) as error:
        return {**shape, "error": error.message}
    return {**shape, "result": run_row(changed)}


def _check_job(ask: Asked, key: JobKey) -> None:
    if ask.world.jobs.head(key) is None:
        raise NotFound(f"There is no job {key}.")


def _is_shown(run: Run, state: str | None, planned: bool) -> bool:
    if run.state is RunState.PLANNED:
        return planned and state is None
    return listed(run) is not None and state in (None, run.state)


def _newest_first(ask: Asked, key: JobKey, low: RunId | None, high: RunId | None) -> Iterator[Run]:
    while found := ask.world.runs.of_job(key, since=low, until=high, limit=_BATCH):
        yield from found
        high = found[-1].key.run_id
