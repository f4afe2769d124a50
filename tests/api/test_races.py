"""Many callers at once, on a real file: exactly one of them gets what there is one of."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.embedded import PACE
from tests.api.client import Answered, Served, Tasks
from tests.api.test_contract import create
from tests.local.waiting import until

MANY = 100


def together(call: Callable[[int], Answered], many: int = MANY) -> list[Answered]:
    """The answers to calls that all begin at the same moment, each in a thread of its own."""
    ready = threading.Barrier(many)

    def one(number: int) -> Answered:
        ready.wait(30)
        return call(number)

    with ThreadPoolExecutor(many) as threads:
        return list(threads.map(one, range(many)))


def statuses(answers: list[Answered]) -> dict[int, int]:
    return dict(Counter(answered.status for answered in answers))


def test_of_many_who_create_one_job_one_does(served: Served) -> None:
    answers = together(lambda n: served.admin.post("/jobs", {"name": "one", "command": f"echo {n}"}))
    assert statuses(answers) == {201: 1, 409: MANY - 1}
    winner = next(answered for answered in answers if answered.status == 201)
    assert served.admin.get("/jobs/one").json["tasks"] == winner.json["tasks"]
    assert [one["version"] for one in served.admin.get("/jobs/one/versions").items] == [1]
    assert len([row for row in served.admin.get("/audit").items if row["action"] == "job.put"]) == 1


def test_of_many_who_change_one_version_one_does(served: Served) -> None:
    create(served.admin, "one", command="first")
    answers = together(lambda n: served.admin.put("/jobs/one", {"command": f"echo {n}"}, If_Match="1"))
    assert statuses(answers) == {200: 1, 412: MANY - 1}
    winner = next(answered for answered in answers if answered.status == 200)
    assert served.admin.get("/jobs/one").json["tasks"] == winner.json["tasks"]
    assert len(served.admin.get("/jobs/one/versions").items) == 2


def test_the_same_trigger_sent_many_times_at_once_is_one_run(served: Served) -> None:
    create(served.admin, "one", command="x")
    body = {"params": {"a": 1}}
    answers = together(lambda _: served.admin.post("/jobs/one/trigger", body, Idempotency_Key="same"))
    assert statuses(answers) == {202: MANY}
    assert len({answered.text for answered in answers}) == 1
    assert [run["runId"] for run in served.admin.get("/jobs/one/runs").items] == [answers[0].json["runId"]]
    served.admin.post("/jobs/one/trigger", {"params": {"a": 2}}, Idempotency_Key="same").expect(409)


def test_of_many_calls_under_one_key_those_that_ask_for_something_else_are_refused(served: Served) -> None:
    create(served.admin, "one", command="x")
    answers = together(
        lambda n: served.admin.post("/jobs/one/trigger", {"params": {"a": n % 2}}, Idempotency_Key="same")
    )
    assert statuses(answers) == {202: MANY // 2, 409: MANY // 2}
    assert len({answered.text for answered in answers if answered.status == 202}) == 1
    assert len(served.admin.get("/jobs/one/runs").items) == 1


def test_many_who_redrive_one_dead_letter_get_one_run(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        create(served.admin, "one", run={"external": {}})
        run_id = served.admin.post("/jobs/one/trigger").expect(202).json["runId"]
        served.runtime.start()
        until(lambda: served.admin.get(f"/jobs/one/runs/{run_id}").json["reason"], within_s=10, what="it is on offer")
        (work,) = served.admin.post("/leases", {"workerId": "w"}).items
        failed = {"epoch": work["epoch"], "error": "no", "class": "permanent"}
        served.admin.post(f"/leases/{work['lease']}/fail", failed).expect(200)
        answers = together(lambda _: served.admin.post(f"/deadletters/one:{run_id}/redrive"), 20)
        assert statuses(answers) == {202: 20}
        assert len({answered.json["runId"] for answered in answers}) == 1
        assert len(served.admin.get("/jobs/one/runs").items) == 2


def test_no_two_workers_get_the_same_run(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        create(served.admin, "outside", run={"external": {}})
        runs = {served.admin.post("/jobs/outside/trigger").expect(202).json["runId"] for _ in range(20)}
        served.runtime.start()

        def are_offered() -> bool:
            return all(run["reason"] for run in served.admin.get("/jobs/outside/runs").items)

        until(are_offered, within_s=10, what="all are on offer")
        answers = together(lambda n: served.admin.post("/leases", {"workerId": f"w{n}", "max": 2}), 30)
        assert statuses(answers) == {200: 30}
        leased = [work["runId"] for answered in answers for work in answered.items]
        leased += [work["runId"] for work in served.admin.post("/leases", {"workerId": "w", "max": 100}).items]
        assert len(leased) == len(set(leased))
        assert set(leased) == runs


class OneAtATime:
    """A task that notices whoever runs beside it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self.most = 0
        self.ran: list[str] = []

    def __call__(self, call: Call) -> Outcome:
        with self._lock:
            self._active += 1
            self.most = max(self.most, self._active)
        threading.Event().wait(0.002)  # long enough for another to come
        with self._lock:
            self._active -= 1
            self.ran.append(call.run.key.run_id)
        return Succeeded()


def together_run(folder: Path, **fields: Any) -> OneAtATime:
    """Many triggers at once of a job whose task is watched, when all of them have run."""
    task = OneAtATime()
    pace = replace(PACE, slot_poll=timedelta(milliseconds=200))
    with Served(folder, Tasks(watched=task), pace=pace, workers=8) as served:
        create(served.admin, "watched", command="x", **fields)
        served.runtime.start()
        answers = together(lambda _: served.admin.post("/jobs/watched/trigger"))
        assert statuses(answers) == {202: MANY}
        wanted = {answered.json["runId"] for answered in answers}
        assert len(wanted) == MANY
        until(lambda: len(task.ran) >= MANY, within_s=40, what="all have run")
        assert sorted(task.ran) == sorted(wanted)
        assert served.runtime.defects == 0
    return task


def test_many_triggers_of_a_job_that_runs_alone_all_run_and_never_two_at_once(tmp_path: Path) -> None:
    assert together_run(tmp_path, concurrency={"runs": 1}).most == 1


def test_without_that_limit_they_do_run_side_by_side(tmp_path: Path) -> None:
    assert together_run(tmp_path).most > 1


def test_of_two_admins_who_remove_each_other_at_once_one_stays(served: Served) -> None:
    admin = served.admin
    admin.put("/namespaces/team", {})
    for _ in range(10):
        for member in ("ann", "bob"):
            admin.put(f"/namespaces/team/members/{member}", {"role": "admin"})
        with ThreadPoolExecutor(2) as threads:
            answers = threads.map(lambda one: admin.delete(f"/namespaces/team/members/{one}"), ("ann", "bob"))
            assert sorted(answer.status for answer in answers) == [204, 409]
