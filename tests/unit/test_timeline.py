"""The timeline: what was in force when, through edits, pauses, deletion and creation anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import A_MOMENT, JOB_LIFECYCLE, Catchup, Change, Job, JobEvent, JobStatus, Task
from sweephand.domain.limits import SIDES_BLUR
from sweephand.domain.schedule import Every, Schedule
from sweephand.domain.timeline import Segment, in_force, near_a_change, segments

KEY = JobKey(Namespace("default"), JobName("report"))
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

PUT, PAUSED, RESUMED, DELETED = JobEvent.PUT, JobEvent.PAUSED, JobEvent.RESUMED, JobEvent.DELETED


def job_every(minutes: int) -> Job:
    schedule = Schedule(Every(minutes * MINUTE))
    return Job("report", (Task("main", "command", {"value": ["true"]}),), schedule=schedule)


JOBS: dict[int, Job | None] = {1: job_every(1), 2: job_every(2), 3: None, 4: job_every(4)}


def change(minute: float, event: JobEvent, version: int) -> Change:
    return Change(KEY, NOON + minute * MINUTE, event, version, "ada")


def minutes_of(stretches: list[Segment]) -> list[tuple[float, float | None, int, bool]]:
    def minute(instant: datetime) -> float:
        return (instant - NOON) / MINUTE

    return [
        (minute(one.since), None if one.until is None else minute(one.until), one.version, one.paused)
        for one in stretches
    ]


@pytest.mark.parametrize(
    ("changes", "stretches"),
    [
        ([], []),
        ([(0, PUT, 1)], [(0, None, 1, False)]),
        ([(0, PUT, 1), (5, PUT, 2)], [(0, 5, 1, False), (5, None, 2, False)]),
        ([(0, PUT, 1), (5, PAUSED, 1)], [(0, 5, 1, False), (5, None, 1, True)]),
        (
            [(0, PUT, 1), (5, PAUSED, 1), (9, RESUMED, 1)],
            [(0, 5, 1, False), (5, 9, 1, True), (9, None, 1, False)],
        ),
        (
            [(0, PUT, 1), (5, PAUSED, 1), (7, PUT, 2), (9, RESUMED, 2)],
            [(0, 5, 1, False), (5, 7, 1, True), (7, 9, 2, True), (9, None, 2, False)],
        ),
        ([(0, PUT, 1), (5, DELETED, 3)], [(0, 5, 1, False)]),
        ([(0, PUT, 1), (5, DELETED, 3), (9, PUT, 4)], [(0, 5, 1, False), (9, None, 4, False)]),
        (
            [(0, PUT, 1), (5, PAUSED, 1), (7, DELETED, 3), (9, PUT, 4)],
            [(0, 5, 1, False), (5, 7, 1, True), (9, None, 4, False)],
        ),
    ],
    ids=["nothing", "put", "edit", "pause", "resume", "edit in a pause", "delete", "anew", "anew after a pause"],
)
def test_changes_are_read_as_stretches(
    changes: list[tuple[float, JobEvent, int]], stretches: list[tuple[float, float | None, int, bool]]
) -> None:
    assert minutes_of(segments([change(*one) for one in changes], JOBS)) == stretches


def test_a_stretch_has_the_schedule_and_the_policy_of_its_version() -> None:
    (one,) = segments([change(0, PUT, 2)], JOBS)
    assert JOBS[2] is not None
    assert (one.schedule, one.catchup) == (JOBS[2].schedule, JOBS[2].catchup)


def test_a_stretch_holds_its_beginning_and_not_its_end() -> None:
    one = Segment(NOON, NOON + 3 * MINUTE, 1, Schedule(Every(MINUTE)), Catchup())
    fires = list(one.fires(NOON - timedelta(days=1), NOON + timedelta(days=1)))
    assert fires == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    assert list(one.fires(NOON, NOON + MINUTE)) == [NOON + MINUTE]
    assert list(one.fires(NOON + 3 * MINUTE, NOON + 9 * MINUTE)) == []
    assert in_force([one], NOON) is one
    assert in_force([one], NOON - A_MOMENT) is None
    assert in_force([one], NOON + 3 * MINUTE - A_MOMENT) is one
    assert in_force([one], NOON + 3 * MINUTE) is None


def test_a_stretch_without_a_schedule_has_no_fires() -> None:
    assert list(Segment(NOON, None, 1, None, Catchup()).fires(NOON, NOON + timedelta(days=1))) == []


def test_an_edit_at_a_fires_instant_gives_the_fire_to_the_new_version() -> None:
    stretches = segments([change(0, PUT, 1), change(4, PUT, 2)], JOBS)
    at = NOON + 4 * MINUTE
    owners = [one.version for one in stretches for fire in one.fires(NOON - MINUTE, NOON + 9 * MINUTE) if fire == at]
    current = in_force(stretches, at)
    assert current is not None
    assert owners == [2] == [current.version]


@st.composite
def timelines(draw: st.DrawFn) -> list[Change]:
    """Any legal sequence of changes, each at least a moment after the one before."""
    status, at, version = JobStatus.DELETED, NOON, 0
    found = []
    for _ in range(draw(st.integers(1, 8))):
        event = draw(st.sampled_from([one for one in JobEvent if JOB_LIFECYCLE.allows(status, one)]))
        status = JOB_LIFECYCLE.after(status, event, what="It")
        version += event in (PUT, DELETED)
        found.append(Change(KEY, at, event, version, "ada"))
        at += draw(st.sampled_from([A_MOMENT, timedelta(seconds=30), MINUTE, 5 * MINUTE]))
    return found


@given(timelines(), st.integers(-2, 40))
def test_at_every_instant_that_is_in_force_which_the_last_change_left(changes: list[Change], minute: int) -> None:
    jobs = {one.version: None if one.event is DELETED else job_every(1) for one in changes}
    stretches = segments(changes, jobs)
    at = NOON + minute * MINUTE
    last = next((one for one in reversed(changes) if one.at <= at), None)
    found = in_force(stretches, at)
    if last is None or last.event is DELETED:
        assert found is None
        return
    status = JobStatus.DELETED
    for one in changes[: changes.index(last) + 1]:
        status = JOB_LIFECYCLE.after(status, one.event, what="It")
    assert found is not None
    assert (found.version, found.paused) == (last.version, status is JobStatus.PAUSED)


@given(timelines())
def test_every_fire_belongs_to_the_one_stretch_in_force_at_its_instant(changes: list[Change]) -> None:
    jobs = {one.version: None if one.event is DELETED else job_every(1 + one.version % 2) for one in changes}
    stretches = segments(changes, jobs)
    low, high = NOON - MINUTE, NOON + 40 * MINUTE
    fires = [(fire, one.version) for one in stretches for fire in one.fires(low, high)]
    assert fires == sorted(fires)
    assert len({fire for fire, _ in fires}) == len(fires)
    for n in range(41):
        at = NOON + n * MINUTE
        current = in_force(stretches, at)
        named = current is not None and current.schedule is not None and current.schedule.names(at)
        assert (at in dict(fires)) is named
        assert not named or (current is not None and dict(fires)[at] == current.version)


def test_a_change_is_near_for_as_long_as_two_clocks_may_be_apart() -> None:
    changes = [change(0, PUT, 1)]
    for side in (1, -1):
        assert near_a_change(changes, NOON + side * SIDES_BLUR)
        assert not near_a_change(changes, NOON + side * (SIDES_BLUR + A_MOMENT))
    assert not near_a_change([], NOON)
