"""The audit log over DynamoDB, in the table of jobs: a partition per namespace and month, for ever.

pk                  sk                       what
audit#ns#2026-11    2026-11-15T06:00:…#id    a deed
months#ns           2026-11                  that the log has such a month
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from sweephand.aws.calls import Item, Lost
from sweephand.aws.items import as_json, digest, item_of, stamp, text, unstamp
from sweephand.aws.table import ABSENT, Table
from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed
from sweephand.errors import Defect

_PAGE_MAX: Final = 1_000
_ID_BYTES_MAX: Final = 900
"""A sort key holds 1,024 bytes; any text is safe in it, and texts sort as their bytes do, which is as Python's do."""

_FIRST: Final = "!"
_LAST: Final = "~"
"""Before and behind every month and instant."""

_SAME: Final = "d = :deed"
_NEW_OR_THE_SAME: Final = f"{ABSENT} OR {_SAME}"
"""The condition of every deed: it is never replaced by another."""


class DynamoTrail:
    """The `Trail` port, and deeds that are written together with what was done."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._registered: set[tuple[str, str]] = set()

    def append(self, deed: Deed) -> None:
        self.register(deed)
        item = _item_of(deed)
        try:
            self._table.put(item, _NEW_OR_THE_SAME, deed=item["d"])
        except Lost as lost:
            what = f"The audit log of {deed.namespace} has another deed {deed.id} at {deed.at.isoformat()}."
            raise Defect(what) from lost

    def deeds(self, namespace: Namespace, *, before: Deed | None = None, limit: int) -> list[Deed]:
        found = self._newest_first(namespace, _LAST if before is None else _sort_key(before), min(limit, _PAGE_MAX))
        return [_deed_of(namespace, item) for item in islice(found, limit)]

    def _newest_first(self, namespace: Namespace, high: str, page: int) -> Iterator[Item]:
        months = self._table.query(f"months#{namespace}", low=_FIRST, high=f"{high[:7]}{_LAST}", newest_first=True)
        for month in months:
            partition = f"audit#{namespace}#{month['sk']['S']}"
            yield from self._table.query(partition, low=_FIRST, high=high, newest_first=True, page=page)

    def done(self, what: str, write: Any, deed: Deed) -> None:
        """One write and its deed in one transaction; `Lost` where the condition of the write does not hold."""
        self.register(deed)
        self._table.transact(what, [write, self.to_put(deed)])

    def register(self, deed: Deed) -> None:
        """Write the month down, once per process; before the deed, so that no list can miss it."""
        month = (f"months#{deed.namespace}", stamp(deed.at)[:7])
        if month not in self._registered:
            self._table.put(item_of(*month, {}))
            self._registered.add(month)

    def to_put(self, deed: Deed) -> Any:
        """A deed within a transaction, once its month is registered."""
        item = _item_of(deed)
        return {"Put": self._table.to_put(item, _NEW_OR_THE_SAME, deed=item["d"])}


def _item_of(deed: Deed) -> Item:
    fields = {"d": text(as_json(deed.encode())), "i": text(deed.id) if _is_long(deed.id) else None}
    return item_of(f"audit#{deed.namespace}#{stamp(deed.at)[:7]}", _sort_key(deed), fields)


def _deed_of(namespace: Namespace, item: Item) -> Deed:
    at, deed_id = item["sk"]["S"].split("#", 1)
    if "i" in item:
        deed_id = item["i"]["S"]
    return Deed.decode(namespace, unstamp(at), deed_id, json.loads(item["d"]["S"]))


def _sort_key(deed: Deed) -> str:
    """The instant and the id; of a long one, how it begins, for the order, and its digest."""
    if not _is_long(deed.id):
        return f"{stamp(deed.at)}#{deed.id}"
    beginning = deed.id.encode()[:_ID_BYTES_MAX].decode(errors="ignore")  # not half a character
    return f"{stamp(deed.at)}#{beginning}{digest(deed.id)}"


def _is_long(deed_id: str) -> bool:
    return len(deed_id.encode()) > _ID_BYTES_MAX
