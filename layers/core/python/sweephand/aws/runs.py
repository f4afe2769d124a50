"""Runs and the ledger's rows over DynamoDB: one partition per job, sorted by id, so that lists are plain queries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from sweephand.aws.calls import Abreast, Lost, is_own
from sweephand.aws.items import (
    digest,
    dropped_item,
    dropped_of,
    dropped_sort_key,
    end,
    instant,
    item_of,
    page_item,
    page_of,
    page_sort_key,
    read_instant,
    run_fields,
    run_item,
    run_of,
    run_place,
    run_sort_key,
    task_sort_key,
    text,
)
from sweephand.aws.table import ABSENT, Table
from sweephand.domain.ids import JobKey, Namespace, RunId, RunKey
from sweephand.domain.ledger import Dropped, LedgerPage
from sweephand.domain.run import ACTIVE, Run
from sweephand.domain.status import UNLISTED
from sweephand.ports import Clock, Recent
from sweephand.topology import TTL

_A_TICK: Final = timedelta(microseconds=1)
_PAGE_MAX: Final = 1_000
_LOOKED_AT_MAX: Final = 100


class DynamoRuns:
    """The `Runs` port. Who may write when:

    sweep A   put r, nonce a ──► created                      (rev 0, nonce a)
    sweep B   put r, nonce b ──► exists, another's nonce      False
    sweep A   put r, nonce a again, having seen a time-out    exists, own nonce at rev 0: True
    worker    update rev 0 → 1, nonce c ──► moved             (rev 1, nonce c)
    worker    the same again, having seen a time-out          rev 1 is there, with nonce c: True
    other     update rev 0 → 1, nonce d                       rev 1 is there, with another's nonce: False
    """

    def __init__(self, table: Table, abreast: Abreast, *, clock: Clock, keep: timedelta) -> None:
        self._table = table
        self._abreast = abreast
        self._clock = clock
        self._keep = keep

    def create(self, runs: Sequence[Run]) -> list[bool]:
        return self._abreast.each(self._create, runs)

    def _create(self, run: Run) -> bool:
        try:
            self._table.put(run_item(run, keep=self._keep), ABSENT)
        except Lost as lost:
            return run.rev == 0 and is_own(lost.item, run.rev, run.nonce)
        return True

    def get(self, key: RunKey) -> Run | None:
        item = self._table.get(*run_place(key))
        return None if item is None else run_of(item)

    def several(self, keys: Sequence[RunKey]) -> list[Run]:
        return [run_of(item) for item in self._table.get_all([run_place(key) for key in keys])]

    def move(self, before: Run, after: Run) -> bool:
        unmoved = "rv = :before"
        try:
            self._table.update(
                *run_place(after.key),
                run_fields(after, keep=self._keep),
                unmoved,
                before={"N": str(before.rev)},
            )
        except Lost as lost:
            return is_own(lost.item, after.rev, after.nonce)
        return True

    def of_job(
        self,
        job: JobKey,
        *,
        since: RunId | None = None,
        until: RunId | None = None,
        newest_first: bool = True,
        limit: int,
    ) -> list[Run]:
        low = run_sort_key(since or "")
        high = "r$" if until is None else run_sort_key(until)  # '$' follows '#'
        found = self._table.query(str(job), low=low, high=high, newest_first=newest_first, page=min(limit, _PAGE_MAX))
        return [run_of(item) for item in islice(found, limit)]

    def tasks(self, run: RunKey, *, after: str = "", limit: int) -> list[Run]:
        low = task_sort_key(after + "!") if after else task_sort_key("")  # '!' sorts before every character of an id
        found = self._table.query(str(run), low=low, high="t$", page=min(limit, _PAGE_MAX))
        return [run_of(item) for item in islice(found, limit)]

    def active(self, job: JobKey, *, until: RunId) -> list[Run]:
        # Sifted here: DynamoDB charges for what it reads, not for what its filter lets through.
        return [run for run in self.of_job(job, until=until, limit=_LOOKED_AT_MAX) if run.state in ACTIVE]

    def recent(self, jobs: Sequence[JobKey], *, until: RunId, limit: int) -> list[Recent]:
        def look(job: JobKey) -> Recent:
            found = self.of_job(job, until=until, limit=_LOOKED_AT_MAX)
            shown = [run for run in found if run.state not in UNLISTED]
            return Recent(shown[:limit], [run for run in found if run.state in ACTIVE])

        return self._abreast.each(look, jobs)

    def drop(self, job: JobKey, dropped: Dropped) -> None:
        until = max(dropped.last, self._clock.now()) + self._keep
        with suppress(Lost):  # one that reaches further is there already
            last = instant(dropped.last) or {}
            self._table.put(
                dropped_item(job, dropped, until=until), "attribute_not_exists(pk) OR l <= :last", last=last
            )

    def dropped(self, job: JobKey, *, since: datetime, until: datetime) -> list[Dropped]:
        # A stretch may have begun long ago and still touch: all that have not expired are read.
        found = self._table.query(str(job), low="d#", high=dropped_sort_key(until))
        return [one for one in map(dropped_of, found) if one.last >= since]

    def write_page(self, page: LedgerPage) -> None:
        self._table.put(page_item(page))

    def pages(self, job: JobKey, *, since: datetime, until: datetime) -> list[LedgerPage]:
        first = since.astimezone(UTC).date()
        after_last = (until - _A_TICK).astimezone(UTC).date() + timedelta(days=1)
        found = self._table.query(str(job), low=page_sort_key(first), high=page_sort_key(after_last))
        return [page_of(item) for item in found]

    def remember(self, namespace: Namespace, key: str, value: str, *, until: datetime) -> str:
        # The key is a stranger's text of any length; a name cannot contain '#', so no job's partition is met.
        fields = {"val": text(value), "u": instant(until), TTL: end(until)}
        forgotten = "u < :now"
        now = instant(self._clock.now()) or {}
        try:
            self._table.put(
                item_of(f"memory#{namespace}#{digest(key)}", "memory", fields), f"{ABSENT} OR {forgotten}", now=now
            )
        except Lost as lost:
            return str(lost.item["val"]["S"])
        return value

    def note(self, namespace: Namespace, key: str, value: str, *, until: datetime) -> None:
        fields = {"val": text(value), "u": instant(until), TTL: end(until)}
        self._table.put(item_of(f"memory#{namespace}#{digest(key)}", "memory", fields))

    def noted(self, namespace: Namespace, key: str) -> str | None:
        item = self._table.get(f"memory#{namespace}#{digest(key)}", "memory")
        # DynamoDB removes what has expired within days: until then, its time says that it is gone.
        until = read_instant(item, "u") if item is not None else None
        return str(item["val"]["S"]) if item is not None and until is not None and self._clock.now() <= until else None
