"""Backfills of a job: asked for, looked at, paused, resumed, cancelled."""

from __future__ import annotations

from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.costs import BACKFILL, cost_shape
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.api.schemas import Cursor, InPath, Limit, says
from sweephand.api.shapes import moment, page
from sweephand.domain.backfill import Backfill, BackfillKey
from sweephand.domain.run import RunState
from sweephand.engine.backfills import (
    Estimate,
    backfills_of,
    cancel_backfill,
    estimate,
    found_backfill,
    pause_backfill,
    resume_backfill,
    start_backfill,
)
from sweephand.errors import NotFound
from sweephand.ports import World

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "backfills"


@router.post(
    "/jobs/<job>/backfills",
    **says(
        "createBackfill",
        "Make up for the fires of a window; a dry run only says what that comes to",
        {200: "BackfillEstimate", 202: "Backfill"},
        tag=_TAG,
    ),
)
def create_backfill(job: InPath, body: Annotated[bodies.BackfillBody, Body()]) -> Answer:
    ask = asked()
    if body.dry_run:
        return answer(200, estimate_shape(ask.world, estimate(ask.world, ask.job(job), body.wanted)))
    made = start_backfill(
        ask.world,
        ask.job(job),
        body.wanted,
        actor=ask.caller.actor,
        note=body.note,
        idempotency_key=ask.idempotency_key,
    )
    return answer(202, backfill_shape(made), Location=f"/api/v1/jobs/{job}/backfills/{made.key.id}")


@router.get(
    "/jobs/<job>/backfills",
    **says("listBackfills", "List a job's backfills, newest first", {200: "BackfillPage"}, tag=_TAG),
)
def list_backfills(job: InPath, limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    key = ask.job(job)
    if ask.world.jobs.head(key) is None:
        raise NotFound(f"There is no job {key}.")
    bound_to = ("backfills", key)
    position = decode_cursor(cursor, bound_to, length=1)
    found = [one for one in backfills_of(ask.world, key) if position is None or one.key.id < position[0]]
    more = encode_cursor([found[limit - 1].key.id], bound_to) if len(found) > limit else None
    return answer(200, page([backfill_shape(one) for one in found[:limit]], more))


@router.get(
    "/jobs/<job>/backfills/<backfill>",
    **says("getBackfill", "Show a backfill", {200: "Backfill"}, tag=_TAG),
)
def get_backfill(job: InPath, backfill: InPath) -> Answer:
    ask = asked()
    return answer(200, backfill_shape(found_backfill(ask.world, _key(ask, job, backfill))))


@router.post(
    "/jobs/<job>/backfills/<backfill>/pause",
    **says("pauseBackfill", "Let a backfill put no more runs", {200: "Backfill"}, tag=_TAG),
)
def pause(job: InPath, backfill: InPath, body: Annotated[bodies.NoteBody, Body()]) -> Answer:
    ask = asked()
    moved = pause_backfill(ask.world, _key(ask, job, backfill), actor=ask.caller.actor, note=body.note)
    return answer(200, backfill_shape(moved))


@router.post(
    "/jobs/<job>/backfills/<backfill>/resume",
    **says("resumeBackfill", "Let a paused backfill go on", {200: "Backfill"}, tag=_TAG),
)
def resume(job: InPath, backfill: InPath, body: Annotated[bodies.NoteBody, Body()]) -> Answer:
    ask = asked()
    moved = resume_backfill(ask.world, _key(ask, job, backfill), actor=ask.caller.actor, note=body.note)
    return answer(200, backfill_shape(moved))


@router.post(
    "/jobs/<job>/backfills/<backfill>/cancel",
    **says(
        "cancelBackfill",
        "End a backfill: what has not started never does; what has goes on, unless that is to end too",
        {200: "Backfill"},
        tag=_TAG,
    ),
)
def cancel(job: InPath, backfill: InPath, body: Annotated[bodies.CancelBackfillBody, Body()]) -> Answer:
    ask = asked()
    moved = cancel_backfill(
        ask.world, _key(ask, job, backfill), actor=ask.caller.actor, note=body.note, running=body.running
    )
    return answer(200, backfill_shape(moved))


def backfill_shape(one: Backfill) -> dict[str, Any]:
    """A backfill as the API shows it."""
    wanted = one.wanted
    return {
        "backfillId": one.key.id,
        "jobId": one.key.job.name,
        "state": str(one.state),
        "reason": one.reason or None,
        "from": moment(wanted.since),
        "to": moment(wanted.until),
        "only": str(wanted.only),
        "order": str(wanted.order),
        "maxActive": wanted.max_active,
        "collapse": wanted.collapse,
        "count": one.count,
        "made": one.made,
        "active": list(one.active),
        **{str(state): one.came_to(state) for state in _ENDED},
        "progress": one.percent,
        "createdAt": moment(one.created_at),
        "createdBy": one.created_by,
        "endedAt": moment(one.changed_at) if not one.is_open else None,
        "note": one.note or None,
    }


_ENDED: Final = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED)


def estimate_shape(world: World, found: Estimate) -> dict[str, Any]:
    """What a backfill would come to."""
    wanted = found.wanted
    return {
        "dryRun": True,
        "from": moment(wanted.since),
        "to": moment(wanted.until),
        "only": str(wanted.only),
        "collapse": wanted.collapse,
        "count": found.count,
        "runs": found.runs,
        "undone": found.undone,
        "fires": {str(fate): count for fate, count in sorted(found.fates.items())},
        "firstFireAt": moment(found.first),
        "lastFireAt": moment(found.last),
        "cost": cost_shape(world, found.cost, BACKFILL),
    }


def _key(ask: Asked, job: str, backfill: str) -> BackfillKey:
    return BackfillKey(ask.job(job), backfill)
