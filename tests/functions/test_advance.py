"""Runs of several tasks through the real handlers: the machine sleeps, tasks end, and it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sweephand.aws import PACE
from sweephand.aws.machines import execution_name
from sweephand.calls import Succeeded
from sweephand.domain.ids import RunKey
from sweephand.domain.run import RunState
from sweephand.engine.advance import WAVES_MAX
from sweephand.local.cloud.functions import Later
from sweephand.local.cloud.machines import EVENTS_MAX
from sweephand.orders import encode_outcome
from tests.faults.place import MINUTE, SECOND, Place, opened
from tests.functions.dags import (
    PERMANENT,
    SOURCES,
    TRANSIENT,
    begun,
    chain,
    execution,
    executions,
    has_advanced,
    order,
    states,
    stop,
    task,
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened(tmp_path) as found:
        found.only(*SOURCES)
        yield found


def assert_frugal(place: Place) -> None:
    """No more than two transitions for each time that the run was advanced, and four besides; and no loose ends."""
    for one in executions(place):
        waves = sum(event["generation"] == int(one.name[-1]) for event in place.deliveries["advance"])
        assert one.transitions <= 2 * waves + 4
        assert one.events <= 8 * waves + 8
        assert one.status == "SUCCEEDED"


def test_a_chain_goes_on_as_each_task_ends(place: Place) -> None:
    key = begun(place, *chain(4))
    place.step()
    assert order(place) == ["t0", "t1", "t2", "t3"]
    run = place.look(key)
    assert (run.state, run.epoch, run.ended_at) == (RunState.SUCCEEDED, 1, place.now)
    assert len(place.deliveries["advance"]) == 5
    assert execution(place).transitions == 2 * 5 + 2
    assert_frugal(place)
    place.pass_time(PACE.looked_after)
    assert place.waiting() == 0


def test_a_task_costs_what_the_page_of_costs_says(place: Place) -> None:
    """Of such a size a write is a unit."""
    begun(place, *chain(10))
    place.step()
    written = [call for call in place.calls if call.operation in {"PutItem", "UpdateItem"}]
    assert len(written) <= 10 * 8 + 5
    assert execution(place).transitions == 10 * 2 + 4


def test_many_ends_at_once_wake_the_sleeper_a_few_times(place: Place) -> None:
    wide = [f"w{n:02}" for n in range(20)]
    key = begun(place, task("first"), *(task(name, "first") for name in wide), task("last", *wide))
    place.step()
    assert place.look(key).state is RunState.SUCCEEDED
    assert sorted(order(place)) == sorted(["first", *wide, "last"])
    assert (order(place)[0], order(place)[-1]) == ("first", "last")
    assert len(place.deliveries["advance"]) <= 6
    assert_frugal(place)


def test_a_mapped_task_runs_for_each_item_and_the_next_gets_what_they_gave(place: Place) -> None:
    answers = {"list": Succeeded(["x", "y", "z"]), **{f"load[{n}]": Succeeded(n * 10) for n in range(3)}}
    gathers = {"command": ["sum", "${tasks.load.output}"]}
    key = begun(
        place,
        task("list"),
        task("load", "list", map={"over": "${tasks.list.output}"}),
        task("sum", "load", run=gathers),
        answers=answers,
    )
    place.step()
    assert sorted(order(place)) == ["list", "load[0]", "load[1]", "load[2]", "sum"]
    assert place.look(key).state is RunState.SUCCEEDED
    assert states(place, key) == {"list": "succeeded", "load": "succeeded", "sum": "succeeded"}
    assert_frugal(place)


def test_a_failure_holds_up_what_comes_after_it_and_fails_the_run(place: Place) -> None:
    key = begun(place, task("a"), task("b", "a"), task("c", "b"), task("d", "a"), answers={"b": PERMANENT})
    place.step()
    assert states(place, key) == {"a": "succeeded", "b": "failed", "c": "upstream_failed", "d": "succeeded"}
    run = place.look(key)
    assert run.failure is not None
    assert (run.state, run.failure.message) == (RunState.FAILED, "1 of 4 tasks failed: b.")
    assert_frugal(place)


def test_a_task_is_tried_again_while_the_machine_sleeps(place: Place) -> None:
    retry = {"attempts": 3, "backoff": "fixed", "delay": "1m"}
    answers = {"b": lambda effect: TRANSIENT if effect.attempt < 3 else Succeeded()}
    key = begun(place, task("a"), task("b", "a", retry=retry), answers=answers)
    place.pass_time(3 * MINUTE)
    assert order(place) == ["a", "b", "b", "b"]
    assert place.look(key).state is RunState.SUCCEEDED
    assert len(place.deliveries["advance"]) == 3
    assert_frugal(place)


def test_cancelling_a_run_wakes_its_execution_which_ends(place: Place) -> None:
    retry = {"attempts": 9, "backoff": "fixed", "delay": "1h"}
    key = begun(place, task("a", retry=retry), task("b", "a"), answers={"a": TRANSIENT})
    place.step()
    assert execution(place).status == "RUNNING"
    status, _ = place.api("POST", f"/v1/jobs/job/runs/{key.run_id}/cancel", {})
    assert status == 200
    place.step()
    assert states(place, key) == {"a": "cancelled", "b": "cancelled"}
    assert place.look(key.of_task("a")).state is RunState.CANCELLED
    assert_frugal(place)
    place.pass_time(2 * PACE.looked_after)
    assert order(place) == ["a"]


def test_a_run_that_takes_longer_than_it_may_is_ended_with_its_tasks(place: Place) -> None:
    retry = {"attempts": 9, "backoff": "fixed", "delay": "1h"}
    key = begun(place, task("a", retry=retry), task("b", "a"), answers={"a": TRANSIENT}, runTimeout="15m")
    place.pass_time(16 * MINUTE)
    run = place.look(key)
    assert run.failure is not None
    assert (run.state, run.failure.error) == (RunState.FAILED, "Timeout")
    assert states(place, key) == {"a": "cancelled", "b": "cancelled"}
    assert_frugal(place)


def test_a_long_task_is_waited_for_by_both_machines(place: Place) -> None:
    key = begun(place, task("a", timeout="14m"), task("b", "a"))
    place.target.does["job"] = lambda effect: Later(
        encode_outcome(Succeeded()), 12 * MINUTE if effect.run.task == "a" else 0 * SECOND
    )
    place.pass_time(13 * MINUTE)
    assert place.look(key).state is RunState.SUCCEEDED
    looks = [event for event in place.deliveries["advance"] if "Error" in event["came"]]
    assert len(looks) == 2
    assert_frugal(place)


def test_a_task_whose_message_was_lost_is_sent_again_by_the_execution_that_looks(place: Place) -> None:
    key = begun(place, task("a"), task("b", "a"))
    place.only("normal")
    place.step()
    place.only("machines")
    place.step()
    place.only("normal")
    place.lost.add("attempt")
    place.step()
    place.lost.clear()
    place.only(*SOURCES)
    place.pass_time(20 * MINUTE)
    assert place.look(key).state is RunState.SUCCEEDED
    assert order(place) == ["a", "b"]


def test_an_execution_goes_on_in_the_next_before_its_history_is_full(place: Place) -> None:
    key = begun(place, *chain(8))
    while "t2" not in order(place):
        for source in place.deployment.sources:
            if source.name in SOURCES:
                source.poll()
    has_advanced(place, key, WAVES_MAX - 2)
    place.step()
    assert place.look(key).state is RunState.SUCCEEDED
    assert order(place) == [f"t{n}" for n in range(8)]
    assert [one.name for one in executions(place)] == [execution_name(key, generation) for generation in (0, 1)]
    progress = place.world.dags.get(key)
    assert progress is not None
    assert (progress.generation, progress.waves < 10) == (1, True)
    assert_frugal(place)


def test_an_execution_that_dies_is_followed_by_the_next(place: Place) -> None:
    retry = {"attempts": 2, "backoff": "fixed", "delay": "3m"}
    answers = {"a": lambda effect: TRANSIENT if effect.attempt < 2 else Succeeded()}
    key = begun(place, task("a", retry=retry), task("b", "a"), answers=answers)
    place.step()
    stop(place, execution(place))
    place.pass_time(9 * MINUTE)
    assert order(place) == ["a", "a"]
    place.pass_time(2 * MINUTE)
    assert place.look(key).state is RunState.SUCCEEDED
    assert order(place) == ["a", "a", "b"]
    assert [one.status for one in executions(place)] == ["ABORTED", "SUCCEEDED"]


def test_an_execution_that_dies_before_it_did_anything_is_followed_by_one_that_begins(place: Place) -> None:
    key = begun(place, *chain(2))
    place.only("normal")
    place.step()
    stop(place, execution(place))
    place.only(*SOURCES)
    place.pass_time(PACE.looked_after + SECOND)
    assert order(place) == ["t0", "t1"]
    assert place.look(key).state is RunState.SUCCEEDED


def test_names_of_executions_are_such_as_step_functions_allows() -> None:
    key = RunKey.of(f"default/{'j' * 60}/20261116T060000Z")
    assert len(execution_name(key, 99_999)) <= 80
    assert execution_name(key, 0) != execution_name(key, 1)


@pytest.mark.soak
def test_three_thousand_tasks_one_after_another_take_two_executions(place: Place) -> None:
    key = begun(place, *chain(3_000))
    place.pass_time(timedelta(hours=1))
    assert place.look(key).state is RunState.SUCCEEDED
    assert order(place) == [f"t{n}" for n in range(3_000)]
    assert len(executions(place)) == 2
    assert max(one.events for one in executions(place)) < EVENTS_MAX
    assert_frugal(place)
