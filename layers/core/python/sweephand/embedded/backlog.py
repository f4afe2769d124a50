"""What waits for this machine's workers, by priority and namespace: looked up without walking through any backlog."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sweephand.domain.shares import Waiting
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import instant, micros, span
from sweephand.embedded.queue import delivered, take
from sweephand.ports import Clock, Delivery, Lane

_PAGE: Final = 100
"""Namespaces that are looked at together; of more, others come next time."""
_HEADS: Final = """
    WITH RECURSIVE found (namespace) AS (
        SELECT (SELECT min(namespace) FROM messages WHERE lane = ?1 AND namespace > ?2)
        UNION ALL
        SELECT (SELECT min(namespace) FROM messages WHERE lane = ?1 AND namespace > found.namespace)
        FROM found WHERE namespace IS NOT NULL
        LIMIT ?3
    )
    SELECT namespace, (SELECT min(visible_at) FROM messages WHERE lane = ?1 AND namespace = found.namespace)
    FROM found WHERE namespace IS NOT NULL
"""
"""A step from namespace to namespace in the index, and one more for the oldest message of each."""
_VISIBLE: Final = (
    "SELECT id, body, receives FROM messages WHERE lane = ? AND namespace = ? AND visible_at <= ?"
    " ORDER BY visible_at, id LIMIT ?"
)


class Backlog:
    """Messages by lane and namespace, for the one who picks among them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._seen_to: dict[Lane, str] = {}

    def heads(self, lanes: Sequence[Lane]) -> list[Waiting]:
        """The oldest visible message of each namespace in each lane."""
        now = micros(self._clock.now())
        return [
            Waiting(lane.value, namespace, instant(visible_at))
            for lane in lanes
            for namespace, visible_at in self._visible(lane, now)
        ]

    def receive(self, lane: Lane, namespace: str, *, most: int, hold: timedelta) -> list[Delivery]:
        """The oldest visible messages of one namespace, hidden from others for `hold`."""
        now = micros(self._clock.now())
        rows = self._database.write(
            lambda connection: take(connection, _VISIBLE, (lane.value, namespace, now), now, most, span(hold))
        )
        return delivered(rows, lane, hold)

    def _visible(self, lane: Lane, now: int) -> list[Row]:
        """Of the next page of namespaces those with something visible; another page where there is none in it.

        The pages go round: where one look ends, the next begins, and none goes further than once round.
        """
        start = after = self._seen_to.get(lane, "")
        has_turned = not start
        while True:
            page = self._database.rows(_HEADS, (lane.value, after, _PAGE))
            found = [row for row in page if row[1] <= now]
            is_last = len(page) < _PAGE
            after = "" if is_last else page[-1][0]
            if found or (has_turned and (is_last or after >= start > "")):
                self._seen_to[lane] = after
                return found
            has_turned = has_turned or is_last
