"""Whose turn it is, of the workers that wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sweephand.domain.ids import Namespace, RunKey
from sweephand.engine.match import Wanted, match
from sweephand.engine.offer import HEAD_START
from sweephand.engine.trigger import trigger
from sweephand.ports import Offer, Offers, World
from tests.engine.test_pull_order import put_warm, run_by, triggered
from tests.engine.world import NS, Town, job


def wanted(worker: str = "wanda", *queues: str, **more: Any) -> Wanted:
    return Wanted(NS, worker, queues or ("default",), **more)


def dealt(world: World, line: Sequence[Wanted], taken: frozenset[RunKey] = frozenset()) -> dict[int, frozenset[RunKey]]:
    return {one.place: one.runs for one in match(world, line, taken=taken)}


def offered(town: Town, count: int, *, queue: str = "default") -> list[RunKey]:
    """So many runs on offer, oldest first."""
    if town.stores.jobs.head(job(queue)) is None:
        town.put_external(queue, schedule=None, queue=queue)
    keys = [trigger(town.world, job(queue)).key for _ in range(count)]
    town.drive()
    on_offer = [offer.run for offer in town.world.offers.open(NS, queue, limit=1_000)]
    return [run for run in on_offer if run in keys]


def test_what_is_on_offer_goes_to_those_who_came_first(either: Town) -> None:
    assert dealt(either.world, [wanted()]) == {}
    first, second = offered(either, 2)
    assert dealt(either.world, [wanted()] * 3) == {0: {first}, 1: {second}}


def test_who_takes_several_gets_several_and_nothing_is_dealt_out_twice(town: Town) -> None:
    first, second, third = offered(town, 3)
    assert dealt(town.world, [wanted(most=2), wanted(most=2), wanted()]) == {0: {first, second}, 1: {third}}


def test_who_wants_more_than_is_there_lets_the_next_go_first(town: Town) -> None:
    first, second = offered(town, 2)
    assert dealt(town.world, [wanted(most=5, least=3), wanted(), wanted()]) == {1: {first}, 2: {second}}


def test_what_somebody_is_sent_for_is_nobody_elses(town: Town) -> None:
    first, second = offered(town, 2)
    assert dealt(town.world, [wanted()], frozenset({first})) == {0: {second}}


def test_everybody_gets_what_is_in_their_own_queues_and_namespace(town: Town) -> None:
    (cpu,), (gpu,) = offered(town, 1), offered(town, 1, queue="gpu")
    stranger = Wanted(Namespace("elsewhere"), "wanda", ("default",))
    assert dealt(town.world, [stranger, wanted("walter", "gpu"), wanted("w", "gpu", "default")]) == {1: {gpu}, 2: {cpu}}


def test_what_is_kept_for_a_warm_worker_is_not_the_others(town: Town) -> None:
    put_warm(town)
    run_by(town, "wanda")
    (run,) = triggered(town)
    line = [wanted("walter"), wanted("wanda")]
    assert dealt(town.world, line) == {1: {run}}
    town.clock.at += HEAD_START
    assert dealt(town.world, line) == {0: {run}}


class Counted:
    """Offers whose reads are counted."""

    def __init__(self, offers: Offers) -> None:
        self.reads = 0
        self.offer, self.withdraw, self._open = offers.offer, offers.withdraw, offers.open

    def open(self, namespace: Namespace, queue: str, *, limit: int) -> list[Offer]:
        self.reads += 1
        return self._open(namespace, queue, limit=limit)


def test_a_queue_is_read_once_however_many_wait_for_it(town: Town) -> None:
    runs = offered(town, 3)
    counted = Counted(town.world.offers)
    line = [wanted(f"w{number}", "default", "gpu") for number in range(1_000)]
    found = dealt(replace(town.world, offers=counted), line)
    assert [found[place] for place in range(3)] == [{run} for run in runs]
    assert counted.reads == 2
