"""Who gets a place: the part of the guard that looks at slots."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from sweephand.domain.guard import Replace, Skip, Start, Wait, admit
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import Concurrency, Job, Overlap
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, Trigger
from sweephand.domain.slots import Slot, job_slot, pool_slot

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
JOB = JobKey(Namespace("default"), JobName("report"))
POLL = timedelta(minutes=1)


def run_at(minute: int, trigger: Trigger = Trigger.SCHEDULE) -> Run:
    fire_at = NOON + timedelta(minutes=minute)
    key = RunKey(JOB, RunId(f"20261116T12{minute:02d}00Z"))
    return Run(key, fire_at, fire_at, trigger=trigger, created_at=NOON, changed_at=NOON)


def held_by(*runs: Run) -> Slot:
    slot = Slot("job/default/report")
    for run in runs:
        slot = slot.taken(run, weight=1, now=NOON, nonce="t")
    return slot


def answer(run: Run, overlap: Overlap, slot: Slot) -> Start | Wait | Skip | Replace:
    job = Job("report", (), overlap=overlap, concurrency=Concurrency(runs=1))
    return admit(run, job, job_slot(JOB, 1), slot, now=NOON, poll=POLL)


@pytest.mark.parametrize("overlap", Overlap)
def test_whoever_finds_room_or_has_a_place_starts(overlap: Overlap) -> None:
    assert answer(run_at(10), overlap, Slot("job/default/report")) == Start()
    assert answer(run_at(10), overlap, held_by(run_at(10))) == Start()


@pytest.mark.parametrize(
    ("overlap", "kind", "code"),
    [
        (Overlap.ALLOW, Wait, ReasonCode.CONCURRENCY),
        (Overlap.QUEUE, Wait, ReasonCode.OVERLAP),
        (Overlap.SKIP, Skip, ReasonCode.OVERLAP),
        (Overlap.REPLACE, Replace, ReasonCode.REPLACED),
    ],
)
def test_a_scheduled_fire_that_finds_no_room_does_as_its_job_says(
    overlap: Overlap, kind: type, code: ReasonCode
) -> None:
    found = answer(run_at(10), overlap, held_by(run_at(5)))
    assert type(found) is kind
    assert not isinstance(found, Start)
    assert found.reason.code is code


def test_an_older_fire_never_replaces_a_newer_one() -> None:
    assert isinstance(answer(run_at(10), Overlap.REPLACE, held_by(run_at(15))), Skip)


@pytest.mark.parametrize("overlap", Overlap)
def test_what_people_start_waits_whatever_the_overlap(overlap: Overlap) -> None:
    assert isinstance(answer(run_at(10, Trigger.MANUAL), overlap, held_by(run_at(5))), Wait)


@pytest.mark.parametrize("overlap", Overlap)
def test_a_run_between_two_attempts_that_lost_its_place_waits_whatever_the_overlap(overlap: Overlap) -> None:
    running = run_at(10).claimed(now=NOON, nonce="c", owner="w", lease=POLL, version=1)
    retrying = running.retried(Failure("E", "m"), Reason(ReasonCode.RETRY), now=NOON, nonce="r", wake_at=NOON)
    assert isinstance(answer(retrying, overlap, held_by(run_at(5))), Wait)


def test_a_full_pool_makes_everybody_wait_and_says_who_holds_it() -> None:
    need = pool_slot(Namespace("default"), "warehouse", 2, 2)
    slot = replace(held_by(run_at(5)), name=need.name)
    found = admit(run_at(10), Job("report", (), overlap=Overlap.SKIP), need, slot, now=NOON, poll=POLL)
    assert isinstance(found, Wait)
    assert (found.reason.code, found.until) == (ReasonCode.POOL, NOON + POLL)
    assert "1 of 2 held by 20261116T120500Z" in found.reason.detail
