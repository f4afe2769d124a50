"""What comes next, whichever job it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api.asked import Answer, answer, asked
from sweephand.api.cursors import decode_cursor, encode_cursor, instant_in_cursor
from sweephand.api.schemas import Ahead, Cursor, Limit, says
from sweephand.api.shapes import fire_shape, page
from sweephand.domain.ids import JobName
from sweephand.engine.upcoming import upcoming

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_AHEAD: Final = timedelta(hours=1)


@router.get(
    "/upcoming", **says("listUpcoming", "The next fires across jobs, soonest first", {200: "Upcoming"}, tag="jobs")
)
def list_upcoming(within: Ahead = None, limit: Limit = 50, cursor: Cursor = None) -> Answer:
    """A cursor holds the moment of the first page: all pages are of one window, in which no job is too often."""
    ask = asked()
    ahead = within or _AHEAD
    bound_to = ("upcoming", ask.namespace, ahead)
    position = decode_cursor(cursor, bound_to, length=3)
    since, after = ask.now, None
    if position is not None:
        since, last_at = map(instant_in_cursor, position[:2])
        after = (last_at, JobName(position[2]))
    found = upcoming(ask.world, ask.namespace, since=since, upto=since + ahead, after=after, limit=limit)
    items = [{"jobId": one.job, **fire_shape(one.schedule, one.fire_at)} for one in found.fires]
    last = found.fires[-1] if found.is_more else None
    more = encode_cursor([since.isoformat(), last.fire_at.isoformat(), last.job], bound_to) if last else None
    return answer(200, {**page(items, more), "truncated": found.is_truncated})
