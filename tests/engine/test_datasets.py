"""Datasets: updates make runs of who subscribes, once each."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.job import JobStatus
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.datasets import dataset_of, datasets_of
from sweephand.engine.delete import delete
from sweephand.engine.follow import follow
from sweephand.engine.publish import publish_outside
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.trigger import trigger
from sweephand.errors import InvalidInput, NotFound
from sweephand.ports import World
from tests.engine.faults import dying_before, with_another
from tests.engine.world import NS, PERMANENT, Crash, Town, code_of, job


def publisher(town: Town, name: str, *datasets: str, expected: int | None = None, **more: Any) -> None:
    put(
        town.world,
        NS,
        {"name": name, "command": "true", "publishes": list(datasets), **more},
        actor="ann",
        expected=expected,
    )


def subscriber(town: Town, rule: Any, name: str = "job", *, expected: int | None = None, **more: Any) -> None:
    document = {"name": name, "command": "true", "schedule": {"datasets": rule}, **more}
    put(town.world, NS, document, actor="ann", expected=expected)


def succeed(town: Town, name: str) -> Run:
    town.clock.at += timedelta(seconds=1)
    key = trigger(town.world, job(name)).key
    town.drive()
    run = town.run(key)
    assert run.state is RunState.SUCCEEDED
    return run


def told(town: Town, *runs: Run, world: World | None = None) -> int:
    return follow(world or town.world, "batch", runs)


def causes(town: Town, name: str = "job") -> list[dict[str, str]]:
    """Of each run, which update of each dataset made it."""
    return [{one: update["id"] for one, update in run.params["datasets"].items()} for run in town.runs(name)]


def id_of(run: Run) -> str:
    return str(run.key).partition("/")[2]


def test_a_success_updates_its_dataset_and_runs_the_subscriber_once(either: Town) -> None:
    publisher(either, "load", "sales.daily")
    subscriber(either, ["sales.daily"])
    first, second = succeed(either, "load"), succeed(either, "load")
    assert told(either, second, first, first) == 2
    assert told(either, first, second) == 0
    either.drive()
    assert [(run.trigger, run.state) for run in either.runs()] == [(Trigger.DEPENDENCY, RunState.SUCCEEDED)] * 2
    assert causes(either) == [{"sales.daily": id_of(first)}, {"sales.daily": id_of(second)}]
    seen = {call.params["datasets"]["sales.daily"]["at"] for call in either.calls()}
    assert seen == {f"{run.ended_at:%Y-%m-%dT%H:%M:%S.%fZ}" for run in (first, second)}


def test_a_failure_updates_nothing(town: Town) -> None:
    publisher(town, "load", "sales")
    subscriber(town, ["sales"])
    town.target.answers("load", PERMANENT)
    trigger(town.world, job("load"))
    town.drive()
    assert town.follow("load") == 0
    found = dataset_of(town.world, NS, "sales")
    assert found is not None
    assert found.updated_at is None


def test_all_waits_for_an_update_of_each_since_the_last_run(either: Town) -> None:
    publisher(either, "one", "left")
    publisher(either, "two", "right")
    subscriber(either, {"all": ["left", "right"]})
    stale, left = succeed(either, "one"), succeed(either, "one")
    assert told(either, stale, left) == 0
    right = succeed(either, "two")
    assert told(either, right, left) == 1
    assert told(either, succeed(either, "two"), right, left) == 0
    assert told(either, succeed(either, "one")) == 1
    assert causes(either)[0] == {"left": id_of(left), "right": id_of(right)}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_all_runs_once_in_whatever_order_it_is_told(town: Town, order: tuple[int, ...]) -> None:
    names = ("a", "b", "c")
    for name in names:
        publisher(town, f"load-{name}", name)
    subscriber(town, list(names))
    runs = [succeed(town, f"load-{name}") for name in names]
    assert sum(told(town, runs[place]) for place in (*order, *order)) == 1


def test_any_runs_for_each_update_of_each(either: Town) -> None:
    publisher(either, "one", "left")
    publisher(either, "two", "right")
    subscriber(either, {"any": ["left", "right"]})
    left, right = succeed(either, "one"), succeed(either, "two")
    assert told(either, left, right, left) == 2
    assert causes(either) == [{"left": id_of(left)}, {"right": id_of(right)}]


@pytest.mark.parametrize("quantity", ["all", "any"])
def test_two_datasets_that_one_success_updates_make_one_run(either: Town, quantity: str) -> None:
    publisher(either, "load", "left", "right", "unrelated")
    subscriber(either, {quantity: ["left", "right"]})
    run = succeed(either, "load")
    assert [told(either, run), told(either, run)] == [1, 0]
    assert causes(either) == [{"left": id_of(run), "right": id_of(run)}]


def test_a_task_publishes_when_it_succeeds_not_when_its_run_does(either: Town) -> None:
    tasks = [
        {"id": "export", "run": {"command": ["true"]}, "publishes": ["rows"]},
        {"id": "check", "run": {"command": ["true"]}, "needs": ["export"]},
    ]
    put(either.world, NS, {"name": "up", "tasks": tasks, "publishes": ["checked"]}, actor="ann", expected=None)
    subscriber(either, ["rows"], "early")
    subscriber(either, ["checked"], "late")
    whole = succeed(either, "up")
    export, check = (either.run(whole.key.of_task(one)) for one in ("export", "check"))
    assert told(either, check) == 0
    assert told(either, export) == 1
    assert causes(either, "early") == [{"rows": f"up/{whole.key.run_id}/export"}]
    assert either.runs("late") == []
    assert told(either, whole, export) == 1
    assert causes(either, "late") == [{"checked": f"up/{whole.key.run_id}"}]


def test_the_only_task_of_a_job_publishes_with_its_run(town: Town) -> None:
    tasks = [{"id": "export", "run": {"command": ["true"]}, "publishes": ["rows"]}]
    put(town.world, NS, {"name": "up", "tasks": tasks, "publishes": ["rows", "more"]}, actor="ann", expected=None)
    subscriber(town, {"all": ["rows", "more"]})
    assert told(town, succeed(town, "up")) == 1


def test_what_a_rerun_carries_over_is_not_published_again(town: Town) -> None:
    tasks = [
        {"id": "export", "run": {"command": ["true"]}, "publishes": ["rows"]},
        {"id": "check", "run": {"command": ["true"]}, "needs": ["export"]},
    ]
    put(town.world, NS, {"name": "up", "tasks": tasks}, actor="ann", expected=None)
    subscriber(town, ["rows"])
    fails = [PERMANENT]
    town.target.rules["up"] = lambda call: fails.pop() if call.run.key.task == "check" and fails else Succeeded()
    key = trigger(town.world, job("up")).key
    town.drive()
    assert town.run(key).state is RunState.FAILED
    assert told(town, *town.stores.runs.tasks(key, limit=10)) == 1
    again = rerun(town.world, key, start="failed")
    town.drive()
    carried = town.run(again.key.of_task("export"))
    assert (carried.state, town.run(again.key).state) == (RunState.SUCCEEDED, RunState.SUCCEEDED)
    assert told(town, carried) == 0


def test_an_update_from_before_the_subscriber_makes_no_run(either: Town) -> None:
    publisher(either, "load", "sales")
    before = succeed(either, "load")
    either.clock.at += timedelta(seconds=1)
    subscriber(either, ["sales"])
    assert told(either, before) == 0
    assert either.audit().released == 0


def test_an_update_belongs_to_the_version_in_force_when_it_came(town: Town) -> None:
    publisher(town, "load", "sales")
    subscriber(town, ["sales"])
    success = succeed(town, "load")
    town.clock.at += timedelta(seconds=1)
    subscriber(town, ["other"], expected=1)
    assert [told(town, success), told(town, success)] == [1, 0]
    assert told(town, succeed(town, "load")) == 0


def test_a_paused_subscriber_gets_a_skipped_run_with_the_reason(either: Town) -> None:
    publisher(either, "load", "sales")
    subscriber(either, ["sales"])
    either.pause()
    told(either, succeed(either, "load"))
    either.drive()
    assert [(run.state, code_of(run)) for run in either.runs()] == [(RunState.SKIPPED, ReasonCode.PAUSED)]


def test_a_deleted_subscriber_gets_none_and_the_others_theirs(town: Town) -> None:
    publisher(town, "load", "sales")
    for name in ("a", "b", "c"):
        subscriber(town, ["sales"], name)
    delete(town.world, job("b"), actor="ann")
    assert told(town, succeed(town, "load")) == 2


def test_the_audit_finds_updates_that_nobody_followed(either: Town) -> None:
    tasks = [
        {"id": "export", "run": {"command": ["true"]}, "publishes": ["rows"]},
        {"id": "check", "run": {"command": ["true"]}, "needs": ["export"]},
    ]
    put(either.world, NS, {"name": "up", "tasks": tasks, "publishes": ["checked"]}, actor="ann", expected=None)
    subscriber(either, ["rows"], "early")
    subscriber(either, ["checked"], "late")
    succeed(either, "up")
    assert [either.audit().released, either.audit().released] == [2, 0]
    assert [len(either.runs(name)) for name in ("early", "late")] == [1, 1]


@pytest.mark.parametrize("call", ["shared.put", "runs.create", "due.arm", "queue.send"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_update_whose_follower_died_comes_to_the_same_runs(either: Town, call: str, nth: int) -> None:
    publisher(either, "load", "left", "right")
    subscriber(either, {"all": ["left", "right"]})
    subscriber(either, {"any": ["left", "right"]}, "any")
    run = succeed(either, "load")
    try:
        told(either, run, world=dying_before(either.world, call, nth=nth))
    except Crash:
        pass  # it died, as it should
    told(either, run)
    either.advance(minutes=6)
    assert [[one.state for one in either.runs(name)] for name in ("job", "any")] == [[RunState.SUCCEEDED]] * 2


def test_two_followers_of_one_update_make_one_run(either: Town) -> None:
    publisher(either, "one", "left")
    publisher(either, "two", "right")
    subscriber(either, ["left", "right"])
    left, right = succeed(either, "one"), succeed(either, "two")
    rival = with_another(either.world, "shared.put", lambda: told(either, right, world=either.another("rival")), nth=2)
    told(either, left, world=rival)
    told(either, left, right)
    assert causes(either) == [{"left": id_of(left), "right": id_of(right)}]


# From outside.


def test_an_update_from_outside_is_known_by_its_id(either: Town) -> None:
    subscriber(either, ["feed"])
    update, runs = publish_outside(either.world, NS, "feed", "file-1")
    assert [run.key.job.name for run in runs] == ["job"]
    either.clock.at += timedelta(hours=23)
    again, none = publish_outside(either.world, NS, "feed", "file-1")
    assert (again, none) == (update, [])
    assert len(publish_outside(either.world, NS, "feed", "file-2")[1]) == 1
    assert len(publish_outside(either.world, NS, "feed", None)[1]) == 1
    assert causes(either)[0] == {"feed": "file-1"}


def test_an_id_is_its_datasets_own(town: Town) -> None:
    subscriber(town, {"any": ["one", "two"]})
    for dataset in ("one", "two"):
        assert len(publish_outside(town.world, NS, dataset, "same")[1]) == 1


def test_a_dataset_that_nobody_knows_is_not_updated(town: Town) -> None:
    with pytest.raises(NotFound, match="no job publishes it"):
        publish_outside(town.world, NS, "sales", "1")


# Who has to do with what.


def test_datasets_are_listed_with_who_publishes_and_who_subscribes_now(either: Town) -> None:
    publisher(either, "load", "sales")
    tasks = [{"id": one, "run": {"command": ["true"]}} for one in ("a", "b")]
    put(
        either.world,
        NS,
        {"name": "many", "tasks": [{**tasks[0], "publishes": ["sales", "old"]}, tasks[1]]},
        actor="ann",
        expected=None,
    )
    subscriber(either, {"any": ["sales", "prices"]})
    told(either, succeed(either, "load"))
    found, more = datasets_of(either.world, NS, after=None, limit=10)
    assert more is None
    assert [one.name for one in found] == ["old", "prices", "sales"]
    sales = found[-1]
    assert sales.publishers == (("load", None), ("many", "a"))
    assert [name for name, _ in sales.subscribers] == ["job"]
    assert sales.update_id == id_of(either.runs("load")[0])
    put(either.world, NS, {"name": "many", "tasks": tasks}, actor="ann", expected=1)
    delete(either.world, job("job"), actor="ann")
    assert [one.name for one in datasets_of(either.world, NS, after=None, limit=10)[0]] == ["sales"]


def test_a_late_word_of_an_old_update_is_not_the_last(town: Town) -> None:
    publisher(town, "load", "sales")
    old, new = succeed(town, "load"), succeed(town, "load")
    told(town, new)
    told(town, old)
    found = dataset_of(town.world, NS, "sales")
    assert found is not None
    assert found.update_id == id_of(new)


# Cycles.


def test_datasets_that_would_update_themselves_are_refused(either: Town) -> None:
    publisher(either, "a", "x")
    subscriber(either, ["x"], "b", publishes=["y"])
    with pytest.raises(InvalidInput, match="a → b → a") as refused:
        publisher(either, "a", "x", expected=1, schedule={"datasets": {"any": ["y", "z"]}})
    assert refused.value.path == "schedule.datasets"
    with pytest.raises(InvalidInput, match="c → c"):
        subscriber(either, ["w"], "c", publishes=["w"])
    assert either.head("a").version == 1


def test_a_cycle_over_jobs_and_datasets_is_refused(town: Town) -> None:
    publisher(town, "a", "x")
    put(town.world, NS, {"name": "b", "command": "true", "schedule": {"after": ["a"]}}, actor="ann", expected=None)
    put(
        town.world,
        NS,
        {"name": "b", "command": "true", "schedule": {"after": ["a"]}, "publishes": ["y"]},
        actor="ann",
        expected=1,
    )
    with pytest.raises(InvalidInput, match="a → b → a"):
        publisher(town, "a", "x", expected=1, schedule={"datasets": ["y"]})


def test_of_two_puts_at_once_that_close_a_cycle_one_is_paused(town: Town) -> None:
    publisher(town, "a", "x")
    publisher(town, "b", "y")
    rival = with_another(
        town.world,
        "jobs.change",
        lambda: publisher(town, "b", "y", expected=1, schedule={"datasets": ["x"]}),
    )
    document = {"name": "a", "command": "true", "publishes": ["x"], "schedule": {"datasets": ["y"]}}
    put(rival, NS, document, actor="ann", expected=1)
    assert [town.head(name).status for name in ("a", "b")] == [JobStatus.PAUSED, JobStatus.ACTIVE]
