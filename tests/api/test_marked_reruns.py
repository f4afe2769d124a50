"""Reruns in which somebody says that a task is done: it is not run again, and what comes after it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.calls import Call
from tests.api.client import Client, Virtual
from tests.api.test_contract import create
from tests.api.test_runs import run_of, trigger
from tests.api.test_tasks import at, doing, fail, shown, started, states, task

GATE: dict[str, Any] = {"id": "gate", "needs": [], "run": {"approval": {"by": ["admin"]}}}


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def again(virtual: Virtual, run_id: str, *, job: str = "etl", **marks: str) -> str:
    """The rerun from what failed with these marks, once it is over."""
    body = {"from": "failed", "mark": marks, "note": "by hand"}
    fresh: str = virtual.admin.post(f"/jobs/{job}/runs/{run_id}/rerun", body).expect(202).json["runId"]
    virtual.go_on(seconds=5)
    return fresh


def noting(calls: list[str], **does: Any) -> Any:
    def do(call: Call) -> Any:
        calls.append(call.run.key.task)
        return doing(**does)(call)

    return do


@pytest.mark.parametrize(("state", "after"), [("succeeded", "succeeded"), ("skipped", "skipped")])
def test_a_failed_task_is_declared_done_and_what_comes_after_it_goes_on(
    virtual: Virtual, state: str, after: str
) -> None:
    calls: list[str] = []
    virtual.on("etl", doing(b=fail))
    run_id = started(virtual, task("a"), task("b", "a"), task("c", "b"), task("d", "b", when="none_failed"))
    virtual.on("etl", noting(calls))
    fresh = again(virtual, run_id, b=state)
    assert sorted(calls) == (["c", "d"] if after == "succeeded" else ["d"])
    assert states(virtual.admin, "etl", fresh) == {"a": "succeeded", "b": state, "c": after, "d": "succeeded"}
    run = run_of(virtual.admin, "etl", fresh)
    assert (run["state"], run["rerunFrom"], run["marked"]) == ("succeeded", "failed", {"b": state})
    told = shown(virtual.admin, "etl", fresh, "b")
    assert told["reason"].startswith(f"marked: as {state} by token:")
    assert told["reason"].endswith(": by hand")
    assert "carriedFrom" not in told
    (row,) = [one for one in virtual.admin.get("/audit").items if one["action"] == "run.rerun"]
    assert (row["note"], row["after"]) == ("by hand", {"from": "failed", "mark": {"b": state}})


def test_what_is_declared_done_does_not_wait_for_what_it_needs(virtual: Virtual) -> None:
    run_id = started(virtual, GATE, task("b", "gate"), task("c", "b"))
    virtual.admin.post(at("etl", run_id, "gate", "reject"), {}).expect(200)
    virtual.go_on(seconds=5)
    assert states(virtual.admin, "etl", run_id)["c"] == "upstream_failed"
    fresh = again(virtual, run_id, b="succeeded")
    assert states(virtual.admin, "etl", fresh) == {"gate": "retrying", "b": "succeeded", "c": "succeeded"}
    virtual.admin.post(at("etl", fresh, "gate", "approve"), {}).expect(200)
    virtual.go_on(seconds=5)
    assert run_of(virtual.admin, "etl", fresh)["state"] == "succeeded"


@pytest.mark.parametrize("name", ["load", "load[1]"])
def test_of_a_mapped_task_it_is_about_the_instances_that_failed(virtual: Virtual, name: str) -> None:
    calls: list[str] = []

    def load(call: Call) -> Any:
        return fail(call) if call.known["index"] == 1 else call.known["item"] * 2

    virtual.on("etl", doing(list=[1, 2, 3], load=load))
    mapped = task("load", "list", map={"over": "${tasks.list.output}"})
    total = task("total", "load") | {"run": {"command": ["total", "${tasks.load.output}"]}}
    run_id = started(virtual, task("list"), mapped, total)
    known: list[Any] = []
    virtual.on("etl", noting(calls, total=lambda call: known.append(call.known["tasks"]["load"]["output"])))
    fresh = again(virtual, run_id, **{name: "succeeded"})
    assert calls == ["total"]
    assert known == [[2, None, 6]]
    assert set(states(virtual.admin, "etl", fresh).values()) == {"succeeded"}
    assert shown(virtual.admin, "etl", fresh, "load[0]")["carriedFrom"] == run_id
    assert shown(virtual.admin, "etl", fresh, "load[1]")["reason"].startswith("marked: as succeeded by")


def test_a_map_that_never_had_instances_is_declared_done_as_a_whole(virtual: Virtual) -> None:
    virtual.on("etl", doing(list="no list"))
    mapped = task("load", "list", map={"over": "${tasks.list.output}"})
    run_id = started(virtual, task("list"), mapped, task("z", "load", when="none_failed"))
    assert states(virtual.admin, "etl", run_id)["load"] == "failed"
    fresh = again(virtual, run_id, load="skipped")
    assert states(virtual.admin, "etl", fresh) == {"list": "succeeded", "load": "skipped", "z": "succeeded"}


def test_what_it_publishes_is_updated_as_if_it_had_been_done(virtual: Virtual) -> None:
    create(virtual.admin, "after", schedule={"datasets": ["sales"]}, command=["true"])
    virtual.on("etl", doing(a=fail))
    run_id = started(virtual, task("a", publishes=["sales"]), task("b", "a"))
    assert virtual.admin.get("/jobs/after/runs").items == []
    fresh = again(virtual, run_id, a="succeeded")
    (made,) = virtual.admin.get("/jobs/after/runs").items
    assert made["params"]["datasets"]["sales"]["id"] == f"etl/{fresh}/a"


def test_a_job_of_one_task_is_declared_done_without_running_and_its_dependents_run(virtual: Virtual) -> None:
    calls: list[str] = []
    create(virtual.admin, "load", command=["load"], cache={"key": "always", "ttl": "1h"})
    create(virtual.admin, "report", schedule={"after": ["load"]}, command=["report"])
    virtual.on("load", fail)
    run_id = trigger(virtual.admin, "load")
    virtual.go_on(seconds=5)
    virtual.on("load", noting(calls))
    fresh = again(virtual, run_id, job="load", main="succeeded")
    run = run_of(virtual.admin, "load", fresh)
    assert (run["state"], run["startedAt"], run["rerunOf"]) == ("succeeded", None, run_id)
    assert run["reason"].startswith("marked: as succeeded by token:")
    (made,) = virtual.admin.get("/jobs/report/runs").items
    assert (made["state"], made["params"]) == ("succeeded", {"after": {"load": fresh}})
    assert calls == []
    trigger(virtual.admin, "load")
    virtual.go_on(seconds=5)
    assert calls == [""], "a word is no result that runs to come could take over"


def test_what_an_edit_made_of_a_task_since_is_minded(virtual: Virtual) -> None:
    """The version in force is known when the rerun begins: a task that asks for approval by then asks."""
    one_at_a_time: dict[str, Any] = {"concurrency": {"runs": 1}}
    virtual.on("etl", doing(a=fail, b=fail))
    run_id = started(virtual, task("a"), task("b"), GATE, **one_at_a_time)
    virtual.admin.post(at("etl", run_id, "gate", "approve"), {}).expect(200)
    virtual.go_on(seconds=5)
    virtual.on("etl")
    holds_the_place = trigger(virtual.admin, "etl")
    virtual.go_on(seconds=5)
    fresh = again(virtual, run_id, a="succeeded", b="succeeded")
    assert run_of(virtual.admin, "etl", fresh)["state"] == "queued"
    changed = {"tasks": [{**GATE, "id": "a"}, task("c")], **one_at_a_time}
    virtual.admin.put("/jobs/etl", changed, If_Match="1").expect(200)
    virtual.admin.post(f"/jobs/etl/runs/{holds_the_place}/cancel", {}).expect(200)
    virtual.go_on(minutes=2)
    assert states(virtual.admin, "etl", fresh) == {"a": "retrying", "c": "succeeded"}


@pytest.mark.parametrize(
    ("body", "status", "path", "message"),
    [
        ({"mark": {"bb": "succeeded"}}, 400, "mark.bb", "no such task: did you mean 'b'?"),
        ({"mark": {"b": "done"}}, 400, "mark.b", "succeeded"),
        ({"mark": {"b": "failed"}}, 400, "mark.b", "succeeded"),
        ({"mark": {"b[0]": "skipped"}}, 400, "mark.b[0]", "no instance 0"),
        ({"mark": {"gate": "succeeded"}}, 400, "mark.gate", "asks for approval"),
        ({"from": "all", "mark": {"b": "succeeded"}}, 400, "mark", '"from": "failed"'),
        ({"from": "task", "task": "b", "mark": {"b": "succeeded"}}, 400, "mark", '"from": "failed"'),
        ({"mark": {"a": "succeeded"}}, 409, None, "Task 'a' succeeded: nothing of it would be done again."),
    ],
)
def test_what_cannot_be_declared_done_is_refused(
    virtual: Virtual, body: dict[str, Any], status: int, path: str | None, message: str
) -> None:
    virtual.on("etl", doing(b=fail))
    run_id = started(virtual, task("a"), task("b", "a"), {**GATE, "needs": ["b"]})
    answer = virtual.admin.post(f"/jobs/etl/runs/{run_id}/rerun", {"from": "failed", **body}).expect(status).json
    assert message in (answer["detail"] if path is None else answer["errors"][0]["message"])
    if path is not None:
        assert [one["path"] for one in answer["errors"]] == [path]
    assert len(virtual.admin.get("/jobs/etl/runs").items) == 1


def test_all_that_is_wrong_with_the_marks_is_told_at_once(virtual: Virtual) -> None:
    virtual.on("etl", doing(b=fail))
    run_id = started(virtual, task("a"), task("b", "a"))
    body = {"from": "failed", "mark": {"x": "succeeded", "y": "skipped", "b": "succeeded"}}
    errors = virtual.admin.post(f"/jobs/etl/runs/{run_id}/rerun", body).expect(400).json["errors"]
    assert [one["path"] for one in errors] == ["mark.x", "mark.y"]


def test_an_instance_whose_list_may_be_another_is_not_declared_done(virtual: Virtual) -> None:
    def load(call: Call) -> Any:
        return fail(call) if call.known["index"] == 1 else None

    virtual.on("etl", doing(list=[1, 2], load=load))
    mapped = task("load", "list", map={"over": "${tasks.list.output}"})
    run_id = started(virtual, task("list"), mapped)
    virtual.admin.put("/jobs/etl", {"tasks": [task("list"), mapped, task("x")]}, If_Match="1").expect(200)
    path, marks = f"/jobs/etl/runs/{run_id}/rerun", {"load[1]": "skipped"}
    answer = virtual.admin.post(path, {"from": "failed", "mark": marks}).expect(409).json
    assert "may be another this time: mark the task itself" in answer["detail"]
    fresh = again(virtual, run_id, load="skipped")
    assert states(virtual.admin, "etl", fresh) == {"list": "succeeded", "load": "skipped", "x": "succeeded"}


def test_a_job_whose_tasks_are_others_now_is_run_again_without_marks(virtual: Virtual) -> None:
    virtual.on("etl", doing(b=fail))
    run_id = started(virtual, task("a"), task("b", "a"))
    virtual.admin.put("/jobs/etl", {"command": ["one"]}, If_Match="1").expect(200)
    path = f"/jobs/etl/runs/{run_id}/rerun"
    answer = virtual.admin.post(path, {"from": "failed", "mark": {"b": "succeeded"}}).expect(409).json
    assert "has been edited since" in answer["detail"]


def test_a_run_that_never_began_has_no_tasks_to_declare_done(virtual: Virtual) -> None:
    create(virtual.admin, "etl", tasks=[task("a"), task("b", "a")])
    run_id = trigger(virtual.admin, "etl")
    virtual.admin.post(f"/jobs/etl/runs/{run_id}/cancel", {}).expect(200)
    path = f"/jobs/etl/runs/{run_id}/rerun"
    answer = virtual.admin.post(path, {"from": "failed", "mark": {"b": "succeeded"}}).expect(409).json
    assert "has no failed task" in answer["detail"]
