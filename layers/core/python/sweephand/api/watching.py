"""What goes on: events from outside, dead letters, the audit log, health."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.cursors import decode_cursor, encode_cursor, instant_in_cursor
from sweephand.api.schemas import Cursor, Limit, Since, Until, says
from sweephand.api.shapes import moment, page, run_row, run_shape
from sweephand.api.walk import Having, Walk, is_superseded
from sweephand.domain.events import Event
from sweephand.domain.ids import JobKey, JobName, RunId, RunKey
from sweephand.domain.run import Run, RunState
from sweephand.domain.status import StatusRow
from sweephand.domain.trail import Deed
from sweephand.engine.occur import occur
from sweephand.engine.rerun import rerun
from sweephand.errors import Conflict, NotFound

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "watching"
_DEAD_BACK: Final = timedelta(days=14)

LetterId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}:[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


@router.post("/events", **says("publishEvent", "Say that something happened", {202: "Published"}, tag=_TAG))
def publish_event(body: Annotated[bodies.EventBody, Body()]) -> Answer:
    ask = asked()
    ask.record("event.publish", f"events/{body.source[:128]}", note=body.type[:128])
    # Listeners are triggered one by one: a call repeated after a stop must not run the first of them again.
    same = body.id if body.id is not None or ask.idempotency_key is None else f"key/{ask.idempotency_key}"
    runs = occur(ask.world, ask.namespace, Event(body.source, body.type, body.detail, same))
    return answer(202, {"runs": [{"jobId": run.key.job.name, "runId": run.key.run_id} for run in runs]})


@router.get(
    "/deadletters",
    **says("listDeadLetters", "Runs that failed for good", {200: "DeadLetterPage"}, tag=_TAG),
)
def list_dead_letters(since: Since = None, until: Until = None, limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    walk = Walk(ask, ("dead",), cursor=cursor, since=since, until=until, back=_DEAD_BACK)
    shown: list[StatusRow] = []
    for row in walk.rows():
        if row.state is not RunState.FAILED or is_superseded(ask.world, row.run):
            continue
        if len(shown) == limit:
            return answer(200, page([_letter(one) for one in shown], walk.cursor(shown[-1])))
        shown.append(row)
    return answer(200, page([_letter(row) for row in shown], walk.cursor()))


@router.post("/deadletters/redrive", **says("redriveDeadLetters", "Run all of them again", {200: "Bulk"}, tag=_TAG))
def redrive_dead_letters(body: Annotated[bodies.RedriveBody, Body()]) -> Answer:
    """Page by page. Each letter becomes one run, however often it is asked for."""
    ask = asked()
    walk = Walk(ask, ("redrive", body.job), cursor=body.cursor, since=body.from_, until=body.to, back=_DEAD_BACK)
    rows: list[StatusRow] = []
    for row in filter(Having(ask, state=RunState.FAILED, job=body.job), walk.rows()):
        if len(rows) == body.limit:
            break
        if not is_superseded(ask.world, row.run):
            rows.append(row)
    items = [_letter(row) for row in rows]
    if not body.dry_run:
        ask.record("deadletter.redrive", "deadletters", after={"matched": len(rows)})
        items = [{**item, **_redriven(ask, row.run)} for item, row in zip(items, rows, strict=True)]
    done = 0 if body.dry_run else sum(item["error"] is None for item in items)
    more = walk.cursor(rows[-1] if len(rows) == body.limit else None)
    told = {"action": "redrive", "dryRun": body.dry_run, "matched": len(rows), "done": done}
    return answer(200, {**told, "items": items, "nextCursor": more})


@router.get("/deadletters/<letter>", **says("getDeadLetter", "The run as it failed", {200: "Run"}, tag=_TAG))
def get_dead_letter(letter: LetterId) -> Answer:
    ask = asked()
    run = ask.world.runs.get(_key(ask, letter))
    if run is None or run.state is not RunState.FAILED:
        raise NotFound(f"There is no dead letter {letter}.")
    return answer(200, run_shape(ask.world, run))


@router.post("/deadletters/<letter>/redrive", **says("redriveDeadLetter", "Run it again", {202: "Run"}, tag=_TAG))
def redrive_dead_letter(letter: LetterId) -> Answer:
    ask = asked()
    run = _failed(ask, _key(ask, letter))
    ask.record("deadletter.redrive", f"deadletters/{letter}")
    return answer(202, run_shape(ask.world, _redrive(ask, run)))


@router.get("/audit", **says("listAudit", "Who did what", {200: "AuditRowPage"}, tag=_TAG))
def list_audit(since: Since = None, until: Until = None, limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    bound_to = ("audit", ask.namespace, since, until)
    position = decode_cursor(cursor, bound_to, length=2)
    before = Deed(ask.namespace, until, "", "", "", "") if until is not None else None
    if position:
        before = Deed(ask.namespace, instant_in_cursor(position[0]), position[1], "", "", "")
    found = ask.world.trail.deeds(ask.namespace, before=before, limit=limit + 1)
    found = [deed for deed in found if since is None or deed.at >= since]
    shown = found[:limit]
    more = encode_cursor([shown[-1].at.isoformat(), shown[-1].id], bound_to) if len(found) > limit else None
    return answer(200, page([_deed(one) for one in shown], more))


@router.get("/health", **says("getHealth", "Is anybody there?", {200: "Health"}, tag=_TAG, public=True))
def get_health() -> Answer:
    asked().world.shards.count()  # the store answers, or this is a 503
    return answer(200, {"status": "ok"})


def _key(ask: Asked, letter: str) -> RunKey:
    job, _, run_id = letter.partition(":")
    return RunKey(JobKey(ask.namespace, JobName(job)), RunId(run_id))


def _failed(ask: Asked, key: RunKey) -> Run:
    """The run of a dead letter. What ended well meanwhile, or goes on, is left as it is."""
    run = ask.world.runs.get(key)
    if run is None:
        raise NotFound(f"There is no dead letter {key.job.name}:{key.run_id}.")
    if run.state is not RunState.FAILED:
        raise Conflict(f"Run {key} did not fail: it is {run.state}.")
    return run


def _redrive(ask: Asked, run: Run) -> Run:
    # Whoever redrives it again within a day gets the same run; after that, the letter is no longer listed.
    return rerun(ask.world, run.key, note="redriven", idempotency_key=f"redrive/{run.rev}")


def _redriven(ask: Asked, key: RunKey) -> dict[str, Any]:
    try:
        return {"result": run_row(_redrive(ask, _failed(ask, key))), "error": None}
    except (Conflict, NotFound) as error:
        return {"error": error.message}


def _letter(row: StatusRow) -> dict[str, Any]:
    return {
        "id": f"{row.run.job.name}:{row.run.run_id}",
        "jobId": row.run.job.name,
        "runId": row.run.run_id,
        "reason": row.reason,
        "deadAt": moment(row.ended_at),
    }


def _deed(deed: Deed) -> dict[str, Any]:
    return {"at": moment(deed.at), **deed.encode()}
