"""How many runs a second one process gets through when 10,000 jobs are due at one instant, beside APScheduler 3.

Both persist their jobs in an SQLite file, run a Python function that does nothing on as many threads, and are measured
from the due instant until the last job is done. Ours also keeps the history: every run with its times and outcome is in
the file by then, where APScheduler keeps none. Lag is the start of a task minus the instant it was due.
"""

from __future__ import annotations

import pickle
import sqlite3
import statistics
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apscheduler.executors.pool import ThreadPoolExecutor as SchedulerThreads
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import Namespace
from sweephand.embedded import Stores, open_stores
from sweephand.engine.put import put
from sweephand.local import Runtime
from sweephand.testing import VirtualClock

JOBS = 10_000
WORKERS = 32
ROUNDS = 3
WITHIN_S = 300.0
LEAD = timedelta(seconds=7)
"""Between the start of a scheduler and the instant that everything is due: longer than our look-ahead."""
LONG_BEFORE = timedelta(hours=1)


@dataclass
class Course:
    """A measurement under way: when each task started, by the clock that its scheduler goes by."""

    due_at: datetime
    now: Callable[[], datetime]
    jobs: int
    starts: list[datetime] = field(default_factory=list)
    all_started: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self.starts.append(self.now())
        if len(self.starts) == self.jobs:
            self.all_started.set()

    def measured(self) -> Figures:
        """To be called when everything is done."""
        took = (self.now() - self.due_at).total_seconds()
        lags = sorted((start - self.due_at).total_seconds() for start in self.starts)
        if len(lags) != self.jobs:
            raise RuntimeError(f"{len(lags)} of {self.jobs} jobs were run.")
        return Figures(self.jobs / took, lags[len(lags) // 2], lags[int(len(lags) * 0.99)])


@dataclass(frozen=True)
class Figures:
    """What one round came to."""

    per_second: float
    p50_s: float
    p99_s: float


class ShiftedClock:
    """The machine's clock, set to another time: the jobs are put in no time, long before they are due."""

    def __init__(self, now: datetime) -> None:
        self._offset = now - SystemClock().now()

    def now(self) -> datetime:
        return SystemClock().now() + self._offset


class NoOp:
    """Our target: the function, called."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def execute(self, call: Call) -> Outcome:
        self._course.start()
        return Succeeded()


def ours(folder: Path, jobs: int = JOBS) -> Figures:
    """One round of Sweephand."""
    due_at = SystemClock().now().replace(microsecond=0) + LONG_BEFORE
    put_jobs(folder / "ours.db", due_at, jobs)
    clock = ShiftedClock(due_at - LEAD)
    course = Course(due_at, clock.now, jobs)
    stores = open_stores(folder / "ours.db", clock=clock)
    with Runtime(stores, target=NoOp(course), clock=clock, dice=SystemDice(), workers=WORKERS) as runtime:
        course.all_started.wait(WITHIN_S)
        while _succeeded(stores) < jobs:
            threading.Event().wait(0.005)
        figures = course.measured()
    if runtime.defects:
        raise RuntimeError(f"There were {runtime.defects} defects.")
    stores.close()
    return figures


def put_jobs(file: Path, due_at: datetime, jobs: int, namespace: str = "default") -> None:
    """So many jobs that are due at one instant, in a file, as if they had been put long before."""
    clock = VirtualClock(due_at - LONG_BEFORE)
    stores = open_stores(file, clock=clock)
    world = Runtime(stores, target=NoOp(Course(due_at, clock.now, 0)), clock=clock, dice=SystemDice()).world

    def put_one(number: int) -> None:
        schedule = {"at": due_at.isoformat()}
        definition = {"name": f"job{number}", "schedule": schedule, "run": {"python": "bench.throughput:nothing"}}
        put(world, Namespace(namespace), definition, actor="bench", expected=None)

    with ThreadPoolExecutor(64) as many:
        list(many.map(put_one, range(jobs)))
    stores.close()


def _succeeded(stores: Stores) -> int:
    count: int = stores.database.rows("SELECT count(*) FROM runs WHERE state = 'succeeded'")[0][0]
    return count


_course: Course | None = None
"""APScheduler finds its function by name, so what it reports to has to be found there too."""


def nothing() -> None:
    """APScheduler's task."""
    if _course is not None:
        _course.start()


def apscheduler(folder: Path, jobs: int = JOBS) -> Figures:
    """One round of APScheduler: jobs of one date, never misfired, each an entry of its SQLite job store."""
    global _course  # noqa: PLW0603
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=f"sqlite:///{folder / 'apscheduler.db'}")},
        executors={"default": SchedulerThreads(WORKERS)},
        job_defaults={"misfire_grace_time": None, "coalesce": False, "max_instances": 10},
        timezone=UTC,
    )
    scheduler.start(paused=True)
    for number in range(jobs):
        far = datetime.now(UTC) + LONG_BEFORE
        scheduler.add_job("bench.throughput:nothing", DateTrigger(far, UTC), id=f"job{number}")
    due_at = datetime.now(UTC) + LEAD
    _make_due(folder / "apscheduler.db", due_at)
    _course = course = Course(due_at, SystemClock().now, jobs)
    scheduler.resume()
    course.all_started.wait(WITHIN_S)
    figures = course.measured()
    scheduler.shutdown()
    return figures


def _make_due(file: Path, due_at: datetime) -> None:
    """Set all jobs to one instant at once: adding them takes longer than anybody can foresee."""
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT id, job_state FROM apscheduler_jobs").fetchall()
        states = [(id_, pickle.loads(state)) for id_, state in rows]
        for _, state in states:
            state["next_run_time"], state["trigger"] = due_at, DateTrigger(due_at, UTC)
        connection.executemany(
            "UPDATE apscheduler_jobs SET next_run_time = ?, job_state = ? WHERE id = ?",
            [(due_at.timestamp(), pickle.dumps(state, pickle.HIGHEST_PROTOCOL), id_) for id_, state in states],
        )
    connection.close()


def median_of(rounds: list[Figures]) -> Figures:
    """The middle of each figure."""
    return Figures(
        statistics.median(one.per_second for one in rounds),
        statistics.median(one.p50_s for one in rounds),
        statistics.median(one.p99_s for one in rounds),
    )


def main() -> None:
    """Print the comparison, the medians of several rounds."""
    rounds: dict[str, list[Figures]] = {"sweephand": [], "apscheduler 3": []}
    for _ in range(ROUNDS):
        for name, measure in (("sweephand", ours), ("apscheduler 3", apscheduler)):
            with tempfile.TemporaryDirectory() as folder:
                rounds[name].append(measure(Path(folder)))
    print(f"{f'{JOBS:,} jobs due at one instant':32} {'runs/s':>9} {'p50 lag':>9} {'p99 lag':>9}   each round's runs/s")
    for name, found in rounds.items():
        middle = median_of(found)
        each = ", ".join(f"{one.per_second:,.0f}" for one in found)
        print(f"{name:32} {middle.per_second:9,.0f} {middle.p50_s:8.2f}s {middle.p99_s:8.2f}s   {each}")
    ratio = median_of(rounds["sweephand"]).per_second / median_of(rounds["apscheduler 3"]).per_second
    print(f"{'ratio':32} {ratio:8.1f}x")


if __name__ == "__main__":
    main()
