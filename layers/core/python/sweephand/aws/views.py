"""The status view over DynamoDB: pages of rows, one partition per namespace and day, expired by themselves.

pk              sk                       what
ns#2026-11-15   06#batch, 06#batch#1…    rows of runs whose ids begin in this hour, as one batch saw them
days#ns         2026-11-15               that there is such a day
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby, islice
from typing import Final

from sweephand.aws.calls import Item
from sweephand.aws.items import as_json, end, item_of, stamp, text
from sweephand.aws.table import Table
from sweephand.domain.ids import Namespace, RunKey, instant_of
from sweephand.domain.run import RunState
from sweephand.domain.status import Standing, StatusRow, latest, tally
from sweephand.ports import Clock
from sweephand.topology import TTL
from sweephand.views import STANDING_ROWS_MAX

_PAGE_BYTES_MAX: Final = 300_000
_REGISTER_GRACE: Final = timedelta(days=2)
_A_TICK: Final = timedelta(microseconds=1)
_LAST: Final = "~"
_DAY: Final = len("2026-11-15")


class DynamoViews:
    """The `Views` port."""

    def __init__(self, table: Table, *, clock: Clock, keep: timedelta) -> None:
        self._table = table
        self._clock = clock
        self._keep = keep
        self._registered: set[tuple[Namespace, str, date]] = set()

    def append(self, namespace: Namespace, batch: str, rows: Sequence[StatusRow]) -> None:
        by_hour: defaultdict[str, list[StatusRow]] = defaultdict(list)
        for row in rows:
            by_hour[_hour_of(_time_of(row))].append(row)
        until = self._clock.now() + self._keep
        self._register(namespace, by_hour)
        self._table.put_all(
            item_of(
                f"{namespace}#{hour[:_DAY]}",
                f"{hour[-2:]}#{batch}#{n}" if n else f"{hour[-2:]}#{batch}",
                {"d": text(page), TTL: end(until)},
            )
            for hour, found in by_hour.items()
            for n, page in enumerate(_pages(found))
        )

    def rows(
        self,
        namespace: Namespace,
        *,
        since: datetime,
        until: datetime,
        before: RunKey | None = None,
        limit: int | None = None,
    ) -> list[StatusRow]:
        if since >= until:
            return []
        first, last = _hour_of(since), _hour_of(until - _A_TICK)
        if before is not None:
            last = min(last, _hour_of(instant_of(before.run_id)))
        found = (
            row
            for pages in self._hours(namespace, first, last)
            for row in latest(row for row in pages if since <= _time_of(row) < until)
            if before is None or _place_of(row.run) < _place_of(before)
        )
        return list(islice(found, limit))

    def standing(
        self,
        namespace: Namespace,
        *,
        since: datetime,
        until: datetime,
        late_before: datetime,
        rows_max: int = STANDING_ROWS_MAX,
    ) -> Standing:
        hours: dict[datetime, Mapping[RunState, int]] = {}
        late: list[datetime] = []
        begin, looked_at = since, 0
        for pages in self._hours(namespace, _hour_of(since), _hour_of(until - _A_TICK)):
            if looked_at >= rows_max:
                begin = min(hours)
                break
            rows = list(pages)
            looked_at += len(rows)
            last_known = latest(rows)
            hours[_time_of(last_known[0]).replace(minute=0, second=0)] = tally(last_known)
            late += [row.fire_at for row in last_known if row.is_kept_waiting and row.fire_at < late_before]
        return Standing(begin, hours, len(late), min(late, default=None))

    def clear(self, namespace: Namespace) -> None:
        # The register of days stays: another process may believe that it wrote a day down.
        for day in list(self._days(namespace, "0", _LAST)):
            keys = [(item["pk"]["S"], item["sk"]["S"]) for item in self._page_items(namespace, day)]
            self._table.delete_all(keys)

    def _register(self, namespace: Namespace, hours: Iterable[str]) -> None:
        """Write the days down, once per process and day; before the pages and for longer, so that none is missed."""
        now = self._clock.now()
        until = now + self._keep + _REGISTER_GRACE
        new = {(namespace, hour[:_DAY], now.date()) for hour in hours} - self._registered
        self._table.put_all(item_of(f"days#{ns}", day, {TTL: end(until)}) for ns, day, _ in sorted(new))
        self._registered |= new

    def _hours(self, namespace: Namespace, first: str, last: str) -> Iterator[Iterator[StatusRow]]:
        """What is in the pages of each hour, the newest hour first; pages are fetched as they are needed.

        A run's rows are all in the hour of its id, so that folding each hour by itself leaves none out.
        """
        for day in self._days(namespace, first[:_DAY], f"{last[:_DAY]}{_LAST}"):
            items = self._page_items(namespace, day, *_hours_of(day, first, last))
            for _, hour in groupby(items, key=lambda item: item["sk"]["S"][:2]):
                yield (StatusRow.decode(namespace, row) for item in hour for row in json.loads(item["d"]["S"]))

    def _days(self, namespace: Namespace, low: str, high: str) -> Iterator[str]:
        for item in self._table.query(f"days#{namespace}", low=low, high=high, newest_first=True):
            yield item["sk"]["S"]

    def _page_items(self, namespace: Namespace, day: str, low: str = "00", high: str = _LAST) -> Iterator[Item]:
        return self._table.query(f"{namespace}#{day}", low=low, high=high, newest_first=True)


def _time_of(row: StatusRow) -> datetime:
    return instant_of(row.run.run_id)


def _place_of(run: RunKey) -> tuple[str, str]:
    """Where a run is in the order of a namespace."""
    return run.run_id, run.job.name


def _hour_of(at: datetime) -> str:
    return stamp(at)[:13]


def _hours_of(day: str, first: str, last: str) -> tuple[str, str]:
    """The bounds of the sort keys of one day's pages between two hours; a batch may be named anything."""
    low = first[-2:] if first[:_DAY] == day else "00"
    high = last[-2:] if last[:_DAY] == day else "23"
    return low, f"{high}{_LAST}"


def _pages(rows: Sequence[StatusRow]) -> Iterator[str]:
    """The rows as JSON arrays that each fit an item."""
    page: list[str] = []
    size = 0
    for row in rows:
        encoded = as_json(row.encode())
        if page and size + len(encoded) > _PAGE_BYTES_MAX:
            yield f"[{','.join(page)}]"
            page, size = [], 0
        page.append(encoded)
        size += len(encoded) + 1
    if page:
        yield f"[{','.join(page)}]"
