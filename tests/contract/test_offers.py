"""The contract of `Offers`: hints for external workers, by queue, the oldest first."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sweephand.domain.ids import Namespace
from sweephand.ports import Offer
from tests.contract.samples import DEFAULT, HOUR, MINUTE, NOW, SECOND, STRANGE, TICK, key_of, run_at
from tests.contract.world import Stores, VirtualClock

QUEUE = "gpu"


def offer_of(
    name: str = "report", *, after: int = 0, namespace: str = DEFAULT, run_id: str | None = None, nonce: str = ""
) -> Offer:
    return Offer(NOW + after * SECOND, run_at(job=key_of(name, namespace), run_id=run_id).key, nonce)


def nonces(stores: Stores) -> list[str]:
    return [one.nonce for one in stores.offers.open(DEFAULT, QUEUE, limit=100)]


def test_nothing_is_on_offer_in_a_queue_that_nobody_used(stores: Stores) -> None:
    assert stores.offers.open(DEFAULT, QUEUE, limit=10) == []
    stores.offers.withdraw(QUEUE, [offer_of()])
    stores.offers.withdraw(QUEUE, [])
    assert stores.offers.open(DEFAULT, QUEUE, limit=10) == []


def test_offers_are_open_oldest_first(stores: Stores) -> None:
    offers = [
        Offer(NOW - HOUR, run_at().key),
        Offer(NOW - TICK, run_at().key),
        *(offer_of(name) for name in ("B", "a", "a-b", "a.b", "aa")),
        offer_of("b", run_id="20261115T060000Z"),
        offer_of("b", run_id="20261115T060000Z.1"),
        offer_of("b", run_id="20261115T060000Z.2"),
        Offer(NOW + TICK, run_at(job=key_of("A")).key),
        offer_of(after=7),
    ]
    for one in offers[::-2] + offers[-2::-2]:
        stores.offers.offer(QUEUE, one)
    assert stores.offers.open(DEFAULT, QUEUE, limit=100) == offers
    assert offers == sorted(offers)
    assert stores.offers.open(DEFAULT, QUEUE, limit=3) == offers[:3]


def test_an_offer_made_again_has_the_last_nonce(stores: Stores) -> None:
    for nonce in ("a", "", "c", "b", "b"):
        stores.offers.offer(QUEUE, offer_of(nonce=nonce))
        assert nonces(stores) == [nonce]


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a"), ("", "a"), ("a", "")])
def test_a_withdrawal_leaves_what_was_offered_again_since_it_was_read(stores: Stores, first: str, second: str) -> None:
    stores.offers.offer(QUEUE, offer_of(nonce=first))
    read = stores.offers.open(DEFAULT, QUEUE, limit=10)
    stores.offers.offer(QUEUE, offer_of(nonce=second))
    stores.offers.withdraw(QUEUE, read)
    assert nonces(stores) == [second]

    again = stores.offers.open(DEFAULT, QUEUE, limit=10)
    for _ in range(2):
        stores.offers.withdraw(QUEUE, again)
        assert nonces(stores) == []
    stores.offers.offer(QUEUE, offer_of(nonce="c"))
    stores.offers.withdraw(QUEUE, [*read, *again])
    assert nonces(stores) == ["c"]


def test_of_many_withdrawals_those_of_old_readings_have_no_effect(stores: Stores) -> None:
    for n in range(30):
        stores.offers.offer(QUEUE, offer_of(after=n, nonce=f"first-{n}"))
    read = stores.offers.open(DEFAULT, QUEUE, limit=100)
    for n in range(0, 30, 3):
        stores.offers.offer(QUEUE, offer_of(after=n, nonce=f"second-{n}"))
    stores.offers.withdraw(QUEUE, read)
    assert nonces(stores) == [f"second-{n}" for n in range(0, 30, 3)]


def test_the_same_offer_again_changes_nothing(stores: Stores, clock: VirtualClock) -> None:
    for _ in range(3):
        stores.offers.offer(QUEUE, offer_of())
        clock.advance(MINUTE)
    assert stores.offers.open(DEFAULT, QUEUE, limit=10) == [offer_of()]
    stores.offers.withdraw(QUEUE, [offer_of()])
    assert stores.offers.open(DEFAULT, QUEUE, limit=10) == []
    stores.offers.offer(QUEUE, offer_of())
    assert stores.offers.open(DEFAULT, QUEUE, limit=10) == [offer_of()]


def test_what_is_withdrawn_is_gone_and_the_rest_stays(stores: Stores) -> None:
    offers = [offer_of(after=n) for n in range(60)]
    for one in offers:
        stores.offers.offer(QUEUE, one)
    absent = [offer_of("absent"), Offer(NOW + TICK, run_at().key)]
    stores.offers.withdraw(QUEUE, [*offers[10:50], *absent, offers[10]])
    assert stores.offers.open(DEFAULT, QUEUE, limit=100) == offers[:10] + offers[50:]
    stores.offers.withdraw(QUEUE, offers)
    stores.offers.withdraw(QUEUE, offers)
    assert stores.offers.open(DEFAULT, QUEUE, limit=100) == []


def test_a_run_may_be_on_offer_twice_at_two_times(stores: Stores) -> None:
    first, second = offer_of(), offer_of(after=60)
    for one in (second, first):
        stores.offers.offer(QUEUE, one)
    stores.offers.withdraw(QUEUE, [first])
    assert stores.offers.open(DEFAULT, QUEUE, limit=10) == [second]


def test_each_namespace_has_queues_of_its_own(stores: Stores) -> None:
    names = ("default", "default-2", "other")
    offers = [offer_of(namespace=name) for name in names]
    for one in offers:
        stores.offers.offer(QUEUE, one)
    for name, one in zip(names, offers, strict=True):
        assert stores.offers.open(Namespace(name), QUEUE, limit=10) == [one]
    stores.offers.withdraw(QUEUE, offers[:2])
    assert [stores.offers.open(Namespace(name), QUEUE, limit=10) for name in names] == [[], [], offers[2:]]


def test_a_queue_may_be_called_anything(stores: Stores) -> None:
    queues = (*STRANGE, *(letter * 1_000 for letter in "xä🕰#"))
    for n, queue in enumerate(queues):
        stores.offers.offer(queue, offer_of(after=n))
    stores.offers.withdraw(queues[3], [offer_of(after=n) for n in range(len(queues))])
    expected = [[] if n == 3 else [offer_of(after=n)] for n in range(len(queues))]
    assert [stores.offers.open(DEFAULT, queue, limit=10) for queue in queues] == expected


def test_offers_are_apart_from_due_entries(stores: Stores) -> None:
    stores.offers.offer("0", offer_of())
    assert stores.due.read(0, after=None, upto=NOW + HOUR, limit=10) == []


def test_an_offer_says_who_comes_first_and_until_when(stores: Stores) -> None:
    first = replace(offer_of(nonce="a"), first="wanda", first_until=NOW + 2 * SECOND)
    for one in (offer_of(), first, replace(first, nonce="b", first="walter", first_until=NOW + TICK), offer_of()):
        stores.offers.offer(QUEUE, one)
        assert stores.offers.open(DEFAULT, QUEUE, limit=10) == [one]
    stores.offers.offer(QUEUE, first)
    stores.offers.withdraw(QUEUE, [replace(offer_of(nonce="a"))])
    assert stores.offers.open(DEFAULT, QUEUE, limit=10) == []
