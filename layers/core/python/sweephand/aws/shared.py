"""Documents under revisions over DynamoDB: a partition per namespace, sorted by kind and name.

A kind is a word of ours; a name may be anything, since it stands last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sweephand.aws.calls import Item, Lost
from sweephand.aws.items import as_json, item_of, number, text
from sweephand.aws.table import ABSENT, Table
from sweephand.aws.trail import DynamoTrail
from sweephand.documents import SharedDocument
from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed

_PAGE_MAX: Final = 1_000


class DynamoShared:
    """The `Shared` port. A put carries no nonce: whoever lost an answer finds the document as they wrote it."""

    def __init__(self, table: Table, trail: DynamoTrail) -> None:
        self._table = table
        self._trail = trail

    def get(self, namespace: Namespace, kind: str, name: str) -> tuple[int, Mapping[str, Any]] | None:
        item = self._table.get(_partition(namespace), f"{kind}#{name}")
        return None if item is None else (int(item["rv"]["N"]), json.loads(item["d"]["S"]))

    def in_each(
        self, namespaces: Sequence[Namespace], kind: str, name: str
    ) -> list[tuple[int, Mapping[str, Any]] | None]:
        wanted = [(_partition(namespace), f"{kind}#{name}") for namespace in namespaces]
        found = {item["pk"]["S"]: item for item in self._table.get_all(list(dict.fromkeys(wanted)))}
        items = [found.get(partition) for partition, _ in wanted]
        return [None if item is None else (int(item["rv"]["N"]), json.loads(item["d"]["S"])) for item in items]

    def listed(self, namespace: Namespace, kind: str, *, after: str | None = None, limit: int) -> list[SharedDocument]:
        low = f"{kind}#" if after is None else f"{kind}#{after}\x00"
        high = f"{kind}$"  # '$' follows '#'
        found = self._table.query(_partition(namespace), low=low, high=high, page=min(limit, _PAGE_MAX))
        return [
            SharedDocument(item["sk"]["S"].removeprefix(f"{kind}#"), int(item["rv"]["N"]), json.loads(item["d"]["S"]))
            for item in islice(found, limit)
        ]

    def put(
        self,
        namespace: Namespace,
        kind: str,
        name: str,
        document: Mapping[str, Any],
        *,
        expected: int,
        deed: Deed | None = None,
    ) -> bool:
        fields = {"d": text(as_json(dict(document))), "rv": number(expected + 1)}
        item = item_of(_partition(namespace), f"{kind}#{name}", fields)
        unmoved = "rv = :before" if expected else ABSENT
        values: dict[str, Item] = {"before": {"N": str(expected)}} if expected else {}
        try:
            if deed is None:
                self._table.put(item, unmoved, **values)
            else:
                self._trail.done(f"put {kind}", {"Put": self._table.to_put(item, unmoved, **values)}, deed)
        except Lost:
            return False
        return True

    def delete(self, namespace: Namespace, kind: str, name: str, *, expected: int, deed: Deed | None = None) -> bool:
        key = (_partition(namespace), f"{kind}#{name}")
        unmoved = "rv = :before"
        before: Item = {"N": str(expected)}
        try:
            if deed is None:
                self._table.delete(*key, unmoved, before=before)
            else:
                self._trail.done(
                    f"delete {kind}", {"Delete": self._table.to_delete(*key, unmoved, before=before)}, deed
                )
        except Lost as lost:
            return not lost.item  # gone already, perhaps by an earlier try, whose deed went with it
        return True


def _partition(namespace: Namespace) -> str:
    return f"shared#{namespace}"
