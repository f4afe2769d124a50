"""Sweepers that die, sleep, lose answers, or meet each other."""

from __future__ import annotations

from datetime import datetime

import pytest

from sweephand.domain.ids import DEFAULT
from sweephand.domain.job import Head
from sweephand.domain.ledger import FireStatus
from sweephand.domain.run import RunState
from sweephand.engine.put import put
from sweephand.engine.sweep import Swept, sweep
from sweephand.local.cloud.account import AwsCall
from sweephand.topology import DUE, JOBS, RUNS
from tests.faults.checker import assert_sound
from tests.faults.place import MINUTE, SECOND, START, Place
from tests.moto_world import Fault, Partial, timed_out

DAILY = "18 6 * * *"
"""Too far ahead to be planned when the job is put: a sweep does it some ten minutes before."""
FIRE_AT = datetime(2026, 11, 16, 6, 18, tzinfo=START.tzinfo)


@pytest.fixture
def place(place: Place) -> Place:
    place.only("tick", "sweep", "normal")
    return place


def _assert_fired_once(place: Place, *names: str, late_ms: int = 1_000) -> None:
    place.pass_until(FIRE_AT + 12 * MINUTE)
    for name in names:
        (row,) = place.ledger(name)
        assert (row.status, row.skew_ms is not None and row.skew_ms < late_ms) == (FireStatus.FIRED, True)
        (run,) = place.runs(name)
        assert (run.state, run.attempt) == (RunState.SUCCEEDED, 1)
        assert len(place.target.of(name)) == 1
    assert_sound(place)


def test_a_sweeper_killed_between_the_run_and_the_cursor_is_made_up_for(place: Place) -> None:
    """Row 5."""
    key = place.put("report", DAILY)
    place.die_before("sweep", "UpdateItem", JOBS)
    place.pass_until(FIRE_AT - 6 * MINUTE)
    assert not place.traps[0].times
    assert len(place.runs("report")) == 1
    head = place.world.jobs.head(key)
    assert head is not None
    assert head.planned_upto > FIRE_AT
    _assert_fired_once(place, "report")


@pytest.mark.parametrize("operation", ["SendMessageBatch", "BatchWriteItem"])
def test_a_sweeper_killed_before_it_sent_the_run_or_armed_the_next_look_is_made_up_for(
    place: Place, operation: str
) -> None:
    """Row 6: the cursor moves last here, so whoever comes next finds the run, and sends it."""
    place.put("report", DAILY)
    place.die_before("sweep", operation, DUE if operation == "BatchWriteItem" else None)
    _assert_fired_once(place, "report")
    assert not place.traps[0].times


def test_a_sweeper_whose_messages_are_never_accepted_assumes_none_of_them_sent(place: Place) -> None:
    """Row 21: the whole batch is refused, as often as it is tried."""
    place.put("report", DAILY)
    coming = [Partial(0)] * 3
    place.faults = lambda call: coming.pop() if coming and _sends_run(call) else None
    _assert_fired_once(place, "report")
    assert not coming


def _sends_run(call: AwsCall) -> bool:
    return call.operation == "SendMessageBatch" and "attempt" in call.params["Entries"][0]["MessageBody"]


@pytest.mark.parametrize("nth", [1, 3])
def test_a_sweeper_killed_in_the_middle_of_a_page_leaves_the_watermark_where_it_was(place: Place, nth: int) -> None:
    """Row 7: of four runs, some are put, and nothing else is done."""
    names = [f"report-{n}" for n in range(4)]
    for name in names:
        place.put(name, DAILY)
    place.silent.add("tick")
    place.pass_until(FIRE_AT - 5 * MINUTE - 30 * SECOND)
    place.die_after("sweep", "PutItem", RUNS, times=0)
    seen: list[AwsCall] = []

    def count(call: AwsCall) -> None:
        if call.function == "sweep" and call.operation == "PutItem" and place.is_of(call, RUNS):
            seen.append(call)
            place.traps[0].times = 1 if len(seen) == nth - 1 else 0

    place.faults = count
    place.traps[0].times = 1 if nth == 1 else 0
    place.tick()
    place.step()
    assert 0 < sum(len(place.runs(name)) for name in names) < 4
    place.silent.remove("tick")
    _assert_fired_once(place, *names)


def test_of_two_sweepers_that_both_believe_they_own_the_shard_one_makes_the_run(place: Place) -> None:
    """Row 9: one sleeps for longer than its lease, just before it puts the run, and goes on."""
    place.put("report", DAILY)
    rival = place.rival()
    met: list[Swept] = []

    def pause(call: AwsCall) -> None:
        if call.function == "sweep" and call.operation == "PutItem" and place.is_of(call, RUNS) and not met:
            place.clock.move(place.now + 56 * SECOND)
            met.append(sweep(rival, [0]))

    place.faults = pause
    _assert_fired_once(place, "report")
    assert met[0].created == 1


@pytest.mark.parametrize("applied", [True, False])
def test_a_run_whose_put_seemed_to_fail_is_one_run(place: Place, applied: bool) -> None:
    """Row 10: it took effect and the answer was lost; or it did not."""
    place.put("report", DAILY)
    struck: list[AwsCall] = []

    def lose(call: AwsCall) -> Fault | None:
        if call.function != "sweep" or call.operation != "PutItem" or not place.is_of(call, RUNS) or struck:
            return None
        struck.append(call)
        return timed_out(applied=applied)

    place.faults = lose
    _assert_fired_once(place, "report")
    puts = [one for one in place.calls if one.operation == "PutItem" and place.is_of(one, RUNS)]
    assert len(puts) == 2


def test_an_instant_that_two_versions_name_is_one_run_of_the_version_current_at_its_start(place: Place) -> None:
    """Row 11: the edit comes while a sweep that knows nothing of it plans the same instant."""
    place.put("report", DAILY)
    rival = place.rival()
    edits: list[Head] = []

    def edit(call: AwsCall) -> None:
        if call.function == "sweep" and call.operation == "PutItem" and place.is_of(call, RUNS) and not edits:
            document = {"name": "report", "command": "other", "timeout": "30s", "schedule": DAILY}
            edits.append(put(rival, DEFAULT, document, actor="test", expected=1))

    place.faults = edit
    _assert_fired_once(place, "report")
    assert [run.version for run in place.runs("report")] == [2]


def test_a_due_entry_that_was_lost_costs_minutes_and_no_run(place: Place) -> None:
    """Row 18 has no index to lose here; a hint that is never found again is the same promise, kept by the auditor."""
    place.put("report", DAILY)
    name = place.deployment.names.table(DUE)
    dynamodb = place.client("dynamodb")
    for item in dynamodb.scan(TableName=name)["Items"]:
        dynamodb.delete_item(TableName=name, Key={"pk": item["pk"], "sk": item["sk"]})
    place.silent -= {"audit"}
    place.pass_until(FIRE_AT + 20 * MINUTE)
    (row,) = place.ledger("report")
    assert row.status is FireStatus.FIRED
    assert len(place.target.of("report")) == 1
    assert_sound(place)
