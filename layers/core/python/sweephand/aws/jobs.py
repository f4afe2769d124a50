"""Jobs over DynamoDB: a partition per job for its head, versions and timeline; registers for what lists need.

pk                  sk                      what
ns/name             head                    the head, the one item here that moves often
ns/name             v#00000012              an immutable version, compressed
ns/name             w#00000012#1            the rest of one that is too large for an item
ns/name             t#2026-11-15T06:00:…    a row of the timeline
names#ns            name                    that there is such a job, whether it is deleted, and what it is found by
namespaces          ns                      that there is such a namespace

The audit log lies in the same table: `trail.py`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

from sweephand.aws.calls import Abreast, Item, Lost, is_own
from sweephand.aws.due import due_item
from sweephand.aws.items import (
    HEAD,
    as_json,
    change_fields,
    change_of,
    count,
    head_fields,
    head_item,
    head_of,
    item_of,
    read_count,
    stamp,
    text,
)
from sweephand.aws.table import ABSENT, Table
from sweephand.aws.trail import DynamoTrail
from sweephand.domain.definition import decode_version, encode_version
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import Change, Head, JobStatus, JobVersion
from sweephand.domain.trail import deed_of
from sweephand.domain.words import folded, words_of
from sweephand.ports import SOUGHT_MAX, DueEntry, Soonest, Sought

_NAMESPACES: Final = "namespaces"
_DELETED: Final = "g"
_WORDS: Final = "w"
_PAGE_MAX: Final = 1_000
_LOOKED_AT_MAX: Final = 1_000
PART_BYTES_MAX: Final = 380_000
"""An item holds 400 KB, its keys and names included."""

_FIRST: Final = "!"
_LAST: Final = "~"
"""Before and behind every name, and in none."""


class DynamoJobs:
    """The `Jobs` port. Every change of a head is a compare-and-set on its revision, as runs have it."""

    def __init__(self, table: Table, due: Table, trail: DynamoTrail, abreast: Abreast) -> None:
        self._table = table
        self._due = due
        self._trail = trail
        self._abreast = abreast
        self._registered: set[Namespace] = set()

    def head(self, key: JobKey) -> Head | None:
        item = self._table.get(str(key), HEAD)
        return None if item is None else head_of(item)

    def heads_of(self, keys: Sequence[JobKey]) -> list[Head]:
        return [head_of(item) for item in self._table.get_all([(str(key), HEAD) for key in dict.fromkeys(keys)])]

    def namespaces(self) -> list[Namespace]:
        found = self._table.query(_NAMESPACES, low=_FIRST, high=_LAST)
        return [Namespace(item["sk"]["S"]) for item in found]

    def heads(self, namespace: Namespace, *, after: JobName | None = None, limit: int) -> list[Head]:
        # No name contains the first character, and a name that goes on sorts behind it.
        low = _FIRST if after is None else f"{after}{_FIRST}"
        rows = self._table.query(f"names#{namespace}", low=low, high=_LAST, page=min(limit, _PAGE_MAX))
        return self.heads_of([JobKey(namespace, JobName(row["sk"]["S"])) for row in islice(rows, limit)])

    def sought(
        self,
        namespace: Namespace,
        words: str,
        *,
        after: JobName | None = None,
        limit: int,
        looked_at_max: int = SOUGHT_MAX,
    ) -> Sought:
        low = _FIRST if after is None else f"{after}{_FIRST}"
        rows = self._table.query(f"names#{namespace}", low=low, high=_LAST, page=_PAGE_MAX)
        found: list[JobKey] = []
        name: JobName | None = None
        for number, row in enumerate(rows):
            if number == looked_at_max or len(found) == limit:
                return Sought(self.heads_of(found), name)
            name = JobName(row["sk"]["S"])
            # A job without words has had no new version since they are written: it is found by its name.
            if words in (row[_WORDS]["S"] if _WORDS in row else folded(name)):
                found.append(JobKey(namespace, name))
        return Sought(self.heads_of(found), None)

    def soonest(self, namespace: Namespace, *, now: datetime, upto: datetime, limit: int) -> Soonest:
        heads = self.heads(namespace, limit=_LOOKED_AT_MAX + 1)
        coming = [
            (begin, head.key.name, head)
            for head in heads[:_LOOKED_AT_MAX]
            if (begin := head.may_fire_from(now)) is not None and begin <= upto
        ]
        by_time = sorted(coming, key=lambda one: one[:2])
        return Soonest([head for _, _, head in by_time[:limit]], len(heads) <= _LOOKED_AT_MAX)

    def version(self, key: JobKey, number: int) -> JobVersion | None:
        item = self._table.get(str(key), _version_key(number))
        return None if item is None else self._version_of(key, item)

    def each_version(self, wanted: Sequence[tuple[JobKey, int]]) -> list[JobVersion]:
        items = self._table.get_all([(str(key), _version_key(number)) for key, number in dict.fromkeys(wanted)])
        return [self._version_of(JobKey.of(item["pk"]["S"]), item) for item in items]

    def versions(self, key: JobKey, *, before: int | None = None, limit: int) -> list[JobVersion]:
        high = "v$" if before is None else _version_key(before)  # '$' follows '#'
        found = self._table.query(str(key), low="v#", high=high, newest_first=True, page=min(limit, _PAGE_MAX))
        return [self._version_of(key, item) for item in islice(found, limit)]

    def change(
        self,
        before: Head | None,
        after: Head,
        change: Change,
        version: JobVersion | None,
        entry: DueEntry | None,
    ) -> bool:
        deed = deed_of(change, before, after)
        self._register(after.key.namespace)
        self._trail.register(deed)
        puts = [self._head_put(before, after)]  # first: its condition is the one that may fail
        puts.append(
            self._table.to_put(item_of(str(change.key), f"t#{stamp(change.at)}", change_fields(change)), ABSENT)
        )
        if version is not None or before is None or _is_deleted(before) != _is_deleted(after):
            puts.append(self._table.to_put(_name_item(after, version)))
        if version is not None:
            puts += [self._table.to_put(item, ABSENT) for item in _version_items(version)]
        if entry is not None:
            puts.append(self._due.to_put(due_item(entry)))
        try:
            self._table.transact(f"change job {after.key}", [*({"Put": put} for put in puts), self._trail.to_put(deed)])
        except Lost as lost:
            return is_own(lost.item, after.rev, after.nonce)
        return True

    def _head_put(self, before: Head | None, after: Head) -> Any:
        if before is None:
            return self._table.to_put(head_item(after), ABSENT)
        unmoved = "rv = :before"
        return self._table.to_put(head_item(after), unmoved, before={"N": str(before.rev)})

    def advance(self, moves: Sequence[tuple[Head, Head]]) -> list[bool]:
        return self._abreast.each(self._advance, moves)

    def _advance(self, move: tuple[Head, Head]) -> bool:
        before, after = move
        unmoved = "rv = :before"
        try:
            self._table.update(str(after.key), HEAD, head_fields(after), unmoved, before={"N": str(before.rev)})
        except Lost as lost:
            return is_own(lost.item, after.rev, after.nonce)
        return True

    def timeline(self, key: JobKey, *, since: datetime | None = None) -> list[Change]:
        low = "t#"
        if since is not None:
            upto = f"t#{stamp(since)}$"
            in_force = self._table.query(str(key), low=low, high=upto, newest_first=True, page=1)
            low = next((item["sk"]["S"] for item in in_force), low)
        return [change_of(item) for item in self._table.query(str(key), low=low, high="t$")]

    def count(self, namespace: Namespace) -> int:
        present = f"attribute_not_exists({_DELETED})"
        return self._table.count(f"names#{namespace}", present)

    def _version_of(self, key: JobKey, item: Item) -> JobVersion:
        number = int(item["sk"]["S"].removeprefix("v#"))
        body = bytes(item["d"]["B"])
        if parts := read_count(item, "n"):
            rest = self._table.get_all([(str(key), _part_key(number, n)) for n in range(1, parts + 1)])
            body += b"".join(bytes(part["d"]["B"]) for part in rest)
        return decode_version(key, json.loads(zlib.decompress(body)))

    def _register(self, namespace: Namespace) -> None:
        """Write the namespace down, once per process; before its first job, so that no list can miss it."""
        if namespace not in self._registered:
            self._table.put(item_of(_NAMESPACES, namespace, {}))
            self._registered.add(namespace)


def _version_key(number: int) -> str:
    return f"v#{number:08d}"


def _part_key(number: int, part: int) -> str:
    return f"w#{number:08d}#{part}"


def _version_items(version: JobVersion) -> Iterator[Item]:
    """The version in as many items as its compressed text needs, mostly one."""
    body = zlib.compress(as_json(encode_version(version)).encode())
    first, *rest = [body[n : n + PART_BYTES_MAX] for n in range(0, len(body), PART_BYTES_MAX)]
    pk = str(version.key)
    yield item_of(pk, _version_key(version.number), {"d": {"B": first}, "n": count(len(rest))})
    for n, part in enumerate(rest, 1):
        yield item_of(pk, _part_key(version.number, n), {"d": {"B": part}})


def _name_item(head: Head, version: JobVersion | None) -> Item:
    """The register's row: it says as much as counting and searching need, and moves no more often than versions do."""
    deleted: Item | None = {"BOOL": True} if _is_deleted(head) else None
    words = text(words_of(head.key.name, version.job)) if version is not None else None
    return item_of(f"names#{head.key.namespace}", head.key.name, {_DELETED: deleted, _WORDS: words})


def _is_deleted(head: Head) -> bool:
    return head.status is JobStatus.DELETED
