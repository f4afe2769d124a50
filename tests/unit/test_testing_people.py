"""What people do in the virtual scheduler: to tasks, to fires that were missed, and from outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sweephand.calls import Call
from sweephand.domain.backfill import BackfillState
from sweephand.domain.run import Run, RunState
from sweephand.errors import Conflict, InvalidInput, NotFound
from sweephand.testing import Permanent, VirtualScheduler


@pytest.fixture
def world() -> Iterator[VirtualScheduler]:
    with VirtualScheduler(start="2026-01-01T00:30:00Z") as world:
        yield world


def task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "needs": list(needs), "run": {"command": [name]}, **more}


def states(world: VirtualScheduler, run: Run) -> dict[str, str]:
    return {name: str(one.state) for name, one in world.tasks(run).items()}


def failing(*names: str) -> Any:
    def work(call: Call) -> str:
        if call.task.id in names:
            raise Permanent("no")
        return call.task.id

    return work


# Tasks.


def test_a_job_after_others_runs_when_they_have_succeeded(world: VirtualScheduler) -> None:
    world.apply({"name": "a", "schedule": "0 * * * *", "command": ["a"]})
    world.apply({"name": "b", "schedule": {"after": ["a"]}, "command": ["b"]})
    world.apply({"name": "c", "schedule": {"after": {"all": ["a", "b"], "window": "sameDay"}}, "command": ["c"]})
    world.advance(hours=3)
    assert [run.params["after"] for run in world.runs("b")] == [{"a": run.key.run_id} for run in world.runs("a")]
    assert [run.params["day"] for run in world.runs("c")] == ["2026-01-01"]


def test_what_follows_from_an_outage_is_made_up_for(world: VirtualScheduler) -> None:
    world.apply({"name": "a", "schedule": {"at": "2026-01-01T01:00:00Z"}, "command": ["a"]})
    world.apply({"name": "b", "schedule": {"after": ["a"]}, "command": ["b"]})
    world.outage(hours=3)
    world.advance()
    assert len(world.runs("b", state="succeeded")) == 1


def test_words_about_tasks_end_them(world: VirtualScheduler) -> None:
    world.apply({"name": "job", "tasks": [task("a"), task("b", "a"), task("c"), task("d", "c", when="all_done")]})
    world.on("job", takes="1h")
    run = world.trigger("job")
    world.advance(minutes=1)
    world.mark(run, "a", "succeeded", note="by hand")
    world.cancel(run, "c")
    world.advance()
    assert states(world, run) == {"a": "succeeded", "b": "running", "c": "cancelled", "d": "running"}
    assert str(world.tasks(run)["a"].reason) == "marked: as succeeded by test: by hand"
    with pytest.raises(Conflict):
        world.mark(run, "a", "failed")
    with pytest.raises(InvalidInput, match="succeeded, failed, skipped"):
        world.mark(run, "b", "done")


def test_an_approval_waits_for_a_word(world: VirtualScheduler) -> None:
    gate = {"id": "gate", "run": {"approval": {"timeout": "4h"}}}
    world.apply({"name": "job", "tasks": [gate, task("after", "gate")]})
    runs = [world.trigger("job") for _ in range(3)]
    world.advance(hours=1)
    assert [states(world, run) for run in runs] == [{"gate": "retrying"}] * 3
    world.approve(runs[0], "gate", note="fine")
    world.reject(runs[1], "gate")
    world.advance(minutes=1)
    assert [world.run(run).state for run in runs] == [RunState.SUCCEEDED, RunState.FAILED, RunState.RUNNING]
    assert world.tasks(runs[0])["gate"].output["note"] == "fine"
    world.advance(hours=4)
    assert world.run(runs[2]).state is RunState.FAILED


def test_the_next_attempt_begins_at_once_where_somebody_says_so(world: VirtualScheduler) -> None:
    slowly = {"attempts": 2, "backoff": "fixed", "delay": "6h"}
    world.apply({"name": "one", "command": ["one"], "retry": slowly})
    world.apply({"name": "many", "tasks": [task("a", retry=slowly), task("b", "a")]})
    for name in ("one", "many"):
        world.on(name, lambda call: call.task.id == "b" or 1 / (call.run.attempt - 1))
    one, many = world.trigger("one"), world.trigger("many")
    world.advance(minutes=1)
    assert world.run(one).state is RunState.RETRYING
    world.retry(one, "main")
    world.retry(many, "a")
    world.advance(minutes=1)
    assert {world.run(run).state for run in (one, many)} == {RunState.SUCCEEDED}


def test_a_rerun_begins_where_it_is_told(world: VirtualScheduler) -> None:
    calls: list[str] = []

    def noted(call: Call) -> None:
        calls.append(call.task.id)

    world.apply({"name": "job", "tasks": [task("a"), task("b", "a"), task("c", "b"), task("d")]})
    world.on("job", failing("b"))
    run = world.trigger("job")
    world.advance()
    world.on("job", noted)
    for start, does in (("failed", ["b", "c"]), ("all", ["a", "b", "c", "d"]), ("d", ["d"])):
        world.rerun(run, start)
        world.advance()
        assert sorted(calls) == does
        calls.clear()
    done = world.rerun(run, "failed", mark={"b": "skipped"})
    world.advance()
    assert (calls, states(world, done)["b"]) == ([], "skipped")
    with pytest.raises(InvalidInput, match="no such task"):
        world.rerun(run, "e")
    with pytest.raises(InvalidInput, match="no such task"):
        world.rerun(run, "failed", mark={"e": "skipped"})


# Backfills.


def test_a_backfill_makes_up_for_fires_a_few_at_a_time(world: VirtualScheduler) -> None:
    world.apply({"name": "job", "schedule": "0 * * * *", "catchup": "none", "command": ["work"]})
    world.on("job", takes="1m")
    world.outage(hours=5)
    backfill = world.backfill("job", "2026-01-01T00:00:00Z", world.now, max_active=2, order="newest")
    world.advance()
    assert len(world.runs("job", state="running")) == 2
    world.pause_backfill(backfill)
    world.advance(minutes=2)
    assert world.backfills("job")[0].made == 2
    world.resume_backfill(backfill)
    world.advance(minutes=4)
    (found,) = world.backfills("job")
    assert (found.state, found.made) == (BackfillState.DONE, found.count)
    assert len(world.runs("job", state="succeeded")) == found.count


def test_a_cancelled_backfill_leaves_nothing_queued(world: VirtualScheduler) -> None:
    world.apply({"name": "job", "schedule": "0 * * * *", "catchup": "none", "command": ["work"]})
    world.on("job", takes="30m")
    world.outage(hours=5)
    backfill = world.backfill("job", "2026-01-01T00:00:00Z", world.now, only="missing", max_active=2)
    world.advance(minutes=1)
    world.cancel_backfill(backfill, running=True)
    world.advance(minutes=40)
    assert world.backfills("job")[0].state is BackfillState.CANCELLED
    made = [run for run in world.runs("job") if run.backfill]
    assert {run.state for run in made} == {RunState.CANCELLED}
    with pytest.raises(InvalidInput, match="missing, failed, all"):
        world.backfill("job", "2026-01-01T00:00:00Z", world.now, only="some")


# From outside.


def test_an_update_from_outside_runs_subscribers_once_for_each_id(world: VirtualScheduler) -> None:
    world.apply({"name": "job", "schedule": {"datasets": ["prices"]}, "command": ["work"]})
    (first,) = world.publish("prices", id="1")
    assert world.publish("prices", id="1") == []
    (second,) = world.publish("prices")
    world.advance()
    assert {run.key for run in world.runs("job", state="succeeded")} == {first.key, second.key}
    with pytest.raises(NotFound):
        world.publish("weather")


def test_an_event_runs_those_who_listen_for_it(world: VirtualScheduler) -> None:
    rule = {"source": "disk", "type": "full", "match": {"disk": ["sda"]}}
    world.apply({"name": "job", "schedule": {"events": [rule]}, "command": ["work"]})
    assert world.event("disk", "full", {"disk": "sdb"}) == []
    (run,) = world.event("disk", "full", {"disk": "sda"}, id="1")
    assert [one.key for one in world.event("disk", "full", {"disk": "sda"}, id="1")] == [run.key]
    world.advance()
    assert world.run(run).state is RunState.SUCCEEDED


# Templates.


def test_a_template_is_filled_in_when_a_job_is_applied(world: VirtualScheduler) -> None:
    definition = {"parameters": {"word": {"enum": ["a", "b"], "default": "a"}}, "command": ["echo", "${with.word}"]}
    world.template("say", definition)
    world.apply({"name": "job", "template": "say", "with": {"word": "b"}})
    said: list[Any] = []
    world.on("job", lambda call: said.append(call.task.spec["value"]))
    world.trigger("job")
    world.advance()
    assert said == [["echo", "b"]]
    with pytest.raises(InvalidInput, match="use a, b"):
        world.apply({"name": "job", "template": "say", "with": {"word": "c"}})
    with pytest.raises(InvalidInput, match="no template 'shout'"):
        world.apply({"name": "job", "template": "shout"})
    with pytest.raises(InvalidInput, match="no parameter 'wrd'"):
        world.template("say", {**definition, "command": ["echo", "${with.wrd}"]})
