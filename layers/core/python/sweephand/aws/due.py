"""Due entries over DynamoDB: hints in a table of their own, a partition per ten minutes and shard, that expire.

Why they are not an index on jobs: docs/decisions/0001-due-entries-not-an-index.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from sweephand.aws.calls import Item
from sweephand.aws.items import end, item_of, stamp, unstamp
from sweephand.aws.table import Table
from sweephand.ports import DueEntry, DueKind
from sweephand.topology import TTL

LOOK_BACK: Final = timedelta(hours=4)
"""Where a shard begins that was never swept."""

LOOK_BACK_MAX: Final = timedelta(days=1)
"""The longest outage whose hints are walked, bucket by bucket; the auditor finds what is older in the jobs."""

_KEPT: Final = 2 * LOOK_BACK_MAX
_BUCKET: Final = timedelta(minutes=10)
"""A sweep reads one bucket, or two; it costs a read even where nothing is due."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE_MAX: Final = 1_000


class DynamoDue:
    """The `Due` port. Arming again, arming too often and never removing are all harmless: an entry is only a hint."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def arm(self, entries: Sequence[DueEntry]) -> None:
        self._table.put_all(due_item(entry) for entry in entries)

    def read(
        self,
        shard: int,
        *,
        after: datetime | None,
        upto: datetime,
        limit: int,
        beyond: DueEntry | None = None,
    ) -> list[DueEntry]:
        start = upto - LOOK_BACK if after is None else max(after, upto - LOOK_BACK_MAX)
        low = _past(start)
        if beyond is not None and low < (next_key := f"{_sort_key(beyond)}\x00"):
            start, low = beyond.at, next_key
        found = self._walk(shard, start, upto, low=low, page=min(limit, _PAGE_MAX))
        return list(islice(found, limit))

    def done(self, entries: Sequence[DueEntry]) -> None:
        """Nothing: entries expire at no cost, and deleting one would cost as much as arming it."""

    def _walk(self, shard: int, start: datetime, upto: datetime, *, low: str, page: int) -> Iterator[DueEntry]:
        bucket = _bucket_of(start)
        while bucket <= upto:
            for item in self._table.query(_partition(bucket, shard), low=low, high=_past(upto), page=page):
                yield _entry_of(item, shard)
            bucket += _BUCKET


def due_item(entry: DueEntry) -> Item:
    """A due entry as it is stored; also used by the transaction that changes a job."""
    partition = _partition(_bucket_of(entry.at), entry.shard)
    return item_of(partition, _sort_key(entry), {TTL: end(entry.at + _KEPT)})


def _sort_key(entry: DueEntry) -> str:
    return f"{stamp(entry.at)}#{entry.kind}#{entry.key}"


def _entry_of(item: Item, shard: int) -> DueEntry:
    at, kind, key = item["sk"]["S"].split("#", 2)
    return DueEntry(unstamp(at), DueKind(kind), key, shard)


def _bucket_of(at: datetime) -> datetime:
    return at - (at - _EPOCH) % _BUCKET


def _partition(bucket: datetime, shard: int) -> str:
    return f"{stamp(bucket)[:16]}#{shard}"


def _past(at: datetime) -> str:
    """A sort key behind every entry of this instant and before every later one: '$' follows '#'."""
    return f"{stamp(at)}$"
