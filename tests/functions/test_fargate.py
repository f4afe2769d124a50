"""Launching on Fargate when AWS refuses, is silent, or takes a task away: one task an epoch, a reason for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from sweephand.aws.fargate import OVERRIDES_CHARS_MAX
from sweephand.domain.ids import DEFAULT, JobKey, JobName
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.retry import FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.local.cloud.account import AwsCall, Perform, refusal
from sweephand.local.cloud.cluster import Ended
from tests.api.client import Client, VirtualCloud

IMAGE = {"image": "team/report:1", "command": ["x"]}
KEY = JobKey(DEFAULT, JobName("job"))


class Cloud(VirtualCloud):
    """A place where calls of ECS can be made to fail."""

    def __init__(self, tmp: Path) -> None:
        super().__init__(tmp, around=self._around)
        self.faults: list[tuple[Exception, bool]] = []
        """Errors that the next RunTasks end in, and whether they take effect all the same."""
        self.calls: list[AwsCall] = []

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        if call.service != "ecs" or not call.function:
            return perform(call.params)
        self.calls.append(call)
        if call.operation != "RunTask" or not self.faults:
            return perform(call.params)
        error, applied = self.faults.pop(0)
        if applied:
            perform(call.params)
        raise error

    def operations(self) -> list[str]:
        return [call.operation for call in self.calls]

    def begin(self, container: dict[str, Any] | None = None, **more: Any) -> Run:
        job = {"name": "job", "run": {"container": {**IMAGE, **(container or {})}}, "timeout": "1h", **more}
        self.admin.post("/jobs", job).expect(201)
        self.admin.post("/jobs/job/trigger").expect(202)
        self.go_on(seconds=5)
        return self.last

    @property
    def last(self) -> Run:
        (run,) = self.world.runs.of_job(KEY, limit=1)
        return run

    def agent(self, number: int = -1) -> tuple[Client, str, int]:
        """Whoever speaks for a task: its client, its lease and its epoch."""
        told = self.deployment.cluster.tasks[number].environment("agent")
        lease, epoch = told["SWEEPHAND_LEASE"], int(told["SWEEPHAND_EPOCH"])
        return Client(self.api, f"lease.{lease}"), lease, epoch


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with Cloud(tmp_path) as place:
        yield place


def test_a_definition_is_registered_once_and_named_by_what_is_in_it(cloud: Cloud) -> None:
    cloud.begin()
    assert cloud.operations() == ["RunTask", "RegisterTaskDefinition", "RunTask"]
    cloud.admin.post("/jobs/job/trigger").expect(202)
    cloud.go_on(seconds=5)
    assert cloud.operations()[3:] == ["RunTask"]
    agent, task = cloud.calls[1].params["containerDefinitions"]
    assert (agent["essential"], task["essential"], task["image"]) == (True, False, "team/report:1")
    assert task["dependsOn"] == [{"containerName": "agent", "condition": "HEALTHY"}]
    assert (task["privileged"], agent["mountPoints"][0], len(task["mountPoints"])) == (False, task["mountPoints"][0], 1)
    families = {call.params["taskDefinition"] for call in cloud.calls if call.operation == "RunTask"}
    assert families == {cloud.calls[1].params["family"]}
    other = {"name": "other", "run": {"container": {**IMAGE, "cpu": 512, "memory": 2048}}}
    cloud.admin.post("/jobs", other).expect(201)
    cloud.admin.post("/jobs/other/trigger").expect(202)
    cloud.go_on(seconds=5)
    assert cloud.operations()[4:] == ["RunTask", "RegisterTaskDefinition", "RunTask"]
    assert (cloud.calls[5].params["cpu"], cloud.calls[5].params["memory"]) == ("512", "2048")


def test_its_variables_have_no_lease_and_its_words_go_through_no_shell(cloud: Cloud) -> None:
    hostile = ["; rm -rf /", "$(id)", "`id`", "--privileged", "${params.p}"]
    cloud.begin({"command": hostile, "env": {"A": "${params.p}"}}, params={"p": "$(x)\ny"})
    task = cloud.deployment.cluster.tasks[0]
    assert task.words("task") == [*hostile[:4], "$(x)\ny"]
    told = task.environment("task")
    assert told["A"] == "$(x)\ny"
    assert not {"SWEEPHAND_LEASE", "SWEEPHAND_EPOCH", "SWEEPHAND_URL"} & told.keys()
    assert told["SWEEPHAND_OUTPUT"] == "/sweephand/output"


def test_a_container_is_told_what_the_tasks_before_it_gave(cloud: Cloud) -> None:
    first = {"id": "extract", "run": {"container": IMAGE}}
    told = {
        **IMAGE,
        "command": ["load", "${tasks.extract.output.path}"],
        "env": {"ROWS": "${tasks.extract.output.rows}"},
    }
    second = {"id": "load", "needs": ["extract"], "run": {"container": told}}
    cloud.admin.post("/jobs", {"name": "job", "tasks": [first, second]}).expect(201)
    cloud.admin.post("/jobs/job/trigger").expect(202)
    cloud.go_on(minutes=1)
    client, lease, epoch = cloud.agent()
    output = {"path": "s3://x", "rows": 3, "more": "x" * 500_000}  # and more than a run can hold
    client.post(f"/leases/{lease}/complete", {"epoch": epoch, "output": output}).expect(200)
    cloud.go_on(minutes=1)
    _, task = cloud.deployment.cluster.tasks
    assert (task.words("task"), task.environment("task")["ROWS"]) == (["load", "s3://x"], "3")


def test_a_call_that_timed_out_although_it_started_finds_its_own_task(cloud: Cloud) -> None:
    lost = ReadTimeoutError(endpoint_url="https://ecs.test")
    cloud.begin()  # so that the definition is there
    cloud.faults = [(lost, True), (lost, True)]
    cloud.admin.post("/jobs/job/trigger").expect(202)
    cloud.go_on(seconds=5)
    tokens = [call.params["clientToken"] for call in cloud.calls[3:]]
    assert (len(tokens), len(set(tokens)), len(cloud.deployment.cluster.tasks)) == (3, 1, 2)
    assert len(tokens[0]) <= 64
    client, lease, epoch = cloud.agent()
    client.post(f"/leases/{lease}/complete", {"epoch": epoch}).expect(200)


def test_where_nothing_was_heard_at_all_the_lease_ends_and_the_next_epoch_has_a_task_of_its_own(cloud: Cloud) -> None:
    run = cloud.begin()
    cloud.go_on(minutes=12)
    first, second = cloud.deployment.cluster.tasks
    assert (run.epoch, cloud.last.epoch) == (1, 2)
    assert first.asked["clientToken"] != second.asked["clientToken"]
    assert "StopTask" in cloud.operations()
    client, lease, _ = cloud.agent(0)
    assert client.post(f"/leases/{lease}/complete", {"epoch": 1}).status in {401, 409}
    client, lease, _ = cloud.agent(1)
    client.post(f"/leases/{lease}/complete", {"epoch": 2, "output": 5}).expect(200)
    assert (cloud.last.state, cloud.last.output) == (RunState.SUCCEEDED, 5)


@pytest.mark.parametrize(
    "error",
    [
        refusal("ThrottlingException", "RunTask"),
        refusal("ClientException", "RunTask", message="You've reached the limit on the number of tasks you can run"),
    ],
)
def test_one_that_is_throttled_waits_and_is_no_attempt(cloud: Cloud, error: Exception) -> None:
    cloud.faults = [(error, False), (error, False)]
    run = cloud.begin()
    assert (run.attempt, run.reason and run.reason.code, len(cloud.calls)) == (0, ReasonCode.ROOM, 1)
    cloud.go_on(minutes=4)
    assert (cloud.last.state, cloud.last.attempt, len(cloud.deployment.cluster.tasks)) == (RunState.RUNNING, 1, 1)
    assert cloud.operations() == ["RunTask", "RunTask", "RunTask", "RegisterTaskDefinition", "RunTask"]


def test_without_capacity_it_waits_and_spot_falls_back_to_what_there_is(cloud: Cloud) -> None:
    cloud.deployment.cluster.full.add("FARGATE_SPOT")
    cloud.begin({"spot": True})
    (task,) = cloud.deployment.cluster.tasks
    assert task.asked["capacityProviderStrategy"][0]["capacityProvider"] == "FARGATE"
    cloud.deployment.cluster.full.add("FARGATE")
    cloud.admin.post("/jobs/job/trigger").expect(202)
    cloud.go_on(seconds=5)
    newest = cloud.world.runs.of_job(KEY, limit=2)
    assert {one.reason.code for one in newest if one.reason} == {ReasonCode.ROOM}
    cloud.deployment.cluster.full.clear()
    cloud.go_on(minutes=2)
    assert cloud.deployment.cluster.tasks[1].asked["capacityProviderStrategy"][0]["capacityProvider"] == "FARGATE_SPOT"


def test_after_a_call_that_may_have_begun_it_on_spot_no_second_one_is_launched_elsewhere(cloud: Cloud) -> None:
    cloud.begin()  # so that the definition is there
    lost, full = ReadTimeoutError(endpoint_url="https://ecs.test"), refusal("ThrottlingException", "RunTask")
    cloud.faults = [(lost, True), (full, False)]
    spot = {"name": "job", "run": {"container": {**IMAGE, "spot": True}}}
    cloud.admin.put("/jobs/job", spot, **{"If-Match": "1"}).expect(200)
    cloud.admin.post("/jobs/job/trigger").expect(202)
    cloud.go_on(seconds=5)
    _, *launched = cloud.deployment.cluster.tasks
    assert [one.asked["capacityProviderStrategy"][0]["capacityProvider"] for one in launched] == ["FARGATE_SPOT"]
    client, lease, epoch = cloud.agent()
    client.post(f"/leases/{lease}/complete", {"epoch": epoch, "output": 1}).expect(200)
    assert (cloud.last.state, cloud.last.epoch) == (RunState.SUCCEEDED, 1)


def test_what_ecs_refuses_for_good_is_permanent(cloud: Cloud) -> None:
    cloud.faults = [(refusal("AccessDeniedException", "RunTask", message="not authorized to pass the role"), False)]
    run = cloud.begin(retry={"attempts": 3})
    assert run.failure is not None
    assert (run.state, run.failure.error, run.failure.kind) == (
        RunState.FAILED,
        "LaunchRefused",
        FailureClass.PERMANENT,
    )


def test_more_than_ecs_takes_is_refused_with_the_number(cloud: Cloud) -> None:
    run = cloud.begin({"env": {"LONG": "x" * OVERRIDES_CHARS_MAX}})
    assert run.failure is not None
    assert (run.failure.error, str(OVERRIDES_CHARS_MAX) in run.failure.message) == ("TooLarge", True)


PULL = "CannotPullContainerError: pull image manifest has been retried 1 time(s): "


@pytest.mark.parametrize(
    ("ended", "error", "kind"),
    [
        (Ended({"agent": 137, "task": None}), "Stopped", FailureClass.TRANSIENT),
        (Ended({"agent": 143}, "SpotInterruption", "Your Spot Task was interrupted."), "Interrupted", "transient"),
        (Ended({}, "TaskFailedToStart", f"{PULL}team/report:1: not found"), "ImagePull", "permanent"),
        (Ended({}, "TaskFailedToStart", f"{PULL}dial tcp: i/o timeout"), "ImagePull", "transient"),
        (
            Ended({"agent": 0, "task": 137}, reasons={"task": "OutOfMemoryError: killed due to memory usage"}),
            "OutOfMemory",
            "transient",
        ),
    ],
)
def test_a_task_that_stopped_ends_its_attempt_with_the_reason(
    cloud: Cloud, ended: Ended, error: str, kind: str
) -> None:
    cloud.begin()
    cloud.deployment.cluster.end(cloud.deployment.cluster.tasks[0], ended)
    cloud.go_on(seconds=5)
    assert cloud.last.failure is not None
    assert (cloud.last.state, cloud.last.failure.error, str(cloud.last.failure.kind)) == (
        RunState.FAILED,
        error,
        kind,
    )


def test_one_for_which_there_was_no_room_after_all_is_begun_again(cloud: Cloud) -> None:
    cloud.begin()
    why = "Capacity is unavailable at this time. Please try again later or in a different availability zone"
    cloud.deployment.cluster.end(cloud.deployment.cluster.tasks[0], Ended({}, "TaskFailedToStart", why))
    cloud.go_on(minutes=3)
    assert (cloud.last.state, cloud.last.attempt, len(cloud.deployment.cluster.tasks)) == (RunState.RUNNING, 1, 2)


def test_the_end_of_a_task_whose_agent_has_reported_or_whose_epoch_is_over_changes_nothing(cloud: Cloud) -> None:
    cloud.begin()
    client, lease, epoch = cloud.agent()
    client.post(f"/leases/{lease}/complete", {"epoch": epoch, "output": 1}).expect(200)
    before = cloud.last
    cloud.deployment.cluster.end(cloud.deployment.cluster.tasks[0], Ended({"agent": 0, "task": 0}))
    cloud.go_on(minutes=1)
    assert cloud.last == before
    cloud.deployment.happen(
        {"detail-type": "ECS Task State Change", "source": "aws.ecs", "detail": {"lastStatus": "STOPPED"}}
    )
    cloud.go_on(minutes=1)
    assert cloud.last == before


def test_an_image_that_is_not_listed_and_a_size_that_there_is_not_are_refused_when_saved(cloud: Cloud) -> None:
    for more, path in (
        ({"image": "evil/report:1"}, "run.container.image"),
        ({"cpu": 300}, "run.container.cpu"),
        ({"cpu": 256, "memory": 4096}, "run.container.memory"),
        ({"privileged": True}, "run.container.privileged"),
        ({"command": "x; y"}, "run.container.command"),
    ):
        refused = cloud.admin.post("/jobs", {"name": "job", "run": {"container": {**IMAGE, **more}}}).expect(400)
        assert [one["path"] for one in refused.json["errors"]] == [path]


def test_an_image_that_is_not_listed_any_more_is_refused_when_it_runs(cloud: Cloud) -> None:
    from sweephand.engine.put import put
    from sweephand.engine.trigger import trigger

    document = {"name": "job", "run": {"container": {"image": "evil/report:1"}}}
    put(cloud.world, DEFAULT, document, actor="test", expected=None)
    trigger(cloud.world, KEY)
    cloud.go_on(seconds=5)
    assert cloud.last.failure is not None
    assert (cloud.last.failure.kind, cloud.operations()) == (FailureClass.PERMANENT, [])


def test_what_was_launched_for_a_cancelled_run_is_stopped_before_it_said_a_word(cloud: Cloud) -> None:
    run = cloud.begin()
    cloud.admin.post(f"/jobs/job/runs/{run.key.run_id}/cancel").expect(200)
    cloud.go_on(seconds=5)
    assert cloud.operations()[-2:] == ["ListTasks", "StopTask"]
    assert cloud.last.state is RunState.CANCELLED
