"""Runs of several tasks, over HTTP: what they show, and what people do to them."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.calls import Call
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.logs import Line, LogKey, Stream
from sweephand.testing import Permanent
from tests.api.client import Client, Virtual
from tests.api.test_contract import create
from tests.api.test_runs import run_of, trigger
from tests.api.test_why import why


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


def task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "needs": list(needs), "run": {"command": [name]}, **more}


def doing(**tasks: Any) -> Any:
    """What each task does: an output, or a function of the call; what is not named ends well."""

    def do(call: Call) -> Any:
        does = tasks.get(call.run.key.task.partition("[")[0])
        return does(call) if callable(does) else does

    return do


def fail(_call: Call) -> None:
    raise Permanent("no such table")


def stumble(_call: Call) -> None:
    raise ConnectionError("the line is cut")


def states(client: Client, job: str, run_id: str) -> dict[str, str]:
    return {one["id"]: one["state"] for one in run_of(client, job, run_id)["tasks"]}


def shown(client: Client, job: str, run_id: str, name: str) -> Any:
    return next(one for one in run_of(client, job, run_id)["tasks"] if one["id"] == name)


def at(job: str, run_id: str, name: str, verb: str) -> str:
    return f"/jobs/{job}/runs/{run_id}/tasks/{name}/{verb}"


def started(virtual: Virtual, *tasks: dict[str, Any], name: str = "etl", **more: Any) -> str:
    create(virtual.admin, name, tasks=list(tasks), **more)
    run_id = trigger(virtual.admin, name)
    virtual.go_on(seconds=1)
    return run_id


# What a run shows.


def test_a_run_shows_every_task_with_what_it_needs_and_came_to(virtual: Virtual) -> None:
    virtual.on("etl", doing(a={"rows": 3}, b=fail))
    run_id = started(virtual, task("a", group="in.raw"), task("b", "a"), task("c", "b"), task("d", "a"))
    run = run_of(virtual.admin, "etl", run_id)
    assert (run["state"], run["moreTasks"], run["progress"]) == ("failed", False, None)
    assert run["taskCounts"] == {"total": 4, "succeeded": 2, "failed": 1, "upstream_failed": 1}
    a, b, c, _ = run["tasks"]
    assert (a["output"], a["attempt"], a["group"], a["needs"]) == ({"rows": 3}, 1, "in.raw", [])
    assert (b["state"], b["error"]["message"], b["needs"]) == ("failed", "no such table", ["a"])
    assert (c["state"], c["attempts"]) == ("upstream_failed", [])
    assert c["reason"] == "upstream: all_success: task 'b' failed."
    assert virtual.admin.get(f"/dags/etl/runs/{run_id}").expect(200).json == run
    assert virtual.admin.get("/jobs/etl/runs").items[0]["taskCounts"] == run["taskCounts"]


def test_an_open_run_says_how_many_of_its_tasks_are_over_and_lists_page(virtual: Virtual) -> None:
    virtual.on("etl", takes="10m")
    run_id = started(virtual, task("a"), task("b", "a"), task("c", "b"), task("d", "c"))
    assert run_of(virtual.admin, "etl", run_id)["progress"] == 0
    virtual.go_on(minutes=11)
    assert run_of(virtual.admin, "etl", run_id)["progress"] == 25
    assert states(virtual.admin, "etl", run_id) == {"a": "succeeded", "b": "running", "c": "waiting", "d": "waiting"}
    pages = list(virtual.admin.pages(f"/jobs/etl/runs/{run_id}/tasks?limit=3"))
    assert [[one["id"] for one in page] for page in pages] == [["a", "b", "c"], ["d"]]
    virtual.admin.get(f"/jobs/etl/runs/{run_id}/tasks?cursor=bm8").expect(400)


def test_a_mapped_task_shows_its_instances_and_how_they_ended(virtual: Virtual) -> None:
    def load(call: Call) -> Any:
        if call.known["index"] == 1:
            raise Permanent("no")
        return call.known["item"]

    virtual.on("etl", doing(list=["x", "y", "z"], load=load))
    mapped = task("load", "list", map={"over": "${tasks.list.output}"})
    run_id = started(virtual, task("list"), mapped)
    found = states(virtual.admin, "etl", run_id)
    assert found == {
        "list": "succeeded", "load": "failed", "load[0]": "succeeded", "load[1]": "failed", "load[2]": "succeeded"
    }  # fmt: skip
    counts = shown(virtual.admin, "etl", run_id, "load")["map"]
    assert counts == {"total": 3, "succeeded": 2, "failed": 1, "skipped": 0, "cancelled": 0, "open": 0}
    assert shown(virtual.admin, "etl", run_id, "load[2]")["output"] == "z"
    pages = list(virtual.admin.pages(f"/jobs/etl/runs/{run_id}/tasks?limit=3"))
    assert [one["id"] for page in pages for one in page] == list(found)
    assert why(virtual.admin, f"/jobs/etl/runs/{run_id}/tasks/load[1]")["blockers"][0]["detail"] == "no"
    virtual.admin.get(at("etl", run_id, "load[3]", "why")).expect(404)


def test_what_never_began_says_why(virtual: Virtual) -> None:
    virtual.on("etl", doing(a="b", x=fail))
    run_id = started(
        virtual,
        task("a", branch=True),
        task("b", "a", **{"if": "${params.n} > 0"}),
        task("c", "a"),
        task("m", "b", when="all_done", map={"over": "${params.n}"}),
        params={"n": 0},
    )
    reasons = {one["id"]: one["reason"] for one in run_of(virtual.admin, "etl", run_id)["tasks"]}
    assert reasons["b"] == "condition: ${params.n} > 0 does not hold."
    assert reasons["c"] == "branch: Branch 'a' did not choose it."
    assert "is not a list" in reasons["m"]


# Why.


def test_a_task_says_what_it_waits_for(virtual: Virtual) -> None:
    admin = virtual.admin
    admin.put("/pools/small", {"slots": 1}).expect(201)
    virtual.on("etl", takes="10m")
    tasks = [task("a", pool="small"), task("b", pool="small"), task("c", "a", "b")]
    run_id = started(virtual, *tasks)
    path = f"/jobs/etl/runs/{run_id}"
    found = states(admin, "etl", run_id)
    queued = next(name for name, state in found.items() if state == "queued")
    assert why(admin, f"{path}/tasks/{queued}")["blockers"][0]["code"] == "pool"
    told = why(admin, f"{path}/tasks/c")
    assert told["summary"] == "It waits for a, b."
    assert "a is running" in told["blockers"][0]["detail"] or "b is running" in told["blockers"][0]["detail"]
    assert why(admin, path)["summary"] == "0 of its 3 tasks are over, 1 wait for others."
    admin.get(f"{path}/tasks/nothing/why").expect(404)


# Running again.


def test_a_rerun_from_what_failed_takes_over_the_rest_with_its_outputs(virtual: Virtual) -> None:
    calls: list[tuple[str, Any]] = []

    def note(call: Call) -> Any:
        calls.append((call.run.key.task, call.known.get("tasks")))
        return "ok"

    virtual.on("etl", doing(a={"n": 7}, b=fail))
    b = {"id": "b", "needs": ["a"], "run": {"command": ["b", "${tasks.a.output.n}"]}}
    run_id = started(virtual, task("a"), b, task("c", "b"), task("d", "a"))
    virtual.on("etl", note)
    virtual.admin.post(f"/jobs/etl/runs/{run_id}/rerun", {"from": "failed"}).expect(202)
    virtual.go_on(seconds=5)
    newest = virtual.admin.get("/jobs/etl/runs").items[0]["runId"]
    again = run_of(virtual.admin, "etl", newest)
    assert (again["state"], again["rerunOf"], again["rerunFrom"]) == ("succeeded", run_id, "failed")
    assert [name for name, _ in calls] == ["b", "c"]
    assert calls[0][1] == {"a": {"output": {"n": 7}}}
    carried = {one["id"]: one.get("carriedFrom") for one in again["tasks"]}
    assert carried == {"a": run_id, "b": None, "c": None, "d": run_id}
    virtual.admin.post(f"/jobs/etl/runs/{newest}/rerun", {"from": "failed"}).expect(409)


def test_a_rerun_from_a_task_does_it_and_what_follows_with_the_version_in_force(virtual: Virtual) -> None:
    calls: list[str] = []
    virtual.on("etl", lambda call: calls.append(call.run.key.task))
    run_id = started(virtual, task("a"), task("b", "a"), task("c", "b"), task("d", "a"))
    changed = {"tasks": [task("a"), task("b", "a"), task("c", "b"), task("x"), task("d", "a", "x")]}
    virtual.admin.put("/jobs/etl", changed, If_Match="1").expect(200)
    calls.clear()
    body = {"from": "task", "task": "b", "note": "again"}
    fresh = virtual.admin.post(f"/jobs/etl/runs/{run_id}/rerun", body).expect(202).json["runId"]
    virtual.go_on(seconds=5)
    assert sorted(calls) == ["b", "c", "d", "x"]  # d needs what was not there before
    assert run_of(virtual.admin, "etl", fresh)["version"] == 2
    problem = virtual.admin.post(f"/jobs/etl/runs/{run_id}/rerun", {"from": "task", "task": "bb"}).expect(400).json
    assert problem["errors"][0]["path"] == "task"


def test_of_a_mapped_task_only_the_failed_instances_run_again(virtual: Virtual) -> None:
    calls: list[str] = []

    def load(call: Call) -> Any:
        calls.append(call.run.key.task)
        if call.known["index"] == 1 and len(calls) < 4:
            raise Permanent("no")
        return call.known["item"] * 2

    virtual.on("etl", doing(list=[1, 2, 3], load=load))
    mapped = task("load", "list", map={"over": "${tasks.list.output}"})
    run_id = started(virtual, task("list"), mapped, task("z", "load"))
    assert len(calls) == 3
    fresh = virtual.admin.post(f"/jobs/etl/runs/{run_id}/rerun", {"from": "failed"}).expect(202).json["runId"]
    virtual.go_on(seconds=5)
    assert calls[3:] == ["load[1]"]
    assert set(states(virtual.admin, "etl", fresh).values()) == {"succeeded"}
    assert shown(virtual.admin, "etl", fresh, "load[1]")["output"] == 4


# Marking.


@pytest.mark.parametrize(("state", "after"), [("succeeded", "running"), ("failed", "upstream_failed")])
def test_a_running_task_is_ended_by_a_word_and_its_worker_is_fenced(virtual: Virtual, state: str, after: str) -> None:
    virtual.on("etl", takes="30m")
    run_id = started(virtual, task("a"), task("b", "a"))
    told = virtual.admin.post(at("etl", run_id, "a", "mark"), {"state": state, "note": "by hand"}).expect(200).json
    assert told["state"] == state
    assert told["reason"].startswith(f"marked: as {state} by token:")
    assert told["reason"].endswith(": by hand")
    virtual.go_on(seconds=5)
    assert states(virtual.admin, "etl", run_id)["b"] == after
    virtual.go_on(hours=2)
    assert shown(virtual.admin, "etl", run_id, "a")["reason"] == told["reason"]
    (row,) = [one for one in virtual.admin.get("/audit").items if one["action"] == "task.mark"]
    assert (row["note"], row["after"]) == ("by hand", {"state": state})


def test_a_waiting_task_that_is_skipped_never_starts_and_the_run_goes_on(virtual: Virtual) -> None:
    calls: list[str] = []
    virtual.on("etl", lambda call: calls.append(call.run.key.task), takes="5m")
    run_id = started(virtual, task("a"), task("b", "a"), task("c", "b", when="none_failed"))
    virtual.admin.post(at("etl", run_id, "b", "mark"), {"state": "skipped"}).expect(200)
    virtual.go_on(minutes=12)
    assert calls == ["a", "c"]
    assert states(virtual.admin, "etl", run_id) == {"a": "succeeded", "b": "skipped", "c": "succeeded"}
    late = virtual.admin.post(at("etl", run_id, "a", "mark"), {"state": "failed"}).expect(409).json
    assert "Rerun it from task 'a'" in late["detail"]


def test_one_task_is_cancelled_and_the_others_go_on(virtual: Virtual) -> None:
    virtual.on("etl", takes="5m")
    run_id = started(virtual, task("a"), task("b"), task("c", "b", when="all_done"))
    ended = virtual.admin.post(at("etl", run_id, "a", "cancel"), {"note": "wrong day"}).expect(200).json
    assert (ended["state"], ended["reason"].endswith(": wrong day")) == ("cancelled", True)
    virtual.go_on(minutes=12)
    assert states(virtual.admin, "etl", run_id) == {"a": "cancelled", "b": "succeeded", "c": "succeeded"}
    assert run_of(virtual.admin, "etl", run_id)["state"] == "failed"


def test_a_task_that_backs_off_is_tried_again_at_once(virtual: Virtual) -> None:
    virtual.on("etl", doing(a=stumble))
    run_id = started(virtual, task("a", retry={"attempts": 3, "backoff": "fixed", "delay": "6h"}), task("b", "a"))
    assert states(virtual.admin, "etl", run_id)["a"] == "retrying"
    virtual.on("etl")
    virtual.admin.post(at("etl", run_id, "a", "retry")).expect(200)
    virtual.go_on(seconds=5)
    assert states(virtual.admin, "etl", run_id) == {"a": "succeeded", "b": "succeeded"}
    assert shown(virtual.admin, "etl", run_id, "a")["attempt"] == 2
    virtual.admin.post(at("etl", run_id, "a", "retry")).expect(409)


# Approval.


def test_a_task_that_asks_holds_nobody_and_goes_on_with_a_yes(virtual: Virtual) -> None:
    gate = {"id": "gate", "needs": ["a"], "run": {"approval": {"message": "ship ${params.v}?"}}}
    run_id = started(virtual, task("a"), gate, task("b", "gate"), params={"v": "1.2"})
    asked = shown(virtual.admin, "etl", run_id, "gate")
    assert (asked["state"], asked["reason"]) == ("retrying", "approval: an operator is asked: ship 1.2?")
    assert "Approve" in why(virtual.admin, f"/jobs/etl/runs/{run_id}/tasks/gate")["blockers"][0]["remedy"]
    (blocker,) = why(virtual.admin, f"/jobs/etl/runs/{run_id}")["blockers"]
    assert blocker["detail"] == "task gate: an operator is asked: ship 1.2?"
    virtual.callers.role("viewer").post(at("etl", run_id, "gate", "approve")).expect(403)
    operator = virtual.callers.role("operator")
    told = operator.post(at("etl", run_id, "gate", "approve"), {"note": "fine"}).expect(200).json
    assert (told["state"], told["output"]["approved"], told["output"]["note"]) == ("succeeded", True, "fine")
    assert told["output"]["by"].startswith("token:")
    virtual.go_on(seconds=5)
    assert run_of(virtual.admin, "etl", run_id)["state"] == "succeeded"
    operator.post(at("etl", run_id, "gate", "reject")).expect(409)
    operator.post(at("etl", run_id, "a", "approve")).expect(409)


def test_a_no_fails_the_task_and_so_does_nobodys_word(virtual: Virtual) -> None:
    create(virtual.admin, "gate", run={"approval": {"by": ["editor", "ann"], "timeout": "1h"}})
    first, second = trigger(virtual.admin, "gate"), trigger(virtual.admin, "gate")
    virtual.go_on(seconds=1)
    virtual.callers.role("operator").post(at("gate", first, "main", "approve")).expect(403)
    virtual.callers.role("operator").post(at("gate", first, "main", "mark"), {"state": "succeeded"}).expect(403)
    virtual.callers.role("editor").post(at("gate", first, "main", "reject"), {"note": "no"}).expect(200)
    run = run_of(virtual.admin, "gate", first)
    assert (run["state"], run["reason"].endswith(": no")) == ("failed", True)
    virtual.go_on(minutes=61)
    late = run_of(virtual.admin, "gate", second)
    assert (late["state"], late["reason"].partition(":")[0]) == ("failed", "timeout")


# Jobs that start jobs.


def test_a_task_starts_a_run_of_another_job_once_and_ends_with_it(virtual: Virtual) -> None:
    create(virtual.admin, "other", command="x")
    virtual.on("other", lambda call: {"got": call.params["day"]}, takes="10m")
    sub = {"id": "sub", "needs": ["a"], "run": {"job": "other", "params": {"day": "${tasks.a.output}"}}}
    virtual.on("etl", doing(a="monday"))
    run_id = started(virtual, task("a"), sub, task("b", "sub"))
    waiting = shown(virtual.admin, "etl", run_id, "sub")
    assert (waiting["state"], waiting["started"]["jobId"]) == ("retrying", "other")
    virtual.go_on(minutes=9, seconds=50)
    virtual.go_on(seconds=15)
    ended = shown(virtual.admin, "etl", run_id, "sub")
    assert (ended["state"], ended["output"]) == ("succeeded", {"got": "monday"})
    (other,) = virtual.admin.get("/jobs/other/runs").items
    assert (other["runId"], other["startedBy"]) == (waiting["started"]["runId"], f"etl/{run_id}/sub")
    assert run_of(virtual.admin, "etl", run_id)["state"] == "succeeded"


def test_the_end_of_a_started_run_that_failed_or_is_not_there_fails_the_task(virtual: Virtual) -> None:
    create(virtual.admin, "other", command="x")
    virtual.on("other", fail)
    run_id = started(virtual, {"id": "sub", "run": {"job": "other"}}, {"id": "none", "run": {"job": "nowhere"}})
    virtual.go_on(minutes=2)
    tasks = {one["id"]: one for one in run_of(virtual.admin, "etl", run_id)["tasks"]}
    assert (tasks["sub"]["state"], "no such table" in tasks["sub"]["error"]["message"]) == ("failed", True)
    assert tasks["none"]["error"]["message"] == "There is no job default/nowhere."


def test_a_cancelled_task_cancels_the_run_that_it_started(virtual: Virtual) -> None:
    create(virtual.admin, "other", command="x")
    virtual.on("other", takes="10m")
    run_id = started(virtual, {"id": "sub", "run": {"job": "other"}}, task("b"))
    virtual.admin.post(at("etl", run_id, "sub", "cancel")).expect(200)
    virtual.go_on(seconds=5)
    assert [one["state"] for one in virtual.admin.get("/jobs/other/runs").items] == ["cancelled"]


def test_a_job_that_starts_itself_comes_to_an_end(virtual: Virtual) -> None:
    create(virtual.admin, "loop", run={"job": "loop"})
    trigger(virtual.admin, "loop")
    virtual.go_on(minutes=15)
    runs = virtual.admin.get("/jobs/loop/runs").items
    assert len(runs) == 8
    assert {one["state"] for one in runs} == {"failed"}


def test_a_worker_whose_task_was_marked_reports_to_nobody(virtual: Virtual) -> None:
    run_id = started(virtual, {"id": "far", "run": {"external": {}}}, task("b", "far"))
    (work,) = virtual.admin.post("/leases", {"workerId": "w"}).expect(200).items
    virtual.admin.post(at("etl", run_id, "far", "mark"), {"state": "succeeded"}).expect(200)
    report = {"epoch": work["epoch"], "output": "late"}
    virtual.admin.post(f"/leases/{work['lease']}/complete", report).expect(409)
    virtual.admin.post(f"/leases/{work['lease']}/heartbeat", {"epoch": work["epoch"]}).expect(409)
    virtual.go_on(seconds=5)
    assert shown(virtual.admin, "etl", run_id, "far")["output"] is None
    assert run_of(virtual.admin, "etl", run_id)["state"] == "succeeded"


# Logs.


def test_logs_are_read_by_task_and_what_was_taken_over_where_it_was_done(virtual: Virtual) -> None:
    virtual.on("etl", doing(b=fail))
    run_id = started(virtual, task("a"), task("b", "a"), {"id": "gate", "needs": ["b"], "run": {"approval": {}}})
    whole = RunKey(JobKey(Namespace("default"), JobName("etl")), RunId(run_id))
    for name in ("a", "b"):
        log = virtual.world.logs.open(LogKey(whole, name, 1))
        log.append([Line(virtual.now, Stream.STDOUT, f"{name} says")])
        log.close(virtual.now)

    def said(run: str, query: str = "") -> list[str]:
        return [line["text"] for line in virtual.admin.get(f"/jobs/etl/runs/{run}/logs{query}").expect(200).items]

    assert said(run_id) == ["a says", "b says"]
    assert said(run_id, "?task=b") == ["b says"]
    virtual.admin.get(f"/jobs/etl/runs/{run_id}/logs?task=c").expect(404)
    virtual.on("etl")
    again = virtual.admin.post(f"/jobs/etl/runs/{run_id}/rerun", {"from": "failed"}).expect(202).json["runId"]
    virtual.go_on(seconds=5)
    assert said(again, "?task=a") == ["a says"]
    refused = virtual.admin.get(f"/jobs/etl/runs/{again}/logs").expect(400).json
    assert (refused["errors"][0]["path"], "a, b" in refused["detail"]) == ("task", True)
    assert virtual.admin.get(f"/jobs/etl/runs/{run_id}/artifacts?task=a").expect(200).items == []
