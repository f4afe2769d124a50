"""Changes of runs that cannot be read, come twice, or never come; listeners that cannot be reached."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.access import Role
from sweephand.domain.ids import DEFAULT
from sweephand.domain.run import Run, RunState
from sweephand.domain.status import StatusRow, latest, listed
from sweephand.engine.issue import issue
from sweephand.engine.project import rebuild
from sweephand.local.cloud.account import AwsCall
from sweephand.topology import RUNS, UNDELIVERED
from tests.faults.checker import assert_sound
from tests.faults.place import MINUTE, SECOND, START, Place
from tests.moto_world import Fault, broken, refused


@pytest.fixture
def place(place: Place) -> Place:
    place.only("normal", "project", "live")
    return place


def _shown(place: Place) -> list[StatusRow]:
    return place.world.views.rows(DEFAULT, since=START - timedelta(days=1), until=place.now + timedelta(days=1))


def _recomputed(place: Place, *names: str) -> list[StatusRow]:
    rows = [listed(run) for name in names for run in place.runs(name)]
    return latest(row for row in rows if row is not None)


def _listen(place: Place, connection: str) -> None:
    token = issue(place.world, namespace=DEFAULT, role=Role.VIEWER, name=connection, actor="test").text
    for route, message in (("$connect", None), ("$default", {"token": token}), ("$default", {"subscribe": ["runs"]})):
        context = {"routeKey": route, "connectionId": connection}
        event = {"requestContext": context, "body": json.dumps(message)}
        assert place.deployment.invoke("live", event) == {"statusCode": 200}


def _heard(place: Place, connection: str) -> list[tuple[str, str, int]]:
    """What a connection was told, in order."""
    messages = [one for one in place.deployment.pushed[connection] if one["type"] == "changes"]
    return [(one["runId"], one["state"], one["seq"]) for message in messages for one in message["changes"]]


def _known(told: list[tuple[str, str, int]]) -> dict[str, str]:
    """What a client knows that drops what is older than what it has."""
    newest: dict[str, tuple[int, str]] = {}
    for run_id, state, number in told:
        if run_id not in newest or newest[run_id][0] < number:
            newest[run_id] = (number, state)
    return {run_id: state for run_id, (_, state) in newest.items()}


def test_a_change_that_nobody_can_read_is_put_aside_and_the_others_flow(place: Place) -> None:
    """Row 41."""
    place.put("report")
    first = place.run("report")
    garbled = {"pk": {"S": "default/garbled"}, "sk": {"S": "r#20261116T060000Z"}, "st": {"S": "running"}}
    place.client("dynamodb").put_item(TableName=place.deployment.names.table(RUNS), Item=garbled)
    second = place.run("report")
    _listen(place, "one")
    place.pass_time(6 * MINUTE)
    assert _shown(place) == _recomputed(place, "report")
    assert _known(_heard(place, "one")) == {run.key.run_id: "succeeded" for run in (first, second)}
    asides = [json.loads(body) for body in _bodies(place, UNDELIVERED)]
    assert {one["requestContext"]["functionArn"].rpartition("-")[2] for one in asides} == {"project", "live"}
    assert [one["DDBStreamBatchInfo"]["batchSize"] for one in asides] == [1, 1]


def _bodies(place: Place, queue: str) -> list[str]:
    url = place.deployment.sqs.get_queue_url(QueueName=place.deployment.names.queue(queue))["QueueUrl"]
    answer = place.deployment.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return [message["Body"] for message in answer.get("Messages", [])]


def test_a_view_that_missed_a_day_of_changes_is_rebuilt_from_the_runs(place: Place) -> None:
    """Row 42: the stream has forgotten them."""
    place.put("report")
    place.run("report")
    place.step()
    place.lost.add("project")
    for _ in range(3):
        place.run("report")
        place.step()
    place.pass_time(timedelta(hours=25))
    place.lost.clear()
    place.run("report")
    place.step()
    assert len(_shown(place)) == 2
    assert rebuild(place.world, DEFAULT) == 5
    assert _shown(place) == _recomputed(place, "report")
    assert_sound(place)


def test_changes_that_come_twice_change_nothing_and_release_nobody_twice(place: Place) -> None:
    """Row 43: neither the view, nor the jobs that come after, nor what listeners know."""
    place.put("report")
    place.put("follower", {"after": ["report"]})
    _listen(place, "one")
    place.twice = {"project", "live"}
    runs = [place.run("report") for _ in range(2)]
    place.step()
    told = _heard(place, "one")
    assert len(told) == 2 * len(set(told))
    events = list(place.deliveries["live"])
    place.twice.clear()
    for event in [event for event in events if "Records" in event]:
        place.deployment.invoke("live", event)
    for event in list(place.deliveries["project"]):
        place.deployment.invoke("project", event)
    place.step()
    assert len(place.runs("follower")) == len(place.target.of("follower")) == 2
    assert _shown(place) == _recomputed(place, "report", "follower")
    states = {run.key.run_id: str(run.state) for name in ("report", "follower") for run in place.runs(name)}
    assert _known(_heard(place, "one")) == states
    assert states.keys() >= {run.key.run_id for run in runs}
    assert_sound(place)


@pytest.mark.parametrize("operation", ["BatchWriteItem", "GetItem", "PutRecordBatch"])
def test_a_reader_that_fails_half_way_is_given_the_same_changes_again(place: Place, operation: str) -> None:
    """Row 43: it stopped before the view, before the dependents, or before the archive."""
    place.put("report")
    place.put("follower", {"after": ["report"]})
    coming = [broken(operation)] * 3
    place.faults = lambda call: coming.pop() if coming and _is(call, "project", operation) else None
    place.run("report")
    place.pass_time(20 * SECOND)
    assert not coming
    assert len(place.runs("follower")) == len(place.target.of("follower")) == 1
    assert _shown(place) == _recomputed(place, "report", "follower")
    ended = [run for name in ("report", "follower") for run in place.runs(name)]
    assert {line["run"] for line in _archived(place)} == {run.key.run_id for run in ended}
    assert_sound(place)


def _is(call: AwsCall, function: str, operation: str) -> bool:
    return (call.function, call.operation) == (function, operation)


def _archived(place: Place) -> list[Any]:
    s3, bucket = place.client("s3"), place.deployment.names.of("archive")
    objects = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    texts = [s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read().decode() for one in objects]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def test_a_connection_that_cannot_be_told_does_not_silence_the_others(place: Place) -> None:
    """Row 71: one that is gone is in tests/functions/test_live.py; this one is only too slow, for ever."""
    _listen(place, "a-slow")
    _listen(place, "b-sound")
    place.put("report")

    def slow(call: AwsCall) -> Fault | None:
        is_slow = call.operation == "PostToConnection" and call.params["ConnectionId"] == "a-slow"
        return refused(call.operation, "LimitExceededException") if is_slow else None

    place.faults = slow
    run: Run = place.run("report")
    place.pass_time(4 * MINUTE)
    assert place.look(run).state is RunState.SUCCEEDED
    assert _known(_heard(place, "b-sound")) == {run.key.run_id: "succeeded"}
    assert "a-slow" in place.deployment.gone  # it will come again, and ask for a snapshot
    assert place.undelivered() == 0
