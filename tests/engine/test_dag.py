"""Runs of several tasks: released as their needs are met, ended when all are over, on both stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.dag import state_of
from sweephand.domain.ids import RunKey
from sweephand.domain.output import Kept
from sweephand.domain.run import Run, RunState
from sweephand.domain.task import TaskState
from sweephand.engine.cancel import cancel
from sweephand.engine.complete import complete
from sweephand.engine.hear import hear
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.mark import Verdict, mark
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.restart import restart_of
from sweephand.engine.share import put_pool
from sweephand.engine.subrun import start_subrun
from sweephand.engine.trigger import trigger
from sweephand.errors import Conflict
from sweephand.logs import LogKey
from sweephand.messages import AttemptRun, Elsewhere
from sweephand.ports import Lane, Letter, World
from tests.engine.faults import dying_before, with_another
from tests.engine.world import HOLD, NS, PERMANENT, RUN_LANES, TRANSIENT, Crash, Town, job

COMMAND = {"command": ["true"]}


def task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "needs": list(needs), "run": COMMAND, **more}


def begun(town: Town, *tasks: dict[str, Any], **more: Any) -> RunKey:
    put(town.world, NS, {"name": "job", "tasks": list(tasks), **more}, actor="ann", expected=None)
    return trigger(town.world, job(), params={"region": "eu"}).key


def states(town: Town, key: RunKey) -> dict[str, str]:
    """Every task's state, as the last advance knew it."""
    run, progress = town.run(key), town.stores.dags.get(key)
    definition = version_of(town.world, key.job, run.version or 0).job
    assert definition is not None
    tasks = graph_of(town.world, key.job, run.version or 0, definition).tasks
    return {one.id: str(state_of(byte)) for one, byte in zip(tasks, progress.states, strict=True)}


def order(town: Town) -> list[str]:
    """The tasks in the order in which they were begun."""
    return [call.run.task for call in town.calls()]


def by_task(answers: dict[str, Any]) -> Callable[[Call], Outcome]:
    def rule(call: Call) -> Outcome:
        answer = answers.get(call.run.key.task, Succeeded())
        found: Outcome = answer(call) if callable(answer) else answer
        return found

    return rule


def test_tasks_start_when_what_they_need_has_succeeded(either: Town) -> None:
    key = begun(either, task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c"))
    either.drive()
    assert order(either)[0] == "a"
    assert order(either)[-1] == "d"
    assert sorted(order(either)) == ["a", "b", "c", "d"]
    run = either.run(key)
    assert (run.state, run.epoch) == (RunState.SUCCEEDED, 1)
    assert set(states(either, key).values()) == {"succeeded"}


@pytest.mark.parametrize("call", ["runs.move", "dags.note", "dags.waking", "queue.send", "dags.woken"])
def test_two_parents_finishing_at_the_same_moment_wake_once_and_start_the_child_once(either: Town, call: str) -> None:
    """All of the one's end comes between two steps of the other's."""
    either.target.rules["job"] = by_task({"a": Elsewhere(), "b": Elsewhere()})
    key = begun(either, task("a"), task("b"), task("c", "a", "b"))
    either.drive()

    def end(world: World, name: str) -> None:
        complete(world, key.of_task(name), epoch=1, outcome=Succeeded())

    end(with_another(either.world, call, lambda: end(either.another(), "b")), "a")
    assert either.drive() == ["looked after", "succeeded", "looked after"]
    assert order(either) == ["a", "b", "c"]
    assert either.run(key).state is RunState.SUCCEEDED


def test_a_failure_holds_up_what_comes_after_it_and_fails_the_run(either: Town) -> None:
    either.target.rules["job"] = by_task({"b": PERMANENT})
    key = begun(either, task("a"), task("b", "a"), task("c", "b"), task("d", "a"))
    either.drive()
    assert states(either, key) == {"a": "succeeded", "b": "failed", "c": "upstream_failed", "d": "succeeded"}
    run = either.run(key)
    assert run.state is RunState.FAILED
    assert run.failure is not None
    assert run.failure.message == "1 of 4 tasks failed: b."


def test_a_task_is_tried_again_by_its_own_policy(either: Town) -> None:
    either.target.rules["job"] = by_task({"b": lambda call: TRANSIENT if call.run.attempt < 3 else Succeeded("ok")})
    retry = {"attempts": 3, "backoff": "fixed", "delay": "10s"}
    key = begun(either, task("a"), task("b", "a", retry=retry))
    either.advance(minutes=1)
    assert order(either) == ["a", "b", "b", "b"]
    assert either.run(key).state is RunState.SUCCEEDED
    assert either.run(key).output == "ok"


def test_a_task_gets_the_outputs_that_its_templates_name_and_the_runs_parameters(either: Town) -> None:
    seen: list[Call] = []

    def look(call: Call) -> Outcome:
        seen.append(call)
        return Succeeded()

    either.target.rules["job"] = by_task({"a": Succeeded({"path": "s3://x"}), "b": look})
    begun(either, task("a"), {"id": "b", "needs": ["a"], "run": {"command": ["load", "${tasks.a.output.path}"]}})
    either.drive()
    assert seen[0].known["tasks"] == {"a": {"output": {"path": "s3://x"}}}
    assert seen[0].params["region"] == "eu"
    assert seen[0].idempotency_key.endswith("/b")


def test_a_mapped_task_runs_once_for_each_item(either: Town) -> None:
    items: list[Any] = []

    def load(call: Call) -> Outcome:
        items.append(call.known["item"])
        return Succeeded(call.known["index"] * 10)

    def total(call: Call) -> Outcome:
        return Succeeded(sum(call.known["tasks"]["load"]["output"]))

    rules = {"list": Succeeded(["x", "y", "z"]), "sum": total, **{f"load[{n}]": load for n in range(3)}}
    either.target.rules["job"] = by_task(rules)
    key = begun(
        either,
        task("list"),
        task("load", "list", map={"over": "${tasks.list.output}"}),
        {"id": "sum", "needs": ["load"], "run": {"command": ["sum", "${tasks.load.output}"]}},
    )
    either.drive()
    assert sorted(items) == ["x", "y", "z"]
    assert either.run(key).output == 30


def test_of_a_cancelled_run_no_task_starts_and_those_that_run_are_fenced(either: Town) -> None:
    def cancels(call: Call) -> Outcome:
        cancel(either.world, call.run.key.whole, actor="ann")
        either.drive()
        return Succeeded()

    either.target.rules["job"] = by_task({"b": cancels})
    key = begun(either, task("a"), task("b", "a"), task("c", "b"))
    either.drive()
    assert order(either) == ["a", "b"]
    assert either.run(key).state is RunState.CANCELLED
    assert states(either, key) == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    assert either.run(key.of_task("b")).state is RunState.CANCELLED


def test_a_run_that_takes_longer_than_it_may_is_ended_with_its_tasks(either: Town) -> None:
    retry = {"attempts": 9, "backoff": "fixed", "delay": "1h"}
    either.target.rules["job"] = by_task({"a": TRANSIENT})
    key = begun(either, task("a", retry=retry), task("b", "a"), runTimeout="15m")
    either.advance(minutes=20)
    run = either.run(key)
    assert (run.state, run.failure and run.failure.error) == (RunState.FAILED, "Timeout")
    assert states(either, key) == {"a": "cancelled", "b": "cancelled"}


def test_a_task_whose_message_was_lost_is_sent_again(either: Town) -> None:
    key = begun(either, task("a"), task("b", "a"))
    lost: list[Run] = []
    while not lost:
        for delivery in either.stores.inbox.receive(Lane.NORMAL, most=10, hold=either.world.pace.lease_grace):
            if '/a"' in delivery.body:
                either.stores.inbox.delete([delivery])
                lost.append(either.run(key.of_task("a")))
            else:
                either.deliver(either.world, delivery)
    either.advance(minutes=25)
    assert either.run(key).state is RunState.SUCCEEDED


def test_instances_that_ended_before_anybody_said_that_they_were_released_are_not_forgotten(either: Town) -> None:
    """Whoever released them dies before the vector knows of them."""
    either.target.rules["job"] = by_task({"list": Succeeded(["x", "y"])})
    key = begun(either, task("list"), task("load", "list", map={"over": "${tasks.list.output}"}), task("sum", "load"))
    either.drive(dying_before(either.world, "dags.absorb", nth=2))
    assert sorted(order(either)) == ["list", "load[0]", "load[1]"]
    either.advance(minutes=2)
    assert either.run(key).state is RunState.SUCCEEDED
    assert sorted(order(either)) == ["list", "load[0]", "load[1]", "sum"]


def test_instances_that_a_rerun_takes_over_are_known_at_once(either: Town) -> None:
    """Whoever hears of changes may have done so before the rerun had a progress, and nobody says it again."""
    answers: dict[str, Any] = {"list": Succeeded(["x", "y", "z"]), "load[1]": PERMANENT}
    either.target.rules["job"] = by_task(answers)
    key = begun(either, task("list"), task("load", "list", map={"over": "${tasks.list.output}"}), task("sum", "load"))
    either.drive()
    assert either.run(key).state is RunState.FAILED
    del answers["load[1]"]
    either.target.calls.clear()
    again = rerun(either.world, key, start="failed").key
    either.drive()
    assert order(either) == ["load[1]", "sum"]
    assert either.run(again).state is RunState.SUCCEEDED


@pytest.mark.parametrize("call", ["runs.create", "dags.begin", "dags.absorb"])
def test_what_is_over_by_a_word_is_so_once_whoever_began_the_rerun_dies(either: Town, call: str) -> None:
    answers: dict[str, Any] = {"b": PERMANENT}
    either.target.rules["job"] = by_task(answers)
    key = begun(either, task("a"), task("b", "a"), task("c", "b"))
    either.drive()
    assert either.run(key).state is RunState.FAILED
    del answers["b"]
    either.target.calls.clear()
    asked = restart_of(either.world, either.run(key), "failed", marks={"b": "succeeded"}, actor="ann")
    again = rerun(either.world, key, start=asked.start, marks=asked.marks).key
    either.drive(dying_before(either.world, call))
    either.advance(minutes=12)
    assert either.run(again).state is RunState.SUCCEEDED
    assert order(either) == ["c"]
    assert str(either.run(again.of_task("b")).reason) == "marked: as succeeded by ann"


def test_a_run_that_is_cancelled_while_somebody_advances_it_ends_with_its_tasks(either: Town) -> None:
    """Nobody sleeps at that moment, so nobody can be woken: whoever advances it must find out."""
    either.target.rules["job"] = by_task({"a": Elsewhere()})
    key = begun(either, task("a"), task("b"), task("c", "a"))

    def meanwhile() -> None:
        cancel(either.world, key, actor="ann")

    either.drive(with_another(either.world, "dags.absorb", meanwhile, nth=2))
    assert states(either, key) == {"a": "cancelled", "b": "succeeded", "c": "cancelled"}


def test_a_task_that_is_put_while_its_run_ends_does_not_outlive_it(town: Town) -> None:
    """Its message gets lost: whoever put it must find out."""
    key = begun(town, task("a"), task("b", "a"))

    def meanwhile() -> None:
        cancel(town.world, key, actor="ann")
        town.sleep_through(seconds=61)
        town.drive()  # another has seen to its tasks

    slow = with_another(town.world, "runs.create", meanwhile)
    town.drive(with_another(slow, "dags.absorb", lambda: lose_what_is_visible(town)))
    assert town.run(key.of_task("a")).state is RunState.CANCELLED


def test_a_run_whose_time_is_up_ends_tasks_that_nobody_was_sent_to(town: Town) -> None:
    key = begun(town, task("a"), task("b"), runTimeout="3m")
    assert [deliver_next(town) for _ in range(3)] == ["begun", "looked after", "succeeded"]
    lose_what_is_visible(town)
    town.advance(minutes=6)
    assert town.run(key).state is RunState.FAILED
    assert {town.run(key.of_task(one)).state for one in "ab"} == {RunState.SUCCEEDED, RunState.CANCELLED}


def test_a_run_goes_on_at_once_when_its_claimer_dies_and_the_message_is_another_s(town: Town) -> None:
    key = begun(town, task("a"), task("b", "a"))
    [delivery] = (one for lane in RUN_LANES for one in town.stores.inbox.receive(lane, most=1, hold=HOLD))

    def meanwhile() -> None:
        town.deliver(dying_before(town.another(), "dags.begin"), delivery)

    assert town.deliver(with_another(town.world, "runs.move", meanwhile), delivery) == "lost race"
    town.advance(seconds=5)
    assert town.run(key).state is RunState.SUCCEEDED


def deliver_next(town: Town) -> str:
    """Deliver one message; what came of it."""
    found = (one for lane in RUN_LANES for one in town.stores.inbox.receive(lane, most=1, hold=HOLD))
    return town.deliver(town.world, next(found))


def lose_what_is_visible(town: Town) -> None:
    """Whatever was sent to be looked at now never arrives."""
    for lane in RUN_LANES:
        town.stores.inbox.delete(town.stores.inbox.receive(lane, most=10, hold=HOLD))


def test_where_a_failure_stops_the_run_no_further_instance_starts(either: Town) -> None:
    put_pool(either.world, NS, "one", 1, expected=0)
    either.target.rules["job"] = by_task({"load[0]": Elsewhere()})
    mapped = task("load", map={"over": [1, 2, 3, 4]}, pool="one")
    key = begun(either, mapped, task("sum", "load"), onFailure="stop")
    either.drive()
    complete(either.world, key.of_task("load[0]"), epoch=1, outcome=PERMANENT)
    either.advance(minutes=5)
    assert either.run(key).state is RunState.FAILED
    assert order(either) == ["load[0]", "load[1]"]  # which got its place before anybody looked
    assert either.run(key.of_task("load[3]")).state is RunState.CANCELLED
    assert states(either, key) == {"load": "failed", "sum": "cancelled"}


def test_a_run_that_succeeded_in_part_says_so(either: Town) -> None:
    either.target.rules["job"] = by_task({"a": PERMANENT})
    key = begun(either, task("a"), task("b", "a", when="one_failed"))
    either.drive()
    run = either.run(key)
    assert run.state is RunState.SUCCEEDED
    assert str(run.reason) == "partial: 1 of 2 tasks failed: a, and what came after made up for it"


def test_an_item_that_is_too_large_fails_its_map(either: Town) -> None:
    """It would not fit into the run of an instance: an advance that cannot put it would be made again for ever."""
    kept = json.dumps(["small", "x" * 500_000]).encode()

    def listing(call: Call) -> Outcome:
        log = LogKey(call.run.key.whole, "list", call.run.attempt)
        either.stores.artifacts.keep_output(log, kept)
        return Succeeded(Kept(call.run.key.run_id, "list", call.run.attempt, len(kept)))

    either.target.rules["job"] = by_task({"list": listing})
    key = begun(either, task("list"), task("load", "list", map={"over": "${tasks.list.output}"}), task("sum", "load"))
    either.drive()
    assert states(either, key) == {"list": "succeeded", "load": "failed", "sum": "upstream_failed"}


def test_more_ends_than_can_be_named_are_found_all_the_same(either: Town) -> None:
    """A thousand instances end while nobody advances the run, and their names fill what an item of DynamoDB holds."""
    either.target.rules["job"] = by_task({"a": Elsewhere()})
    key = begun(either, task("a"), task("b", "a"))
    either.drive()
    for batch in range(10):
        names = [f"{'a' * 120}[{batch}{number:04d}]" for number in range(400)]
        assert either.stores.dags.note(key, names) is not None
    noted = either.stores.dags.get(key)
    run = either.run(key.of_task("a"))
    either.stores.runs.move(run, run.succeeded(now=either.clock.now(), nonce="n", output=None, reason=None))
    hear(either.world, [either.run(key.of_task("a"))])
    either.drive()
    assert noted.is_crowded
    assert either.run(key).state is RunState.SUCCEEDED
    assert order(either) == ["a", "b"]


def test_a_run_goes_on_with_the_version_that_it_began_with(either: Town) -> None:
    """The job is edited while its first task runs: other tasks, and another command of the one that stays."""
    seen: list[tuple[str, Any]] = []

    def rule(call: Call) -> Outcome:
        seen.append((call.run.key.task, call.task.spec["value"]))
        if call.run.key == key.of_task("a"):
            edited = [task("new"), {"id": "b", "needs": ["new"], "run": {"command": ["edited"]}}]
            put(either.world, NS, {"name": "job", "tasks": edited}, actor="ann", expected=1)
        return Succeeded()

    either.target.rules["job"] = rule
    key = begun(either, task("a"), task("b", "a"), task("c", "b"))
    either.drive()
    assert seen == [("a", ["true"]), ("b", ["true"]), ("c", ["true"])]
    assert states(either, key) == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    assert {run.version for run in [either.run(key), *either.tasks(key)]} == {1}
    seen.clear()
    after = trigger(either.world, job()).key
    either.drive()
    assert seen == [("new", ["true"]), ("b", ["edited"])]
    assert (either.run(after).version, either.run(after).state) == (2, RunState.SUCCEEDED)


def test_a_task_of_a_run_whose_time_has_not_come_is_not_marked(either: Town) -> None:
    """The run would begin as if nobody had said anything."""
    document = {"name": "job", "schedule": "5 12 * * *", "tasks": [task("a"), task("b", "a")]}
    put(either.world, NS, document, actor="ann", expected=None)
    (planned,) = either.runs()
    assert planned.state is RunState.PLANNED
    with pytest.raises(Conflict, match="has not begun"):
        mark(either.world, planned.key, "a", Verdict(TaskState.FAILED, "ann"))
    assert not either.tasks(planned.key)


def test_the_tasks_of_a_started_run_end_with_it_although_whoever_cancels_it_dies(either: Town) -> None:
    put(either.world, NS, {"name": "other", "tasks": [task("x"), task("y", "x")]}, actor="ann", expected=None)

    def starts(call: Call) -> Any:
        start_subrun(either.world, call.run, call.task, {})
        return Elsewhere()

    either.target.rules.update(job=by_task({"sub": starts}), other=by_task({"x": Elsewhere()}))
    key = begun(either, {"id": "sub", "run": {"job": "other"}}, task("b"))
    either.drive()
    (started,) = either.runs("other")
    dying = dying_before(either.world, "dags.note", nth=2)  # the task's end is noted, that of the other run is not
    with suppress(Crash):
        mark(dying, key, "sub", Verdict(TaskState.CANCELLED, "ann"))
    assert either.run(started.key).state is RunState.CANCELLED
    either.advance(minutes=3)
    assert either.run(started.key.of_task("x")).state is RunState.CANCELLED


def test_a_timer_whose_bearer_stopped_before_anybody_was_sent_to_advance_the_run_does_so_itself(either: Town) -> None:
    key = begun(either, task("a"), task("b", "a"))
    either.stores.inbox.delete(either.stores.inbox.receive(Lane.NORMAL, most=1, hold=HOLD))
    either.world.queue.send([Letter(AttemptRun(key, timer=either.clock.at))])
    assert either.drive(dying_before(either.world, "queue.send", nth=2)) == ["crash"]  # the first is the run's timer
    assert either.run(key).state is RunState.RUNNING
    either.advance(minutes=2)  # the message comes back long before the run's lease ends
    assert either.run(key).state is RunState.SUCCEEDED
