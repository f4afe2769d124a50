"""The loops of one process: they start fast, keep time, do not stand in each other's way, and stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.backfill import BackfillState, Wanted
from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey
from sweephand.domain.run import Run, RunState
from sweephand.embedded import PACE, Stores, open_stores
from sweephand.engine.backfills import backfills_of, found_backfill, start_backfill
from sweephand.engine.cancel import cancel
from sweephand.engine.ledger import ledger
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import Conflict, Defect, InvalidInput, Unavailable
from sweephand.local import Runtime
from sweephand.local.housekeeping import KEEP_FILES, forget_files
from sweephand.messages import SweepShards
from sweephand.operators import Operators
from sweephand.ports import Lane, Letter
from tests.engine.faults import dying_before
from tests.engine.world import Crash
from tests.local.waiting import until
from tests.operators.calls import command

DEFAULT = Namespace("default")
CLOCK = SystemClock()
LEASE = timedelta(milliseconds=600)
SHORT = replace(PACE, lease=LEASE)


class Tasks:
    """The target: what each job does, by its name; `slow` ends when it is released, any other at once."""

    def __init__(self, **functions: Callable[[Call], Any]) -> None:
        self._functions = functions
        self.calls: list[Call] = []
        self.cancelled: list[Call] = []
        self.released = threading.Event()

    def execute(self, call: Call) -> Outcome:
        self.calls.append(call)
        function = self._functions.get(call.run.key.job.name)
        if call.run.key.job.name == "slow":
            self.released.wait(30)
        return Succeeded(function(call) if function else None)

    def cancel(self, call: Call) -> None:
        self.cancelled.append(call)

    def names(self) -> list[str]:
        return [call.run.key.job.name for call in self.calls]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = open_stores(tmp_path / "test.db", clock=CLOCK)
    yield opened
    opened.close()


def make(stores: Stores, tasks: Tasks, **options: Any) -> Runtime:
    return Runtime(stores, target=tasks, clock=CLOCK, dice=SystemDice(), **options)


def apply(runtime: Runtime, name: str, **fields: Any) -> JobKey:
    return put(
        runtime.world, DEFAULT, {"name": name, "run": {"command": ["x"]}, **fields}, actor="test", expected=None
    ).key


def start(runtime: Runtime, name: str) -> RunKey:
    return trigger(runtime.world, JobKey(DEFAULT, JobName(name))).key


def read(runtime: Runtime, key: RunKey) -> Run:
    run = runtime.world.runs.get(key)
    assert run is not None
    return run


def await_state(runtime: Runtime, key: RunKey, state: RunState, within_s: float = 10) -> None:
    until(lambda: read(runtime, key).state is state, within_s=within_s, what=f"{key} is {state}")


@contextmanager
def running(stores: Stores, tasks: Tasks, **options: Any) -> Iterator[Runtime]:
    """A runtime; when the block ends, its blocked tasks do."""
    with make(stores, tasks, **options) as runtime:
        try:
            yield runtime
        finally:
            tasks.released.set()


def test_it_leaves_no_thread_behind(stores: Stores) -> None:
    before = set(threading.enumerate())
    runtime = make(stores, Tasks())
    runtime.start()
    assert set(threading.enumerate()) > before
    assert runtime.stop()
    assert set(threading.enumerate()) <= before


def test_it_starts_once(stores: Stores) -> None:
    with make(stores, Tasks()) as runtime, pytest.raises(Conflict):
        runtime.start()
    assert make(stores, Tasks()).stop()
    with pytest.raises(InvalidInput):
        make(stores, Tasks(), workers=0)


def test_a_job_of_every_second_fires_every_second_and_on_time(stores: Stores) -> None:
    tasks = Tasks()
    with make(stores, tasks) as runtime:
        key = apply(runtime, "second", schedule="* * * * * *")
        until(lambda: len(tasks.calls) >= 6, within_s=20, what="six fires")
        fires = [call.run.fire_at for call in tasks.calls]
    assert [later - earlier for earlier, later in pairwise(fires)] == [timedelta(seconds=1)] * 5
    rows = ledger(runtime.world, key, since=fires[1], until=fires[5])
    assert [str(row.status) for row in rows] == ["fired"] * 4
    skews = sorted(row.skew_ms for row in rows if row.skew_ms is not None)
    assert skews[0] >= 0
    assert skews[len(skews) // 2] < 250
    assert runtime.defects == 0


def test_a_trigger_runs_at_once(stores: Stores) -> None:
    with make(stores, Tasks()) as runtime:
        apply(runtime, "job")
        key = start(runtime, "job")
        await_state(runtime, key, RunState.SUCCEEDED)
        run = read(runtime, key)
        assert run.started_at is not None
        assert run.started_at - run.created_at < timedelta(seconds=1)


def test_slow_tasks_do_not_hold_up_others(stores: Stores) -> None:
    tasks = Tasks()
    with running(stores, tasks, workers=4) as runtime:
        apply(runtime, "slow")
        apply(runtime, "fast")
        for _ in range(3):
            start(runtime, "slow")
        until(lambda: tasks.names().count("slow") == 3, within_s=10, what="three slow tasks")
        for _ in range(50):
            start(runtime, "fast")
        until(lambda: tasks.names().count("fast") == 50, within_s=10, what="fifty fast tasks beside them")
        assert runtime.defects == 0


def test_the_high_lane_goes_first(stores: Stores) -> None:
    tasks = Tasks()
    runtime = make(stores, tasks, workers=1)
    for name in ("low", "normal", "high"):
        apply(runtime, name, priority=name)
        start(runtime, name)
    with runtime:
        until(lambda: len(tasks.calls) == 3, within_s=10, what="three tasks")
    assert tasks.names() == ["high", "normal", "low"]


def test_stopping_lets_what_runs_finish(stores: Stores) -> None:
    going, finished = threading.Event(), threading.Event()

    def work(_call: Call) -> str:
        going.set()
        finished.wait(10)
        return "done"

    runtime = make(stores, Tasks(job=work))
    runtime.start()
    apply(runtime, "job")
    key = start(runtime, "job")
    assert going.wait(10)
    stopping = threading.Thread(target=runtime.stop)
    stopping.start()
    finished.set()
    stopping.join(10)
    assert read(runtime, key).output == "done"
    assert not stores.database.rows("SELECT * FROM messages")


def test_stopping_has_a_limit_and_what_is_left_runs_again(stores: Stores) -> None:
    first = Tasks()
    runtime = make(stores, first, pace=SHORT)
    runtime.start()
    apply(runtime, "slow")
    key = start(runtime, "slow")
    until(lambda: first.calls, within_s=10, what="the first attempt")
    assert not runtime.stop(timedelta(milliseconds=50))
    second = Tasks()
    second.released.set()
    with make(stores, second, pace=SHORT) as successor:
        await_state(successor, key, RunState.SUCCEEDED)
    first.released.set()
    assert [call.run.attempt for call in second.calls] == [2]
    assert first.calls[0].idempotency_key == second.calls[0].idempotency_key


def test_a_lease_is_renewed_for_as_long_as_its_attempt_runs(stores: Stores) -> None:
    tasks = Tasks()
    with running(stores, tasks, pace=SHORT) as runtime:
        apply(runtime, "slow")
        key = start(runtime, "slow")
        until(lambda: tasks.calls, within_s=10, what="the attempt")
        claimed = read(runtime, key)
        until(lambda: _lease_of(runtime, key) > _lease_until(claimed) + 3 * LEASE, within_s=10, what="renewals")
        assert (read(runtime, key).attempt, len(tasks.calls)) == (1, 1)
        # Its own message stays away as long, and no other is needed.
        assert stores.database.rows("SELECT receives FROM messages") == [(1,)]


def test_how_far_a_task_says_that_it_is_is_seen_while_it_runs(stores: Stores, tmp_path: Path) -> None:
    operators = Operators(tmp_path / "work")
    line = 'echo 42 > "$SWEEPHAND_PROGRESS"; until test -e "$0"; do :; done'
    with Runtime(stores, target=operators, clock=CLOCK, dice=SystemDice(), pace=SHORT, workers=1) as runtime:
        document = {"name": "far", "run": {"command": ["sh", "-c", line, str(tmp_path / "go")]}}
        put(runtime.world, DEFAULT, document, actor="test", expected=None)
        key = trigger(runtime.world, JobKey(DEFAULT, JobName("far"))).key
        until(lambda: read(runtime, key).progress == 42, within_s=10, what="progress")
        assert read(runtime, key).state is RunState.RUNNING
        (tmp_path / "go").touch()
        until(lambda: read(runtime, key).is_terminal, within_s=10, what="its end")


def _lease_until(run: Run) -> datetime:
    assert run.lease_until is not None
    return run.lease_until


def _lease_of(runtime: Runtime, key: RunKey) -> datetime:
    return _lease_until(read(runtime, key))


def test_a_target_is_told_when_its_run_is_cancelled(stores: Stores) -> None:
    tasks = Tasks()
    with running(stores, tasks) as runtime:
        apply(runtime, "slow")
        key = start(runtime, "slow")
        until(lambda: tasks.calls, within_s=10, what="the attempt")
        cancel(runtime.world, key, actor="test")
        until(lambda: tasks.cancelled, within_s=10, what="the target's cancel")
        assert tasks.cancelled == tasks.calls
    assert read(runtime, key).state is RunState.CANCELLED


def test_an_attempt_that_outlives_its_timeout_is_told_and_its_lease_ends(stores: Stores) -> None:
    pace = replace(SHORT, lease_grace=timedelta(0))
    tasks = Tasks()
    with running(stores, tasks, pace=pace) as runtime:
        apply(runtime, "slow", timeout=1, guarantee="at-most-once")
        key = start(runtime, "slow")
        until(lambda: tasks.cancelled, within_s=10, what="the target's cancel")
        await_state(runtime, key, RunState.FAILED)
        assert str(read(runtime, key).reason).startswith("lost")


def test_a_target_that_raises_has_failed(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    with make(stores, Tasks(job=lambda call: 1 // 0)) as runtime:
        apply(runtime, "job")
        key = start(runtime, "job")
        await_state(runtime, key, RunState.FAILED)
    failure = read(runtime, key).failure
    assert failure is not None
    assert failure.error == "ZeroDivisionError"
    assert runtime.defects == 0


class Faulty:
    """Part of a store that goes wrong: `fault` is called with each call's name and arguments first."""

    def __init__(self, part: Any, fault: Callable[..., None]) -> None:
        self._part = part
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self._fault(name, *arguments)
            return getattr(self._part, name)(*arguments, **options)

        return call


def test_a_defect_in_one_delivery_is_logged_and_counted_and_the_others_go_on(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    broken = threading.Event()

    def fault(name: str, *arguments: Any) -> None:
        if name == "head" and arguments[0].name == "broken" and broken.is_set():
            raise Defect("an invariant is broken")

    tasks = Tasks()
    with make(replace(stores, jobs=Faulty(stores.jobs, fault)), tasks, workers=1) as runtime:
        apply(runtime, "broken", schedule={"every": "1s"})
        apply(runtime, "sound")
        broken.set()
        until(lambda: runtime.defects >= 2, within_s=10, what="the defects")
        stores.queue.send([Letter(SweepShards((1,)))])  # nothing that a worker can do
        key = start(runtime, "sound")
        await_state(runtime, key, RunState.SUCCEEDED)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert {record.name for record in errors} == {"sweephand.local"}
    assert all(record.exc_info is not None for record in errors)


def test_a_message_for_the_sweepers_does_not_keep_the_dispatcher_busy(stores: Stores) -> None:
    with make(stores, Tasks()) as runtime:
        stores.queue.send([Letter(SweepShards((1,)), lane=Lane.SWEEP)])
        before = stores.database.commits
        apply(runtime, "job")
        await_state(runtime, start(runtime, "job"), RunState.SUCCEEDED)
        assert stores.database.commits - before < 50


def test_an_outcome_that_cannot_be_stored_is_stored_later(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    refusals = iter(range(8))

    def fault(name: str, *arguments: Any) -> None:
        if name == "move" and arguments[1].state is RunState.SUCCEEDED and next(refusals, None) is not None:
            raise Unavailable("not now")

    tasks = Tasks()
    with make(replace(stores, runs=Faulty(stores.runs, fault)), tasks) as runtime:
        apply(runtime, "job")
        await_state(runtime, start(runtime, "job"), RunState.SUCCEEDED)
    assert len(tasks.calls) == 1
    assert runtime.defects == 0
    assert "not now" in caplog.text


def test_an_unavailable_store_is_waited_for(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    refusals = iter(range(2))

    def fault(name: str, *_arguments: Any) -> None:
        if name == "next_visible_at" and next(refusals, None) is not None:
            raise Unavailable("not now")

    bell: Any = Faulty(stores.bell, fault)
    with make(replace(stores, bell=bell), Tasks()) as runtime:
        apply(runtime, "job")
        await_state(runtime, start(runtime, "job"), RunState.SUCCEEDED)
    assert runtime.defects == 0
    assert "dispatch: not now" in caplog.text


def test_the_status_view_follows_and_goes_on_after_a_restart(stores: Stores) -> None:
    def shown(runtime: Runtime) -> list[RunState]:
        now = CLOCK.now()
        rows = runtime.world.views.rows(DEFAULT, since=now - timedelta(hours=1), until=now + timedelta(hours=1))
        return [row.state for row in rows]

    def await_shown(runtime: Runtime, count: int) -> None:
        until(lambda: shown(runtime) == [RunState.SUCCEEDED] * count, within_s=10, what="the runs in the view")

    for count in (1, 2):
        with make(stores, Tasks()) as runtime:
            if count == 1:
                apply(runtime, "job")
            start(runtime, "job")
            await_shown(runtime, count)


def test_a_backfill_is_brought_to_its_end(stores: Stores) -> None:
    tasks = Tasks()
    with running(stores, tasks) as runtime:
        key = apply(runtime, "daily", schedule="0 0 * * *")
        now = CLOCK.now()
        wanted = Wanted(now - timedelta(days=12), now - timedelta(days=2), max_active=3)
        own = start_backfill(runtime.world, key, wanted, actor="test").key
        until(
            lambda: found_backfill(runtime.world, own).state is BackfillState.DONE,
            within_s=30,
            what="the backfill's end",
        )
    ended = found_backfill(runtime.world, own)
    assert (ended.count, dict(ended.ended), len(tasks.calls)) == (10, {"succeeded": 10}, 10)
    assert runtime.defects == 0


def test_a_backfill_that_a_dead_process_left_is_gone_on_with(stores: Stores) -> None:
    first = make(stores, Tasks())
    key = apply(first, "daily", schedule="0 0 * * *")
    now = CLOCK.now()
    wanted = Wanted(now - timedelta(days=4), now - timedelta(days=2), max_active=1)
    with pytest.raises(Crash):
        start_backfill(dying_before(first.world, "runs.create"), key, wanted, actor="test")
    tasks = Tasks()
    with running(stores, tasks) as runtime:
        (own,) = [one.key for one in backfills_of(runtime.world, key)]
        until(lambda: found_backfill(runtime.world, own).state is BackfillState.DONE, within_s=30, what="its end")
    assert len(tasks.calls) == 2


def test_what_nobody_goes_on_with_is_removed_with_old_logs(tmp_path: Path) -> None:
    clock, work = SystemClock(), tmp_path / "work"
    with closing(open_stores(tmp_path / "test.db", clock=clock)) as stores:
        operators = Operators(work)
        operators.execute(command('echo 1 > "$SWEEPHAND_CHECKPOINT"; exit 1', shell=True))
        forget_files(stores, operators, now=clock.now())
        assert list(work.iterdir())
        forget_files(stores, operators, now=clock.now() + KEEP_FILES + timedelta(minutes=1))
        assert not list(work.iterdir())
