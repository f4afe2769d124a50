"""What the picker asks the queue: the oldest visible message of each namespace and lane, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import pytest

from sweephand.domain.shares import Waiting
from sweephand.embedded import Stores, open_stores
from sweephand.messages import AttemptRun, decode
from sweephand.ports import Lane, Letter
from tests.contract.samples import NOW, SECOND, key_of, run_at
from tests.contract.world import VirtualClock

LANES: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
HOLD: Final = timedelta(seconds=30)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


@pytest.fixture
def stores(clock: VirtualClock) -> Iterator[Stores]:
    opened = open_stores(None, clock=clock)
    yield opened
    opened.close()


def message(namespace: str, n: int = 0) -> AttemptRun:
    return AttemptRun(run_at(NOW + n * SECOND, key_of("job", namespace)).key)


def send(stores: Stores, namespace: str, *, count: int = 1, lane: Lane = Lane.NORMAL, after: int = 0) -> None:
    letters = [Letter(message(namespace, n), after * SECOND, lane, namespace) for n in range(count)]
    stores.queue.send(letters)


def test_nothing_waits_in_an_empty_queue(stores: Stores) -> None:
    assert stores.backlog.heads(LANES) == []
    assert stores.backlog.receive(Lane.HIGH, "a", most=3, hold=HOLD) == []


def test_each_namespace_and_lane_is_told_once_with_its_oldest(stores: Stores, clock: VirtualClock) -> None:
    send(stores, "b", count=50)
    clock.advance(SECOND)
    send(stores, "a", count=2)
    send(stores, "b", lane=Lane.LOW)
    send(stores, "c", after=9)
    expected = [
        Waiting("normal", "a", NOW + SECOND),
        Waiting("normal", "b", NOW),
        Waiting("low", "b", NOW + SECOND),
    ]
    assert stores.backlog.heads(LANES) == expected
    clock.advance(9 * SECOND)
    assert Waiting("normal", "c", NOW + 10 * SECOND) in stores.backlog.heads(LANES)


def test_a_namespace_gives_its_oldest_and_only_its_own(stores: Stores, clock: VirtualClock) -> None:
    send(stores, "a", count=3)
    send(stores, "b", count=3)
    taken = stores.backlog.receive(Lane.NORMAL, "a", most=2, hold=HOLD)
    assert [decode(one.body) for one in taken] == [message("a", 0), message("a", 1)]
    assert [decode(one.body) for one in stores.backlog.receive(Lane.NORMAL, "a", most=9, hold=HOLD)] == [
        message("a", 2)
    ]
    assert [one.namespace for one in stores.backlog.heads(LANES)] == ["b"]
    clock.advance(HOLD)
    (again, *_) = stores.backlog.receive(Lane.NORMAL, "a", most=9, hold=HOLD)
    assert again.receives == 2
    stores.inbox.delete([again])


def test_of_very_many_namespaces_all_have_their_turn(stores: Stores) -> None:
    names = [f"n{n:03}" for n in range(250)]
    for name in names:
        send(stores, name)
    seen: set[str] = set()
    for _ in range(3):
        seen |= {one.namespace for one in stores.backlog.heads(LANES)}
    assert seen == set(names)


@pytest.mark.parametrize("visible", ["n000", "n120", "n249"])
def test_one_that_waits_among_very_many_that_do_not_is_found_at_every_look(
    stores: Stores, clock: VirtualClock, visible: str
) -> None:
    for name in (f"n{n:03}" for n in range(250)):
        send(stores, name, after=0 if name == visible else 60)
    for _ in range(5):
        assert [one.namespace for one in stores.backlog.heads(LANES)] == [visible]
    clock.advance(60 * SECOND)
    assert len(stores.backlog.heads(LANES)) >= 50


def test_where_nothing_is_visible_the_look_ends(stores: Stores) -> None:
    for name in (f"n{n:03}" for n in range(200)):
        send(stores, name, after=60)
    assert [stores.backlog.heads(LANES) for _ in range(4)] == [[]] * 4
