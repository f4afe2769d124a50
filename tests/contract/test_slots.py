"""The contract of `Slots`: one item per resource, moved by compare-and-set."""

from __future__ import annotations

from sweephand.domain.slots import Slot
from tests.contract.samples import MINUTE, NOW, TICK, claimed, key_of, run_at
from tests.contract.world import Stores

NAME = "pool/default/datenbank-ä"
FIRST, SECOND_RUN, THIRD = (run_at(NOW + n * MINUTE + TICK) for n in range(3))


def test_a_slot_that_nobody_ever_held_is_empty(stores: Stores) -> None:
    assert stores.slots.get(NAME) == Slot(NAME)


def test_holders_and_waiters_come_back_in_their_order(stores: Stores) -> None:
    empty = Slot(NAME)
    one = empty.taken(FIRST, weight=3, now=NOW + TICK, nonce="a")
    two = one.taken(SECOND_RUN, weight=1, now=NOW, nonce="b")
    waited = two.awaited(THIRD.key, nonce="c")
    assert waited is not None
    for before, after in ((empty, one), (one, two), (two, waited)):
        assert stores.slots.swap(before, after)
        assert stores.slots.get(NAME) == after
    left = waited.given_back(FIRST.key, nonce="d")
    assert stores.slots.swap(waited, left)
    assert stores.slots.get(NAME) == left


def test_of_two_who_take_an_empty_slot_one_wins(stores: Stores) -> None:
    mine = Slot(NAME).taken(FIRST, weight=1, now=NOW, nonce="a")
    other = Slot(NAME).taken(SECOND_RUN, weight=1, now=NOW, nonce="b")
    assert stores.slots.swap(Slot(NAME), mine)
    assert not stores.slots.swap(Slot(NAME), other)
    assert stores.slots.get(NAME) == mine


def test_of_two_who_take_a_held_slot_one_wins(stores: Stores) -> None:
    held = Slot(NAME).taken(FIRST, weight=1, now=NOW, nonce="a")
    stores.slots.swap(Slot(NAME), held)
    mine = held.taken(SECOND_RUN, weight=1, now=NOW, nonce="b")
    assert stores.slots.swap(held, mine)
    assert not stores.slots.swap(held, held.taken(THIRD, weight=1, now=NOW, nonce="c"))
    assert stores.slots.get(NAME) == mine


def test_a_repeated_swap_is_recognised_by_its_nonce_until_the_slot_moves_on(stores: Stores) -> None:
    held = Slot(NAME).taken(FIRST, weight=1, now=NOW, nonce="a")
    free = held.given_back(FIRST.key, nonce="b")
    assert stores.slots.swap(Slot(NAME), held)
    assert stores.slots.swap(Slot(NAME), held)
    assert stores.slots.swap(held, free)
    assert stores.slots.swap(held, free)
    assert not stores.slots.swap(Slot(NAME), held)
    assert stores.slots.get(NAME) == free


def test_an_emptied_slot_is_not_a_new_one(stores: Stores) -> None:
    held = Slot(NAME).taken(FIRST, weight=1, now=NOW, nonce="a")
    free = held.given_back(FIRST.key, nonce="b")
    stores.slots.swap(Slot(NAME), held)
    stores.slots.swap(held, free)
    assert not stores.slots.swap(Slot(NAME), Slot(NAME).taken(THIRD, weight=1, now=NOW, nonce="c"))
    assert stores.slots.swap(free, free.taken(THIRD, weight=1, now=NOW, nonce="c"))


def test_an_empty_nonce_is_nobodys(stores: Stores) -> None:
    held = Slot(NAME).taken(FIRST, weight=1, now=NOW, nonce="")
    assert stores.slots.swap(Slot(NAME), held)
    assert not stores.slots.swap(Slot(NAME), held)


def test_slots_of_other_names_are_other_slots(stores: Stores) -> None:
    held = Slot(NAME).taken(claimed(FIRST), weight=1, now=NOW, nonce="a")
    stores.slots.swap(Slot(NAME), held)
    assert stores.slots.get(f"{NAME}2") == Slot(f"{NAME}2")
    assert stores.slots.get(f"job/{key_of('report')}").holders == ()


def test_a_slot_names_as_many_holders_as_a_large_pool_has(stores: Stores) -> None:
    slot = Slot(NAME)
    for n in range(500):
        slot = slot.taken(run_at(NOW + n * MINUTE, key_of("a" * 40)), weight=1, now=NOW, nonce=f"n{n}")
    large = Slot(NAME, slot.holders, (), 1, "all")
    assert stores.slots.swap(Slot(NAME), large)
    assert stores.slots.get(NAME) == large
