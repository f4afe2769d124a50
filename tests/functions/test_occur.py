"""Events as EventBridge and S3 send them, through the rules of a deployment, into the real handler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.options import Options
from sweephand.domain.ids import DEFAULT, JobKey, JobName, Namespace
from sweephand.domain.run import Run, Trigger
from sweephand.engine.put import put
from sweephand.local.cloud.account import AwsCall, Perform
from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from sweephand.topology import UNDELIVERED
from tests.functions.test_execute import ROOT, START
from tests.moto_world import timed_out

TEAM = Namespace("team")
CREATED: dict[str, Any] = {
    "version": "0",
    "id": "17793124-05d4-b198-2fde-7ededc63b103",
    "detail-type": "Object Created",
    "source": "aws.s3",
    "account": "111122223333",
    "time": "2021-11-12T00:00:00Z",
    "region": "ca-central-1",
    "resources": ["arn:aws:s3:::acme-inbox"],
    "detail": {
        "version": "0",
        "bucket": {"name": "acme-inbox"},
        "object": {
            "key": "orders/2021/11/12.csv",
            "size": 5,
            "etag": "b1946ac92492d2347c6235b4d2611184",
            "version-id": "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e",
            "sequencer": "617f08299329d189",
        },
        "request-id": "N4N7GDK58NMKJ12R",
        "requester": "123456789012",
        "source-ip-address": "1.2.3.4",
        "reason": "PutObject",
    },
}
GLUE: dict[str, Any] = {
    "version": "0",
    "id": "abcdef00-1234-5678-9abc-def012345678",
    "detail-type": "Glue Job State Change",
    "source": "aws.glue",
    "account": "123456789012",
    "time": "2017-09-07T18:57:21Z",
    "region": "us-west-2",
    "resources": [],
    "detail": {"jobName": "MyJob", "severity": "INFO", "state": "SUCCEEDED", "jobRunId": "jr_abcdef012345"},
}
RULES = [
    {"bucket": "acme-inbox", "prefix": "orders/", "namespace": "team"},
    {"pattern": {"source": ["aws.glue"], "detail": {"state": ["SUCCEEDED"]}}},
    {"pattern": {"source": ["com.acme.shop"]}, "bus": "acme", "namespace": "team"},
]


class Place:
    """A deployment that listens, and whose calls can be made to fail."""

    def __init__(self, tmp: Path) -> None:
        self.clock = VirtualClock(START)
        self.unheard = ""
        """The call whose next answer is lost."""
        self.is_down = False
        self.deployment = Deployment(
            ROOT,
            tmp=tmp,
            clock=self.clock,
            dice=SeededDice(1),
            settings=Settings(shards=1),
            around=self._around,
            feeds=Options.from_context({"eventRules": RULES}).feeds,
        )

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        if call.function == "occur" and self.is_down:
            raise timed_out().error
        answer = perform(call.params)
        if call.function == "occur" and call.operation == self.unheard:
            self.unheard = ""
            raise timed_out().error
        return answer

    def listens(self, namespace: Namespace, **rule: Any) -> None:
        document = {"name": "job", "command": "true", "schedule": {"events": [rule]}}
        put(self.deployment.world, namespace, document, actor="test", expected=None)

    def happen(self, event: dict[str, Any], *, bus: str = "default") -> None:
        self.deployment.happen(event, bus=bus)
        self.settle()

    def settle(self) -> None:
        while (following := self.deployment.step()) is not None and (following - START).total_seconds() < 50:
            self.clock.move(following)

    def runs(self, namespace: Namespace) -> list[Run]:
        return self.deployment.world.runs.of_job(JobKey(namespace, JobName("job")), limit=10)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with place.deployment:
        yield place


def test_an_object_in_a_bucket_makes_a_run_with_its_key(place: Place) -> None:
    place.listens(TEAM, source="aws.s3", type="Object Created", match={"bucket": {"name": "acme-inbox"}})
    place.happen(CREATED)
    (run,) = place.runs(TEAM)
    assert run.trigger is Trigger.EVENT
    assert run.params["event"] == {
        "source": "aws.s3",
        "type": "Object Created",
        "id": CREATED["id"],
        "detail": CREATED["detail"],
    }


def test_an_event_that_comes_twice_is_one_event(place: Place) -> None:
    place.listens(TEAM, source="aws.s3")
    place.happen(CREATED)
    place.happen(CREATED)
    place.happen({**CREATED, "id": "another"})
    assert len(place.runs(TEAM)) == 2


@pytest.mark.parametrize(
    "event",
    [
        {**CREATED, "detail": {**CREATED["detail"], "bucket": {"name": "other"}}},
        {**CREATED, "detail": {**CREATED["detail"], "object": {"key": "drafts/1.csv"}}},
        {**CREATED, "detail-type": "Object Deleted"},
    ],
)
def test_what_is_not_listed_is_not_heard_of(place: Place, event: dict[str, Any]) -> None:
    place.listens(TEAM, source="aws.s3")
    place.happen(event)
    assert place.runs(TEAM) == []


def test_an_event_is_told_to_its_namespace_and_on_its_bus_alone(place: Place) -> None:
    shop = {**GLUE, "source": "com.acme.shop", "detail-type": "sold", "id": "s-1"}
    for namespace in (DEFAULT, TEAM):
        document = [{"source": "aws.glue"}, {"source": "com.acme.shop"}]
        job = {"name": "job", "command": "true", "schedule": {"events": document}}
        put(place.deployment.world, namespace, job, actor="test", expected=None)
    place.happen(GLUE)
    assert [len(place.runs(one)) for one in (DEFAULT, TEAM)] == [1, 0]
    place.happen(shop)
    assert [len(place.runs(one)) for one in (DEFAULT, TEAM)] == [1, 0]
    place.happen(shop, bus="acme")
    assert [len(place.runs(one)) for one in (DEFAULT, TEAM)] == [1, 1]


def test_a_detail_that_is_too_large_is_matched_and_left_out(place: Place) -> None:
    place.listens(DEFAULT, source="aws.glue", match={"jobName": "MyJob"})
    place.happen({**GLUE, "detail": {**GLUE["detail"], "text": "x" * 40_000}})
    (run,) = place.runs(DEFAULT)
    assert run.params["event"]["detail"] == {}
    assert run.params["event"]["detailBytes"] > 40_000


@pytest.mark.parametrize("call", ["PutItem", "BatchWriteItem", "SendMessageBatch"])
def test_an_event_one_of_whose_answers_was_lost_makes_one_run(place: Place, call: str) -> None:
    place.listens(DEFAULT, source="aws.glue")
    place.unheard = call
    place.happen(GLUE)
    assert place.unheard == ""
    assert len(place.runs(DEFAULT)) == 1


def test_an_event_that_cannot_be_dealt_with_is_put_aside(place: Place) -> None:
    place.listens(DEFAULT, source="aws.glue")
    place.is_down = True
    place.happen(GLUE)
    url = place.deployment.sqs.get_queue_url(QueueName=place.deployment.names.queue(UNDELIVERED))["QueueUrl"]
    (letter,) = place.deployment.sqs.receive_message(QueueUrl=url)["Messages"]
    assert GLUE["id"] in letter["Body"]


@pytest.mark.parametrize(
    "told", [{}, GLUE, {"namespace": "a b", "event": GLUE}, {"namespace": "team", "event": {"source": "x"}}]
)
def test_what_no_rule_of_ours_hands_over_is_refused(place: Place, told: dict[str, Any]) -> None:
    with pytest.raises(FunctionFailed):
        place.deployment.invoke("occur", told)
