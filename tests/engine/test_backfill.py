"""Backfills: what they choose, what they put and when, and what is left of them when somebody ends them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Succeeded
from sweephand.domain.backfill import (
    FIRES_MAX,
    Backfill,
    BackfillKey,
    BackfillState,
    Only,
    Order,
    Wanted,
)
from sweephand.domain.cost import backfill_cost
from sweephand.domain.fates import Fate
from sweephand.domain.ids import RunId, RunKey, instant_of
from sweephand.domain.ledger import FireStatus, collapse
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import ACTIVE, UNSTARTED, Run, RunState, Trigger
from sweephand.engine.backfill import (
    LOOKS_MAX,
    UNWRITTEN_FOR,
    Step,
    backfill,
    look,
    open_backfills,
    read,
    see_to_backfills,
)
from sweephand.engine.backfills import (
    KEPT_MAX,
    backfills_of,
    cancel_backfill,
    estimate,
    found_backfill,
    pause_backfill,
    resume_backfill,
    start_backfill,
)
from sweephand.engine.cancel import cancel
from sweephand.engine.complete import complete
from sweephand.engine.delete import delete
from sweephand.engine.grant import put_namespace
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.share import put_calendar
from sweephand.engine.why import why_run
from sweephand.errors import Conflict, InvalidInput, NotFound, TooMany
from sweephand.messages import Elsewhere
from sweephand.ports import Lane
from tests.engine.faults import dying_before, with_another
from tests.engine.world import NS, PERMANENT, START, TRANSIENT, Crash, Town, code_of, job, town_of

DAY: Final = timedelta(days=1)
DAILY: Final = "0 12 * * *"
"""Half a minute before the town's clock begins its day: a tick a day meets every fire."""


def days(town: Town, count: int) -> None:
    """So many days pass, each with its fire and what comes of it."""
    town.ticks_every = DAY
    town.advance(days=count)


def a_history(town: Town, *, ran: int, given_up: int, failed: int, held: int = 0, **more: Any) -> datetime:
    """A daily job, some of whose fires were given up in an outage, dropped in a pause, or failed; when it began."""
    began_at = town.clock.at
    town.put(schedule=DAILY, catchup="none", **more)
    days(town, ran)
    town.target.answers("job", *[PERMANENT] * failed)
    days(town, failed)
    town.sleep_through(days=given_up)
    wake(town)
    if held:
        town.pause()
        town.sleep_through(days=held)
        town.resume()
        wake(town)
    return began_at


def wake(town: Town) -> None:
    """The outage is over for half an hour before somebody looks; a day later all is as it was."""
    woke_at = town.clock.at
    town.clock.at += timedelta(minutes=30)
    town.audit()
    town.drive()
    town.ticked_at = woke_at
    town.advance(to=woke_at + DAY)


def wanting(since: datetime, until: datetime, **more: Any) -> Wanted:
    return Wanted(since, until, **more)


def start(town: Town, since: datetime, until: datetime | None = None, **more: Any) -> Backfill:
    return start_backfill(town.world, job(), wanting(since, until or town.clock.at, **more), actor="ann")


def now(town: Town, key: BackfillKey) -> Backfill:
    return found_backfill(town.world, key)


def made(town: Town, key: BackfillKey | None = None) -> list[Run]:
    """The runs of backfills, or of one, oldest fire first."""
    found = [run for run in town.runs() if run.trigger is Trigger.BACKFILL]
    return [run for run in found if key is None or run.backfill == key.id]


def go_on(town: Town, key: BackfillKey, *, watch: Callable[[], None] = lambda: None) -> Backfill:
    """Let everything happen that follows from itself, until the backfill needs nobody any more."""
    for _ in range(2_000):
        town.drive()
        watch()
        before = now(town, key)
        town.follow("job")
        watch()
        if now(town, key) == before:
            return before
    raise AssertionError("It goes on for ever.")


@pytest.fixture(params=[("sqlite", 330), ("moto", 5)], ids=["sqlite", "moto"])
def year(request: pytest.FixtureRequest) -> Iterator[tuple[Town, datetime]]:
    """A year of days, 30 of which nothing ran and 5 of which failed, and when it began; on moto, which would take
    minutes for it, the last weeks."""
    engine, ran = request.param
    with town_of(engine) as town:
        since = a_history(town, ran=ran, given_up=20, failed=5, held=10)
        assert len(town.ledger(since=since)) == ran + 37
        yield town, since


def test_a_year_of_days_is_made_up_for_once(year: tuple[Town, datetime]) -> None:
    town, since = year
    wanted = wanting(since, town.clock.at)
    found = estimate(town.world, job(), wanted)
    assert (found.count, found.runs, found.undone) == (30, 30, 35)
    assert (found.fates[Fate.MISSING], found.fates[Fate.FAILED]) == (30, 5)
    assert sum(found.fates.values()) == len(town.ledger(since=since))
    assert found.cost == backfill_cost(30)
    failed = estimate(town.world, job(), replace(wanted, only=Only.FAILED))
    assert (failed.count, failed.undone, failed.cost) == (5, 35, backfill_cost(5))
    assert 0 < failed.cost.dollars < found.cost.dollars < 0.01
    assert not made(town), "an estimate changes nothing"

    first = go_on(town, start(town, since).key)
    assert first.state is BackfillState.DONE
    assert (first.count, first.made, first.came_to(RunState.SUCCEEDED), first.percent) == (30, 30, 30, 100)
    assert len(made(town)) == 30
    assert {run.key.run_id[-2:] for run in made(town)} == {".1"}

    second = go_on(town, start(town, since).key)
    assert (second.state, second.count, second.made) == (BackfillState.DONE, 0, 0)
    third = go_on(town, start(town, since, only=Only.FAILED).key)
    assert (third.count, third.came_to(RunState.SUCCEEDED)) == (5, 5)
    assert estimate(town.world, job(), wanted).undone == 0
    assert not list(open_backfills(town.world))


def test_a_year_cancelled_half_way_leaves_none_queued(year: tuple[Town, datetime]) -> None:
    town, since = year
    key = start(town, since).key
    while now(town, key).came_to(RunState.SUCCEEDED) < 15:
        town.drive()
        town.follow("job")
    under_way = [run for run in made(town, key) if not run.is_terminal]
    assert under_way, "some were queued when it was cancelled"
    cancelled = cancel_backfill(town.world, key, actor="ann")
    assert (cancelled.state, cancelled.active) == (BackfillState.CANCELLED, ())
    town.drive()
    assert {town.run(run.key).state for run in under_way} == {RunState.CANCELLED}
    done = cancelled.came_to(RunState.SUCCEEDED)
    assert {run.state for run in made(town, key)} == {RunState.SUCCEEDED, RunState.CANCELLED}
    assert go_on(town, key).made == len(made(town, key)) == done + len(under_way), "and it puts no more"
    assert estimate(town.world, job(), wanting(since, town.clock.at)).undone == 35 - done
    assert go_on(town, start(town, since).key).came_to(RunState.SUCCEEDED) == 30 - done


def test_on_either_engine_what_is_missing_or_failed_is_made_up_for_once(either: Town) -> None:
    since = a_history(either, ran=3, given_up=4, failed=2)
    found = estimate(either.world, job(), wanting(since, either.clock.at))
    assert (found.count, found.undone) == (4, 6)
    for only, count in ((Only.MISSING, 4), (Only.MISSING, 0), (Only.FAILED, 2), (Only.FAILED, 0), (Only.ALL, 10)):
        done = go_on(either, start(either, since, only=only).key)
        assert (done.state, done.count, done.made) == (BackfillState.DONE, count, count), only
    assert len(made(either)) == 16
    assert {row.status for row in either.ledger(since=since)} == {FireStatus.FIRED}
    calls = Counter(call.key for call in either.calls())
    assert set(calls.values()) == {1}, "each under a key of its own, once"


def test_what_was_made_up_for_has_fired_and_keeps_the_reason_why_not_in_its_time(town: Town) -> None:
    since = a_history(town, ran=1, given_up=1, failed=0)
    missed = town.ledger(since=since)[1]
    assert missed.status is FireStatus.SKIPPED
    key = start(town, since).key
    assert town.ledger(since=since)[1].status is FireStatus.PENDING
    go_on(town, key)
    row = town.ledger(since=since)[1]
    assert (row.status, row.run_id) == (FireStatus.FIRED, f"{missed.fire_at:%Y%m%dT%H%M%SZ}.1")
    assert (row.reason or "").startswith("catchup")


def test_what_a_pause_dropped_and_what_was_before_the_job_is_made_up_for(either: Town) -> None:
    either.put(schedule=DAILY)
    before = START - 3 * DAY
    done = go_on(either, start(either, before, START + DAY).key)
    assert [run.fire_at.day for run in made(either)] == [13, 14, 15]
    assert done.came_to(RunState.SUCCEEDED) == 3
    assert go_on(either, start(either, before, START + DAY).key).made == 0


def test_an_interval_is_counted_both_ways_from_its_anchor(town: Town) -> None:
    town.put(schedule={"every": "1d"})
    assert go_on(town, start(town, START - 3 * DAY, START).key).made == 3


def test_it_works_while_the_job_is_paused(either: Town) -> None:
    since = a_history(either, ran=2, given_up=3, failed=0)
    either.pause()
    done = go_on(either, start(either, since).key)
    assert (done.state, done.came_to(RunState.SUCCEEDED)) == (BackfillState.DONE, 3)


def test_what_a_pause_holds_is_left_to_the_resume_unless_all_is_asked_for(town: Town) -> None:
    since = a_history(town, ran=2, given_up=0, failed=0)
    town.pause()
    town.sleep_through(days=2)
    wanted = wanting(since, town.clock.at)
    found = estimate(town.world, job(), wanted)
    assert (found.count, found.fates[Fate.HELD]) == (0, 2)
    assert estimate(town.world, job(), replace(wanted, only=Only.ALL)).count == 5


def test_there_are_never_more_under_way_than_may_be(either: Town) -> None:
    since = a_history(either, ran=1, given_up=7, failed=0)
    seen: list[int] = []
    key = start(either, since, max_active=2).key
    go_on(either, key, watch=lambda: seen.append(sum(not run.is_terminal for run in made(either, key))))
    assert max(seen) == 2
    assert len(made(either)) == 7


@pytest.mark.parametrize("call", ["shared.get", "runs.several", "runs.remember", "shared.put", "runs.create"])
def test_two_who_go_on_at_once_put_no_more_than_may_be(either: Town, call: str) -> None:
    since = a_history(either, ran=1, given_up=7, failed=0)
    key = start(either, since, max_active=2).key
    either.drive()
    backfill(with_another(either.world, call, lambda: backfill(either.world, key)), key)
    under_way = [run for run in made(either, key) if not run.is_terminal]
    assert (len(under_way), now(either, key).made, len(now(either, key).active)) == (2, 4, 2)
    assert go_on(either, key).came_to(RunState.SUCCEEDED) == 7


def test_the_tasks_of_its_runs_are_in_the_low_lane_too(town: Town) -> None:
    step = {"run": {"command": ["x"]}}
    tasks = [{"id": "a", **step}, {"id": "b", "needs": ["a"], **step}]
    put(town.world, NS, {"name": "job", "schedule": DAILY, "tasks": tasks}, actor="ann", expected=None)
    key = start(town, START - 3 * DAY, START).key
    for _ in range(12):
        town.drive(lanes=[Lane.LOW])
        town.follow("job")
    assert (now(town, key).state, now(town, key).came_to(RunState.SUCCEEDED)) == (BackfillState.DONE, 3)
    assert len(town.calls()) == 6


@pytest.mark.parametrize("order", list(Order))
def test_the_oldest_or_the_newest_comes_first(town: Town, order: Order) -> None:
    since = a_history(town, ran=2, given_up=250, failed=1)  # more than one page of fires
    go_on(town, start(town, since, order=order, max_active=1).key)
    begun = [instant_of(call.run.run_id) for call in town.calls() if "." in call.run.run_id]
    assert len(begun) == 250
    assert begun == sorted(begun, reverse=order is Order.NEWEST)


def test_its_runs_are_in_the_low_lane_whatever_the_jobs_priority(either: Town) -> None:
    since = a_history(either, ran=1, given_up=2, failed=0, priority="high")
    start(either, since)
    for lane in (Lane.HIGH, Lane.NORMAL):
        assert not either.stores.inbox.receive(lane, most=10, hold=timedelta(seconds=1))
    assert len(either.stores.inbox.receive(Lane.LOW, most=10, hold=timedelta(seconds=1))) == 2


def test_a_retry_of_its_runs_stays_in_the_low_lane(town: Town) -> None:
    since = a_history(town, ran=1, given_up=1, failed=0, priority="high", retry={"attempts": 2, "delays": ["1m"]})
    town.target.answers("job", TRANSIENT)
    start(town, since)
    town.drive()
    (run,) = made(town)
    assert run.state is RunState.RETRYING
    town.clock.at += timedelta(minutes=1)
    assert not town.stores.inbox.receive(Lane.HIGH, most=10, hold=timedelta(seconds=1))
    assert town.stores.inbox.receive(Lane.LOW, most=10, hold=timedelta(seconds=1))


def test_where_the_job_bounds_its_runs_the_excess_waits(town: Town) -> None:
    since = a_history(town, ran=1, given_up=3, failed=0, concurrency={"runs": 1}, overlap="skip")
    town.target.answers("job", Elsewhere())
    key = start(town, since).key
    town.drive()
    (running,) = [run for run in made(town) if run.state is RunState.RUNNING]
    waiting = [run for run in made(town) if run.state is RunState.QUEUED]
    assert {code_of(run) for run in waiting} == {ReasonCode.OVERLAP}
    assert why_run(town.world, waiting[0].key).blockers
    complete(town.world, running.key, epoch=running.epoch, outcome=Succeeded())
    town.advance(minutes=5)
    assert go_on(town, key).came_to(RunState.SUCCEEDED) == 3


def test_collapsed_it_is_one_run_over_all_of_it(either: Town) -> None:
    since = a_history(either, ran=2, given_up=5, failed=0)
    found = estimate(either.world, job(), wanting(since, either.clock.at, collapse=True))
    assert (found.count, found.runs) == (5, 1)
    facts: list[Any] = []

    def told(call: Call) -> Succeeded:
        facts.append(call.context)
        return Succeeded()

    either.target.rules["job"] = told
    either.put(schedule=DAILY, command=["do", "${run.intervalStart}", "${run.intervalEnd}"], expected=1, catchup="none")
    key = start(either, since, collapse=True).key
    held = estimate(either.world, job(), wanting(since, either.clock.at))
    assert held.fates[Fate.ACTIVE] == 5, "it stands for them while it goes on"
    done = go_on(either, key)
    (run,) = made(either)
    first, last = START.replace(minute=0, second=0) + 3 * DAY, START.replace(minute=0, second=0) + 7 * DAY
    assert (done.state, done.count, done.made) == (BackfillState.DONE, 5, 1)
    assert (run.fire_at, run.interval_start) == (last, first - DAY)
    assert facts[0]["intervalStart"] == "2027-06-17T12:00:00Z"
    assert facts[0]["intervalEnd"] == "2027-06-22T12:00:00Z"
    assert go_on(either, start(either, since).key).made == 0, "it stands for all of them"
    covered = [row for row in either.ledger(since=since) if row.run_id == run.key.run_id]
    assert len(covered) == 5
    part = either.ledger(since=first, until=first + 2 * DAY)
    assert {row.run_id for row in part} == {run.key.run_id}, "also for a part that ends before it"


def test_a_collapsed_run_that_fails_or_is_cancelled_made_up_for_nothing(town: Town) -> None:
    since = a_history(town, ran=2, given_up=3, failed=0)
    cancelled = start(town, since, collapse=True).key
    cancel_backfill(town.world, cancelled, actor="ann")
    assert estimate(town.world, job(), wanting(since, town.clock.at)).count == 3
    town.target.answers("job", PERMANENT)
    assert go_on(town, start(town, since, collapse=True).key).came_to(RunState.FAILED) == 1
    assert estimate(town.world, job(), wanting(since, town.clock.at)).undone == 3


def test_a_collapsed_stretch_does_not_end_what_the_schedule_still_owes(town: Town) -> None:
    town.put(schedule=DAILY)
    town.sleep_through(days=1)
    town.sweep()
    (late,) = town.runs()
    town.clock.at += timedelta(minutes=10)
    stretch = collapse(late.fire_at - DAY, late.fire_at + DAY, 2, RunId("20270617T120000Z.1"))
    town.world.runs.drop(job(), stretch)
    town.drive()
    assert town.run(late.key).state is RunState.SUCCEEDED


def test_cancelled_half_way_it_leaves_none_queued(either: Town) -> None:
    since = a_history(either, ran=1, given_up=6, failed=0)
    key = start(either, since, max_active=3).key
    lane = either.stores.inbox.receive(Lane.LOW, most=1, hold=timedelta(minutes=1))
    either.deliver(either.world, lane[0])
    ended = cancel_backfill(either.world, key, actor="bob", note="enough")
    assert (ended.state, ended.active) == (BackfillState.CANCELLED, ())
    assert dict(ended.ended) == {"succeeded": 1, "cancelled": 2}
    assert not [run for run in made(either) if not run.is_terminal]
    assert {str(run.reason) for run in made(either) if run.state is RunState.CANCELLED} == {
        "cancelled: its backfill was cancelled: by bob: enough"
    }
    calls = len(either.calls())
    go_on(either, key)
    assert len(either.calls()) == calls, "and nothing of it runs any more"
    assert cancel_backfill(either.world, key, actor="bob") == now(either, key), "again is the same"
    assert go_on(either, start(either, since).key).made == 5, "what it left is still missing"


def test_what_has_started_goes_on_unless_it_is_to_end_too(town: Town) -> None:
    since = a_history(town, ran=1, given_up=2, failed=0, timeout="1h")
    for running, state in ((False, RunState.SUCCEEDED), (True, RunState.CANCELLED)):
        key = start(town, since, max_active=1).key

        def ends(_call: Call, key: BackfillKey = key, running: bool = running) -> Any:
            cancelled = cancel_backfill(town.world, key, actor="bob", running=running)
            assert len(cancelled.active) == (not running)
            return Succeeded()

        town.target.answers("job", ends)
        done = go_on(town, key)
        (run,) = made(town, key)
        assert (run.state, done.is_over) == (state, True)


def test_whoever_was_about_to_put_a_run_finds_that_it_was_cancelled(either: Town) -> None:
    since = a_history(either, ran=1, given_up=2, failed=0)
    wanted = wanting(since, either.clock.at)
    with pytest.raises(Crash):
        start_backfill(dying_before(either.world, "runs.create"), job(), wanted, actor="ann")
    (key,) = [key for key, _ in open_backfills(either.world)]
    written = now(either, key)
    assert len(written.active) == 2
    assert not made(either)
    cancel_backfill(either.world, key, actor="bob")
    assert {run.state for run in made(either)} == {RunState.CANCELLED}
    late = [replace(run, state=RunState.QUEUED, rev=0, nonce="late") for run in made(either)]
    assert either.stores.runs.create(late) == [False, False]
    assert now(either, key).is_over


def test_paused_it_puts_no_more_and_resumed_it_goes_on(either: Town) -> None:
    since = a_history(either, ran=1, given_up=4, failed=0)
    key = start(either, since, max_active=1).key
    assert pause_backfill(either.world, key, actor="bob", note="later").state is BackfillState.PAUSED
    assert pause_backfill(either.world, key, actor="bob").reason == "later", "again changes nothing"
    paused = go_on(either, key)
    assert (paused.made, paused.came_to(RunState.SUCCEEDED), paused.active) == (1, 1, ())
    resumed = resume_backfill(either.world, key, actor="bob")
    assert (resumed.state, resumed.generation, len(resumed.active)) == (BackfillState.RUNNING, 1, 1)
    assert resume_backfill(either.world, key, actor="bob").generation == 1, "again changes nothing"
    assert go_on(either, key).came_to(RunState.SUCCEEDED) == 4
    for change in (pause_backfill, resume_backfill, cancel_backfill):
        with pytest.raises(Conflict, match="is done"):
            change(either.world, key, actor="bob")
    done = [deed.action for deed in either.stores.trail.deeds(NS, limit=10) if deed.action.startswith("backfill")]
    assert sorted(done) == ["backfill.create", "backfill.pause", "backfill.resume"]


def test_a_paused_one_whose_last_run_ends_is_done(town: Town) -> None:
    since = a_history(town, ran=1, given_up=1, failed=0)
    key = start(town, since).key
    pause_backfill(town.world, key, actor="bob")
    assert go_on(town, key).state is BackfillState.DONE


def test_a_deleted_job_ends_its_backfills(either: Town) -> None:
    since = a_history(either, ran=1, given_up=3, failed=0)
    key = start(either, since, max_active=1).key
    delete(either.world, job(), actor="ann")
    assert see_to_backfills(either.world) == 1
    ended = now(either, key)
    assert (ended.state, ended.reason, ended.is_over) == (BackfillState.CANCELLED, "its job was deleted", True)
    assert not [run for run in made(either) if not run.is_terminal]


def test_what_the_calendar_closes_is_not_missing(town: Town) -> None:
    put_calendar(town.world, NS, "work", {"weekdays": ["mon", "tue", "wed", "thu", "fri"]}, expected=0)
    blackout = {"from": "2027-06-07T00:00:00Z", "to": "2027-06-08T00:00:00Z", "policy": "skip"}
    town.put(schedule={"cron": DAILY, "calendar": "work", "blackouts": [blackout]})
    found = estimate(town.world, job(), wanting(START - 14 * DAY, START, only=Only.ALL))
    assert (found.count, found.fates[Fate.CLOSED]) == (9, 5), "of two weeks: two weekends, and a Monday"


def test_what_a_person_cancelled_is_neither_missing_nor_failed(town: Town) -> None:
    since = a_history(town, ran=1, given_up=0, failed=0)
    town.put(schedule=DAILY, expected=1)
    town.sleep_through(days=1)
    town.sweep()
    (run,) = [run for run in town.runs() if run.state is RunState.PLANNED]
    cancel(town.world, run.key, actor="ann")
    found = estimate(town.world, job(), wanting(since, town.clock.at))
    assert (found.undone, found.fates[Fate.CANCELLED]) == (0, 1)


def test_what_a_rerun_put_right_is_no_longer_failed(town: Town) -> None:
    since = a_history(town, ran=1, given_up=0, failed=1)
    (failed,) = [run for run in town.runs() if run.state is RunState.FAILED]
    rerun(town.world, failed.key)
    assert estimate(town.world, job(), wanting(since, town.clock.at)).fates[Fate.ACTIVE] == 1
    town.drive()
    assert estimate(town.world, job(), wanting(since, town.clock.at)).undone == 0


def test_a_rerun_that_takes_the_same_id_first_is_left_alone(either: Town) -> None:
    since = a_history(either, ran=1, given_up=0, failed=1)
    (failed,) = [run for run in either.runs() if run.state is RunState.FAILED]
    wanted = wanting(since, either.clock.at, only=Only.FAILED)
    with pytest.raises(Crash):
        start_backfill(dying_before(either.world, "runs.create"), job(), wanted, actor="ann")
    (key,) = [key for key, _ in open_backfills(either.world)]
    assert now(either, key).active == (RunId(f"{failed.key.run_id}.1"),)
    theirs = replace(failed, key=RunKey(job(), now(either, key).active[0]), trigger=Trigger.RERUN, nonce="theirs")
    assert either.stores.runs.create([theirs]) == [True]
    done = go_on(either, key) if see_to_backfills(either.world) else None
    assert done is not None
    assert done.state is BackfillState.DONE
    assert [run.key.run_id for run in made(either, key)] == [f"{failed.key.run_id}.2"]


def test_a_rerun_and_a_backfill_at_once_choose_two_ids(town: Town) -> None:
    since = a_history(town, ran=1, given_up=0, failed=1)
    (failed,) = [run for run in town.runs() if run.state is RunState.FAILED]
    with pytest.raises(Crash):
        rerun(dying_before(town.world, "runs.create"), failed.key, idempotency_key="k")
    key = start(town, since, only=Only.FAILED).key
    theirs = rerun(town.world, failed.key, idempotency_key="k")
    assert [run.key.run_id for run in made(town, key)] == [f"{failed.key.run_id}.2"]
    assert theirs.key.run_id == f"{failed.key.run_id}.1"


def test_two_over_the_same_fires_do_none_twice(town: Town) -> None:
    since = a_history(town, ran=1, given_up=6, failed=0)
    one, other = (start(town, since, max_active=1, order=order).key for order in Order)
    for _ in range(10):
        town.drive()
        town.follow("job")
    assert len(made(town)) == 6
    assert now(town, one).made + now(town, other).made == 6
    assert {now(town, key).state for key in (one, other)} == {BackfillState.DONE}


def test_older_than_the_runs_that_are_kept_the_auditors_page_decides(town: Town) -> None:
    since = a_history(town, ran=3, given_up=2, failed=0)
    town.audit()
    town.stores.database.run("DELETE FROM runs WHERE run_id < ?", ("20270618",))
    town.stores.database.run("DELETE FROM dropped", ())
    found = estimate(town.world, job(), wanting(since, town.clock.at))
    assert found.fates[Fate.EXPIRED] >= 2, "it became something, which is no longer known"
    assert found.count == 0
    assert {row.status for row in town.ledger(since=since)} == {FireStatus.EXPIRED, FireStatus.FIRED}


def test_a_window_is_half_open_and_ends_with_the_present(town: Town) -> None:
    town.put(schedule=DAILY)
    noon = START.replace(minute=0, second=0)
    found = estimate(town.world, job(), wanting(noon - 3 * DAY, noon - DAY))
    assert (found.count, found.first, found.last) == (2, noon - 3 * DAY, noon - 2 * DAY)
    assert estimate(town.world, job(), wanting(noon - DAY, START + 9 * DAY)).wanted.until == START


def test_what_cannot_be_meant_is_refused_with_what_would_be_right(town: Town) -> None:
    town.put(schedule="* * * * *")
    for since, until, path, text in (
        (START - 3_650 * DAY, START, "to", "5,256,000 fires.* 20,000 at the most"),
        (START + DAY, START + 2 * DAY, "from", "lies in the future"),
        (START, START - DAY, "to", "must be later"),
    ):
        with pytest.raises(InvalidInput, match=text) as refused:
            start_backfill(town.world, job(), wanting(since, until), actor="ann")
        assert refused.value.path == path
    for active in (0, 101):
        with pytest.raises(InvalidInput, match="1 to 100"):
            wanting(START - DAY, START, max_active=active)
    town.put("manual", schedule=None)
    with pytest.raises(Conflict, match="no schedule"):
        estimate(town.world, job("manual"), wanting(START - DAY, START))
    with pytest.raises(NotFound):
        estimate(town.world, job("nobody"), wanting(START - DAY, START))
    assert FIRES_MAX == 20_000
    assert not list(open_backfills(town.world))


def test_a_namespace_has_so_many_under_way(either: Town) -> None:
    put_namespace(either.world, NS, {"limits": {"backfills": 1}}, actor="root")
    since = a_history(either, ran=1, given_up=2, failed=0)
    key = start(either, since).key
    with pytest.raises(TooMany, match="1 backfills under way"):
        start(either, since)
    go_on(either, key)
    assert start(either, since).state is BackfillState.DONE


def test_the_same_key_within_a_day_is_the_same_backfill(either: Town) -> None:
    since = a_history(either, ran=1, given_up=2, failed=0)
    wanted = wanting(since, either.clock.at)
    one, again = (start_backfill(either.world, job(), wanted, actor="ann", idempotency_key="k") for _ in range(2))
    assert one.key == again.key
    assert len(made(either)) == 2


def test_one_that_was_noted_down_and_never_written_is_forgotten(town: Town) -> None:
    since = a_history(town, ran=1, given_up=1, failed=0)
    with pytest.raises(Crash):
        start_backfill(dying_before(town.world, "shared.put", nth=2), job(), wanting(since, town.clock.at), actor="ann")
    assert len(list(open_backfills(town.world))) == 1
    see_to_backfills(town.world)
    assert len(list(open_backfills(town.world))) == 1, "it may still come"
    town.clock.at += UNWRITTEN_FOR + timedelta(seconds=1)
    see_to_backfills(town.world)
    assert not list(open_backfills(town.world))


def test_of_those_that_are_over_the_oldest_are_forgotten(town: Town) -> None:
    town.put(schedule=DAILY)
    for n in range(KEPT_MAX + 3):
        town.clock.at += timedelta(seconds=1)
        start(town, START - 2 * DAY - timedelta(minutes=n), START - DAY - timedelta(hours=1), only=Only.FAILED)
    found = backfills_of(town.world, job())
    assert len(found) == KEPT_MAX
    assert found == sorted(found, key=lambda one: one.created_at, reverse=True)
    assert found[0].created_at == town.clock.at


def test_the_machine_waits_while_it_goes_on_and_then_stops(town: Town) -> None:
    since = a_history(town, ran=1, given_up=2, failed=0)
    started: list[tuple[BackfillKey, int]] = []

    class Fillers:
        def start(self, backfill: BackfillKey, *, generation: int) -> None:
            started.append((backfill, generation))

    world = replace(town.world, fillers=Fillers())
    key = start_backfill(world, job(), wanting(since, town.clock.at, max_active=1), actor="ann").key
    assert started == [(key, 0)]
    assert look(world, key, generation=0, looks=7) == look(world, key, generation=0, looks=7)
    looked = look(world, key, generation=0, looks=7)
    assert (looked.step, looked.seconds, looked.looks) == (Step.WAIT, 300, 8)
    assert look(world, key, generation=0, looks=LOOKS_MAX).step is Step.STOP, "it hands on"
    assert started[1:] == [(key, 1)]
    assert look(world, key, generation=0, looks=1).step is Step.STOP, "of an older generation"
    assert look(world, key, generation=1, looks=1).step is Step.WAIT
    go_on(town, key)
    assert look(world, key, generation=1, looks=1).step is Step.STOP
    assert look(world, replace(key, id="nobody"), generation=0, looks=0).step is Step.STOP


def test_its_document_reads_back_as_it_was_written(town: Town) -> None:
    since = a_history(town, ran=1, given_up=2, failed=0)
    started = start(town, since, max_active=1, order=Order.NEWEST)
    assert Backfill.decode(started.key, started.encode()) == started
    assert BackfillKey.of(str(started.key)) == started.key
    assert read(town.world, replace(started.key, id="nobody")) is None
    assert backfill(town.world, replace(started.key, id="nobody")).state is None
    assert not {run.state for run in made(town)} & (ACTIVE - {RunState.RUNNING})
    assert {run.state for run in made(town)} <= UNSTARTED
