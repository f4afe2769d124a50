"""`kill -9` in the middle of thousands of runs, and several processes on one file: nothing lost, nothing doubled."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

from sweephand.calls import Call, Outcome
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.ledger import FireStatus
from sweephand.domain.run import Run, RunState
from sweephand.embedded import PACE, Stores, open_stores
from sweephand.engine.ledger import ledger
from sweephand.engine.put import put
from sweephand.local import Runtime
from sweephand.ports import World
from sweephand.testing import VirtualClock
from tests.local.waiting import until

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = Namespace("default")
RECORD_COMPLETIONS = (
    "CREATE TABLE completions (run TEXT NOT NULL)",
    """
    CREATE TRIGGER completed AFTER UPDATE OF state ON runs WHEN new.state = 'succeeded'
    BEGIN INSERT INTO completions VALUES (new.job || '/' || new.run_id); END
    """,
)
"""In the same transaction as the completion, so that a kill cannot come between them."""


class Shop:
    """A file with one-shot jobs that are all due at one instant, and the processes that run them."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.file = folder / "shop.db"
        self._effects = folder / "effects"
        self.jobs = [JobKey(DEFAULT, JobName(f"job{number}")) for number in range(jobs)]
        # Put by a clock that is behind, so that all of them are due when the first process starts.
        self.due_at = SystemClock().now().replace(microsecond=0)
        self._put_all(VirtualClock(self.due_at - timedelta(seconds=10)))
        self.stores = open_stores(self.file, clock=SystemClock())
        self.world = _idle_world(self.stores, SystemClock())
        for statement in RECORD_COMPLETIONS:
            self.stores.database.run(statement, ())

    def _put_all(self, clock: VirtualClock) -> None:
        stores = open_stores(self.file, clock=clock)
        world = _idle_world(stores, clock)

        def put_one(key: JobKey) -> None:
            schedule = {"at": self.due_at.isoformat()}
            definition = {"name": key.name, "schedule": schedule, "run": {"command": ["work"]}}
            put(world, DEFAULT, definition, actor="test", expected=None)

        with ThreadPoolExecutor(64) as many:
            list(many.map(put_one, self.jobs))
        stores.close()

    @contextmanager
    def process(self) -> Iterator[subprocess.Popen[bytes]]:
        """A process that runs what is due; it ends when its standard input does."""
        command = [sys.executable, "-m", "tests.local.worker"]
        arguments = [self.file, self._effects]
        with subprocess.Popen([*command, *map(str, arguments)], cwd=ROOT, stdin=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                if process.stdin is not None:
                    process.stdin.close()
                process.wait(20)

    def effects(self) -> list[tuple[str, int, int]]:
        """Every execution: its idempotency key, attempt and process."""
        lines = self._effects.read_text().splitlines() if self._effects.exists() else []
        return [(key, int(attempt), int(pid)) for key, attempt, pid in map(str.split, lines)]

    def await_effects(self, count: int) -> None:
        until(lambda: len(self.effects()) >= count, within_s=20, what=f"{count} executions")

    def completions(self) -> list[str]:
        """The run of every completion that the store accepted."""
        return [key for (key,) in self.stores.database.rows("SELECT run FROM completions")]

    def runs(self) -> list[Run]:
        return [run for job in self.jobs for run in self.stores.runs.of_job(job, limit=10)]

    def keys(self, state: RunState) -> set[str]:
        return {run.idempotency_key("main") for run in self.runs() if run.state is state}

    def succeeded(self) -> int:
        count: int = self.stores.database.rows("SELECT count(*) FROM runs WHERE state = 'succeeded'")[0][0]
        return count

    def assert_each_job_ran_once(self) -> None:
        """One run for each job, which succeeded, and nothing missing or extra."""
        runs = self.runs()
        assert [run.key.job for run in runs] == self.jobs
        assert {run.state for run in runs} == {RunState.SUCCEEDED}
        assert {run.fire_at for run in runs} == {self.due_at}
        since, upto = self.due_at - timedelta(hours=1), self.due_at + timedelta(hours=1)
        rows = [row for job in self.jobs for row in ledger(self.world, job, since=since, until=upto)]
        assert [row.status for row in rows] == [FireStatus.FIRED] * len(self.jobs)
        assert sorted(self.completions()) == sorted(str(run.key) for run in runs)


def _idle_world(stores: Stores, clock: VirtualClock | SystemClock) -> World:
    return Runtime(stores, target=_Nothing(), clock=clock, dice=SystemDice(), pace=PACE).world


class _Nothing:
    def execute(self, call: Call) -> Outcome:
        raise AssertionError("this process runs nothing")


def test_killed_three_times_in_the_middle_of_2000_runs_nothing_is_lost_and_nothing_doubled(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 2_000)
    chance = Random(7)
    running_when_killed: set[str] = set()
    for enough in (500, 1_000, 1_400):
        threshold = enough + chance.randrange(200)
        with shop.process() as process:
            shop.await_effects(threshold)
            process.kill()
            process.wait(10)
        assert shop.succeeded() < 2_000
        running_when_killed |= shop.keys(RunState.RUNNING)
    with shop.process() as last:
        until(lambda: shop.succeeded() >= 2_000, within_s=30, what="the end of all runs")
    assert last.returncode == 0

    shop.assert_each_job_ran_once()
    executions = Counter(key for key, _, _ in shop.effects())
    again = {key for key, count in executions.items() if count > 1}
    assert running_when_killed
    assert len(executions) == 2_000
    assert again <= running_when_killed
    assert len(set(shop.effects())) == len(shop.effects())
    for run in shop.runs():
        # Who was running when killed was lost, and nobody else.
        assert (run.lost, run.attempt) == (run.attempt - 1, run.lost + 1)
        assert (run.lost > 0) == (run.idempotency_key("main") in running_when_killed)


def test_two_processes_on_one_file_share_500_runs_with_none_doubled(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 500)
    with shop.process() as one, shop.process() as other:
        until(lambda: shop.succeeded() >= 500, within_s=30, what="the end of all runs")
    assert (one.returncode, other.returncode) == (0, 0)
    shop.assert_each_job_ran_once()
    effects = shop.effects()
    assert sorted(key for key, _, _ in effects) == sorted(run.idempotency_key("main") for run in shop.runs())
    assert {attempt for _, attempt, _ in effects} == {1}
    assert len({pid for _, _, pid in effects}) == 2
