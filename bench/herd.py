"""A runtime in this process on a file of its own, and jobs of several namespaces whose waits are measured."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

from bench.served import quantile
from bench.throughput import ShiftedClock
from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey
from sweephand.embedded import Stores, open_stores
from sweephand.engine.grant import put_namespace
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local import Runtime
from sweephand.ports import Clock, World

WITHIN_S = 90.0
POLL_S = 0.01
TOGETHER = 50


@dataclass(frozen=True)
class Began:
    """An attempt: when it began, and how long after it could have."""

    at: datetime
    waited_s: float
    run: RunKey
    attempt: int


@dataclass
class Tasks:
    """The target: each task takes so long, and comes to what its namespace's rule says."""

    took_s: float = 0.0
    now: Callable[[], datetime] = SystemClock().now
    rules: dict[str, Callable[[Call], Outcome]] = field(default_factory=dict)
    began: defaultdict[str, list[Began]] = field(default_factory=lambda: defaultdict(list))
    effects: defaultdict[str, list[RunKey]] = field(default_factory=lambda: defaultdict(list))
    """Of those that succeeded, once for each time."""

    def execute(self, call: Call) -> Outcome:
        now, run = self.now(), call.run
        namespace = run.key.job.namespace
        could_at = max(run.start_at, run.created_at)  # a run that was triggered is named by a whole second
        self.began[namespace].append(Began(now, (now - could_at).total_seconds(), run.key, run.attempt))
        if self.took_s:
            sleep(self.took_s)
        rule = self.rules.get(namespace)
        outcome = rule(call) if rule else Succeeded()
        if isinstance(outcome, Succeeded):
            self.effects[namespace].append(run.key)
        return outcome

    def waits_s(self, namespace: str, *, since: datetime | None = None) -> list[float]:
        """Of first attempts that began since a moment."""
        found = list(self.began[namespace])
        return [one.waited_s for one in found if one.attempt == 1 and (since is None or one.at >= since)]


@dataclass(frozen=True)
class Herd:
    """A runtime under way."""

    runtime: Runtime
    stores: Stores
    tasks: Tasks
    file: Path
    workers: int
    triggered: Counter[JobKey] = field(default_factory=Counter)
    """How many runs of each job somebody asked for here."""

    @property
    def world(self) -> World:
        return self.runtime.world

    def namespace(self, name: str, weight: int = 1) -> None:
        put_namespace(self.world, name, {"weight": weight}, actor="bench")

    def put(self, namespace: str, name: str, **more: Any) -> JobKey:
        document = {"name": name, **({} if "tasks" in more else {"run": {"command": ["true"]}}), **more}
        put(self.world, Namespace(namespace), document, actor="bench", expected=None)
        return JobKey(Namespace(namespace), JobName(name))

    def trigger(self, key: JobKey, count: int) -> None:
        """So many runs, some of them in one transaction; others have their turn between two of these."""

        def together(number: int) -> None:
            for _ in range(number):
                trigger(self.world, key)

        for begun in range(0, count, TOGETHER):
            self.stores.database.together(partial(together, min(TOGETHER, count - begun)))
        self.triggered[key] += count

    def until(self, holds: Callable[[], bool], within_s: float = WITHIN_S) -> None:
        ends_at = SystemClock().now() + timedelta(seconds=within_s)
        while not holds():
            assert SystemClock().now() < ends_at, "it takes too long"
            sleep(POLL_S)

    def trickle(self, key: JobKey, *, every_s: float, over: threading.Event) -> threading.Thread:
        """A run now and then, until it is over."""

        def work() -> None:
            while not over.wait(every_s):
                trigger(self.world, key)
                self.triggered[key] += 1

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def accounted(self, namespace: str) -> Mapping[str, int]:
        """How many of a namespace's runs are in each state; each began as often as it says, and had its effect once if
        it succeeded. To be asked when nobody works on them."""
        began: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for one in self.tasks.began[namespace]:
            began[str(one.run.job), one.run.run_id].append(one.attempt)
        effects = Counter((str(key.job), key.run_id) for key in self.tasks.effects[namespace])
        runs = self.stores.database.rows(
            "SELECT job, run_id, state, attempt FROM runs WHERE job >= ? AND job < ?",
            (f"{namespace}/", f"{namespace}0"),
        )
        for job, run_id, state, attempt in runs:
            attempts, had = sorted(began.pop((job, run_id), [])), effects.pop((job, run_id), 0)
            assert attempts == list(range(1, attempt + 1)), f"{job}/{run_id} says {attempt} attempts; begun: {attempts}"
            assert had == (state == "succeeded"), f"{job}/{run_id} is {state}, and had its effect {had} times"
        assert not began, f"{len(began)} runs began that are nowhere"
        assert not effects, f"{len(effects)} runs had an effect that are nowhere"
        return Counter(state for _, _, state, _ in runs)

    def stop(self) -> None:
        """Let what runs finish, and begin nothing more."""
        assert self.runtime.stop(), "some attempts did not end"

    @contextmanager
    def later(self, by: timedelta) -> Iterator[Herd]:
        """What follows on the same file when so much time has passed; to be stopped before."""
        clock = ShiftedClock(self.tasks.now() + by)
        with _running(self.file, clock, self.tasks, self.workers) as place:
            yield place


@contextmanager
def herd(tasks: Tasks, *, workers: int, prepare: Callable[[Path], Clock] | None = None) -> Iterator[Herd]:
    """Until the end of the block; what is not done by then is left. `prepare` fills the file, and sets the clock."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.db"
        clock = prepare(file) if prepare is not None else SystemClock()
        with _running(file, clock, tasks, workers) as place:
            yield place


@contextmanager
def _running(file: Path, clock: Clock, tasks: Tasks, workers: int) -> Iterator[Herd]:
    tasks.now = clock.now
    stores = open_stores(file, clock=clock)
    runtime = Runtime(stores, target=tasks, clock=clock, dice=SystemDice(), workers=workers)
    try:
        with runtime:
            yield Herd(runtime, stores, tasks, file, workers)
        assert not runtime.defects, f"there were {runtime.defects} defects"
    finally:
        stores.close()


def told(what: str, waits_s: list[float]) -> float:
    """Print a line about waits; their p99."""
    p99 = quantile(waits_s, 0.99)
    print(f"{what:52} {len(waits_s):6} runs   p50 {quantile(waits_s, 0.5):7.3f} s   p99 {p99:7.3f} s")
    return p99


def states(stores: Stores, namespace: str) -> Mapping[str, int]:
    """How many of a namespace's runs are in each state."""
    rows = stores.database.rows(
        "SELECT state, count(*) FROM runs WHERE job >= ? AND job < ? GROUP BY state", (f"{namespace}/", f"{namespace}0")
    )
    return dict(rows)
