"""The contract of external workers: they pull, say that they are alive, and report."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import pytest

from sweephand.api.asked import Patience
from sweephand.domain.access import DEFAULT
from sweephand.domain.limits import OUTPUT_KEPT_MAX
from sweephand.engine.match import Wanted
from sweephand.secrets import MARK
from tests.api.client import Client, Virtual, sqlite_only
from tests.api.test_contract import create
from tests.api.test_runs import run_of, trigger

WORK = {
    "lease",
    "runId",
    "jobId",
    "taskId",
    "attempt",
    "epoch",
    "leaseUntil",
    "run",
    "params",
    "idempotencyKey",
    "checkpoint",
}

ONE_MACHINE: Final = sqlite_only("a function keeps nobody waiting")


@pytest.fixture
def worker(virtual: Virtual) -> Client:
    return virtual.callers.role("operator")


def offered(virtual: Virtual, name: str = "outside", **fields: Any) -> str:
    """A run that waits for a worker."""
    create(virtual.admin, name, run={"external": {"image": "x"}}, **fields)
    run_id = trigger(virtual.admin, name, params={"a": 1})
    virtual.go_on()
    return run_id


def lease(worker: Client, **fields: Any) -> list[Any]:
    return worker.post("/leases", {"workerId": "w1", **fields}).expect(200).items


def test_a_worker_gets_what_it_needs_to_do_the_work(virtual: Virtual, worker: Client) -> None:
    assert lease(worker) == []
    run_id = offered(virtual)
    (work,) = lease(worker)
    assert work.keys() >= WORK
    assert work | {"lease": ""} == {
        "lease": "",
        "runId": run_id,
        "jobId": "outside",
        "taskId": "main",
        "attempt": 1,
        "epoch": 1,
        "leaseUntil": "2026-03-02T00:11:00Z",
        "run": {"external": {"image": "x"}},
        "params": {"a": 1},
        "fireAt": "2026-03-02T00:10:00Z",
        "idempotencyKey": f"outside/{run_id}/main",
        "checkpoint": None,
    }
    assert lease(worker) == []
    assert run_of(virtual.admin, "outside", run_id)["state"] == "running"


def test_a_worker_gets_as_many_together_as_it_wants(virtual: Virtual, worker: Client) -> None:
    for name in ("first", "second", "third"):
        offered(virtual, name)
    together = lease(worker, max=2, atLeast=100, waitSeconds=20)  # more than it takes is not waited for
    assert [work["jobId"] for work in together] == ["first", "second"]
    assert len(lease(worker, max=10, atLeast=2)) == 1  # it does not wait at all: what is there


def test_a_function_keeps_nobody_waiting_and_says_when_to_come_back(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    for body, seconds in (({"labels": ["gpu"], "waitSeconds": 20}, 1), ({"waitSeconds": 20}, 0)):
        answer = worker.post("/leases", {"workerId": "w1", **body}).expect(200).json
        assert answer["retryAfterSeconds"] == seconds


def nobody_else(_wanted: Wanted) -> bool:
    return False


def polled(worker: Client, patience: Patience, **fields: Any) -> list[str]:
    """What a call gets that may be kept waiting."""
    body = {"workerId": "w1", "waitSeconds": 20, **fields}
    return [work["jobId"] for work in worker.call("POST", "/leases", body, patience=patience).expect(200).items]


@ONE_MACHINE
def test_a_patient_worker_waits_for_what_it_wants_and_says_what_that_is(virtual: Virtual, worker: Client) -> None:
    patience = Patience(nobody_else)
    assert polled(worker, patience, labels=["default", "gpu"], max=5, atLeast=2) == []
    assert (patience.wanted, patience.wait_s) == (Wanted(DEFAULT, "w1", ("default", "gpu"), 5, 2), 20)
    offered(virtual, "first")
    assert polled(worker, patience, max=5, atLeast=2) == []
    offered(virtual, "second")
    assert polled(worker, patience, max=5, atLeast=2) == ["first", "second"]
    assert not patience.has_waited


@ONE_MACHINE
def test_whose_time_is_over_gets_what_is_there(virtual: Virtual, worker: Client) -> None:
    patience = Patience(nobody_else)
    offered(virtual)
    assert polled(worker, patience, max=5, atLeast=2) == []
    patience.is_over = True
    assert polled(worker, patience, max=5, atLeast=2) == ["outside"]
    assert not patience.has_waited


@ONE_MACHINE
def test_who_comes_behind_others_does_not_take_what_they_wait_for(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    patience = Patience(lambda wanted: wanted.worker == "w1")
    assert polled(worker, patience) == []
    assert polled(worker, patience) == ["outside"]  # it was its turn


@ONE_MACHINE
def test_a_call_whose_caller_has_gone_takes_nothing(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    patience = Patience(nobody_else)
    patience.gone.set()
    assert polled(worker, patience) == []
    assert len(lease(worker)) == 1


@ONE_MACHINE
def test_a_call_that_is_made_again_for_a_patient_worker_is_one_call(virtual: Virtual, worker: Client) -> None:
    virtual.admin.put("/namespaces/default", {"limits": {"requestsPerSecond": 1}}).expect(201)
    patience = Patience(nobody_else)
    for _ in range(10):
        assert polled(worker, patience) == []
    worker.get("/workers").expect(200)
    worker.get("/workers").expect(429)


def test_a_worker_gets_only_what_is_in_its_queues_and_no_more_than_it_asks_for(
    virtual: Virtual, worker: Client
) -> None:
    create(virtual.admin, "cpu", run={"external": {}})
    create(virtual.admin, "gpu", run={"external": {"queue": "gpu"}})
    for name in ("cpu", "cpu", "cpu", "gpu"):
        trigger(virtual.admin, name)
    virtual.go_on()
    assert [work["jobId"] for work in lease(worker, labels=["gpu"], max=10)] == ["gpu"]
    assert [work["jobId"] for work in lease(worker, max=2)] == ["cpu", "cpu"]
    assert [work["jobId"] for work in lease(worker, labels=["gpu", "default"], max=10)] == ["cpu"]


def test_a_completion_ends_the_run_and_repeating_it_answers_the_same(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual)
    (work,) = lease(worker)
    path, report = f"/leases/{work['lease']}/complete", {"epoch": 1, "output": {"rows": 3}}
    first = worker.post(path, report).expect(200)
    assert (first.json["state"], first.json["output"]) == ("succeeded", {"rows": 3})
    virtual.go_on(minutes=5)
    assert worker.post(path, report).expect(200).json == first.json
    assert run_of(virtual.admin, "outside", run_id)["endedAt"] == "2026-03-02T00:10:00Z"


def test_an_output_that_its_run_cannot_hold_is_kept_and_stays_what_it_was(virtual: Virtual, worker: Client) -> None:
    virtual.admin.put("/secrets/dsn", {"value": "s3cr3t-value"})
    create(virtual.admin, "outside", run={"external": {"secrets": {"DSN": "dsn"}}})
    run_id = trigger(virtual.admin, "outside")
    virtual.go_on()
    (work,) = lease(worker)
    path, rows = f"/leases/{work['lease']}/complete", ["ä" * 99, "s3cr3t-value"] * 2_000
    worker.post(path, {"epoch": 1, "output": rows}).expect(200)
    kept = [row if row == "ä" * 99 else MARK for row in rows]
    assert run_of(virtual.admin, "outside", run_id)["output"] == kept
    for other in ("small", "x" * 5_000):
        worker.post(path, {"epoch": 1, "output": other}).expect(200)
    assert run_of(virtual.admin, "outside", run_id)["output"] == kept


def test_an_output_of_more_than_a_megabyte_is_refused(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    (work,) = lease(worker)
    path = f"/leases/{work['lease']}/complete"
    refused = worker.post(path, {"epoch": 1, "output": "x" * (OUTPUT_KEPT_MAX - 1)}).expect(400)
    assert refused.json["errors"][0]["path"] == "output"
    worker.post(path, {"epoch": 1, "output": "x" * (OUTPUT_KEPT_MAX - 2)}).expect(200)


def test_instances_of_a_mapped_task_keep_large_outputs_and_what_comes_after_reads_them(
    virtual: Virtual, worker: Client
) -> None:
    tasks = [
        {"id": "load", "run": {"external": {}}, "map": {"over": "${params.list}"}},
        {"id": "sum", "needs": ["load"], "run": {"external": {"rows": "${tasks.load.output}"}}},
    ]
    create(virtual.admin, "etl", tasks=tasks, params={"list": [1, 2]})
    trigger(virtual.admin, "etl")
    virtual.go_on(seconds=10)
    for work in lease(worker, max=10):
        output = str(work["upstream"]["item"]) * 5_000
        worker.post(f"/leases/{work['lease']}/complete", {"epoch": 1, "output": output}).expect(200)
    virtual.go_on(seconds=10)
    (last,) = lease(worker, max=10)
    assert last["upstream"]["tasks"]["load"]["output"] == ["1" * 5_000, "2" * 5_000]


def test_a_report_under_another_epoch_is_refused(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    (work,) = lease(worker)
    for verb, body in (("complete", {}), ("fail", {"error": "x"}), ("heartbeat", {})):
        worker.post(f"/leases/{work['lease']}/{verb}", {"epoch": 2, **body}).expect(409)
    worker.post(f"/leases/{work['lease']}/complete", {"epoch": 1}).expect(200)


def test_a_worker_that_lost_its_lease_learns_it_and_changes_nothing(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual)
    (old,) = lease(worker)
    virtual.go_on(seconds=70)
    (new,) = lease(worker, workerId="w2")
    assert (new["runId"], new["attempt"], new["epoch"]) == (run_id, 2, 2)
    for body in ({"epoch": 1}, {"epoch": 2}):
        worker.post(f"/leases/{old['lease']}/complete", body).expect(409)
        worker.post(f"/leases/{old['lease']}/heartbeat", body).expect(409)
    assert run_of(virtual.admin, "outside", run_id)["state"] == "running"
    worker.post(f"/leases/{new['lease']}/complete", {"epoch": 2}).expect(200)


def test_a_lease_is_kept_alive_by_heartbeats(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual)
    (work,) = lease(worker)
    for until in ("00:11:40", "00:12:20", "00:13:00", "00:13:40"):
        virtual.go_on(seconds=40)
        beat = worker.post(f"/leases/{work['lease']}/heartbeat", {"epoch": 1, "progress": 30}).expect(200)
        assert beat.json == {"leaseUntil": f"2026-03-02T{until}Z"}
    run = run_of(virtual.admin, "outside", run_id)
    assert (run["state"], run["attempt"], run["progress"]) == ("running", 1, 30)
    assert virtual.admin.get("/jobs/outside").json["progress"] == 30


def test_no_heartbeat_reaches_beyond_the_timeout(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual, timeout="90s")
    (work,) = lease(worker)
    virtual.go_on(seconds=50)
    beat = worker.post(f"/leases/{work['lease']}/heartbeat", {"epoch": 1}).expect(200)
    assert beat.json == {"leaseUntil": "2026-03-02T00:11:30Z"}
    virtual.jump(seconds=45)
    worker.post(f"/leases/{work['lease']}/heartbeat", {"epoch": 1}).expect(409)
    run = run_of(virtual.admin, "outside", run_id)
    assert (run["state"], run["reason"].partition(":")[0]) == ("failed", "timeout")


def test_many_heartbeats_in_one_call_are_answered_one_by_one(virtual: Virtual, worker: Client) -> None:
    offered(virtual, "one")
    offered(virtual, "two")
    one, two = lease(worker, max=2)
    beats = [
        {"lease": one["lease"], "epoch": 1, "progress": 10},
        {"lease": two["lease"], "epoch": 9},
        {"lease": "bm8", "epoch": 1},
    ]
    virtual.jump(seconds=10)
    good, stale, absent = worker.post("/leases/heartbeat", {"leases": beats}).expect(200).items
    assert (good["error"], good["leaseUntil"]) == (None, "2026-03-02T00:11:10Z")
    assert stale["error"]
    assert (stale["leaseUntil"], absent["leaseUntil"]) == (None, None)
    assert absent["error"] == "There is no such lease."


def test_a_failure_is_retried_and_the_checkpoint_is_restored(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual, retry={"attempts": 2, "backoff": "fixed", "delay": "1m"})
    (work,) = lease(worker)
    saved = {"epoch": 1, "checkpoint": {"row": 41}}
    worker.post(f"/leases/{work['lease']}/heartbeat", saved).expect(200)
    failed = {"epoch": 1, "error": {"name": "Busy", "message": "later"}}
    assert worker.post(f"/leases/{work['lease']}/fail", failed).expect(200).json["state"] == "retrying"
    assert lease(worker) == []
    virtual.go_on(seconds=61)
    (again,) = lease(worker)
    assert (again["runId"], again["attempt"], again["checkpoint"]) == (run_id, 2, {"row": 41})
    worker.post(f"/leases/{again['lease']}/complete", {"epoch": again["epoch"]}).expect(200)
    rerun = virtual.admin.post(f"/jobs/outside/runs/{run_id}/rerun").expect(202).json["runId"]
    virtual.go_on()
    (fresh,) = lease(worker)
    assert (fresh["runId"], fresh["checkpoint"]) == (rerun, None)


def test_a_checkpoint_outlives_a_lost_worker(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    (work,) = lease(worker)
    worker.post(f"/leases/{work['lease']}/heartbeat", {"epoch": 1, "checkpoint": "page 7"}).expect(200)
    virtual.go_on(seconds=120)
    assert [one["checkpoint"] for one in lease(worker)] == ["page 7"]


def test_a_permanent_failure_ends_the_run(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual, retries=3)
    (work,) = lease(worker)
    body = {"epoch": 1, "error": "no such bucket", "class": "permanent"}
    assert worker.post(f"/leases/{work['lease']}/fail", body).expect(200).json["state"] == "failed"
    run = run_of(virtual.admin, "outside", run_id)
    assert run["error"]["message"] == "no such bucket"
    assert run["error"]["class"] == "permanent"


def test_the_worker_of_a_cancelled_run_learns_it(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual)
    (work,) = lease(worker)
    virtual.admin.post(f"/jobs/outside/runs/{run_id}/cancel").expect(200)
    for verb in ("heartbeat", "complete", "fail"):
        worker.post(f"/leases/{work['lease']}/{verb}", {"epoch": 1}).expect(409)
    assert run_of(virtual.admin, "outside", run_id)["state"] == "cancelled"


def test_a_lease_cannot_be_guessed_or_made_of_another(virtual: Virtual, worker: Client) -> None:
    first = offered(virtual, "one")
    second = offered(virtual, "two")
    one, two = lease(worker, max=2)

    def forged(work: Any, old: str, new: str) -> str:
        plain = urlsafe_b64decode(work["lease"] + "=" * (-len(work["lease"]) % 4)).decode()
        return urlsafe_b64encode(plain.replace(old, new).encode()).decode().rstrip("=")

    swapped = forged(one, f"one/{first}", f"two/{second}")
    worker.post(f"/leases/{swapped}/complete", {"epoch": 1}).expect(409)
    nowhere = forged(one, first, "20200101T000000Z")
    missing = worker.post(f"/leases/{nowhere}/complete", {"epoch": 1}).expect(404)
    for garbage in ("x", "AAAA", two["lease"][:-3]):
        refused = worker.post(f"/leases/{garbage}/complete", {"epoch": 1})
        assert refused.status in (404, 409)
    assert missing.json["detail"] == "There is no such lease."
    assert {run_of(virtual.admin, "one", first)["state"], run_of(virtual.admin, "two", second)["state"]} == {"running"}


def test_a_run_that_nobody_leased_has_no_lease(virtual: Virtual, worker: Client) -> None:
    create(virtual.admin, "inside", command="x")
    virtual.on("inside", takes="1m")
    run_id = trigger(virtual.admin, "inside")
    virtual.go_on(seconds=1)
    made_up = urlsafe_b64encode(f"default/inside/{run_id}|".encode()).decode().rstrip("=")
    worker.post(f"/leases/{made_up}/complete", {"epoch": 1}).expect(404)


def test_workers_are_shown_with_what_they_hold(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual)
    lease(worker, workerId="busy")
    lease(worker, workerId="idle", labels=["gpu"])
    virtual.go_on(seconds=5)
    busy, idle = worker.get("/workers").expect(200).items
    assert busy == {
        "workerId": "busy",
        "lastSeenAt": "2026-03-02T00:10:00Z",
        "queues": ["default"],
        "holds": [{"jobId": "outside", "runId": run_id, "attempt": 1}],
    }
    assert (idle["workerId"], idle["queues"], idle["holds"]) == ("idle", ["gpu"], [])


def test_the_secret_of_a_lease_is_shown_to_its_worker_only(virtual: Virtual, worker: Client) -> None:
    run_id = offered(virtual)
    (work,) = lease(worker)
    plain = urlsafe_b64decode(work["lease"] + "=" * (-len(work["lease"]) % 4)).decode()
    secret = plain.partition("|")[2]
    assert len(secret) == 43
    run = f"/jobs/outside/runs/{run_id}"
    for path in (run, f"{run}/why", f"{run}/tasks", "/jobs/outside/why", "/workers", "/runs", "/audit"):
        assert secret not in virtual.admin.get(path).expect(200).text


def test_an_agent_speaks_for_its_own_lease_and_may_do_nothing_else(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    (work,) = lease(worker)
    agent = Client(worker.api, f"lease.{work['lease']}")
    there = f"/leases/{work['lease']}"
    shown = agent.get(f"{there}?epoch=1").expect(200).json
    assert shown.keys() >= WORK | {"call"}
    assert shown["call"]["params"] == {"a": 1}
    agent.post(f"{there}/heartbeat", {"epoch": 1, "progress": 40}).expect(200)
    for refused in (agent.get("/jobs"), agent.post("/leases", {"workerId": "w2"}), agent.get("/workers")):
        refused.expect(403)
    agent.post(f"{there}/complete", {"epoch": 1, "output": "done"}).expect(200)
    agent.post(f"{there}/complete", {"epoch": 1, "output": "done"}).expect(200)


def test_a_lease_that_is_anothers_by_now_opens_nothing(virtual: Virtual, worker: Client) -> None:
    offered(virtual)
    (work,) = lease(worker)
    agent = Client(worker.api, f"lease.{work['lease']}")
    forged = urlsafe_b64encode(urlsafe_b64decode(work["lease"] + "==").split(b"|")[0] + b"|guessed").decode()
    for wrong in (forged.rstrip("="), "AAAA", ""):
        Client(worker.api, f"lease.{wrong}").get(f"/leases/{work['lease']}?epoch=1").expect(401)
    virtual.go_on(minutes=5)
    assert lease(worker)[0]["epoch"] == 2
    agent.get(f"/leases/{work['lease']}?epoch=1").expect(401)
