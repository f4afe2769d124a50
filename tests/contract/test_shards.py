"""The contract of `Shards`: leases that avoid waste, and a watermark that only their owner moves."""

from __future__ import annotations

import pytest

from sweephand.ports import ShardLease
from tests.contract.samples import MINUTE, NOW, SECOND, TICK
from tests.contract.world import Stores


def test_there_are_eight_shards_until_there_are_more_and_never_fewer(stores: Stores) -> None:
    assert stores.shards.count() == 8
    stores.shards.grow(4)
    assert stores.shards.count() == 8
    stores.shards.grow(32)
    assert stores.shards.count() == 32
    stores.shards.grow(16)
    stores.shards.grow(32)
    assert stores.shards.count() == 32


def take(stores: Stores, owner: str, *, after_s: float = 0, shard: int = 3) -> ShardLease | None:
    now = NOW + after_s * SECOND
    return stores.shards.take(shard, owner=owner, now=now, until=now + MINUTE)


def taken(stores: Stores, owner: str, *, after_s: float = 0, shard: int = 3) -> ShardLease:
    lease = take(stores, owner, after_s=after_s, shard=shard)
    assert lease is not None
    return lease


def test_a_shard_that_nobody_swept_is_taken_without_a_watermark(stores: Stores) -> None:
    lease = taken(stores, "a")
    assert (lease.shard, lease.owner, lease.until, lease.watermark) == (3, "a", NOW + MINUTE, None)


def test_a_live_lease_keeps_others_out_of_its_own_shard_only(stores: Stores) -> None:
    taken(stores, "a")
    assert take(stores, "b") is None
    assert take(stores, "b", after_s=59) is None
    assert taken(stores, "b", shard=4).owner == "b"


def test_a_lease_is_taken_over_from_its_end_on(stores: Stores) -> None:
    taken(stores, "a")
    assert stores.shards.take(3, owner="b", now=NOW + MINUTE - TICK, until=NOW + 2 * MINUTE) is None
    assert taken(stores, "b", after_s=60).owner == "b"
    assert take(stores, "a", after_s=61) is None


def test_an_owner_takes_its_own_live_lease_again(stores: Stores) -> None:
    first = taken(stores, "a")
    second = taken(stores, "a", after_s=30)
    assert second.until == NOW + 90 * SECOND
    assert second.rev > first.rev
    assert take(stores, "b", after_s=70) is None


def test_a_released_shard_is_free_at_once_and_keeps_its_watermark(stores: Stores) -> None:
    assert stores.shards.release(taken(stores, "a"), watermark=NOW + TICK)
    assert taken(stores, "b", after_s=1).watermark == NOW + TICK


def test_a_takeover_continues_from_the_last_released_watermark(stores: Stores) -> None:
    stores.shards.release(taken(stores, "a"), watermark=NOW)
    taken(stores, "a", after_s=10)
    assert taken(stores, "b", after_s=100).watermark == NOW


@pytest.mark.parametrize("next_owner", ["a", "b"])
def test_a_fenced_owner_cannot_release(stores: Stores, next_owner: str) -> None:
    fenced = taken(stores, "a")
    current = taken(stores, next_owner, after_s=60)
    assert not stores.shards.release(fenced, watermark=NOW + MINUTE)
    assert take(stores, "c", after_s=61) is None
    assert stores.shards.release(current, watermark=NOW + SECOND)
    assert taken(stores, "c", after_s=62).watermark == NOW + SECOND


def test_a_repeated_release_is_recognised_until_the_shard_is_taken_again(stores: Stores) -> None:
    lease = taken(stores, "a")
    assert stores.shards.release(lease, watermark=NOW)
    assert stores.shards.release(lease, watermark=NOW)
    taken(stores, "b")
    assert not stores.shards.release(lease, watermark=NOW)
    assert take(stores, "c") is None
