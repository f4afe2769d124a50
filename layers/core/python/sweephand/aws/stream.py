"""The stream of the table of runs, as Lambda delivers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from sweephand.aws.items import run_of
from sweephand.domain.run import Run


class Changed(Struct, frozen=True):
    """A batch: the runs in the order in which they changed, up to the first record that cannot be read, if any."""

    batch: str
    runs: Sequence[Run]
    unreadable: str | None = None
    """That record's sequence number: Lambda brings it again, alone in the end, and puts it aside."""

    @property
    def answer(self) -> dict[str, Any]:
        """What Lambda is told: from where on the batch was not dealt with."""
        left = [self.unreadable] if self.unreadable is not None else []
        return {"batchItemFailures": [{"itemIdentifier": number} for number in left]}


def changed_runs(event: Mapping[str, Any]) -> Changed:
    """The runs of a batch. Its name is its first record's, so that a replay has the same."""
    records = event["Records"]
    runs: list[Run] = []
    for record in records:
        try:
            runs.append(run_of(record["dynamodb"]["NewImage"]))
        except (KeyError, ValueError, TypeError, AttributeError):
            return Changed(records[0]["eventID"], runs, record["dynamodb"]["SequenceNumber"])
    return Changed(records[0]["eventID"], runs)
