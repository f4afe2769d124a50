"""Backfills on AWS, through the real handlers: who goes on with one, and what happens where somebody does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from sweephand.domain.backfill import Backfill, BackfillKey, BackfillState, Wanted
from sweephand.domain.cost import backfill_cost
from sweephand.domain.ids import JobKey
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.backfill import LOOK_EVERY, LOOKS_MAX
from sweephand.engine.backfills import (
    cancel_backfill,
    found_backfill,
    pause_backfill,
    resume_backfill,
    start_backfill,
)
from sweephand.local.cloud.machines import Execution
from sweephand.topology import BACKFILLING, CONTROL, RUNS
from tests.faults.place import MINUTE, START, Place, opened

DAY: Final = timedelta(days=1)
COUNT: Final = 6


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened(tmp_path) as found:
        found.only("low", "machines")
        yield found


def asked(place: Place, *, max_active: int = 2, **more: Any) -> BackfillKey:
    """A backfill of the six days before its job was there."""
    job: JobKey = place.put("daily", "0 3 * * *")
    wanted = Wanted(START - COUNT * DAY, START, max_active=max_active, **more)
    return start_backfill(place.world, job, wanted, actor="test").key


def now(place: Place, key: BackfillKey) -> Backfill:
    return found_backfill(place.world, key)


def made(place: Place, key: BackfillKey) -> list[Run]:
    found = place.world.runs.of_job(key.job, newest_first=False, limit=100)
    return [run for run in found if run.trigger is Trigger.BACKFILL]


def executions(place: Place) -> list[Execution]:
    machine = place.deployment.names.machine(BACKFILLING)
    return [one for one in place.deployment.machines.executions if one.machine == machine]


def assert_done_once(place: Place, key: BackfillKey) -> None:
    ended = now(place, key)
    assert (ended.state, ended.made, dict(ended.ended)) == (BackfillState.DONE, COUNT, {"succeeded": COUNT})
    assert Counter(effect.run.run_id for effect in place.target.effects) == Counter(
        run.key.run_id for run in made(place, key)
    )


def test_its_machine_alone_brings_it_to_its_end(place: Place) -> None:
    key = asked(place)
    place.pass_time(4 * LOOK_EVERY)
    assert_done_once(place, key)
    (execution,) = executions(place)
    assert execution.status == "SUCCEEDED"
    assert len(place.deliveries["backfill"]) == 3, "at once, and whenever it looked"
    assert execution.transitions == 1 + 3 * 3
    assert execution.events / execution.transitions * 3 * LOOKS_MAX < 25_000, "one execution can look so often"


def test_the_stream_brings_it_to_its_end_long_before_its_machine_would(place: Place) -> None:
    place.only("low", "machines", "project")
    key = asked(place, max_active=1)
    place.pass_time(MINUTE)
    assert_done_once(place, key)
    place.pass_time(LOOK_EVERY)
    assert [one.status for one in executions(place)] == ["SUCCEEDED"]


def test_where_its_execution_is_gone_the_audit_goes_on(place: Place) -> None:
    place.only("low", "audit")
    key = asked(place)
    place.pass_time(8 * LOOK_EVERY)
    assert_done_once(place, key)


@pytest.mark.parametrize("operation", ["PutItem", "Query", "GetItem", "BatchGetItem"])
@pytest.mark.parametrize("after", [False, True])
def test_a_function_that_dies_anywhere_is_called_again_and_nothing_is_done_twice(
    place: Place, operation: str, after: bool
) -> None:
    die = place.die_after if after else place.die_before
    for table in (CONTROL, RUNS):
        die("backfill", operation, table, times=2)
    key = asked(place)
    place.pass_time(6 * LOOK_EVERY)
    assert_done_once(place, key)


def test_messages_that_were_lost_are_made_up_for(place: Place) -> None:
    place.only("low", "machines", "tick", "sweep")
    lost = iter([True, True, True])
    place.transit = lambda entry: [] if next(lost, False) else [entry]
    key = asked(place, max_active=1)
    place.deployment.sqs.purge_queue(QueueUrl=place._url("low"))
    place.pass_time(15 * LOOK_EVERY)
    assert_done_once(place, key)


def test_paused_nobody_looks_and_resumed_the_next_execution_does(place: Place) -> None:
    key = asked(place)
    pause_backfill(place.world, key, actor="test")
    place.pass_time(20 * MINUTE)
    assert [one.status for one in executions(place)] == ["SUCCEEDED"]
    assert now(place, key).came_to(RunState.SUCCEEDED) == 2
    resume_backfill(place.world, key, actor="test")
    place.pass_time(5 * LOOK_EVERY)
    assert_done_once(place, key)
    assert [one.name[-2:] for one in executions(place)] == ["-0", "-1"]


def test_cancelled_it_leaves_nothing_queued_and_its_execution_ends(place: Place) -> None:
    key = asked(place, max_active=1)
    place.step()
    place.only("machines")
    place.pass_time(LOOK_EVERY)
    assert [run.state for run in made(place, key) if not run.is_terminal] == [RunState.QUEUED]
    cancel_backfill(place.world, key, actor="test")
    place.only("low", "machines")
    place.pass_time(2 * LOOK_EVERY)
    assert now(place, key).is_over
    assert not [run for run in made(place, key) if not run.is_terminal]
    assert [one.status for one in executions(place)] == ["SUCCEEDED"]


def test_an_execution_that_has_looked_often_hands_on(place: Place) -> None:
    key = asked(place)
    told = {"backfill": str(key), "generation": 0, "came": {"looks": LOOKS_MAX}}
    assert place.deployment.invoke("backfill", told)["step"] == "stop"
    place.pass_time(4 * LOOK_EVERY)
    assert_done_once(place, key)
    assert [one.name[-2:] for one in executions(place)] == ["-0", "-1"]
    assert len([one for one in place.deliveries["backfill"] if one["generation"] == 0]) == 2, "the older one stopped"


def test_what_it_writes_is_what_the_estimate_says(place: Place) -> None:
    place.only("low", "machines", "project")
    asked(place)
    place.pass_time(MINUTE)
    written = 0
    for call in place.calls:
        match call.operation:
            case "PutItem" | "UpdateItem":
                written += 1
            case "BatchWriteItem":
                written += sum(map(len, call.params["RequestItems"].values()))
            case "TransactWriteItems":
                written += 2 * len(call.params["TransactItems"])
            case _:
                pass
    # The first two were put by whoever asked, which is no function here: what those took is not in the count.
    expected = backfill_cost(COUNT).write_units
    assert 0.5 * expected <= written <= expected
