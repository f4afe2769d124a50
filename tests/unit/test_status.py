"""The status view's rows: what is listed, the newest revision wins, and rows come back from a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey, run_id_of_fire
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.domain.status import StatusRow, latest, listed, tally

NAMESPACE = Namespace("default")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)

instants = st.integers(-(10**15), 10**15).map(lambda count: NOON + timedelta(microseconds=count))
rows = st.builds(
    StatusRow,
    st.builds(
        lambda job, minute: RunKey(JobKey(NAMESPACE, JobName(job)), run_id_of_fire(NOON + timedelta(minutes=minute))),
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
    ),
    st.integers(0, 5),
    st.sampled_from(RunState),
    st.sampled_from(Trigger),
    instants,
    st.integers(0, 9),
    st.none() | instants,
    st.none() | instants,
    st.none() | st.text(),
)


def run_at(minute: int, job: str = "report") -> Run:
    fire_at = NOON + timedelta(minutes=minute)
    key = RunKey(JobKey(NAMESPACE, JobName(job)), run_id_of_fire(fire_at))
    return Run(key, fire_at, fire_at, created_at=NOON, changed_at=NOON)


@given(rows)
def test_a_row_comes_back_from_a_page_to_the_microsecond(row: StatusRow) -> None:
    assert StatusRow.decode(NAMESPACE, json.loads(json.dumps(row.encode()))) == row


@given(st.lists(rows))
def test_the_newest_revision_of_each_run_is_kept_and_the_newest_run_comes_first(found: list[StatusRow]) -> None:
    kept = latest(found)
    assert {row.run for row in kept} == {row.run for row in found}
    assert len(kept) == len({row.run for row in found})
    for row in kept:
        assert row.rev == max(other.rev for other in found if other.run == row.run)
    ids = [row.run.run_id for row in kept]
    assert ids == sorted(ids, reverse=True)


@given(st.lists(rows))
def test_the_order_in_which_revisions_arrive_does_not_matter(found: list[StatusRow]) -> None:
    unique = list({(row.run, row.rev): row for row in found}.values())
    assert latest(unique) == latest(reversed(unique))
    assert latest(latest(unique)) == latest(unique)


@given(st.lists(rows))
def test_a_tally_counts_every_row_once(found: list[StatusRow]) -> None:
    counts = tally(found)
    assert sum(counts.values()) == len(found)
    assert all(counts[state] == sum(row.state is state for row in found) for state in counts)


def test_a_planned_or_void_run_is_not_listed() -> None:
    planned = run_at(0)
    reason = Reason(ReasonCode.NOT_IN_FORCE, "edited")
    assert listed(planned) is None
    assert listed(planned.voided(reason, now=NOON, nonce="v")) is None


def test_a_row_shows_the_run_at_its_revision() -> None:
    running = run_at(0).claimed(now=NOON, nonce="c", owner="w", lease=timedelta(minutes=1), version=1)
    cancelled = running.cancelled(Reason(ReasonCode.CANCELLED, "by ada"), now=NOON, nonce="x")
    row = listed(cancelled)
    assert row == StatusRow(
        running.key, 2, RunState.CANCELLED, Trigger.SCHEDULE, NOON, 1, NOON, NOON, "cancelled: by ada"
    )
    before = listed(running)
    assert before is not None
    assert latest([row, before]) == [row]
    assert tally([row, replace(before, rev=9)]) == {RunState.CANCELLED: 1, RunState.RUNNING: 1}


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.PLANNED, RunState.VOID}))
def test_every_other_state_is_listed(state: RunState) -> None:
    row = listed(replace(run_at(0), state=state))
    assert row is not None
    assert row.state is state
