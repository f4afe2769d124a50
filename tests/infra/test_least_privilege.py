"""Least privilege, both ways: what the handlers call in the stories is granted, and what is granted they call."""

from __future__ import annotations

import inspect
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final

from sweephand.domain.access import Role
from sweephand.domain.ids import DEFAULT, JobKey, JobName
from sweephand.domain.limits import REDRIVES_MAX
from sweephand.engine.issue import issue
from sweephand.local.cloud.account import AwsCall, Perform
from sweephand.messages import AttemptRun, SweepShards, encode
from sweephand.ports import Lane
from sweephand.topology import FUNCTIONS, QUEUES, Names
from tests.api import test_contract, test_runs, test_shared, test_why, test_workers
from tests.api.client import VirtualCloud
from tests.infra.assembly import Assembly, listed

NAMES: Final = Names()
Right = tuple[str, str]
"""An action, and the resource that it is done to."""
Rights = dict[str, set[Right]]

TOLD_APART: Final[dict[tuple[str, str], str]] = {
    ("lambda", "Invoke"): "lambda:InvokeFunction",
    ("stepfunctions", "StartExecution"): "states:StartExecution",
    ("sqs", "SendMessageBatch"): "sqs:SendMessage",
    ("sqs", "DeleteMessageBatch"): "sqs:DeleteMessage",
    ("sqs", "ChangeMessageVisibilityBatch"): "sqs:ChangeMessageVisibility",
    ("apigatewaymanagementapi", "PostToConnection"): "execute-api:ManageConnections",
    ("apigatewaymanagementapi", "DeleteConnection"): "execute-api:ManageConnections",
}
"""Calls whose action has another name; any other has its own, with its service's prefix."""

NOT_CALLED: Final = {
    "Log": "Lambda writes what a function prints in the function's name",
    "Triggers": "Lambda polls queues and streams, and puts aside what failed, in the function's name",
    "Key": "DynamoDB and SQS use the key in the caller's name; moto encrypts nothing",
}
"""Policies of a role that no handler's own call needs, and why they are there."""

LANES_OF_RUNS: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
STORIES: Final = (test_contract, test_runs, test_shared, test_why, test_workers)


class Recorder:
    """Notes down who calls what."""

    def __init__(self) -> None:
        self.calls: Rights = defaultdict(set)
        self._lock = Lock()

    def around(self, call: AwsCall, perform: Perform) -> Any:
        if call.function:
            with self._lock:
                self.calls[call.function] |= set(_rights_of(call))
        return perform(call.params)


def _rights_of(call: AwsCall) -> Iterator[Right]:
    params = call.params
    if call.operation == "TransactWriteItems":
        for write in params["TransactItems"]:
            ((kind, one),) = write.items()
            yield f"dynamodb:{kind}Item", one["TableName"]
        return
    action = TOLD_APART.get((call.service, call.operation), f"{call.service}:{call.operation}")
    tables = list(params.get("RequestItems", ())) or [params["TableName"]] if call.service == "dynamodb" else []
    for table in tables:
        yield action, table
    if call.service == "sqs":
        yield action, params.get("QueueName") or params["QueueUrl"].rpartition("/")[2]
    elif call.service in {"lambda", "stepfunctions", "firehose"}:
        named = params.get("FunctionName") or params.get("stateMachineArn") or params["DeliveryStreamName"]
        yield action, named.rpartition(":")[2]
    elif call.service == "apigatewaymanagementapi":
        yield action, {"PostToConnection": "POST", "DeleteConnection": "DELETE"}[call.operation]


def granted(assembly: Assembly) -> Rights:
    """What each function's synthesized role lets it do by its own calls, by the names of the resources."""
    names = {
        resource.id: resource.properties[by]
        for kind, by in (
            ("DynamoDB::GlobalTable", "TableName"),
            ("SQS::Queue", "QueueName"),
            ("KinesisFirehose::DeliveryStream", "DeliveryStreamName"),
        )
        for resource in assembly.of(kind)
    }
    roles = {role.id: role for role in assembly.of("IAM::Role")}
    found: Rights = {}
    for function in assembly.of("Lambda::Function"):
        role = roles[function.properties["Role"]["Fn::GetAtt"][0]]
        own = [one for one in role.properties["Policies"] if one["PolicyName"] not in NOT_CALLED]
        found[function.properties["FunctionName"].removeprefix(f"{NAMES.prefix}-")] = {
            (action, _name_of(resource, names))
            for policy in own
            for statement in policy["PolicyDocument"]["Statement"]
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }
    return found


def _name_of(arn: Any, names: dict[str, str]) -> str:
    if "Fn::GetAtt" in arn:
        return names[arn["Fn::GetAtt"][0]]
    text = "".join(part for part in arn["Fn::Join"][1] if isinstance(part, str))
    if "@connections" in text:
        return text.split("/")[-3]
    return text.rpartition(":")[2]


def _stories(module: ModuleType) -> Iterator[Callable[[VirtualCloud], None]]:
    """The tests of a module that take a place and nothing else, and that are not for one engine only."""
    for name, test in inspect.getmembers(module, inspect.isfunction):
        marks = [mark.name for mark in getattr(test, "pytestmark", [])]
        if name.startswith("test_") and not marks and list(inspect.signature(test).parameters) == ["virtual"]:
            yield test


def recorded(tmp: Path) -> Rights:
    """What the functions called in all stories together."""
    recorder = Recorder()
    told = [story for module in STORIES for story in _stories(module)] + OWN_STORIES
    for story in told:
        with VirtualCloud(tmp, around=recorder.around) as place:
            story(place)
    return recorder.calls


def losing_messages_and_hints_and_finding_them(place: VirtualCloud) -> None:
    """Queues are purged and due entries lost; the audit sends again, and re-arms what is overdue."""
    for lane in LANES_OF_RUNS:
        job = {"name": f"job-{lane}", "schedule": "*/5 * * * *", "command": "x", "priority": str(lane)}
        place.admin.post("/jobs", job).expect(201)
    for lane in LANES_OF_RUNS:
        place.deployment.sqs.purge_queue(QueueUrl=_url(place, str(lane)))
    later = place.now + timedelta(hours=2)
    place.world.due.done(place.world.due.read(0, after=place.now - timedelta(hours=1), upto=later, limit=1000))
    place.jump(hours=1)
    place.go_on(minutes=20)
    place.jump(days=1, hours=2)
    place.go_on(minutes=20)


def dead_letters(place: VirtualCloud) -> None:
    """Runs that still wait, runs that can never be dealt with, and what nobody can read."""
    for lane in LANES_OF_RUNS:
        waits = {"name": f"waits-{lane}", "command": "x", "priority": str(lane)}
        more = {"concurrency": {"runs": 1}, "retry": {"attempts": 2, "delays": ["1h"]}, "pauseAfterFailures": 1}
        for job in (waits, waits | more | {"name": f"never-{lane}", "schedule": "0 0 1 1 *"}):
            place.admin.post("/jobs", job).expect(201)
        place.on(f"never-{lane}", _fails)
        place.admin.post(f"/jobs/never-{lane}/trigger").expect(202)
    place.go_on(seconds=10)
    for lane in LANES_OF_RUNS:
        place.admin.post(f"/jobs/waits-{lane}/trigger").expect(202)
        for name, redriven in (("waits", 0), ("never", REDRIVES_MAX)):
            (run,) = place.world.runs.of_job(JobKey(DEFAULT, JobName(f"{name}-{lane}")), limit=1)
            body = encode(AttemptRun(run.key, redriven=redriven))
            place.deployment.sqs.send_message(QueueUrl=_url(place, f"{lane}-dead"), MessageBody=body)
    place.deployment.sqs.send_message(QueueUrl=_url(place, "sweep-dead"), MessageBody=encode(SweepShards((0,))))
    for queue in QUEUES:
        place.deployment.sqs.send_message(QueueUrl=_url(place, queue.dead), MessageBody="?")
    place.deployment.invoke("watch", {})
    place.go_on(minutes=2)


def somebody_listens(place: VirtualCloud) -> None:
    """A token, a topic, news, a wrong word, and the end."""
    token = issue(place.world, namespace=DEFAULT, role=Role.VIEWER, name="v", actor="test").text
    place.admin.post("/jobs", {"name": "job", "command": "x"}).expect(201)

    def say(connection: str, route: str = "$default", body: object = None) -> None:
        context = {"routeKey": route, "connectionId": connection}
        place.deployment.invoke("live", {"requestContext": context, "body": json.dumps(body)})

    for connection in ("one", "two"):
        say(connection, "$connect")
        say(connection, body={"token": token})
        say(connection, body={"subscribe": ["runs"]})
    say("two", body={"unsubscribe": ["runs"]})
    place.admin.post("/jobs/job/trigger").expect(202)
    place.go_on(seconds=10)
    say("two", "$disconnect")
    say("three", body={"token": "swh_0123456789abcdef_" + "x" * 43})
    say("four", body={"token": token, "namespace": "another"})


def jobs_of_every_kind(place: VirtualCloud) -> None:
    """Slots, retries, long timers, blackouts, dependents, pauses after failures, edits."""
    now = place.now
    begins, ends = (now + timedelta(minutes=minutes) for minutes in (5, 40))
    held = {"from": begins.isoformat(), "to": ends.isoformat(), "policy": "hold"}
    again = {"attempts": 3, "delays": ["1m", "20m"]}
    definitions: list[dict[str, Any]] = [
        {"name": "one", "schedule": "*/5 * * * *", "command": "x", "overlap": "queue", "concurrency": {"runs": 1}},
        {
            "name": "held",
            "command": "x",
            "schedule": {"cron": "*/7 * * * *", "blackouts": [{**held, "policy": "hold"}]},
        },
        {
            "name": "again",
            "command": "x",
            "schedule": "*/20 * * * *",
            "retry": again,
        },
        {"name": "stops", "command": "x", "schedule": "*/3 * * * *", "pauseAfterFailures": 2},
        {"name": "next", "command": "x", "schedule": {"after": ["one"]}},
        {"name": "both", "command": "x", "schedule": {"after": ["one", "held"]}},
        {"name": "dear", "command": "x", "schedule": "*/10 * * * *", "concurrency": {"pool": "few"}},
        {"name": "last", "command": "x", "schedule": "*/4 * * * *", "overlap": "replace", "timeout": "30s"},
    ]
    place.admin.put("/pools/few", {"slots": 1}, If_None_Match="*")
    for one in definitions:
        place.admin.post("/jobs", one).expect(201)
    place.on("one", takes="7m")
    for name in ("again", "stops"):
        place.on(name, _fails)
    place.go_on(minutes=45)


def every_lane(place: VirtualCloud) -> None:
    """The same jobs in each lane: fires, triggers, retries, waits, dependents, events."""
    for lane in LANES_OF_RUNS:
        own = {"command": "x", "priority": str(lane)}
        busy = own | {"overlap": "queue", "concurrency": {"runs": 1}, "timeout": "30s"}
        for job in (
            {"name": f"fires-{lane}", "schedule": "*/2 * * * *", **own},
            {"name": f"fails-{lane}", "retry": {"attempts": 2, "delays": ["30s"]}, **own},
            {"name": f"after-{lane}", "schedule": {"after": [f"fires-{lane}"]}, **own},
            {"name": f"hears-{lane}", "schedule": {"events": [{"source": "shop"}]}, **own},
            {"name": f"busy-{lane}", "schedule": "*/2 * * * *", **busy},
        ):
            place.admin.post("/jobs", job).expect(201)
        place.on(f"fails-{lane}", _fails)
        place.admin.post(f"/jobs/fails-{lane}/trigger").expect(202)
        for _ in range(2):
            place.admin.post(f"/jobs/busy-{lane}/trigger").expect(202)
    place.admin.post("/events", {"source": "shop", "type": "sold", "id": "1"}).expect(202)
    place.go_on(minutes=20)
    for lane in LANES_OF_RUNS:
        place.admin.delete(f"/jobs/busy-{lane}")


def documents_and_refusals(place: VirtualCloud) -> None:
    """What people share and take away again; a key whose call fails; somebody who asks for another's namespace."""
    place.admin.put("/pools/few", {"slots": 1}, If_None_Match="*")
    version = place.admin.get("/pools/few").expect(200).json["version"]
    place.admin.delete("/pools/few", If_Match=str(version)).expect(204)
    place.admin.post("/jobs/nobody/trigger", Idempotency_Key="once").expect(404)
    place.callers.role("viewer").within("another").get("/jobs").expect(403)


def _fails(_call: object) -> None:
    raise RuntimeError("it does not work")


def _url(place: VirtualCloud, queue: str) -> str:
    url: str = place.deployment.sqs.get_queue_url(QueueName=place.deployment.names.queue(queue))["QueueUrl"]
    return url


OWN_STORIES: Final = [
    losing_messages_and_hints_and_finding_them,
    dead_letters,
    somebody_listens,
    jobs_of_every_kind,
    every_lane,
    documents_and_refusals,
]

_TIMELINE: Final = "what was in force is read where a job was changed between a fire, or a success, and now"
_PARTS: Final = "a definition that is too large for one item is read in parts"
_CHECKPOINT: Final = "an external task's checkpoint is forgotten with its run, which may end here"
_GIVEN_UP: Final = "what follows from giving a run up is what follows from any end: waiters, a pause, what that settles"
UNUSED: Final[dict[tuple[str, str, str], str]] = {
    ("sweep", "dynamodb:Query", "sweephand-jobs"): _TIMELINE,
    ("sweep", "sqs:ChangeMessageVisibility", "sweephand-sweep"): "a sweep that fails is tried again soon",
    ("sweep", "sqs:GetQueueUrl", "sweephand-sweep"): "as the next",
    ("sweep", "sqs:SendMessage", "sweephand-sweep"): "under load a sweep hands its other shards on",
    ("attempt", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("attempt", "dynamodb:DeleteItem", "sweephand-control"): _CHECKPOINT,
    (
        "attempt",
        "dynamodb:PutItem",
        "sweephand-runs",
    ): "a pause after failures settles what no sweep has planned",
    ("attempt", "dynamodb:Query", "sweephand-jobs"): _TIMELINE,
    ("project", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("project", "dynamodb:Query", "sweephand-jobs"): _TIMELINE,
    ("watch", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("watch", "dynamodb:BatchWriteItem", "sweephand-due"): _GIVEN_UP,
    ("watch", "dynamodb:DeleteItem", "sweephand-control"): _CHECKPOINT,
    ("watch", "dynamodb:PutItem", "sweephand-due"): _GIVEN_UP,
    ("watch", "dynamodb:Query", "sweephand-jobs"): _TIMELINE,
}
"""Rights that no story needs, and why a function has them."""


def test_a_role_grants_what_its_handler_calls_and_nothing_else(assembly: Assembly, tmp_path: Path) -> None:
    rights, calls = granted(assembly), recorded(tmp_path)
    assert calls.keys() <= rights.keys() == {function.name for function in FUNCTIONS}
    denied = {name: sorted(own - rights[name]) for name, own in calls.items() if own - rights[name]}
    assert not denied
    idle = {(name, *right) for name, own in rights.items() for right in own - calls.get(name, set())}
    assert idle == UNUSED.keys()


def test_the_function_of_users_code_may_do_nothing(assembly: Assembly) -> None:
    assert granted(assembly)["execute"] == set()
