"""The contract of `Queue` and `Inbox`: what is neither deleted nor kept comes back, and in the end is dead."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.domain.limits import MESSAGE_DELAY_MAX
from sweephand.errors import Defect
from sweephand.messages import AttemptRun, Message, SweepShards, decode
from sweephand.ports import Delivery, Lane, Letter
from tests.contract.samples import HOUR, MINUTE, NOW, SECOND, run_at
from tests.contract.world import Stores, VirtualClock

RECEIVES_MAX = 20
HOLD = 30 * SECOND


def message(n: int = 0) -> AttemptRun:
    return AttemptRun(run_at(NOW + n * SECOND).key)


def receive(stores: Stores, *, lane: Lane = Lane.NORMAL, most: int = 10, hold: timedelta = HOLD) -> list[Delivery]:
    return stores.inbox.receive(lane, most=most, hold=hold)


def messages(deliveries: list[Delivery]) -> set[Message]:
    return {decode(delivery.body) for delivery in deliveries}


def test_an_empty_queue_delivers_nothing(stores: Stores) -> None:
    stores.queue.send([])
    assert receive(stores) == []
    assert stores.inbox.dead(most=10) == []
    stores.inbox.delete([])
    stores.inbox.bury([])


def test_a_message_arrives_as_it_was_sent(stores: Stores) -> None:
    sent = AttemptRun(run_at().key, timer=NOW + MINUTE, redriven=2)
    stores.queue.send([Letter(sent)])
    (delivery,) = receive(stores)
    assert decode(delivery.body) == sent
    assert (delivery.lane, delivery.receives) == (Lane.NORMAL, 1)


def test_each_lane_is_a_queue_of_its_own(stores: Stores) -> None:
    stores.queue.send([Letter(message(n), lane=lane) for n, lane in enumerate(Lane)])
    stores.queue.send([Letter(SweepShards((1, 2)), lane=Lane.SWEEP)])
    for n, lane in enumerate(Lane):
        found = receive(stores, lane=lane)
        assert {delivery.lane for delivery in found} == {lane}
        assert messages(found) == {message(n)} | ({SweepShards((1, 2))} if lane is Lane.SWEEP else set())


def test_a_delayed_message_arrives_when_its_delay_is_over(stores: Stores, clock: VirtualClock) -> None:
    stores.queue.send([Letter(message(1), delay=10 * SECOND), Letter(message(2), delay=MESSAGE_DELAY_MAX)])
    assert receive(stores) == []
    clock.advance(9 * SECOND)
    assert receive(stores) == []
    clock.advance(SECOND)
    assert messages(receive(stores, hold=HOUR)) == {message(1)}
    clock.advance(MESSAGE_DELAY_MAX - 11 * SECOND)
    assert receive(stores) == []
    clock.advance(SECOND)
    assert messages(receive(stores)) == {message(2)}


def test_a_delay_that_is_over_already_is_none(stores: Stores) -> None:
    stores.queue.send([Letter(message(), delay=-MINUTE)])
    assert messages(receive(stores)) == {message()}


def test_a_delay_beyond_the_queues_longest_is_a_defect(stores: Stores) -> None:
    with pytest.raises(Defect, match="0:15:00"):
        stores.queue.send([Letter(message(1)), Letter(message(2), delay=MESSAGE_DELAY_MAX + SECOND)])
    assert receive(stores) == []


def test_a_delivered_message_is_hidden_for_its_hold_and_comes_back(stores: Stores, clock: VirtualClock) -> None:
    stores.queue.send([Letter(message())])
    (first,) = receive(stores)
    assert receive(stores) == []
    clock.advance(HOLD - SECOND)
    assert receive(stores) == []
    clock.advance(SECOND)
    (second,) = receive(stores)
    assert decode(second.body) == message()
    assert second.receives == 2
    assert second.receipt != first.receipt


def test_a_deleted_message_does_not_come_back(stores: Stores, clock: VirtualClock) -> None:
    stores.queue.send([Letter(message(1)), Letter(message(2))])
    deliveries = receive(stores)
    done = [delivery for delivery in deliveries if decode(delivery.body) == message(1)]
    stores.inbox.delete(done)
    stores.inbox.delete(done)
    clock.advance(HOLD)
    assert messages(receive(stores)) == {message(2)}


def test_a_kept_message_is_hidden_from_now_on_for_as_long_as_asked(stores: Stores, clock: VirtualClock) -> None:
    stores.queue.send([Letter(message())])
    (delivery,) = receive(stores)
    clock.advance(20 * SECOND)
    stores.inbox.keep(delivery, MINUTE)
    clock.advance(59 * SECOND)
    assert receive(stores) == []
    clock.advance(SECOND)
    assert messages(receive(stores)) == {message()}


def test_a_message_kept_for_no_time_comes_back_at_once(stores: Stores) -> None:
    stores.queue.send([Letter(message())])
    (delivery,) = receive(stores)
    stores.inbox.keep(delivery, timedelta(0))
    (again,) = receive(stores)
    assert again.receives == 2


def test_a_kept_message_is_deleted_with_the_same_receipt(stores: Stores, clock: VirtualClock) -> None:
    stores.queue.send([Letter(message())])
    (delivery,) = receive(stores)
    stores.inbox.keep(delivery, HOUR)
    stores.inbox.keep(delivery, MINUTE)
    stores.inbox.delete([delivery])
    clock.advance(2 * HOUR)
    assert receive(stores) == []


def test_keeping_a_message_that_was_deleted_does_nothing(stores: Stores, clock: VirtualClock) -> None:
    stores.queue.send([Letter(message())])
    (delivery,) = receive(stores)
    stores.inbox.delete([delivery])
    stores.inbox.keep(delivery, SECOND)
    clock.advance(MINUTE)
    assert receive(stores) == []


def test_no_more_are_received_than_asked_for_and_none_twice(stores: Stores) -> None:
    sent = [message(n) for n in range(35)]
    stores.queue.send([Letter(one) for one in sent])
    found = receive(stores, most=3)
    assert len(found) == 3
    found += receive(stores, most=25)
    assert len(found) == 28
    found += receive(stores, most=25)
    assert len(found) == len({delivery.receipt for delivery in found}) == 35
    assert messages(found) == set(sent)
    stores.inbox.delete(found)


def test_the_same_message_sent_twice_is_delivered_twice(stores: Stores) -> None:
    stores.queue.send([Letter(message()), Letter(message())])
    found = receive(stores)
    assert [decode(delivery.body) for delivery in found] == [message(), message()]


def test_a_message_delivered_too_often_is_dead(stores: Stores, clock: VirtualClock) -> None:
    stores.queue.send([Letter(message(), lane=Lane.LOW)])
    for n in range(1, RECEIVES_MAX + 1):
        (delivery,) = receive(stores, lane=Lane.LOW)
        assert delivery.receives == n
        assert stores.inbox.dead(most=10) == []
        clock.advance(HOLD)
    stores.queue.send([Letter(message(2), lane=Lane.LOW)])

    assert messages(receive(stores, lane=Lane.LOW)) == {message(2)}
    (dead,) = stores.inbox.dead(most=10)
    assert (decode(dead.body), dead.lane) == (message(), Lane.LOW)
    assert dead.dead_at <= clock.now()


def _dead_letters(stores: Stores, clock: VirtualClock, count: int) -> None:
    stores.queue.send([Letter(message(n)) for n in range(count)])
    for _ in range(RECEIVES_MAX + 1):
        receive(stores)
        clock.advance(HOLD)


def test_dead_letters_stay_until_they_are_buried(stores: Stores, clock: VirtualClock) -> None:
    _dead_letters(stores, clock, 3)
    assert len(stores.inbox.dead(most=2)) == 2
    letters = stores.inbox.dead(most=10)
    assert {decode(letter.body) for letter in letters} == {message(n) for n in range(3)}
    stores.inbox.bury(letters[:1])
    clock.advance(HOUR)
    left = stores.inbox.dead(most=10)
    assert {letter.body for letter in left} == {letter.body for letter in letters[1:]}
    stores.inbox.bury(left)
    clock.advance(HOUR)
    assert stores.inbox.dead(most=10) == []
    assert receive(stores) == []
