"""Runs that wait for external workers."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.ids import Namespace, RunKey
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import instant, instant_or_none, micros, micros_or_none
from sweephand.ports import Offer


class Offers:
    """The port over SQLite. A moot offer goes when a worker comes for it: nothing else removes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def offer(self, queue: str, offer: Offer) -> None:
        self._database.run(
            "INSERT INTO offers (namespace, queue, at, name, run_id, nonce, first, first_until)"
            " VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET"
            " nonce = excluded.nonce, first = excluded.first, first_until = excluded.first_until",
            (*_row(queue, offer), offer.first, micros_or_none(offer.first_until)),
        )

    def open(self, namespace: Namespace, queue: str, *, limit: int) -> list[Offer]:
        rows = self._database.rows(
            "SELECT at, name, run_id, nonce, first, first_until FROM offers WHERE namespace = ? AND queue = ?"
            " ORDER BY at, name, run_id LIMIT ?",
            (namespace, queue, limit),
        )
        return [
            Offer(
                instant(at),
                RunKey.at(f"{namespace}/{name}", run_id),
                nonce,
                first,
                instant_or_none(first_until),
            )
            for at, name, run_id, nonce, first, first_until in rows
        ]

    def withdraw(self, queue: str, offers: Sequence[Offer]) -> None:
        self._database.run_each(
            "DELETE FROM offers WHERE namespace = ? AND queue = ? AND at = ? AND name = ? AND run_id = ? AND nonce = ?",
            [_row(queue, offer) for offer in offers],
        )


def _row(queue: str, offer: Offer) -> Row:
    within, name = offer.run.place
    namespace, _, inside = within.partition("/")
    return (namespace, queue, micros(offer.at), inside, name, offer.nonce)
