"""Job files in the bucket, through the real handler: by S3's own events, and by the hourly scan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from sweephand.domain.ids import DEFAULT, JobKey, JobName, Namespace
from sweephand.domain.job import Head, JobStatus
from sweephand.engine.grant import put_namespace
from sweephand.engine.scan import FileState, file_states
from sweephand.local.cloud.account import CONFIG, AwsCall, Perform, artifacts_bucket, refusal
from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from tests.functions.test_execute import ROOT, START

DAILY = "name: daily\nschedule: '0 6 * * *'\ncommand: report\n"


class Place:
    """A deployment whose bucket people put files into."""

    def __init__(self, tmp: Path, **settings: Any) -> None:
        self.clock = VirtualClock(START)
        self.read: list[str] = []
        self.is_down = False
        self.deployment = Deployment(
            ROOT,
            tmp=tmp,
            clock=self.clock,
            dice=SeededDice(1),
            settings=Settings(shards=1, **settings),
            around=self._around,
        )

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        if call.function == "scan" and call.service == "s3":
            if self.is_down:
                raise refusal("SlowDown", call.operation, status=503)
            self.read += [call.params["Key"]] if call.operation == "GetObject" else []
        return perform(call.params)

    @property
    def s3(self) -> Any:
        return boto3.client("s3", config=CONFIG)

    def write(self, key: str, text: str, *, tells: bool = True) -> None:
        self.s3.put_object(Bucket=artifacts_bucket(self.deployment.names), Key=key, Body=text.encode())
        self._tell("Object Created", key, tells)

    def remove(self, key: str, *, tells: bool = True) -> None:
        self.s3.delete_object(Bucket=artifacts_bucket(self.deployment.names), Key=key)
        self._tell("Object Deleted", key, tells)

    def _tell(self, kind: str, key: str, tells: bool) -> None:
        bucket = artifacts_bucket(self.deployment.names)
        event = {
            "version": "0",
            "id": f"{kind}-{key}",
            "detail-type": kind,
            "source": "aws.s3",
            "account": "111122223333",
            "time": "2021-11-12T00:00:00Z",
            "region": "us-east-1",
            "resources": [f"arn:aws:s3:::{bucket}"],
            "detail": {"version": "0", "bucket": {"name": bucket}, "object": {"key": key}, "reason": "PutObject"},
        }
        if tells:
            self.deployment.happen(event)
        self.deployment.step()

    def hour_passes(self) -> None:
        end = self.clock.now() + timedelta(hours=1)
        while (following := self.deployment.step()) is not None and following <= end:
            self.clock.move(following)
        self.clock.move(end)
        self.deployment.step()

    def head(self, name: str, namespace: Namespace = DEFAULT) -> Head | None:
        head = self.deployment.world.jobs.head(JobKey(namespace, JobName(name)))
        return head if head is not None and head.status is not JobStatus.DELETED else None

    def states(self, namespace: Namespace = DEFAULT) -> dict[str, FileState]:
        return {one.path: one for one in file_states(self.deployment.world, namespace)}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with place.deployment:
        yield place


def test_an_object_becomes_a_job_changes_it_and_takes_it_away(place: Place) -> None:
    place.write("jobs/default/team/daily.yaml", DAILY)
    head = place.head("daily")
    assert head is not None
    assert place.states()["team/daily.yaml"].jobs == {"daily": 1}
    place.write("jobs/default/team/daily.yaml", DAILY.replace("6", "7"))
    assert place.states()["team/daily.yaml"].jobs == {"daily": 2}
    place.remove("jobs/default/team/daily.yaml")
    assert place.head("daily") is None
    assert place.states() == {}


def test_what_no_event_told_of_is_found_within_the_hour(place: Place) -> None:
    place.deployment.step()  # the first scan is over
    place.write("jobs/default/daily.yaml", DAILY, tells=False)
    assert place.head("daily") is None
    place.hour_passes()
    assert place.head("daily") is not None
    place.remove("jobs/default/daily.yaml", tells=False)
    place.hour_passes()
    assert place.head("daily") is None


def test_only_what_changed_is_read_and_only_job_files_are(place: Place) -> None:
    place.write("jobs/default/daily.yaml", DAILY)
    place.write("jobs/default/code.py", "raise SystemExit")
    place.write("attempts/other.yaml", DAILY)
    place.write("jobs/default/second.json", json.dumps({"name": "second", "command": "x"}))
    assert place.read == ["jobs/default/daily.yaml", "jobs/default/second.json"]


def test_a_file_with_errors_keeps_its_job_and_tells_what_is_wrong(place: Place) -> None:
    place.write("jobs/default/daily.yaml", DAILY)
    place.write("jobs/default/daily.yaml", DAILY.replace("0 6", "0 99"))
    ((path, message),) = place.states()["daily.yaml"].errors
    assert path == "schedule"
    assert "99" in message
    assert place.head("daily") is not None


def test_what_a_deployment_cannot_run_is_refused_as_the_api_does(place: Place) -> None:
    place.write("jobs/default/a.yaml", "name: a\nrun: {lambda: somebodys}\n")
    assert [path for path, _ in place.states()["a.yaml"].errors] == ["run.lambda"]


def test_files_belong_to_the_namespace_that_they_are_in(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    team = Namespace("team")
    place.write("jobs/team/daily.yaml", DAILY)
    assert place.head("daily", team) is None
    assert "namespace team, which nobody has made" in caplog.text
    put_namespace(place.deployment.world, "team", {}, actor="test", expected=0)
    place.hour_passes()
    assert place.head("daily", team) is not None
    assert place.head("daily") is None


def test_jobs_stay_where_the_deployment_keeps_them(tmp_path: Path) -> None:
    place = Place(tmp_path, keep_jobs="yes")
    with place.deployment:
        place.write("jobs/default/daily.yaml", DAILY)
        place.remove("jobs/default/daily.yaml")
        assert place.head("daily") is not None
        assert place.states() == {}


def test_a_bucket_that_does_not_answer_removes_nothing(place: Place) -> None:
    place.write("jobs/default/daily.yaml", DAILY)
    place.is_down = True
    with pytest.raises(FunctionFailed):
        place.deployment.invoke("scan", {})
    assert place.head("daily") is not None
    place.is_down = False
    place.remove("jobs/default/daily.yaml")
    assert place.head("daily") is None
