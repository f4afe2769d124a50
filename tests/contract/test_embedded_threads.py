"""Threads on one embedded store: races have one winner, and whoever waits for work is woken."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from sweephand.clock import SystemClock
from sweephand.domain.run import Run
from sweephand.embedded import Stores, open_stores
from sweephand.errors import Unavailable
from sweephand.messages import AttemptRun
from sweephand.ports import Lane, Letter
from tests.contract.embedded import PATIENCE_S, at_once
from tests.contract.rival import rival, tell, told
from tests.contract.samples import (
    MINUTE,
    NOW,
    SECOND,
    key_of,
    run_at,
)
from tests.contract.world import VirtualClock


def test_of_many_threads_that_create_one_run_exactly_one_wins(embedded: Stores) -> None:
    def create(n: int) -> list[bool]:
        return [embedded.runs.create([run_at(NOW + k * SECOND, nonce=f"n{n}")])[0] for k in range(40)]

    answers = at_once(create, 8)
    assert [sum(column) for column in zip(*answers, strict=True)] == [1] * 40


def test_of_many_threads_that_move_one_run_exactly_one_wins_each_step(embedded: Stores) -> None:
    run = run_at()
    embedded.runs.create([run])

    def climb(n: int) -> int:
        won = 0
        while (current := embedded.runs.get(run.key)) is not None and current.rev < 100:
            won += embedded.runs.move(current, current.fenced(now=NOW, nonce=f"n{n}-{current.rev}"))
        return won

    assert sum(at_once(climb, 8)) == 100


def test_no_message_is_delivered_to_two_threads(embedded: Stores) -> None:
    embedded.queue.send([Letter(AttemptRun(run_at(NOW + n * SECOND).key)) for n in range(200)])

    def drain(_: int) -> list[str]:
        found: list[str] = []
        while deliveries := embedded.inbox.receive(Lane.NORMAL, most=3, hold=MINUTE):
            found += [delivery.body for delivery in deliveries]
            embedded.inbox.delete(deliveries)
        return found

    bodies = [body for found in at_once(drain, 8) for body in found]
    assert len(bodies) == len(set(bodies)) == 200


def test_a_write_is_seen_by_every_thread_as_soon_as_it_is_acknowledged(embedded: Stores) -> None:
    def write_and_ask(n: int) -> list[Run | None]:
        found = []
        for k in range(20):
            run = run_at(NOW + k * SECOND, key_of(f"job-{n}"))
            embedded.runs.create([run])
            with ThreadPoolExecutor(1) as other:
                found.append(other.submit(embedded.runs.get, run.key).result())
        return found

    assert None not in [run for found in at_once(write_and_ask, 4) for run in found]


def test_a_closed_store_is_unavailable(embedded: Stores) -> None:
    embedded.close()
    with pytest.raises(Unavailable, match="closed"):
        embedded.runs.create([run_at()])
    with pytest.raises(Unavailable, match="closed"):
        embedded.runs.get(run_at().key)


# Waiting for work.


def waits(embedded: Stores, timeout_s: float = 600.0) -> Future[None]:
    """A thread that has looked, and now waits; it ends when it is woken."""
    pool = ThreadPoolExecutor(1)
    pool.submit(embedded.await_work, timedelta(0)).result(PATIENCE_S)
    waiting = pool.submit(embedded.await_work, timedelta(seconds=timeout_s))
    pool.shutdown(wait=False)
    return waiting


def test_whoever_waits_is_woken_by_a_send(embedded: Stores) -> None:
    waiting = [waits(embedded) for _ in range(3)]
    assert not any(future.done() for future in waiting)
    embedded.queue.send([Letter(AttemptRun(run_at().key))])
    for future in waiting:
        future.result(PATIENCE_S)


def test_a_send_between_looking_and_waiting_is_not_missed(embedded: Stores) -> None:
    embedded.await_work(timedelta(0))
    assert embedded.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE) == []
    embedded.queue.send([Letter(AttemptRun(run_at().key))])
    embedded.await_work(timedelta(seconds=600))  # does not block, or this test would


def test_a_wait_ends_by_itself(embedded: Stores) -> None:
    embedded.await_work(timedelta(0))
    embedded.await_work(timedelta(milliseconds=1))
    waits(embedded, 0.12).result(PATIENCE_S)


def test_whoever_waits_is_woken_when_a_delay_ends() -> None:
    stores = open_stores(None, clock=SystemClock())
    stores.queue.send([Letter(AttemptRun(run_at().key), delay=timedelta(milliseconds=200))])
    waits(stores).result(PATIENCE_S)
    assert len(stores.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE)) == 1
    stores.close()


def test_a_delay_that_ends_between_looking_and_waiting_is_not_missed(clock: VirtualClock) -> None:
    stores = open_stores(None, clock=clock)
    stores.queue.send([Letter(AttemptRun(run_at().key), delay=SECOND)])
    stores.await_work(timedelta(0))
    assert stores.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE) == []
    clock.advance(SECOND)
    stores.await_work(timedelta(seconds=600))
    assert len(stores.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE)) == 1
    stores.close()


def test_whoever_waits_is_woken_by_another_process(tmp_path: Path) -> None:
    stores = open_stores(tmp_path / "sweephand.db", clock=SystemClock())
    with rival("send", tmp_path / "sweephand.db") as process:
        assert told(process) == "ready"
        waiting = waits(stores)
        tell(process)
        waiting.result(PATIENCE_S)
        assert len(stores.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE)) == 1
    stores.close()
