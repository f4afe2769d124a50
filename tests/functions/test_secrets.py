"""Secrets on AWS, through the real handlers: what tasks are given is in no table, queue, log, history or answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from sweephand.domain.access import Role
from sweephand.domain.ids import DEFAULT, JobKey, JobName, Namespace
from sweephand.domain.run import RunState
from sweephand.engine.issue import issue
from sweephand.local.cloud import Deployment, Front
from sweephand.local.cloud.account import CONFIG, AwsCall, Perform, refusal
from sweephand.local.cloud.functions import Event
from sweephand.messages import AttemptRun, encode
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from tests import canaries
from tests.api.client import Client
from tests.canaries import CANARY, found

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 16, 6, 0, 30, tzinfo=UTC)
ALLOWED = "arn:aws:ssm:us-east-1:123456789012:parameter/jobs/{namespace}/*"
SECRETS = "arn:aws:secretsmanager:us-east-1:123456789012:secret:jobs-*"


class Recorded(Deployment):
    """Notes down what functions are told and what they answer."""

    def __init__(self, tmp: Path, **more: Any) -> None:
        self.invoked: list[tuple[str, str, str]] = []
        settings = Settings(shards=1, secret_arns=f"{ALLOWED},{SECRETS}", http_may_reach="127.0.0.1")
        super().__init__(ROOT, tmp=tmp, dice=SeededDice(1), settings=settings, **more)

    def invoke(self, name: str, event: Event) -> Any:
        answer = super().invoke(name, event)
        self.invoked.append((name, json.dumps(event), json.dumps(answer)))
        return answer


class Place:
    """A deployment, and everything that was asked of AWS."""

    def __init__(self, tmp: Path) -> None:
        self.clock = VirtualClock(START)
        self.calls: list[AwsCall] = []
        self.refused: dict[str, str] = {}
        self.deployment = Recorded(tmp, clock=self.clock, around=self._around)

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        self.calls.append(call)
        if call.operation in self.refused and call.function:
            raise refusal(self.refused[call.operation], call.operation)
        return perform(call.params)

    def role(self, role: Role, namespace: Namespace = DEFAULT) -> Client:
        token = issue(self.deployment.world, namespace=namespace, role=role, name=str(role), actor="test").text
        return Client(Front(self.deployment), token)

    def pass_time(self, **parts: float) -> None:
        end = self.clock.now() + timedelta(**parts)
        while (following := self.deployment.step()) is not None and following <= end:
            self.clock.move(following)
        self.clock.move(end)
        self.deployment.step()

    def run(self, client: Client, name: str, run: dict[str, Any], **fields: Any) -> dict[str, Any]:
        client.post("/jobs", {"name": name, "run": run, "timeout": "30s", **fields}).expect(201)
        run_id = client.post(f"/jobs/{name}/trigger", {}).expect(202).json["runId"]
        self.pass_time(minutes=1)
        answered: dict[str, Any] = client.get(f"/jobs/{name}/runs/{run_id}").expect(200).json
        return answered


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with place.deployment:
        yield place


def test_a_canary_is_found_nowhere(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    admin, worker = place.role(Role.ADMIN), place.role(Role.OPERATOR)
    with canaries.asked() as web:
        names: list[str] = []
        for timeout in ("30s", "10m"):
            jobs = canaries.programs() | canaries.functions(tmp_path) | canaries.requests(web, timeout)
            names += canaries.created(admin, jobs, timeout=timeout)
        canaries.offer_outside(admin)
        place.pass_time(minutes=2)
        assert canaries.was_told(web)
    for epoch in (1, 2):
        canaries.work_outside(worker, epoch=epoch)
        place.pass_time(minutes=2)
    _bury(place, names[0])
    answers = canaries.shown(admin, [*names, "outside"])
    place.pass_time(minutes=10)

    assert _ended(place, names) == {RunState.SUCCEEDED, RunState.FAILED}
    assert not [text for text in answers if found(text)]
    assert sum(r"\u2022" in text for text in answers) > 20
    rest = list(canaries.stored(place.deployment))
    assert not [(where, text) for where, text in rest if found(text)]
    assert {where for where, _ in rest} >= {"jobs", "runs", "control", "archive", "artifacts", "logs"}
    _check_calls(place)
    _check_invocations(place.deployment)
    assert not found(caplog.text)
    assert not [record for record in caplog.records if found(repr(vars(record)))]
    assert not found("".join(capfd.readouterr()))


def _bury(place: Place, name: str) -> None:
    (run, *_) = place.deployment.world.runs.of_job(JobKey(DEFAULT, JobName(name)), limit=1)
    url = place.deployment.sqs.get_queue_url(QueueName=place.deployment.names.queue("normal-dead"))["QueueUrl"]
    place.deployment.sqs.send_message(QueueUrl=url, MessageBody=encode(AttemptRun(run.key)))


def _ended(place: Place, names: list[str]) -> set[RunState]:
    runs = place.deployment.world.runs
    return {run.state for name in names for run in runs.of_job(JobKey(DEFAULT, JobName(name)), limit=10)}


def _check_calls(place: Place) -> None:
    """Only a short task's call carries the value, to the function that runs it, which keeps nothing."""
    for call in place.calls:
        if call.operation != "Invoke":
            assert not found(repr(call.params)), (call.service, call.operation)
    services = {call.service for call in place.calls}
    assert services >= {"dynamodb", "sqs", "lambda", "stepfunctions", "firehose", "kms"}


def _check_invocations(deployment: Recorded) -> None:
    """What the machine passes on is in its history: orders, answers and reports."""
    orders = [event for name, event, _ in deployment.invoked if name == "execute"]
    assert any("sealed" in json.loads(event) for event in orders)
    for name, event, answer in deployment.invoked:
        if name in {"api", "authorize"}:  # told by those who store a secret; on AWS only the first sees the body
            continue
        assert not found(answer), name
        is_direct = name == "execute" and "secrets" in json.loads(event)
        assert is_direct or not found(event), name


def test_an_order_is_opened_only_for_its_own_run(place: Place) -> None:
    admin = place.role(Role.ADMIN)
    admin.put("/secrets/canary", {"value": CANARY}).expect(201)
    run = {"command": ["true"], "secrets": {"DB": "canary"}}
    assert place.run(admin, "long", run, timeout="10m")["state"] == "succeeded"
    (event,) = (json.loads(event) for name, event, _ in place.deployment.invoked if name == "execute")
    assert place.deployment.invoke("execute", event)["succeeded"] == {"output": None}
    for moved in ({"epoch": 2}, {"run": "default/other/20261116T060030Z"}):
        with pytest.raises(Exception, match="cannot be opened here"):
            place.deployment.invoke("execute", {**event, **moved})


@pytest.mark.parametrize(("operation", "timeout"), [("Decrypt", "30s"), ("Decrypt", "10m"), ("GenerateDataKey", "10m")])
def test_a_key_that_does_not_answer_is_tried_again(place: Place, operation: str, timeout: str) -> None:
    admin = place.role(Role.ADMIN)
    admin.put("/secrets/canary", {"value": CANARY}).expect(201)
    run = {"command": ["true"], "secrets": {"DB": "canary"}}
    retry = {"attempts": 2, "delays": ["5m"]}
    place.refused[operation] = "KMSInternalException"
    first = place.run(admin, "job", run, timeout=timeout, retry=retry)
    assert (first["state"], first["attempt"]) == ("retrying", 1)
    assert "SecretsUnavailable" in first["error"]["error"]
    place.refused.clear()
    place.pass_time(minutes=6)
    assert admin.get(f"/jobs/job/runs/{first['runId']}").json["state"] == "succeeded"


def _kept_by_aws() -> None:
    ssm, manager = boto3.client("ssm", config=CONFIG), boto3.client("secretsmanager", config=CONFIG)
    for name, value in (("/jobs/default/dsn", CANARY), ("/jobs/others/dsn", "theirs"), ("/jobs/default/short", "abc")):
        ssm.put_parameter(Name=name, Value=value, Type="SecureString")
    manager.create_secret(Name="jobs-db", SecretString=json.dumps({"password": CANARY, "port": 54321}))
    manager.create_secret(Name="private", SecretString=CANARY)


@pytest.mark.parametrize(
    ("reference", "length"),
    [
        ("ssm:/jobs/default/dsn", len(CANARY)),
        ("secretsmanager:jobs-db#password", len(CANARY)),
        ("secretsmanager:jobs-db#port", 5),
    ],
)
def test_a_secret_that_aws_keeps_is_given_too(place: Place, reference: str, length: int) -> None:
    _kept_by_aws()
    admin = place.role(Role.ADMIN)
    run = {"command": ["sh", "-c", 'echo $${#DB}; echo "$DB"'], "secrets": {"DB": reference}}
    assert place.run(admin, "job", run)["output"] == {"stdout": f"{length}\n•••"}


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("ssm:/jobs/default/none", "SecretNotFound"),
        ("ssm:/jobs/others/dsn", "SecretRefused"),
        ("ssm:/jobs/default/short", "SecretTooShort"),
        ("secretsmanager:none", "SecretNotFound"),
        ("secretsmanager:jobs-db#none", "SecretNotFound"),
        ("secretsmanager:private", "SecretRefused"),
    ],
)
def test_what_may_not_be_read_fails_the_attempt_for_good(place: Place, reference: str, error: str) -> None:
    _kept_by_aws()
    admin = place.role(Role.ADMIN)
    run = place.run(admin, "job", {"command": ["true"], "secrets": {"DB": reference}}, retries=3)
    assert (run["state"], run["attempt"], run["error"]["error"]) == ("failed", 1, error)
    assert reference.partition(":")[2].partition("#")[0] in run["error"]["message"]


def test_a_store_that_denies_fails_the_attempt_for_good_and_says_what_to_do(place: Place) -> None:
    _kept_by_aws()
    place.refused["GetParameter"] = "AccessDeniedException"
    run = place.run(place.role(Role.ADMIN), "job", {"command": ["true"], "secrets": {"DB": "ssm:/jobs/default/dsn"}})
    assert run["error"]["error"] == "SecretRefused"
    assert "secretArns" in run["error"]["message"]
