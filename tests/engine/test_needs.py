"""Fires that wait for other jobs: each starts once what it waits for has succeeded, and not before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.complete import complete
from sweephand.engine.delete import delete
from sweephand.engine.follow import follow
from sweephand.engine.lookup import present_job
from sweephand.engine.needs import unmet
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.restart import restart_of
from sweephand.engine.share import put_calendar
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_job, why_run
from sweephand.engine.wire import dependents_of, wired_to
from sweephand.errors import InvalidInput
from sweephand.messages import Elsewhere
from tests.engine.faults import dying_before, with_another
from tests.engine.world import NS, PERMANENT, Town, at, code_of, job, run_key

A_SECOND = timedelta(seconds=1)


def waiting(town: Town, *upstreams: str, cron: str = "6 12 * * *", name: str = "job", **needs: Any) -> None:
    """A job whose fires wait for these."""
    said: Any = {"jobs": list(upstreams), **needs} if needs else list(upstreams)
    town.put(name, {"cron": cron, "needs": said})


def at_its_fire(town: Town, clock: str = "12:07") -> Run:
    """The job's only run, some time after its fire."""
    town.advance(to=at(clock))
    (run,) = [one for one in town.runs() if one.is_scheduled and one.fire_at <= town.clock.at]
    return run


def redone(town: Town, clock: str, name: str = "up") -> Run:
    """The fire of a job again, which succeeds; nobody has followed it."""
    again = rerun(town.world, run_key(at(clock), name))
    town.drive()
    run = town.run(again.key)
    assert run.state is RunState.SUCCEEDED
    return run


# The last fire before.


def test_it_waits_until_the_last_fire_of_the_other_has_succeeded(either: Town) -> None:
    either.target.answers("up", PERMANENT)
    either.put("up", "4 12 * * *")
    waiting(either, "up")
    run = at_its_fire(either)
    assert (run.state, str(run.reason)) == (RunState.QUEUED, "needs: up of 2027-06-15T12:04:00Z failed")
    assert either.calls() == []
    told = why_run(either.world, run.key)
    assert told.summary == "It waits: needs: up of 2027-06-15T12:04:00Z failed."
    assert "mark that as done" in told.blockers[0].remedy
    assert why_job(either.world, job()).blockers == told.blockers

    assert follow(either.world, "batch", [redone(either, "12:04")]) == 0
    either.drive()
    ended = either.run(run.key)
    assert (ended.state, ended.trigger, ended.started_at) == (RunState.SUCCEEDED, Trigger.SCHEDULE, either.clock.at)


def test_where_nobody_follows_the_success_it_is_noticed_within_a_minute(either: Town) -> None:
    either.target.answers("up", PERMANENT)
    either.put("up", "4 12 * * *")
    waiting(either, "up")
    run = at_its_fire(either)
    redone(either, "12:04")
    either.drive()
    assert either.run(run.key).state is RunState.QUEUED
    either.advance(seconds=61)
    assert either.run(run.key).state is RunState.SUCCEEDED


def test_it_starts_in_time_where_all_has_been_done(either: Town) -> None:
    either.put("a", "4 12 * * *")
    either.put("b", "*/2 * * * *")
    waiting(either, "a", "b")
    run = at_its_fire(either, "12:06:30")
    assert run.state is RunState.SUCCEEDED
    (row,) = [one for one in either.ledger() if one.run_id == run.key.run_id]
    assert row.skew_ms is not None
    assert row.skew_ms < 60_000, "it waited for the run of b at the same moment"


def test_of_several_each_must_have_succeeded(town: Town) -> None:
    town.target.answers("a", PERMANENT)
    town.target.answers("b", PERMANENT)
    town.put("a", "4 12 * * *")
    town.put("b", "5 12 * * *")
    waiting(town, "a", "b")
    run = at_its_fire(town)
    assert str(run.reason).count("failed") == 2
    follow(town.world, "one", [redone(town, "12:04", "a")])
    town.drive()
    assert town.run(run.key).state is RunState.QUEUED
    follow(town.world, "two", [redone(town, "12:05", "b")])
    town.drive()
    assert town.run(run.key).state is RunState.SUCCEEDED


def test_a_fire_that_nobody_has_planned_yet_is_waited_for(hamlet: Town) -> None:
    """By the runs that are there, the last one has succeeded; by the schedule, there is one more."""
    hamlet.put("up", "2,5 12 * * *")
    waiting(hamlet, "up")
    hamlet.advance(to=at("12:03"))
    hamlet.sleep_through(minutes=3)
    assert hamlet.states("up") == {"12:02": "succeeded"}
    assert missing(hamlet) == "needs: up of 2027-06-15T12:05:00Z has not ended yet"
    hamlet.sleep_through(minutes=30)
    assert missing(hamlet) == "needs: up of 2027-06-15T12:05:00Z has no run yet"
    hamlet.advance(minutes=2)
    assert hamlet.states("up")["12:05"] == "succeeded"
    assert missing(hamlet) == ""


def missing(town: Town, clock: str = "12:06") -> str:
    """What the job's fire of this time would wait for."""
    fire_at = at(clock)
    run = Run(run_key(fire_at), fire_at, fire_at, created_at=fire_at, changed_at=fire_at)
    return str(unmet(town.world, run, present_job(town.world, job())) or "")


@pytest.mark.parametrize("why", ["calendar", "blackout"])
def test_fires_that_were_skipped_are_passed_over(town: Town, why: str) -> None:
    town.put("up", "2 12 * * *")
    town.advance(to=at("12:03"))
    if why == "calendar":
        put_calendar(town.world, NS, "sundays", {"weekdays": ["sun"]}, expected=0)
        town.put("up", {"cron": "4 12 * * *", "calendar": "sundays"}, expected=1)
    else:
        closed = {"from": at("12:03").isoformat(), "to": at("12:05").isoformat(), "policy": "skip"}
        town.put("up", {"cron": "4 12 * * *", "blackouts": [closed]}, expected=1)
    waiting(town, "up")
    run = at_its_fire(town)
    assert town.states("up") == {"12:02": "succeeded", "12:04": "skipped"}
    assert run.state is RunState.SUCCEEDED, run.reason


def test_of_a_fire_that_another_one_was_in_the_way_of_that_one_is_waited_for(town: Town) -> None:
    town.target.answers("up", Elsewhere())
    town.put("up", "3,4 12 * * *", overlap="skip")
    waiting(town, "up")
    run = at_its_fire(town)
    assert town.states("up") == {"12:03": "running", "12:04": "skipped"}
    assert str(run.reason) == "needs: up of 2027-06-15T12:03:00Z has not ended yet"
    complete(town.world, run_key(at("12:03"), "up"), epoch=1, outcome=Succeeded())
    town.follow("up")
    town.drive()
    assert town.run(run.key).state is RunState.SUCCEEDED


def test_many_that_were_skipped_are_looked_behind(town: Town) -> None:
    town.put("up", "2 12 * * *")
    town.advance(to=at("12:03"))
    closed = {"from": at("12:03").isoformat(), "to": at("12:06").isoformat(), "policy": "skip"}
    every_second = {"every": "1s", "startAt": at("12:03").isoformat(), "blackouts": [closed]}
    town.put("up", every_second, expected=1, catchup="all")
    waiting(town, "up", cron="5 12 * * *")
    town.advance(to=at("12:05:30"))
    assert len([run for run in town.runs("up") if run.state is RunState.SKIPPED]) > 100
    assert town.run(at("12:05")).state is RunState.SUCCEEDED


def test_of_a_paused_job_the_resume_decides(town: Town) -> None:
    town.put("up", "2,4 12 * * *")
    waiting(town, "up")
    town.advance(to=at("12:03"))
    town.pause("up")
    run = at_its_fire(town)
    assert str(run.reason) == "needs: up of 2027-06-15T12:04:00Z is held by a pause"
    town.resume("up", "none")
    town.advance(minutes=2)
    assert town.run(run.key).state is RunState.SUCCEEDED, "its fire was given up, and the one before has succeeded"


def test_a_success_that_somebody_said_by_hand_counts(either: Town) -> None:
    either.target.answers("up", PERMANENT)
    either.put("up", "4 12 * * *")
    waiting(either, "up")
    run = at_its_fire(either)
    old = either.run(at("12:04"), "up")
    asked = restart_of(either.world, old, "failed", marks={"main": "succeeded"}, actor="ann")
    done = rerun(either.world, old.key, start=asked.start, marks=asked.marks)
    follow(either.world, "batch", [done])
    either.drive()
    assert either.run(run.key).state is RunState.SUCCEEDED


def test_what_was_triggered_is_of_no_fire(town: Town) -> None:
    town.target.answers("up", PERMANENT)
    town.put("up", "4 12 * * *")
    waiting(town, "up")
    town.advance(to=at("12:05"))
    trigger(town.world, job("up"))
    run = at_its_fire(town)
    assert town.runs("up")[-1].state is RunState.SUCCEEDED
    assert str(run.reason) == "needs: up of 2027-06-15T12:04:00Z failed"


# The same day.


def test_of_the_same_day_any_success_is_enough(either: Town) -> None:
    either.put("up", None)
    waiting(either, "up", window="sameDay")
    run = at_its_fire(either)
    assert str(run.reason) == "needs: up has not succeeded on 2027-06-15"
    either.target.answers("up", PERMANENT)
    for state in ("failed", "succeeded"):
        key = trigger(either.world, job("up")).key
        either.drive()
        assert either.run(key).state == state
        follow(either.world, state, [either.run(key)])
        either.drive()
        waits = either.run(run.key)
        assert waits.state == ("queued" if state == "failed" else "succeeded")


@pytest.mark.parametrize(("zone", "starts"), [("Pacific/Kiritimati", False), ("America/Los_Angeles", True)])
def test_a_day_is_that_of_a_zone(town: Town, zone: str, starts: bool) -> None:
    """What succeeded at 09:00 UTC is of the day before 12:06 UTC where clocks are 14 hours ahead."""
    town.clock.at = at("09:00")
    town.put("up", None)
    trigger(town.world, job("up"))
    town.drive()
    town.clock.at = town.ticked_at = at("12:05")
    waiting(town, "up", window="sameDay", timezone=zone)
    run = at_its_fire(town)
    assert (run.state is RunState.SUCCEEDED) is starts, run.reason


# An end to it.


def test_it_does_not_wait_for_ever(either: Town) -> None:
    waiting(either, "up", timeout="10m")
    run = at_its_fire(either)
    assert str(run.reason) == "needs: there is no job up"
    either.advance(to=at("12:15:50"))
    assert either.run(run.key).state is RunState.QUEUED
    either.advance(to=at("12:16:10"))
    ended = either.run(run.key)
    assert (ended.state, str(ended.reason)) == (
        RunState.SKIPPED,
        "needs: it did not come in time: there is no job up",
    )
    (row,) = [one for one in either.ledger() if one.run_id == run.key.run_id]
    assert (row.status, row.reason) == ("skipped", str(ended.reason))


def test_a_start_deadline_ends_it_sooner(town: Town) -> None:
    town.put("job", {"cron": "6 12 * * *", "needs": ["up"]}, startDeadline="5m")
    run = at_its_fire(town)
    town.advance(to=at("12:13"))
    ended = town.run(run.key)
    assert code_of(ended) is ReasonCode.START_DEADLINE
    assert str(ended.reason).endswith("it waited: there is no job up")


def test_a_fire_that_comes_late_starts_where_all_has_been_done(town: Town) -> None:
    """Its time is over, but there is nothing to wait for."""
    town.put("up", "2 12 * * *")
    waiting(town, "up", timeout="1m")
    town.advance(to=at("12:03"))
    town.sleep_through(minutes=20)
    town.advance(minutes=5)
    assert town.run(at("12:06")).state is RunState.SUCCEEDED


def test_an_edit_lets_it_go(town: Town) -> None:
    waiting(town, "up")
    run = at_its_fire(town)
    town.put("job", "6 12 * * *", expected=1)
    town.advance(minutes=2)
    assert town.run(run.key).state is RunState.SUCCEEDED


# What waits, and what does not.


def test_only_fires_of_the_schedule_wait(town: Town) -> None:
    town.put("other", None)
    town.put("job", {"cron": "6 12 * * *", "needs": ["up"], "after": ["other"]})
    triggered = trigger(town.world, job())
    trigger(town.world, job("other"))
    town.drive()
    town.follow("other")
    town.drive()
    assert town.run(triggered.key).state is RunState.SUCCEEDED
    assert [run.state for run in town.runs() if run.trigger is Trigger.DEPENDENCY] == [RunState.SUCCEEDED]
    assert at_its_fire(town).state is RunState.QUEUED


def test_it_holds_no_place_while_it_waits(town: Town) -> None:
    town.put("job", {"cron": "6 12 * * *", "needs": ["up"]}, concurrency={"runs": 1}, overlap="skip")
    run = at_its_fire(town)
    other = trigger(town.world, job())
    town.drive()
    assert (town.run(other.key).state, town.run(run.key).state) == (RunState.SUCCEEDED, RunState.QUEUED)


def test_a_deleted_job_succeeds_no_more(town: Town) -> None:
    town.put("up", "2 12 * * *")
    waiting(town, "up")
    town.advance(to=at("12:05"))
    delete(town.world, job("up"), actor="ann")
    assert str(at_its_fire(town).reason) == "needs: there is no job up"


def test_a_job_that_lost_its_schedule_says_what_would_help(town: Town) -> None:
    town.put("up", "2 12 * * *")
    waiting(town, "up")
    delete(town.world, job("up"), actor="ann")
    town.put("up", None)
    assert str(at_its_fire(town).reason).endswith("only window sameDay can wait for it")


# Others come between.


def test_a_success_that_comes_while_it_is_put_to_wait_is_not_missed(either: Town) -> None:
    either.target.answers("up", PERMANENT)
    either.put("up", "4 12 * * *")
    waiting(either, "up")
    either.advance(to=at("12:05:59"))
    either.clock.at = at("12:06")

    def meanwhile() -> None:
        follow(either.world, "batch", [redone(either, "12:04")])

    either.drive(with_another(either.world, "runs.move", meanwhile))
    either.advance(seconds=90)
    run = either.run(at("12:06"))
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 1)
    assert len(either.calls()) == 1


@pytest.mark.parametrize("call", ["queue.send", "runs.move"])
def test_whoever_puts_it_to_wait_may_die(either: Town, call: str) -> None:
    either.target.answers("up", PERMANENT)
    either.put("up", "4 12 * * *")
    waiting(either, "up")
    either.advance(to=at("12:05:59"))
    either.clock.at = at("12:06")
    either.drive(dying_before(either.world, call))
    either.advance(minutes=4)
    assert either.run(at("12:06")).state is RunState.QUEUED
    redone(either, "12:04")
    either.advance(minutes=2)
    assert either.run(at("12:06")).state is RunState.SUCCEEDED


# What is noted down, and refused.


def test_who_needs_whom_is_noted_beside_who_comes_after_whom(either: Town) -> None:
    waiting(either, "up", name="b")
    put(either.world, NS, _after("a", "up"), actor="ann", expected=None)
    waiting(either, "up", name="c")
    wired = wired_to(either.world, job("up"))
    assert (wired.dependents, wired.needers) == (("a",), ("b", "c"))
    assert dependents_of(either.world, job("up")) == ["a"]
    assert wired_to(either.world, job("nobody")).needers == ()


def _after(name: str, *upstreams: str) -> dict[str, Any]:
    return {"name": name, "command": "true", "schedule": {"after": list(upstreams)}}


def test_jobs_that_would_wait_for_each_other_are_refused(town: Town) -> None:
    town.put("a", "1 12 * * *")
    waiting(town, "a", name="b")
    put(town.world, NS, _after("c", "b"), actor="ann", expected=None)
    with pytest.raises(InvalidInput, match="a → b → c → a"):
        town.put("a", {"cron": "1 12 * * *", "needs": {"jobs": ["c"], "window": "sameDay"}}, expected=1)


def test_a_job_without_fires_of_its_own_is_waited_for_by_the_day_only(town: Town) -> None:
    town.put("up", None)
    with pytest.raises(InvalidInput, match="'up' has no fires of its own") as refused:
        waiting(town, "up")
    assert refused.value.path == "schedule.needs"
    waiting(town, "up", window="sameDay")
