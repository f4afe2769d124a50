"""The workers of one process are shared: nobody waits for another's backlog."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.embedded import Stores, open_stores
from sweephand.engine.grant import put_namespace
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local import Runtime
from tests.local.waiting import until

CLOCK = SystemClock()


class Steps:
    """The target: tasks end when the test lets one go."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self._go = threading.Semaphore(0)

    def execute(self, call: Call) -> Outcome:
        self.began.append(f"{call.run.key.job.namespace} {call.run.key.job.name}")
        self._go.acquire(timeout=30)
        return Succeeded()

    def let_all_go(self) -> None:
        self._go.release(1_000)

    def let_go(self, count: int) -> list[str]:
        """Who has the workers next that so many tasks leave, one after the other."""
        before = len(self.began)
        for number in range(1, count + 1):
            self._go.release()
            until(lambda number=number: len(self.began) >= before + number, within_s=20, what="the next task")  # type: ignore[misc]
        return self.began[before:]


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = open_stores(tmp_path / "test.db", clock=CLOCK)
    yield opened
    opened.close()


@pytest.fixture
def runtime(stores: Stores, steps: Steps) -> Iterator[Runtime]:
    """Not started; in the end, everything may go."""
    made = Runtime(stores, target=steps, clock=CLOCK, dice=SystemDice(), workers=4)
    yield made
    steps.let_all_go()
    made.stop()


def queue(runtime: Runtime, namespace: str, count: int, **fields: Any) -> None:
    name = fields.pop("name", "job")
    document = {"name": name, "run": {"command": ["x"]}, **fields}
    put(runtime.world, Namespace(namespace), document, actor="test", expected=None)
    for _ in range(count):
        trigger(runtime.world, JobKey(Namespace(namespace), JobName(name)))


def test_a_small_namespace_gets_the_next_worker_beside_a_backlog(runtime: Runtime, steps: Steps) -> None:
    queue(runtime, "large", 40)
    with runtime:
        until(lambda: len(steps.began) == 4, within_s=20, what="all workers at it")
        queue(runtime, "small", 2)
        assert sorted(steps.let_go(2)) == ["small job"] * 2
        steps.let_all_go()


def test_workers_are_shared_by_weight(runtime: Runtime, steps: Steps) -> None:
    put_namespace(runtime.world, "gold", {"weight": 3}, actor="test")
    for namespace in ("gold", "plain"):
        queue(runtime, namespace, 30)
    with runtime:
        until(lambda: len(steps.began) == 4, within_s=20, what="all workers at it")
        assert sorted(steps.began) == ["gold job"] * 3 + ["plain job"]
        steps.let_all_go()


def test_a_higher_priority_gets_the_next_worker(runtime: Runtime, steps: Steps) -> None:
    queue(runtime, "a", 20, priority="low", name="low")
    with runtime:
        until(lambda: len(steps.began) == 4, within_s=20, what="all workers at it")
        queue(runtime, "a", 2, name="normal")
        queue(runtime, "a", 2, priority="high", name="high")
        assert steps.let_go(4) == ["a high"] * 2 + ["a normal"] * 2
        steps.let_all_go()
