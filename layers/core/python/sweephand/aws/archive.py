"""The archive of ended runs: a line of JSON each, by way of Firehose, in a bucket that Athena can query.

Runs leave their table when their time is over; here they stay. A batch that is replayed writes its lines again: of
several lines of one run, the one with the highest `rev` counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sweephand.aws.calls import ROUNDS_MAX, asking, chunks
from sweephand.domain.run import Run
from sweephand.errors import Unavailable

if TYPE_CHECKING:
    from types_boto3_firehose.client import FirehoseClient

_BATCH_MAX: Final = 500


class Archive:
    """Appends; nothing reads it here."""

    def __init__(self, client: FirehoseClient, stream: str) -> None:
        self._client = client
        self._stream = stream

    def keep(self, runs: Iterable[Run]) -> int:
        """Archive those that have ended; how many they were."""
        ended = {run.key: run for run in runs if run.is_terminal}
        for batch in chunks(ended.values(), _BATCH_MAX):
            self._put([{"Data": f"{json.dumps(_row(run))}\n".encode()} for run in batch])
        return len(ended)

    def _put(self, records: Any) -> None:
        """A batch is accepted record by record: the refused ones are sent again, and only they."""
        left = records
        for _ in range(ROUNDS_MAX):
            with asking(f"archive {len(left)} runs"):
                answer = self._client.put_record_batch(DeliveryStreamName=self._stream, Records=left)
            results = answer["RequestResponses"]
            left = [record for record, result in zip(left, results, strict=True) if "ErrorCode" in result]
            if not left:
                return
        raise Unavailable(f"Firehose refused {len(left)} runs.")


def _row(run: Run) -> Mapping[str, Any]:
    """Flat, in the columns that the archive's table names."""
    return {
        "namespace": run.key.job.namespace,
        "job": run.key.job.name,
        "run": run.key.run_id,
        "state": str(run.state),
        "trigger": str(run.trigger),
        "fire_at": _moment(run.fire_at),
        "started_at": _moment(run.started_at),
        "ended_at": _moment(run.ended_at),
        "attempt": run.attempt,
        "version": run.version,
        "rev": run.rev,
        "reason": str(run.reason) if run.reason else None,
        "error": run.failure.error if run.failure else None,
    }


def _moment(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if at is not None else None
