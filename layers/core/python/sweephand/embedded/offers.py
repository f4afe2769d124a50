"""Runs that wait for external workers."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.embedded.database import Database, Row
from sweephand.embedded.encoding import instant, micros
from sweephand.ports import Offer


class Offers:
    """The port over SQLite. A moot offer goes when a worker comes for it: nothing else removes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def offer(self, queue: str, offer: Offer) -> None:
        self._database.run(
            "INSERT INTO offers (namespace, queue, at, name, run_id, nonce) VALUES (?,?,?,?,?,?)"
            " ON CONFLICT DO UPDATE SET nonce = excluded.nonce",
            _row(queue, offer),
        )

    def open(self, namespace: Namespace, queue: str, *, limit: int) -> list[Offer]:
        rows = self._database.rows(
            "SELECT at, name, run_id, nonce FROM offers WHERE namespace = ? AND queue = ?"
            " ORDER BY at, name, run_id LIMIT ?",
            (namespace, queue, limit),
        )
        return [
            Offer(instant(at), RunKey(JobKey(namespace, JobName(name)), RunId(run_id)), nonce)
            for at, name, run_id, nonce in rows
        ]

    def withdraw(self, queue: str, offers: Sequence[Offer]) -> None:
        self._database.run_each(
            "DELETE FROM offers WHERE namespace = ? AND queue = ? AND at = ? AND name = ? AND run_id = ? AND nonce = ?",
            [_row(queue, offer) for offer in offers],
        )


def _row(queue: str, offer: Offer) -> Row:
    job = offer.run.job
    return (job.namespace, queue, micros(offer.at), job.name, offer.run.run_id, offer.nonce)
