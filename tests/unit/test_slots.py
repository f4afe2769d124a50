"""Slots: taking, giving back, waiting, and who may be evicted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey, run_id_of_fire
from sweephand.domain.limits import CLOCK_SKEW_MAX, WAITERS_MAX
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.domain.slots import (
    UNCLAIMED_GRACE,
    Holder,
    Slot,
    decode_slot,
    encode_slot,
    is_evictable,
    job_slot,
    pool_slot,
)

NOW = datetime(2026, 11, 15, 6, tzinfo=UTC)
JOB = JobKey(Namespace("default"), JobName("report"))


def run_at(minute: int) -> Run:
    fire_at = NOW + timedelta(minutes=minute)
    return Run(RunKey(JOB, run_id_of_fire(fire_at)), fire_at, fire_at, created_at=NOW, changed_at=NOW)


def taken_by(*minutes: int, weight: int = 1) -> Slot:
    slot = Slot("job/default/report")
    for minute in minutes:
        slot = slot.taken(run_at(minute), weight=weight, now=NOW, nonce=f"n{minute}")
    return slot


def test_taking_adds_a_holder_and_giving_back_removes_it() -> None:
    slot = taken_by(0, 1)
    assert (slot.used, slot.rev, slot.nonce) == (2, 2, "n1")
    assert slot.holds(run_at(0).key)
    assert slot.holders[1] == Holder(run_at(1).key, 1, NOW, run_at(1).fire_at, 1)
    left = slot.given_back(run_at(0).key, nonce="b")
    assert not left.holds(run_at(0).key)
    assert (left.used, left.rev, left.nonce) == (1, 3, "b")
    assert left.given_back(run_at(0).key, nonce="c").holders == left.holders


@pytest.mark.parametrize(
    ("holders", "weight", "limit", "room"),
    [
        (0, 1, 1, True),
        (1, 1, 1, False),
        (1, 1, 2, True),
        (2, 3, 8, False),
        (2, 3, 9, True),
        (0, 9, 4, True),
        (1, 9, 4, False),
    ],
)
def test_there_is_room_up_to_the_limit_and_what_is_too_heavy_may_have_it_alone(
    holders: int, weight: int, limit: int, room: bool
) -> None:
    assert taken_by(*range(holders), weight=weight).has_room(limit, weight) is room


def test_a_run_waits_once_and_no_longer_when_it_takes() -> None:
    slot = taken_by(0).awaited(run_at(1).key, nonce="w")
    assert slot is not None
    assert slot.waiters == (run_at(1).key,)
    assert slot.awaited(run_at(1).key, nonce="w2") is None
    assert slot.taken(run_at(1), weight=1, now=NOW, nonce="t").waiters == ()


def test_a_slot_remembers_only_so_many_waiters_first_come_first() -> None:
    slot = taken_by(0)
    for minute in range(1, WAITERS_MAX + 1):
        longer = slot.awaited(run_at(minute).key, nonce="w")
        assert longer is not None
        slot = longer
    assert slot.waiters[0] == run_at(1).key
    assert len(slot.waiters) == WAITERS_MAX
    assert slot.awaited(run_at(99).key, nonce="w") is None


def test_leaving_wakes_one_waiter_in_the_same_move() -> None:
    slot = taken_by(0)
    for minute in (1, 2):
        slot = slot.awaited(run_at(minute).key, nonce="w") or slot
    left = slot.left(run_at(0).key, 1, run_at(1).key, nonce="l")
    assert (left.holders, left.waiters, left.rev) == ((), (run_at(2).key,), slot.rev + 1)
    assert slot.left(run_at(0).key, 1, None, nonce="l").waiters == slot.waiters


def test_an_earlier_attempt_cannot_give_back_a_later_ones_place() -> None:
    slot = taken_by(0)
    assert slot.left(run_at(0).key, 0, None, nonce="l").holders == slot.holders


def test_taking_again_makes_the_place_fresh() -> None:
    slot = taken_by(0)
    later = slot.taken(run_at(0), weight=1, now=NOW + timedelta(minutes=9), nonce="again")
    assert [holder.taken_at for holder in later.holders] == [NOW + timedelta(minutes=9)]
    assert later.rev == slot.rev + 1


def run_in(state: RunState) -> Run:
    run, failure, reason = run_at(0), Failure("E", "m"), Reason(ReasonCode.ERROR)
    running = run.claimed(now=NOW, nonce="c", owner="w", lease=timedelta(minutes=1), version=1)
    return {
        RunState.PLANNED: run,
        RunState.QUEUED: run.parked(reason, now=NOW, nonce="q", wake_at=None),
        RunState.RUNNING: running,
        RunState.RETRYING: running.retried(failure, reason, now=NOW, nonce="r", wake_at=NOW),
        RunState.SUCCEEDED: running.succeeded(now=NOW, nonce="s", output=None),
        RunState.FAILED: running.failed(failure, reason, now=NOW, nonce="f"),
        RunState.CANCELLED: running.cancelled(reason, now=NOW, nonce="x"),
        RunState.SKIPPED: run.skipped(reason, now=NOW, nonce="k"),
        RunState.VOID: run.voided(reason, now=NOW, nonce="v"),
    }[state]


ONCE_IT_IS_OLD = {RunState.PLANNED, RunState.QUEUED}


@pytest.mark.parametrize("state", RunState)
def test_a_place_among_a_jobs_runs_is_kept_while_the_run_is_active_and_a_little_before(state: RunState) -> None:
    check_eviction(state, job_slot(JOB, 1).keeps, ONCE_IT_IS_OLD, {RunState.RUNNING, RunState.RETRYING})


@pytest.mark.parametrize("state", RunState)
def test_a_share_of_a_pool_is_kept_only_while_an_attempt_runs(state: RunState) -> None:
    keeps = pool_slot(Namespace("default"), "warehouse", 4, 2).keeps
    check_eviction(state, keeps, {*ONCE_IT_IS_OLD, RunState.RETRYING}, {RunState.RUNNING})


def check_eviction(state: RunState, keeps: frozenset[RunState], when_old: set[RunState], never: set[RunState]) -> None:
    holder = Holder(run_at(0).key, 1, NOW, NOW)
    run = run_in(state)
    young, old = NOW + UNCLAIMED_GRACE, NOW + UNCLAIMED_GRACE + timedelta(milliseconds=1)
    assert is_evictable(holder, run, keeps, young) is run.is_terminal
    assert is_evictable(holder, run, keeps, old) is (run.is_terminal or state in when_old)
    assert (not is_evictable(holder, run, keeps, NOW + timedelta(days=9))) is (state in never)


def test_a_holder_whose_run_is_gone_is_evicted() -> None:
    assert is_evictable(Holder(run_at(0).key, 1, NOW, NOW), None, frozenset(RunState), NOW)


def test_the_grace_is_longer_than_two_clocks_are_apart() -> None:
    assert UNCLAIMED_GRACE > 2 * CLOCK_SKEW_MAX


def test_slots_of_jobs_and_pools_have_names_that_cannot_meet() -> None:
    job = job_slot(JOB, 3)
    pool = pool_slot(Namespace("default"), "report", 4, 2)
    assert (job.name, job.limit, job.weight) == ("job/default/report", 3, 1)
    assert (pool.name, pool.limit, pool.weight) == ("pool/default/report", 4, 2)


minutes = st.integers(0, 10_000)
slots = st.builds(
    lambda holders, waiters, rev, nonce: Slot(
        "job/default/report", tuple(holders), tuple(run_at(minute).key for minute in waiters), rev, nonce
    ),
    st.lists(
        st.builds(
            lambda minute, delay, weight: Holder(
                run_at(minute).key, minute, NOW + delay, run_at(minute).fire_at, weight
            ),
            minutes,
            st.timedeltas(timedelta(0), timedelta(days=1)),
            st.integers(1, 500),
        ),
        max_size=5,
    ),
    st.lists(minutes, max_size=5, unique=True),
    st.integers(0, 10**9),
    st.text(max_size=16),
)


@given(slots)
def test_a_slot_comes_back_from_the_store_as_it_was(slot: Slot) -> None:
    stored = json.loads(json.dumps(encode_slot(slot)))
    assert decode_slot(slot.name, stored, rev=slot.rev, nonce=slot.nonce) == slot
