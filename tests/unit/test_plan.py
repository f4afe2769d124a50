"""Planning: which fires become runs, which are dropped and why, and that each is accounted for exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.expression import parse
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import A_MOMENT, Catchup, CatchupPolicy
from sweephand.domain.ledger import Dropped
from sweephand.domain.limits import FIRES_PER_PASS_MAX, OVERDUE_GRACE
from sweephand.domain.plan import Plan, Resumption, next_plan_at, plan
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.schedule import Every, Schedule
from sweephand.domain.timeline import Segment

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86_400))
LOOKAHEAD = 14 * MINUTE

MINUTELY = Schedule(Every(MINUTE))
NONE, LATEST, ALL = CatchupPolicy.NONE, CatchupPolicy.LATEST, CatchupPolicy.ALL


def minute(*numbers: float) -> tuple[datetime, ...]:
    return tuple(NOON + number * MINUTE for number in numbers)


def segment(
    schedule: Schedule | None = MINUTELY,
    catchup: Catchup | None = None,
    *,
    since: datetime = NOON - 1000 * DAY,
    until: datetime | None = None,
    paused: bool = False,
) -> Segment:
    return Segment(since, until, 1, schedule, catchup or Catchup(), paused)


def planned(
    *stretches: Segment,
    after: datetime,
    now: datetime = NOON,
    lookahead: timedelta = timedelta(0),
    resumption: Resumption | None = None,
) -> Plan:
    return plan(stretches, after, now=now, horizon=now + lookahead, resumption=resumption)


# On time.


def test_fires_to_come_become_runs_up_to_and_with_the_horizon() -> None:
    made = planned(segment(), after=NOON, lookahead=3 * MINUTE)
    assert made == Plan(minute(1, 2, 3), (), NOON + 3 * MINUTE, *minute(4))


def test_what_is_accounted_for_is_not_planned_again() -> None:
    made = planned(segment(), after=NOON + 3 * MINUTE, lookahead=3 * MINUTE)
    assert made == Plan((), (), NOON + 3 * MINUTE, *minute(4))


def test_a_nearer_horizon_takes_nothing_back() -> None:
    made = planned(segment(), after=NOON + 10 * MINUTE, lookahead=3 * MINUTE)
    assert made == Plan((), (), NOON + 10 * MINUTE, *minute(11))


def test_a_stretch_begins_with_its_own_instant() -> None:
    fresh = segment(since=NOON)
    made = planned(fresh, after=NOON - A_MOMENT, lookahead=MINUTE)
    assert made.fires == minute(0, 1)


def test_a_job_without_a_schedule_or_a_future_has_nothing_to_plan() -> None:
    assert planned(segment(None), after=NOON, lookahead=MINUTE) == Plan((), (), NOON + MINUTE, None)
    assert plan([], NOON, now=NOON, horizon=NOON + MINUTE) == Plan((), (), NOON + MINUTE, None)
    ended = segment(replace(MINUTELY, end_at=NOON + 2 * MINUTE))
    assert planned(ended, after=NOON, lookahead=HOUR) == Plan(minute(1), (), NOON + HOUR, None)
    deleted = segment(until=NOON)
    assert planned(deleted, after=NOON - MINUTE, lookahead=HOUR).next_fire is None


@pytest.mark.parametrize("policy", CatchupPolicy)
def test_a_fire_that_is_only_just_late_is_not_missed(policy: CatchupPolicy) -> None:
    late = segment(catchup=Catchup(policy))
    now = NOON + OVERDUE_GRACE
    made = planned(late, after=NOON - SECOND, now=now)
    assert made == Plan(minute(0, 1), (), now, *minute(2))


# After an outage.


def missed(policy: CatchupPolicy, *, most: int = 100, window: timedelta = DAY, hours: int = 3) -> Plan:
    """An hourly job, planned up to a while ago, seen again half an hour after the last fire."""
    hourly = segment(Schedule(Every(HOUR)), Catchup(policy, most, window))
    now = NOON + HOUR / 2
    return planned(hourly, after=now - hours * HOUR, now=now, lookahead=HOUR)


def test_under_none_missed_fires_are_dropped_and_those_to_come_run() -> None:
    made = missed(NONE)
    assert made.fires == minute(60)
    (dropped,) = made.dropped
    assert (dropped.first, dropped.last, dropped.count) == (*minute(-120, 0), 3)
    assert dropped.reason.code is ReasonCode.CATCHUP
    assert (made.planned_upto, made.next_fire) == minute(90, 120)


def test_under_none_a_fire_that_is_only_just_late_runs_after_an_outage_too() -> None:
    minutely = segment(catchup=Catchup(NONE))
    made = planned(minutely, after=NOON - HOUR, now=NOON)
    assert made.fires == minute(-1, 0)
    assert [(one.first, one.last, one.count) for one in made.dropped] == [(*minute(-59, -2), 58)]


def test_under_latest_the_newest_missed_fire_runs() -> None:
    made = missed(LATEST)
    assert made.fires == minute(0, 60)
    assert [(one.first, one.last, one.count) for one in made.dropped] == [(*minute(-120, -60), 2)]


def test_under_latest_a_single_missed_fire_runs_and_nothing_is_dropped() -> None:
    made = missed(LATEST, hours=1)
    assert (made.fires, made.dropped) == (minute(0, 60), ())


def test_under_all_every_missed_fire_runs() -> None:
    made = missed(ALL)
    assert (made.fires, made.dropped) == (minute(-120, -60, 0, 60), ())


def test_under_all_the_newest_run_up_to_the_most() -> None:
    made = missed(ALL, most=2)
    assert made.fires == minute(-60, 0, 60)
    assert [(one.first, one.last, one.count) for one in made.dropped] == [(*minute(-120, -120), 1)]


@pytest.mark.parametrize("policy", [LATEST, ALL])
def test_what_was_missed_before_the_window_is_dropped_with_another_reason(policy: CatchupPolicy) -> None:
    made = missed(policy, window=HOUR, hours=5)
    assert made.fires == minute(0, 60)
    (dropped,) = made.dropped
    assert (dropped.first, dropped.last, dropped.count) == (*minute(-240, -60), 4)
    assert "window" in dropped.reason.detail


def test_an_outage_longer_than_the_window_may_leave_nothing_to_run() -> None:
    made = missed(LATEST, window=MINUTE)
    assert made.fires == minute(60)
    assert [one.count for one in made.dropped] == [3]


class Walked(Schedule, frozen=True):
    """A schedule that counts the fires which somebody walked through."""

    steps: ClassVar = 0

    def fires(self, after: datetime, upto: datetime | None = None) -> Iterator[datetime]:
        for fire in super().fires(after, upto):
            Walked.steps += 1
            yield fire


@pytest.mark.parametrize("policy", CatchupPolicy)
@pytest.mark.parametrize("expression", ["* * * * * *", "* 9-17 * * mon-fri"])
def test_a_long_outage_of_a_dense_schedule_is_not_walked_through(policy: CatchupPolicy, expression: str) -> None:
    recurrence = parse(expression, hash_id="", path="schedule")
    dense = Walked(recurrence, "Europe/Berlin")
    stretch = segment(dense, Catchup(policy, 50, 900 * DAY))
    Walked.steps = 0
    made = planned(stretch, after=NOON - 800 * DAY, lookahead=2 * SECOND)
    assert Walked.steps < 200
    total = Schedule(recurrence, "Europe/Berlin").count(NOON - 800 * DAY, NOON + 2 * SECOND)
    assert len(made.fires) + sum(one.count for one in made.dropped) == total > 200_000


# After a pause.

PAUSE = Resumption(NONE, NOON)


def resumed(policy: CatchupPolicy, *stretches: Segment, most: int = 100) -> Plan:
    catchup = Catchup(ALL, most)
    before = stretches or (segment(Schedule(Every(HOUR)), paused=True, until=NOON + 30 * MINUTE),)
    now = NOON + 30 * MINUTE
    current = segment(Schedule(Every(HOUR)), catchup, since=now)
    return planned(*before, current, after=now - 4 * HOUR, now=now, lookahead=HOUR, resumption=Resumption(policy, now))


@pytest.mark.parametrize(
    ("policy", "most", "runs", "dropped"),
    [
        (NONE, 100, (60,), (-180, 0, 4)),
        (LATEST, 100, (0, 60), (-180, -60, 3)),
        (ALL, 100, (-180, -120, -60, 0, 60), None),
        (ALL, 3, (-120, -60, 0, 60), (-180, -180, 1)),
    ],
)
def test_a_resume_decides_about_the_fires_of_the_pause_by_its_own_policy(
    policy: CatchupPolicy, most: int, runs: tuple[int, ...], dropped: tuple[int, int, int] | None
) -> None:
    made = resumed(policy, most=most)
    assert made.fires == minute(*runs)
    found = [(one.first, one.last, one.count) for one in made.dropped]
    assert found == ([(*minute(*dropped[:2]), dropped[2])] if dropped else [])
    assert all(one.reason.code is ReasonCode.PAUSED for one in made.dropped)


def test_each_fire_of_a_pause_belongs_to_the_version_that_was_in_force_then() -> None:
    edited = (
        segment(Schedule(Every(HOUR)), paused=True, until=NOON - 90 * MINUTE),
        segment(Schedule(Every(20 * MINUTE)), paused=True, since=NOON - 90 * MINUTE, until=NOON - HOUR),
        segment(None, paused=True, since=NOON - HOUR, until=NOON - 10 * MINUTE),
        segment(Schedule(Every(15 * MINUTE)), paused=True, since=NOON - 10 * MINUTE, until=NOON + 30 * MINUTE),
    )
    held = (-180, -120, -80, 0, 15)
    assert resumed(ALL, *edited).fires == minute(*held, 60)
    assert resumed(ALL, *edited, most=3).fires == minute(*held[2:], 60)
    newest = resumed(LATEST, *edited)
    assert newest.fires == minute(15, 60)
    assert [(one.first, one.last, one.count) for one in newest.dropped] == [(*minute(-180, 0), 4)]


def test_a_resume_seen_late_lets_catch_up_decide_about_the_time_since() -> None:
    hourly = Schedule(Every(HOUR))
    before = segment(hourly, paused=True, until=NOON + MINUTE)
    current = segment(hourly, Catchup(LATEST), since=NOON + MINUTE)
    made = planned(
        before,
        current,
        after=NOON - 3 * HOUR,
        now=NOON + 3 * HOUR + MINUTE,
        resumption=Resumption(NONE, NOON + MINUTE),
    )
    assert made.fires == minute(180)
    found = [(one.first, one.last, one.count, one.reason.code) for one in made.dropped]
    assert found == [
        (*minute(-120, 0), 3, ReasonCode.PAUSED),
        (*minute(60, 120), 2, ReasonCode.CATCHUP),
    ]


def test_a_resume_that_was_decided_already_changes_nothing() -> None:
    made = planned(segment(), after=NOON, lookahead=MINUTE, resumption=Resumption(NONE, NOON))
    assert made == Plan(minute(1), (), NOON + MINUTE, *minute(2))


# A pass is bounded.


def test_a_pass_plans_only_so_many_fires_and_the_next_goes_on_where_it_stopped() -> None:
    secondly = segment(Schedule(Every(SECOND)))
    first = planned(secondly, after=NOON, lookahead=HOUR)
    assert len(first.fires) == FIRES_PER_PASS_MAX
    assert first.planned_upto == first.fires[-1] == NOON + FIRES_PER_PASS_MAX * SECOND
    assert first.next_fire == first.planned_upto + SECOND
    second = planned(secondly, after=first.planned_upto, lookahead=HOUR)
    assert second.fires[0] == first.next_fire


def test_exactly_as_many_fires_as_a_pass_may_plan_are_planned_up_to_the_horizon() -> None:
    secondly = segment(Schedule(Every(SECOND)))
    made = planned(secondly, after=NOON, lookahead=FIRES_PER_PASS_MAX * SECOND + A_MOMENT)
    assert len(made.fires) == FIRES_PER_PASS_MAX
    assert made.planned_upto == NOON + FIRES_PER_PASS_MAX * SECOND + A_MOMENT


def test_a_pass_that_stops_in_a_pause_drops_nothing_beyond_it() -> None:
    secondly = Schedule(Every(SECOND))
    before = segment(secondly, paused=True, until=NOON)
    current = segment(secondly, Catchup(LATEST, 10_000), since=NOON)
    after = NOON - 2 * FIRES_PER_PASS_MAX * SECOND
    made = planned(before, current, after=after, now=NOON + HOUR, resumption=Resumption(ALL, NOON))
    assert len(made.fires) == FIRES_PER_PASS_MAX
    assert made.planned_upto == made.fires[-1] < NOON
    assert made.dropped == ()


# Exactly once.


@dataclass
class Account:
    """Planning passes one after another, as the engine makes them."""

    stretches: Sequence[Segment]
    upto: datetime
    resumption: Resumption | None
    fires: list[datetime]
    dropped: list[Dropped]

    def plan(self, now: datetime, lookahead: timedelta) -> None:
        made = plan(self.stretches, self.upto, now=now, horizon=now + lookahead, resumption=self.resumption)
        assert made.planned_upto >= self.upto
        assert len(made.fires) <= FIRES_PER_PASS_MAX
        assert all(self.upto < fire <= made.planned_upto for fire in made.fires)
        assert all(self.upto < one.first <= one.last <= made.planned_upto for one in made.dropped)
        self.fires += made.fires
        self.dropped += made.dropped
        self.upto = made.planned_upto
        if self.resumption is not None and self.upto >= self.resumption.upto - A_MOMENT:
            self.resumption = None


schedules = st.one_of(
    st.builds(
        lambda seconds, offset: Schedule(Every(seconds * SECOND, NOON + offset * SECOND)),
        st.sampled_from([1, 2, 7, 60, 61, 900, 3600]),
        st.integers(0, 3600),
    ),
    st.builds(
        lambda text, zone: Schedule(parse(text, hash_id="a", path="schedule"), zone),
        st.sampled_from(["* * * * *", "*/7 * * * *", "5,35 * * * *", "*/10 * * * * *", "0 3 * * *"]),
        st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]),
    ),
    st.none(),
)
catchups = st.builds(
    Catchup,
    st.sampled_from(CatchupPolicy),
    st.sampled_from([1, 3, 100, 1500, 10_000]),
    st.sampled_from([MINUTE, 20 * MINUTE, HOUR, DAY]),
)
ages = st.timedeltas(timedelta(0), 2 * HOUR).map(lambda age: age - age % A_MOMENT)


@st.composite
def accounts(draw: st.DrawFn) -> Account:
    """A job with edits, perhaps in a pause that was just ended, last planned a while ago."""
    edges = sorted(draw(st.lists(ages, max_size=3, unique=True)), reverse=True)
    begins = [NOON - DAY, *(NOON - edge for edge in edges)]
    ends: list[datetime | None] = [*begins[1:], None]
    is_resumed = len(begins) > 1 and draw(st.booleans())
    stretches = [
        segment(draw(schedules), draw(catchups), since=since, until=until, paused=is_resumed and until is not None)
        for since, until in zip(begins, ends, strict=True)
    ]
    resumption = Resumption(draw(st.sampled_from(CatchupPolicy)), begins[-1]) if is_resumed else None
    return Account(stretches, NOON - draw(ages), resumption, [], [])


@given(
    accounts(),
    st.lists(st.tuples(st.timedeltas(timedelta(0), HOUR), st.sampled_from([0, 2, 840])), min_size=1, max_size=6),
)
def test_every_fire_is_run_or_dropped_exactly_once_whenever_planning_happens(
    account: Account, passes: list[tuple[timedelta, int]]
) -> None:
    begin, now = account.upto, NOON
    for pause, lookahead_s in passes:
        now += pause
        account.plan(now, lookahead_s * SECOND)
    owed = [fire for one in account.stretches for fire in one.fires(begin, account.upto)]
    given_up = [fire for one in account.dropped for fire in owed if one.first <= fire <= one.last]
    assert sum(one.count for one in account.dropped) == len(given_up)
    assert sorted(account.fires + given_up) == owed


# When to plan next.

JOB = JobKey(Namespace("default"), JobName("report"))


def next_at(next_fire: datetime | None, job: JobKey = JOB, spread_over: timedelta = 7 * MINUTE) -> datetime | None:
    return next_plan_at(next_fire, job=job, now=NOON, lookahead=LOOKAHEAD, step=7 * MINUTE, spread_over=spread_over)


def test_nothing_to_come_needs_no_planning() -> None:
    assert next_at(None) is None


def test_a_fire_that_is_near_is_planned_after_one_step() -> None:
    assert next_at(NOON + LOOKAHEAD) == NOON + 7 * MINUTE


@given(st.integers(0, 400 * 86_400), st.from_regex(r"[a-z]{1,8}", fullmatch=True))
def test_planning_comes_after_a_step_and_before_the_fire(seconds: int, name: str) -> None:
    next_fire = NOON + LOOKAHEAD + seconds * SECOND
    found = next_at(next_fire, JobKey(Namespace("default"), JobName(name)))
    assert found is not None
    assert NOON + 7 * MINUTE <= found <= next_fire - 7 * MINUTE
    assert found == next_at(next_fire, JobKey(Namespace("default"), JobName(name)))


def test_jobs_of_one_minute_are_spread_and_without_a_spread_they_are_not() -> None:
    jobs = [JobKey(Namespace("default"), JobName(f"job-{n}")) for n in range(200)]
    assert len({next_at(NOON + DAY, job) for job in jobs}) > 100
    assert {next_at(NOON + DAY, job, timedelta(0)) for job in jobs} == {NOON + DAY - LOOKAHEAD}
