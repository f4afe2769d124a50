"""Shard leases and slots over DynamoDB: single items, each moved by compare-and-set."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final

from sweephand.aws.calls import Item, Lost, is_own
from sweephand.aws.items import as_json, instant, item_of, number, read_instant, text
from sweephand.aws.table import ABSENT, Table
from sweephand.domain.slots import Slot, decode_slot, encode_slot
from sweephand.ports import ShardLease

SHARDS_DEFAULT: Final = 8


class DynamoShards:
    """The `Shards` port; the settings say how many shards there are at least."""

    def __init__(self, table: Table, *, at_least: int = SHARDS_DEFAULT) -> None:
        self._table = table
        self._at_least = at_least

    def count(self) -> int:
        item = self._table.get("shards", "count")
        return self._at_least if item is None else max(self._at_least, int(item["n"]["N"]))

    def grow(self, count: int) -> None:
        if count <= self._at_least:
            return
        unset = "attribute_not_exists(n)"
        fewer = "n < :n"
        try:
            self._table.update("shards", "count", {"n": number(count)}, f"{unset} OR {fewer}")
        except Lost:
            pass  # safe: there are as many already

    def take(self, shard: int, *, owner: str, now: datetime, until: datetime) -> ShardLease | None:
        item = self._table.get(f"shard#{shard}", "lease") or {}
        rev = int(item["rv"]["N"]) if item else 0
        lease_until = read_instant(item, "lu")
        live = lease_until is not None and now < lease_until
        if live and item["ow"]["S"] != owner:
            return None
        unmoved = "rv = :before" if item else ABSENT
        fields = {"ow": text(owner), "lu": instant(until), "rv": number(rev + 1)}
        values: dict[str, Item] = {"before": {"N": str(rev)}} if item else {}
        try:
            self._table.update(f"shard#{shard}", "lease", fields, unmoved, **values)
        except Lost:
            return None  # another sweeper was faster
        return ShardLease(shard, owner, until, read_instant(item, "wm"), rev + 1)

    def release(self, lease: ShardLease, *, watermark: datetime) -> bool:
        mine = "ow = :owner"
        unmoved = "rv = :before"
        fields = {"lu": None, "wm": instant(watermark), "rv": number(lease.rev + 1)}
        try:
            self._table.update(
                f"shard#{lease.shard}",
                "lease",
                fields,
                f"{mine} AND {unmoved}",
                owner={"S": lease.owner},
                before={"N": str(lease.rev)},
            )
        except Lost as lost:
            return _is_released(lost.item, lease, watermark)
        return True


def _is_released(item: Item, lease: ShardLease, watermark: datetime) -> bool:
    """Whether an earlier try took effect: the owner is the nonce, and only a release leaves no end of the lease."""
    next_rev = item.get("rv", {}).get("N") == str(lease.rev + 1)
    mine = item.get("ow", {}).get("S") == lease.owner
    same_mark = read_instant(item, "wm") == watermark
    return next_rev and mine and same_mark and "lu" not in item


class DynamoSlots:
    """The `Slots` port."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, name: str) -> Slot:
        item = self._table.get(f"slot#{name}", "slot")
        if item is None:
            return Slot(name)
        nonce = item["nc"]["S"] if "nc" in item else ""
        return decode_slot(name, json.loads(item["d"]["S"]), rev=int(item["rv"]["N"]), nonce=nonce)

    def swap(self, before: Slot, after: Slot) -> bool:
        fields = {
            "d": text(as_json(encode_slot(after))),
            "rv": number(after.rev),
            "nc": text(after.nonce or None),
        }
        unmoved = "rv = :before" if before.rev else ABSENT
        values: dict[str, Item] = {"before": {"N": str(before.rev)}} if before.rev else {}
        try:
            self._table.put(item_of(f"slot#{after.name}", "slot", fields), unmoved, **values)
        except Lost as lost:
            return is_own(lost.item, after.rev, after.nonce)
        return True
