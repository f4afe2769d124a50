"""What a definition would do, before it does it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.costs import month_shape
from sweephand.api.jobs import checked_definition
from sweephand.api.schemas import Definition, says
from sweephand.api.shapes import differences, fire_shape
from sweephand.domain.changes import in_words
from sweephand.domain.definition import document_of, parse
from sweephand.domain.ids import JobKey, JobName
from sweephand.domain.job import JobStatus
from sweephand.domain.schedule import Schedule
from sweephand.engine.lookup import version_of
from sweephand.engine.needs import foreseen
from sweephand.engine.share import check_references
from sweephand.engine.spending import A_YEAR, cost_per_month

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_SHOWN: Final = 20
_NOTED_MAX: Final = 10_000
"""Fires that are looked at for notes on clock changes."""


@router.post("/plan", **says("planJob", "What a definition would do", {200: "Plan"}, tag="jobs"))
def plan_job(body: Annotated[Definition, Body()]) -> Answer:
    ask = asked()
    given = checked_definition(ask, body)
    job = parse(given, namespace=ask.namespace, now=ask.now, operators=ask.operators)
    check_references(ask.world, ask.namespace, job)
    told = dict(_foreseen(ask, job.schedule) if job.schedule else _NOTHING)
    if job.needs is not None:
        told["notes"] = [*foreseen(ask.world, ask.namespace, job.needs), *told["notes"]]
    cost = month_shape(ask.world, cost_per_month(job, now=ask.now))
    difference = _difference(ask, JobName(job.name), document_of(given))
    return answer(200, {**told, "difference": difference, "costPerMonth": cost})


_NOTHING: Final[Mapping[str, Any]] = {
    "fires": [],
    "notes": [],
    "runsPerDay": 0.0,
    "runsPerYear": 0,
    "loadPerHour": [0] * 24,
}


def _foreseen(ask: Asked, schedule: Schedule) -> dict[str, Any]:
    now = ask.now
    year = schedule.count(now, now + A_YEAR)
    fires: list[dict[str, Any]] = []
    notes: list[str] = []
    by_hour = [0] * 24
    for number, fire_at in enumerate(schedule.fires(now, now + A_YEAR)):
        if number >= _NOTED_MAX:
            break
        shape = fire_shape(schedule, fire_at)
        if len(fires) < _SHOWN:
            fires.append(shape)
        if shape["note"]:
            notes.append(shape["note"])
        if fire_at <= now + timedelta(days=1):
            by_hour[schedule.local(fire_at).hour] += 1
    return {
        "fires": fires,
        "notes": notes[:_SHOWN],
        "runsPerDay": round(year / A_YEAR.days, 3),
        "runsPerYear": year,
        "loadPerHour": by_hour,
    }


def _difference(ask: Asked, name: JobName, document: Mapping[str, Any]) -> dict[str, Any]:
    head = ask.world.jobs.head(JobKey(ask.namespace, name))
    if head is None or head.status is JobStatus.DELETED:
        return {"action": "create", "version": None, "changes": [], "summary": in_words(None, document)}
    current = version_of(ask.world, head.key, head.version).document
    changes = differences(current, dict(document))
    summary = in_words(current, document)
    return {"action": "change" if changes else "none", "version": head.version, "changes": changes, "summary": summary}
