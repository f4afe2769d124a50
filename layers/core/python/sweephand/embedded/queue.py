"""The queue, its inbox, and the bell that wakes whoever waits for work."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sweephand.domain.limits import MESSAGE_DELAY_MAX
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import instant, micros, span
from sweephand.errors import Defect
from sweephand.messages import encode
from sweephand.ports import Clock, DeadLetter, Delivery, Lane, Letter

RECEIVES_MAX: Final = 20
"""Deliveries of one message before it is put among the dead letters."""
_POLL: Final = timedelta(milliseconds=50)
_NOTHING: Final = timedelta(0)
_VISIBLE: Final = (
    "SELECT id, body, receives FROM messages WHERE lane = ? AND visible_at <= ? ORDER BY visible_at, id LIMIT ?"
)
_NEXT_VISIBLE: Final = " UNION ALL ".join(
    f"SELECT min(visible_at) FROM messages WHERE lane = '{lane.value}' AND visible_at > ?" for lane in Lane
)


class Bell:
    """Rings when something may have been sent: here, by another process, or by a delay that ended.

    Each waiting thread remembers what it has heard, so a ring between its last look at the queue and its wait is
    not lost; it may be woken once for nothing.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rung = threading.Condition()
        self._rings = 0
        self._heard = threading.local()

    def ring(self) -> None:
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, timeout: timedelta) -> None:
        """Until a ring that this thread has not heard, or the time-out."""
        heard: tuple[int, int, int] | None = getattr(self._heard, "last", None)
        if heard is not None:
            rings, foreign, seen_at = heard
            left = min(timeout, self._next_visible_after(seen_at))
            while left > _NOTHING and self._database.foreign_version() == foreign:
                with self._rung:
                    if self._rung.wait_for(lambda: self._rings != rings, min(left, _POLL).total_seconds()):
                        break
                left -= _POLL
        # Taken before the caller looks at the queue: what comes later than this rings again.
        self._heard.last = (self._rings, self._database.foreign_version(), micros(self._clock.now()))

    def next_visible_at(self, after: int = -1) -> datetime | None:
        """When the first message that becomes visible after a moment does; of all by default."""
        found = self._database.rows(_NEXT_VISIBLE, (after,) * len(Lane))
        times = [at for (at,) in found if at is not None]
        return instant(min(times)) if times else None

    def _next_visible_after(self, seen_at: int) -> timedelta:
        """How long until a message that this thread cannot have seen becomes visible."""
        next_at = self.next_visible_at(seen_at)
        return timedelta.max if next_at is None else next_at - self._clock.now()


class Queue:
    """The sender's port over SQLite."""

    def __init__(self, database: Database, clock: Clock, bell: Bell) -> None:
        self._database = database
        self._clock = clock
        self._bell = bell

    def send(self, letters: Sequence[Letter]) -> None:
        if not letters:
            return
        now = micros(self._clock.now())
        self._database.run_each(
            "INSERT INTO messages (lane, visible_at, namespace, body, receives) VALUES (?,?,?,?,0)",
            [_row(letter, now) for letter in letters],
        )
        self._bell.ring()


def _row(letter: Letter, now: int) -> Row:
    if letter.delay > MESSAGE_DELAY_MAX:
        raise Defect(f"A message cannot be delayed by {letter.delay}: a queue's longest is {MESSAGE_DELAY_MAX}.")
    visible_at = now + max(0, span(letter.delay))
    return (letter.lane.value, visible_at, letter.group, encode(letter.message))


class Inbox:
    """The consumer's port over SQLite. A receipt is the message's id and how often it was received."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def receive(self, lane: Lane, *, most: int, hold: timedelta) -> list[Delivery]:
        now = micros(self._clock.now())
        if not self._database.rows(_VISIBLE, (lane.value, now, 1)):
            return []  # without taking the writers' lock: idle consumers ask all the time
        rows = self._database.write(
            lambda connection: take(connection, _VISIBLE, (lane.value, now), now, most, span(hold))
        )
        return delivered(rows, lane, hold)

    def keep(self, delivery: Delivery, hold: timedelta) -> None:
        self._database.run(
            "UPDATE messages SET visible_at = ? WHERE id = ? AND receives = ?",
            (micros(self._clock.now()) + span(hold), *_receipt(delivery)),
        )

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        # A stale receipt matches nothing, which is safe: the message is another consumer's now, who will find
        # the run as it is and delete the message then.
        self._database.run_each(
            "DELETE FROM messages WHERE id = ? AND receives = ?", [_receipt(delivery) for delivery in deliveries]
        )

    def dead(self, *, most: int) -> list[DeadLetter]:
        rows = self._database.rows(
            "SELECT id, body, lane, dead_at FROM dead_letters ORDER BY dead_at, id LIMIT ?", (most,)
        )
        return [DeadLetter(str(id_), body, Lane(lane), instant(dead_at)) for id_, body, lane, dead_at in rows]

    def bury(self, letters: Sequence[DeadLetter]) -> None:
        self._database.run_each("DELETE FROM dead_letters WHERE id = ?", [(int(letter.id),) for letter in letters])


def delivered(rows: Sequence[Row], lane: Lane, hold: timedelta) -> list[Delivery]:
    """Messages that were just taken, as their consumer gets them."""
    return [Delivery(body, f"{id_}.{receives + 1}", lane, receives + 1, hold) for id_, body, receives in rows]


def take(connection: sqlite3.Connection, visible: str, of: Sequence[Any], now: int, most: int, hold: int) -> list[Row]:
    """Hide the first messages that a query finds, for as long as they are held; the worn ones are dead letters."""
    taken: list[Row] = []
    while len(taken) < most:
        found = connection.execute(visible, (*of, most - len(taken))).fetchall()
        worn = [(row[0],) for row in found if row[2] >= RECEIVES_MAX]
        fresh = [row for row in found if row[2] < RECEIVES_MAX]
        taken += fresh
        connection.executemany(
            "UPDATE messages SET visible_at = ?, receives = receives + 1 WHERE id = ?",
            [(now + hold, row[0]) for row in fresh],
        )
        if not worn:
            break
        connection.executemany(
            f"INSERT INTO dead_letters (id, lane, body, dead_at) SELECT id, lane, body, {now} FROM messages"
            " WHERE id = ?",
            worn,
        )
        connection.executemany("DELETE FROM messages WHERE id = ?", worn)
    return taken


def _receipt(delivery: Delivery) -> tuple[int, int]:
    id_, _, receives = delivery.receipt.partition(".")
    return int(id_), int(receives)
