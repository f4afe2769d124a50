"""Figures for an overview: all from the derived views, and no more of them however much there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.schemas import says
from sweephand.api.shapes import moment
from sweephand.domain.run import ACTIVE, RunState
from sweephand.domain.status import Standing, StatusRow

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

HOURS: Final = 24
"""The present one among them."""
SAMPLED_MAX: Final = 2_000
"""The newest runs, by which lag and throughput are judged."""
_AN_HOUR: Final = timedelta(hours=1)
_A_SECOND: Final = timedelta(seconds=1)
_LATE_AFTER: Final = timedelta(minutes=1)
_SHOWN: Final = (RunState.SUCCEEDED, RunState.FAILED, RunState.SKIPPED)


@router.get("/stats", **says("getStats", "Counts, lag and throughput", {200: "Stats"}, tag="watching"))
def get_stats() -> Answer:
    ask = asked()
    until = ask.now.replace(minute=0, second=0, microsecond=0) + _AN_HOUR
    since = until - HOURS * _AN_HOUR
    standing = ask.world.views.standing(ask.namespace, since=since, until=until, late_before=ask.now - _LATE_AFTER)
    counts = standing.counts
    return answer(
        200,
        {
            "jobs": ask.world.jobs.count(ask.namespace),
            "runs": {str(state): count for state, count in counts.items()},
            **_lag_and_throughput(ask),
            "since": moment(standing.since),
            "running": sum(counts.get(state, 0) for state in ACTIVE),
            "queued": counts.get(RunState.QUEUED, 0),
            "late": {"count": standing.late, "oldestAt": moment(standing.late_since)},
            "lastDay": {**_shown(counts), "successRate": _success_rate(counts)},
            "hours": _series(standing, until),
        },
    )


def _series(standing: Standing, until: datetime) -> list[dict[str, Any]]:
    """Each hour that is counted, oldest first."""
    hours = [until - n * _AN_HOUR for n in range(HOURS, 0, -1)]
    return [{"hour": moment(at), **_shown(standing.hours.get(at, {}))} for at in hours if at >= standing.since]


def _shown(counts: Mapping[RunState, int]) -> dict[str, int]:
    return {str(state): counts.get(state, 0) for state in _SHOWN}


def _success_rate(counts: Mapping[RunState, int]) -> float | None:
    """Of those that came to an end by themselves; None where none did."""
    succeeded, failed = counts.get(RunState.SUCCEEDED, 0), counts.get(RunState.FAILED, 0)
    return round(succeeded / (succeeded + failed), 4) if succeeded + failed else None


def _lag_and_throughput(ask: Asked) -> dict[str, Any]:
    """By the newest runs of the last day; where there are many, the throughput is that of the time that they cover."""
    since = ask.now - HOURS * _AN_HOUR
    rows = ask.world.views.rows(ask.namespace, since=since, until=ask.now + _A_SECOND, limit=SAMPLED_MAX)
    if len(rows) == SAMPLED_MAX:
        since = rows[-1].fire_at
    skews = sorted(_skew_ms(row) for row in rows if row.started_at is not None and row.trigger == "schedule")
    recent = max(since, ask.now - _AN_HOUR)
    ended = [row for row in rows if row.ended_at is not None and row.ended_at > recent]
    minutes = max((ask.now - recent) / timedelta(minutes=1), 1.0)
    return {
        "skewMs": {"p50": _quantile(skews, 0.5), "p99": _quantile(skews, 0.99)},
        "throughputPerMinute": round(len(ended) / minutes, 3),
    }


def _skew_ms(row: StatusRow) -> int:
    started_at = row.started_at or row.fire_at
    return round((started_at - row.fire_at) / timedelta(milliseconds=1))


def _quantile(values: Sequence[int], share: float) -> int | None:
    return values[min(int(len(values) * share), len(values) - 1)] if values else None
