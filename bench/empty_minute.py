"""What a minute costs in which nothing is due: the same with 100,000 jobs stored as with 100, and no memory.

Each minute all shards are swept, as a tick on AWS has it, on an SQLite file. The local runtime only looks, which is
measured too.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemDice
from sweephand.domain.ids import Namespace
from sweephand.embedded import open_stores
from sweephand.engine.put import put
from sweephand.engine.sweep import sweep
from sweephand.local import Runtime
from sweephand.local.sweeper import Sweeper
from sweephand.testing import VirtualClock

FEW, MANY = 100, 100_000
START = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
MINUTES = 60
ROUNDS = 5
TOGETHER = 500
MEMORY_ROUNDS = 4
MEMORY_MINUTES = 300


class Nothing:
    """A target that is never called: nothing is due."""

    def execute(self, call: Call) -> Outcome:
        return Succeeded()


@dataclass(frozen=True)
class Figures:
    """Milliseconds per minute, and the memory after each of several long stretches."""

    sweep_ms: float
    look_ms: float
    rss_mb: list[float]


def measure(folder: Path, jobs: int) -> Figures:
    """Minutes without a fire, among so many jobs that each fire once a year."""
    clock = VirtualClock(START)
    stores = open_stores(folder / f"{jobs}.db", clock=clock)
    world = Runtime(stores, target=Nothing(), clock=clock, dice=SystemDice()).world

    def put_some(first: int) -> None:
        for number in range(first, min(first + TOGETHER, jobs)):
            schedule = f"{number % 60} {number // 60 % 24} 31 12 *"
            definition = {"name": f"job{number}", "schedule": schedule, "run": {"command": ["work"]}}
            put(world, Namespace("default"), definition, actor="bench", expected=None)

    for first in range(0, jobs, TOGETHER):
        stores.database.together(lambda first=first: put_some(first))  # type: ignore[misc]

    def sweep_a_minute() -> int:
        clock.move(clock.now() + timedelta(minutes=1))
        return sum(sweep(world, [shard]).entries for shard in range(world.shards.count()))

    while sweep_a_minute():
        pass  # the hints that the puts left behind

    sweeper = Sweeper(world)
    rss = []
    sweep_ms = _ms_each(sweep_a_minute)
    look_ms = _ms_each(sweeper.step)
    for _ in range(MEMORY_ROUNDS):
        if any(sweep_a_minute() for _ in range(MEMORY_MINUTES)):
            raise RuntimeError("A minute was not empty.")
        rss.append(_rss_mb())
    stores.close()
    return Figures(sweep_ms, look_ms, rss)


def _ms_each(step: Callable[[], object]) -> float:
    """The median of several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(MINUTES):
            step()
        rounds.append((time.perf_counter() - begun) / MINUTES * 1e3)
    return statistics.median(rounds)


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Print both, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = measure(Path(folder), FEW), measure(Path(folder), MANY)
    print(f"{'an empty minute':28} {f'{FEW:,} jobs':>12} {f'{MANY:,} jobs':>14} {'ratio':>7}")
    for title, one, other in (
        ("sweep of all shards", few.sweep_ms, many.sweep_ms),
        ("look of the local runtime", few.look_ms, many.look_ms),
    ):
        print(f"{title:28} {one:9.3f} ms {other:11.3f} ms {other / one:7.2f}")
    series = " → ".join(f"{size:.1f}" for size in many.rss_mb)
    print(f"memory after every {MEMORY_MINUTES:,} minutes with {MANY:,} jobs: {series} MB")


if __name__ == "__main__":
    main()
