"""External workers: they pull work, say that they are alive, and report."""

from __future__ import annotations

from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.cursors import cut
from sweephand.api.schemas import Cursor, Limit, says
from sweephand.api.shapes import moment, page, run_row
from sweephand.calls import Skipped, Succeeded
from sweephand.domain.retry import Failure
from sweephand.engine.lease import Leased, beat, lease, look, on_offer, report
from sweephand.engine.match import Wanted
from sweephand.engine.offer import QUEUE_DEFAULT
from sweephand.engine.workers import seen, workers
from sweephand.errors import SweephandError
from sweephand.orders import encode_call

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "workers"

LeaseId = Annotated[str, Path(min_length=1, max_length=2000, pattern=r"^[A-Za-z0-9_-]+$")]


@router.post("/leases", **says("leaseWork", "Pull work", {200: "WorkPage"}, tag=_TAG))
def lease_work(body: Annotated[bodies.LeaseBody, Body()]) -> Answer:
    ask = asked()
    queues = body.labels or [QUEUE_DEFAULT]
    seen(ask.world, ask.namespace, body.worker_id, queues)
    wanted = Wanted(ask.namespace, body.worker_id, tuple(queues), body.max, min(body.at_least, body.max))
    leased = _leased(ask, wanted, body.wait_seconds)
    has_waited = ask.patience is not None and body.wait_seconds
    retry_after_s = 0 if leased or has_waited else 1
    return answer(200, {**page([_work(one) for one in leased], None), "retryAfterSeconds": retry_after_s})


@router.get("/leases/<lease>", **says("getLease", "Show the work of a lease", {200: "LeasedCall"}, tag=_TAG))
def get_lease(lease: LeaseId, epoch: Annotated[int, Query(ge=1)]) -> Answer:
    ask = asked()
    leased = look(ask.world, lease, ask.namespace, epoch=epoch)
    return answer(200, {**_work(leased), "call": encode_call(leased.call)})


@router.post("/leases/heartbeat", **says("beatMany", "Say that many leases are alive", {200: "Beats"}, tag=_TAG))
def beat_many(body: Annotated[bodies.BeatManyBody, Body()]) -> Answer:
    ask = asked()
    items = []
    for one in body.leases:
        try:
            items.append({"lease": one.lease, "error": None, **_beat(ask, one.lease, one)})
        except SweephandError as error:
            items.append({"lease": one.lease, "error": error.message, "leaseUntil": None})
    return answer(200, {"items": items})


@router.post("/leases/<lease>/heartbeat", **says("beat", "Say that a lease is alive", {200: "Beat"}, tag=_TAG))
def beat_one(lease: LeaseId, body: Annotated[bodies.BeatBody, Body()]) -> Answer:
    return answer(200, _beat(asked(), lease, body))


@router.post("/leases/<lease>/complete", **says("completeWork", "Report success", {200: "RunOnly"}, tag=_TAG))
def complete_work(lease: LeaseId, body: Annotated[bodies.CompleteBody, Body()]) -> Answer:
    ask = asked()
    outcome = Succeeded(body.output) if body.skipped is None else Skipped(body.skipped)
    ended = report(ask.world, lease, ask.namespace, epoch=body.epoch, outcome=outcome)
    return answer(200, run_row(ended))


@router.post("/leases/<lease>/fail", **says("failWork", "Report failure", {200: "RunOnly"}, tag=_TAG))
def fail_work(lease: LeaseId, body: Annotated[bodies.FailBody, Body()]) -> Answer:
    ask = asked()
    name, message = ("Error", body.error) if isinstance(body.error, str) else (body.error.name, body.error.message)
    ended = report(ask.world, lease, ask.namespace, epoch=body.epoch, outcome=Failure(name, message, body.kind))
    return answer(200, run_row(ended))


@router.get("/workers", **says("listWorkers", "Who pulls work", {200: "WorkerPage"}, tag=_TAG))
def list_workers(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    found = workers(ask.world, ask.namespace)
    bound_to = ("workers", ask.namespace)
    shown, more = cut(found, lambda one: one.id, limit=limit, cursor=cursor, bound_to=bound_to)
    items = [
        {"workerId": one.id, "lastSeenAt": moment(one.seen_at), "queues": list(one.queues), "holds": one.holds}
        for one in shown
    ]
    return answer(200, page(items, more))


def _leased(ask: Asked, wanted: Wanted, wait_s: int) -> list[Leased]:
    """What there is for the worker; where it is not enough yet, and the worker is patient, it goes on waiting."""
    patience = ask.patience
    if patience is None or patience.is_over or not wait_s:
        if patience is not None:
            patience.ends()
        return _taken(ask, wanted)
    comes_too_soon = not patience.has_waited and patience.is_behind(wanted)
    leased = [] if comes_too_soon or patience.gone.is_set() or not _is_enough(ask, wanted) else _taken(ask, wanted)
    if leased:
        patience.ends()
    else:
        patience.waits(wanted, wait_s)
    return leased


def _taken(ask: Asked, wanted: Wanted) -> list[Leased]:
    return lease(ask.world, ask.namespace, wanted.worker, wanted.queues, most=wanted.most)


def _is_enough(ask: Asked, wanted: Wanted) -> bool:
    """Whether as many are on offer as the worker wants together."""
    least = wanted.least
    return least == 1 or on_offer(ask.world, ask.namespace, wanted.queues, most=least) >= least


def _beat(ask: Asked, lease_id: str, body: bodies.BeatBody) -> dict[str, Any]:
    run = beat(ask.world, lease_id, ask.namespace, epoch=body.epoch, progress=body.progress, checkpoint=body.checkpoint)
    return {"leaseUntil": moment(run.lease_until)}


def _work(leased: Leased) -> dict[str, Any]:
    run, call = leased.lease.run, leased.call
    return {
        "lease": leased.lease.id,
        "runId": run.key.run_id,
        "jobId": run.key.job.name,
        "taskId": leased.lease.task_id,
        "attempt": run.attempt,
        "epoch": run.epoch,
        "leaseUntil": moment(run.lease_until),
        "run": {call.task.kind: dict(call.task.spec)},
        "params": dict(call.params),
        **({"upstream": dict(call.upstream)} if call.upstream else {}),
        "fireAt": moment(run.fire_at),
        "idempotencyKey": call.idempotency_key,
        "checkpoint": leased.checkpoint,
        **({"secrets": dict(call.secrets.by_name)} if call.secrets.by_name else {}),
    }
