"""Least privilege, both ways: what the handlers call in the stories is granted, and what is granted they call."""

from __future__ import annotations

import inspect
import json
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final

import boto3
from msgspec.structs import replace

from infra.rights import LOG
from sweephand.calls import Call
from sweephand.domain.access import Role
from sweephand.domain.backfill import BackfillEvent, BackfillKey, Only, Wanted
from sweephand.domain.fields import instant
from sweephand.domain.ids import DEFAULT, JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import CatchupPolicy
from sweephand.domain.limits import REDRIVES_MAX
from sweephand.domain.output import Kept
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.domain.zips import digest_of, zipped
from sweephand.engine.advance import WAVES_MAX
from sweephand.engine.backfill import LOOKS_MAX, read, write
from sweephand.engine.backfills import found_backfill, start_backfill
from sweephand.engine.grant import put_member, put_namespace
from sweephand.engine.issue import issue
from sweephand.engine.put import put
from sweephand.engine.resume import resume
from sweephand.engine.share import put_pool
from sweephand.engine.trigger import trigger
from sweephand.local.cloud import Deployment, Front
from sweephand.local.cloud.account import CONFIG, AwsCall, Perform, artifacts_bucket
from sweephand.local.cloud.cluster import Ended
from sweephand.logs import LogKey
from sweephand.messages import AttemptRun, SweepShards, encode
from sweephand.packs import Pack
from sweephand.ports import Lane
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from sweephand.topology import ARTIFACTS_PREFIX, DAG_RUN, FUNCTIONS, PACKS_PREFIX, QUEUES, Names
from tests.api import (
    test_backfills,
    test_code,
    test_contract,
    test_logs,
    test_runs,
    test_secrets,
    test_shared,
    test_why,
    test_workers,
)
from tests.api.client import START, Client, VirtualCloud
from tests.engine.faults import dying_before
from tests.engine.world import Crash
from tests.faults.test_front import POOL, Pool
from tests.infra.assembly import ROOT, Assembly, listed, synthesized
from tests.operators.aws.account import TARGETS, a_call, neighbourhood, operators
from tests.operators.aws.test_short_calls import CALLS
from tests.operators.calls import FIRE_AT

NAMES: Final = Names()
ARTIFACTS: Final = "artifacts"
BENEATH: Final = f"/{ARTIFACTS_PREFIX}*"
CODE: Final = f"/{PACKS_PREFIX}*"
"""The objects of the bucket that functions may reach."""
Right = tuple[str, str]
"""An action, and the resource that it is done to."""
Rights = dict[str, set[Right]]

TOLD_APART: Final[dict[tuple[str, str], str]] = {
    ("lambda", "Invoke"): "lambda:InvokeFunction",
    ("stepfunctions", "StartExecution"): "states:StartExecution",
    ("stepfunctions", "SendTaskSuccess"): "states:SendTaskSuccess",
    ("sqs", "SendMessageBatch"): "sqs:SendMessage",
    ("sqs", "DeleteMessageBatch"): "sqs:DeleteMessage",
    ("sqs", "ChangeMessageVisibilityBatch"): "sqs:ChangeMessageVisibility",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
    ("s3", "HeadObject"): "s3:GetObject",
    ("apigatewaymanagementapi", "PostToConnection"): "execute-api:ManageConnections",
    ("apigatewaymanagementapi", "DeleteConnection"): "execute-api:ManageConnections",
}
"""Calls whose action has another name; any other has its own, with its service's prefix."""

ECS: Final = {"RunTask": "task-definition", "StopTask": "task", "ListTasks": "*", "RegisterTaskDefinition": "*"}
"""What calls of ECS are about."""
IAM: Final = {"lambda": "lambda", "sqs": "sqs", "sns": "sns", "events": "events", "stepfunctions": "states", "s3": "s3"}
"""What IAM calls the services of tasks."""
NOT_CALLED: Final = {
    "Log": "Lambda writes what a function prints in the function's name",
    "Pass": "ECS takes the roles of a task in the caller's name",
    "Triggers": "Lambda polls queues and streams, and puts aside what failed, in the function's name",
    "Key": "DynamoDB, SQS and S3 use the key in the caller's name; moto encrypts nothing",
}
"""Policies of a role that no handler's own call needs, and why they are there."""

LANES_OF_RUNS: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
STORIES: Final = (
    test_backfills,
    test_code,
    test_contract,
    test_logs,
    test_runs,
    test_secrets,
    test_shared,
    test_why,
    test_workers,
)


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
    if call.service == "kms":
        yield action, params["EncryptionContext"]["sweephand"]
    if call.service == "sqs":
        yield action, params.get("QueueName") or params["QueueUrl"].rpartition("/")[2]
    elif call.service in {"lambda", "stepfunctions", "firehose"}:
        given = (params.get(name) for name in ("FunctionName", "stateMachineArn", "DeliveryStreamName"))
        named = next(filter(None, given), NAMES.machine(DAG_RUN))  # a token is that machine's
        yield action, named.rpartition(":")[2]
    elif call.service == "ecs":
        yield action, ECS[call.operation]
    elif call.service == "logs":
        yield action, params["logGroupName"]
    elif call.service == "s3":
        yield action, ARTIFACTS if "Prefix" in params else f"/{str(params['Key']).partition('/')[0]}/*"
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
            ("Logs::LogGroup", "LogGroupName"),
        )
        for resource in assembly.of(kind)
    }
    names |= {bucket.id: ARTIFACTS for bucket in assembly.of("S3::Bucket") if ARTIFACTS in bucket.id.lower()}
    roles = {role.id: role for role in assembly.of("IAM::Role")}
    found: Rights = {}
    functions = assembly.named("Lambda::Function", "FunctionName")
    for one in FUNCTIONS:  # what CDK publishes the console with is no handler of ours
        role = roles[functions[NAMES.function(one)].properties["Role"]["Fn::GetAtt"][0]]
        own = [policy for policy in role.properties["Policies"] if policy["PolicyName"] not in NOT_CALLED]
        found[one.name] = {
            (action, _purpose_of(statement) or _name_of(resource, names))
            for policy in own
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Allow"
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }
    return found


def _purpose_of(statement: Any) -> str:
    """What a statement about the key is for: everything is encrypted with the same."""
    purpose: str = statement.get("Condition", {}).get("StringEquals", {}).get("kms:EncryptionContext:sweephand", "")
    return purpose


def _name_of(arn: Any, names: dict[str, str]) -> str:
    if isinstance(arn, str):
        return arn
    if "Fn::GetAtt" in arn:
        return names[arn["Fn::GetAtt"][0]]
    text = "".join(part for part in arn["Fn::Join"][1] if isinstance(part, str))
    if "@connections" in text:
        return text.split("/")[-3]
    if ":ecs:" in text:
        return text.rpartition(":")[2].partition("/")[0]
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
    users_code(tmp, recorder)
    people(tmp, recorder)
    return recorder.calls


def users_code(tmp: Path, recorder: Recorder) -> None:
    """A command that prints and leaves a file behind, and a function of a pack, in the real `execute`."""
    clock = VirtualClock(instant(START, "start"))
    with Deployment(ROOT, tmp=tmp, clock=clock, dice=SeededDice(0), around=recorder.around) as deployment:
        line = 'echo hello; echo hello > "$SWEEPHAND_ARTIFACTS/file"'
        document = {"name": "job", "run": {"command": line, "shell": True}, "timeout": "30s"}
        put(deployment.world, DEFAULT, document, actor="test", expected=None)
        trigger(deployment.world, JobKey(DEFAULT, JobName("job")))
        content = zipped({"tasks.py": b"def told(): return 1\n"})
        deployment.world.packs.keep(DEFAULT, Pack(digest_of(content), content))
        document = {"name": "function", "run": {"python": "tasks:told", "code": digest_of(content)}, "timeout": "30s"}
        put(deployment.world, DEFAULT, document, actor="test", expected=None)
        run = trigger(deployment.world, JobKey(DEFAULT, JobName("function")))
        deployment.step()
        ended = deployment.world.runs.get(run.key)
        assert ended is not None
        assert ended.output == 1


def people(tmp: Path, recorder: Recorder) -> None:
    """Ann comes with a token of the user pool and asks where she belongs, which is not the default namespace."""
    clock = VirtualClock(instant(START, "start"))
    pool = Pool()
    settings = Settings(shards=1, issuer=POOL, audience="client")
    opener = urllib.request.build_opener(pool)
    urllib.request.install_opener(opener)
    try:
        with Deployment(
            ROOT, tmp=tmp, clock=clock, dice=SeededDice(0), settings=settings, around=recorder.around
        ) as deployment:
            put_namespace(deployment.world, "team", {}, actor="test")
            put_member(deployment.world, Namespace("team"), "ann", Role.VIEWER, actor="test", self_id="")
            told = Client(Front(deployment), pool.token()).get("/session").expect(200).json
            assert (told["namespace"], told["namespaces"]) == ("team", ["team"])
    finally:
        urllib.request.install_opener(urllib.request.build_opener())


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
    """The same jobs in each lane: fires, triggers, retries, waits, dependents, events, fires that wait for others."""
    for lane in LANES_OF_RUNS:
        own = {"command": "x", "priority": str(lane)}
        busy = own | {"overlap": "queue", "concurrency": {"runs": 1}, "timeout": "30s"}
        for job in (
            {"name": f"fires-{lane}", "schedule": "*/2 * * * *", **own},
            {"name": f"fails-{lane}", "retry": {"attempts": 2, "delays": ["30s"]}, **own},
            {"name": f"after-{lane}", "schedule": {"after": [f"fires-{lane}"]}, **own},
            {"name": f"needs-{lane}", "schedule": {"cron": "*/5 * * * *", "needs": [f"fires-{lane}"]}, **own},
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


def a_fire_that_waits_for_what_another_run_stands_for(place: VirtualCloud) -> None:
    """What it needs is held by a pause, is given up, and is made up for by one run of a later fire."""
    own = {"command": "x", "timeout": "30s"}
    place.admin.post("/jobs", {"name": "ingests", "schedule": "*/2 * * * *", **own}).expect(201)
    schedule = {"cron": "15 0 * * *", "needs": ["ingests"]}
    place.admin.post("/jobs", {"name": "reports", "schedule": schedule, **own}).expect(201)
    place.admin.post("/jobs/ingests/pause").expect(200)
    place.go_on(minutes=11)
    (run,) = place.admin.get("/jobs/reports/runs").expect(200).items
    assert run["reason"].endswith("is held by a pause"), run
    place.admin.post("/jobs/ingests/resume", {"catchup": "none"}).expect(200)
    wanted = {"from": "2026-03-02T00:11:00Z", "to": "2026-03-02T00:21:00Z", "collapse": True}
    place.admin.post("/jobs/ingests/backfills", wanted).expect(202)
    place.go_on(minutes=3)
    assert place.admin.get(f"/jobs/reports/runs/{run['runId']}").json["state"] == "succeeded"


def datasets_and_days(place: VirtualCloud) -> None:
    """What tasks publish, who subscribes to all and to any, from outside too, and who comes after both once a day."""
    task = {"run": {"command": ["x"]}, "timeout": "30s"}
    tasks = [{"id": "a", "publishes": ["rows"], **task}, {"id": "b", "needs": ["a"], **task}]
    daily = {"all": ["up", "other"], "window": "sameDay"}
    for job in (
        {"name": "up", "tasks": tasks, "publishes": ["checked"]},
        {"name": "other", "command": "x"},
        {"name": "both", "command": "x", "schedule": {"datasets": ["rows", "checked"]}},
        {"name": "any", "command": "x", "schedule": {"datasets": {"any": ["rows", "feed"]}}},
        {"name": "day", "command": "x", "schedule": {"after": daily}},
    ):
        place.admin.post("/jobs", job).expect(201)
    for name in ("up", "other"):
        place.admin.post(f"/jobs/{name}/trigger").expect(202)
    place.admin.post("/datasets/feed/updates", {"id": "one"}).expect(202)
    place.go_on(minutes=10)
    assert len(place.admin.get("/datasets").expect(200).items) == 3
    for name in ("both", "any", "day"):
        assert place.admin.get(f"/jobs/{name}/runs").expect(200).items, name


def events_of_a_bus(place: VirtualCloud) -> None:
    """In every lane somebody listens."""
    for lane in LANES_OF_RUNS:
        job = {"name": f"hears-{lane}", "schedule": {"events": [{"source": "shop"}]}, "priority": str(lane)}
        place.admin.post("/jobs", {**job, "command": "x"}).expect(201)
    event = {"source": "shop", "detail-type": "sold", "detail": {}, "id": "e-1"}
    for _ in range(2):
        place.deployment.invoke("occur", {"namespace": "default", "event": event})
    place.go_on(seconds=10)


def job_files_that_come_and_go(place: VirtualCloud) -> None:
    """In every lane: new, changed, gone; one with code; and one for a namespace that nobody has made."""
    client = boto3.client("s3", config=CONFIG)
    bucket = artifacts_bucket(place.deployment.names)
    put_pool(place.world, DEFAULT, "few", 1, expected=0)
    content = zipped({"tasks.py": b"def told(): return 1\n"})
    client.put_object(Bucket=bucket, Key=f"code/default/{digest_of(content)}.zip", Body=content)
    coded = {"name": "filed-code", "run": {"python": "tasks:told", "code": digest_of(content)}}
    client.put_object(Bucket=bucket, Key="jobs/default/code.json", Body=json.dumps(coded).encode())
    for minute in (1, 2):
        for lane in LANES_OF_RUNS:
            job = {"name": f"filed-{lane}", "command": "x", "schedule": f"*/{minute} * * * *", "priority": str(lane)}
            body = json.dumps(job | {"concurrency": {"pool": "few"}}).encode()
            client.put_object(Bucket=bucket, Key=f"jobs/default/{lane}.json", Body=body)
        client.put_object(Bucket=bucket, Key="jobs/nobody/a.json", Body=b"{}")
        place.deployment.invoke("scan", {})
        place.go_on(minutes=3)
    for lane in LANES_OF_RUNS:
        client.delete_object(Bucket=bucket, Key=f"jobs/default/{lane}.json")
    place.deployment.invoke("scan", {})


def documents_and_refusals(place: VirtualCloud) -> None:
    """What people share and take away again; a key whose call fails; somebody who asks for another's namespace."""
    place.admin.put("/pools/few", {"slots": 1}, If_None_Match="*")
    version = place.admin.get("/pools/few").expect(200).json["version"]
    place.admin.delete("/pools/few", If_Match=str(version)).expect(204)
    place.admin.post("/jobs/nobody/trigger", Idempotency_Key="once").expect(404)
    place.callers.role("viewer").within("another").get("/jobs").expect(403)


def looking_at_what_is_left_of_a_run(place: VirtualCloud) -> None:
    """Its log, and its files."""
    place.admin.post("/jobs", {"name": "job", "command": "x"}).expect(201)
    run = place.admin.post("/jobs/job/trigger").expect(202).json["runId"]
    place.go_on(seconds=10)
    for what in ("logs", "artifacts"):
        place.admin.get(f"/jobs/job/runs/{run}/{what}").expect(200)


def a_long_task_with_a_secret(place: VirtualCloud) -> None:
    """Its value goes through the machine, sealed."""
    place.admin.put("/secrets/dsn", {"value": "hunter2-canary"}).expect(201)
    run = {"command": ["x"], "secrets": {"DB": "dsn"}}
    place.admin.post("/jobs", {"name": "long", "run": run, "timeout": "10m"}).expect(201)
    place.admin.post("/jobs/long/trigger").expect(202)
    place.go_on(minutes=1)


def tasks_that_call_aws(place: VirtualCloud) -> None:
    """One that is waited for, and one that the machine waits for; here `call` may reach nothing."""
    for name, timeout in (("short", "30s"), ("long", "10m")):
        document = {"name": name, "run": {"lambda": "load"}, "timeout": timeout}
        head = put(place.world, DEFAULT, document, actor="test", expected=None)
        trigger(place.world, head.key)
    place.go_on(seconds=10)


def containers_that_come_and_go(place: VirtualCloud) -> None:
    """One is cancelled before a word of it, one stops by itself and is tried again, one stops and has failed."""
    again = {"attempts": 2, "delays": ["30s"]}
    for lane in LANES_OF_RUNS:
        run = {"container": {"image": "team/report:1", "command": ["x"]}}
        job = {"run": run, "priority": str(lane), "timeout": "1h", "concurrency": {"runs": 1}}
        for name, more in (("gone", {}), ("again", {"retry": again}), ("failed", {"pauseAfterFailures": 1})):
            place.admin.post("/jobs", {"name": f"{name}-{lane}", **job, **more}).expect(201)
            place.admin.post(f"/jobs/{name}-{lane}/trigger").expect(202)
        place.go_on(seconds=5)
        (gone,) = place.world.runs.of_job(JobKey(DEFAULT, JobName(f"gone-{lane}")), limit=1)
        place.admin.post(f"/jobs/gone-{lane}/runs/{gone.key.run_id}/cancel").expect(200)
        place.go_on(seconds=5)
        for task in list(place.deployment.cluster.tasks):
            place.deployment.cluster.end(task, Ended({"agent": 137, "task": None}))
        place.go_on(minutes=2)


def outputs_that_are_large(place: VirtualCloud) -> None:
    """What a task gave is in a file: a condition asks for it, and the words of the next task. A worker reports one."""

    def gives_much(call: Call) -> Kept | None:
        if call.task.id != "a":
            return None
        place.world.artifacts.keep_output(LogKey(call.run.key.whole, "a", call.run.attempt), b'{"path": "x"}')
        return Kept(call.run.key.run_id, "a", call.run.attempt, 13)

    read = "${tasks.a.output.path}"
    reader = {"id": "b", "needs": ["a"], "if": f"{read} == 'x'", "run": {"command": ["x", read]}, "timeout": "30s"}
    job = {"name": "large", "tasks": [{"id": "a", "run": {"command": ["x"]}, "timeout": "30s"}, reader]}
    place.on("large", gives_much)
    _put_and_trigger(place, job, times=1)
    place.go_on(minutes=1)
    (run,) = place.world.runs.of_job(JobKey(DEFAULT, JobName("large")), limit=1)
    assert run.state is RunState.SUCCEEDED
    _put_and_trigger(place, {"name": "outside", "run": {"external": {}}}, times=1)
    place.go_on(seconds=5)
    (work,) = place.admin.post("/leases", {"workerId": "w"}).expect(200).items
    place.admin.post(f"/leases/{work['lease']}/complete", {"epoch": 1, "output": "x" * 5_000}).expect(200)


def several_tasks(place: VirtualCloud) -> None:
    """In every lane: some fail, some wait for room, one is mapped; one run fails and pauses its job, one is cancelled
    while a task of its runs."""
    place.admin.put("/pools/few", {"slots": 1}, If_None_Match="*")
    for lane in LANES_OF_RUNS:
        job = {"name": f"dag-{lane}", "priority": str(lane), "tasks": _tasks(), "concurrency": {"runs": 1}}
        fails = {"name": f"bad-{lane}", "priority": str(lane), "tasks": _tasks(), "pauseAfterFailures": 1}
        for one in (job, fails | {"schedule": "0 0 1 1 *", "concurrency": {"runs": 1}}):
            _put_and_trigger(place, one, times=2)
        place.on(f"bad-{lane}", _fails)
        tasks = [{**one, "timeout": "10m", "pool": f"one-{lane}"} for one in _tasks()]
        place.on(f"long-{lane}", takes="5m")
        place.admin.put(f"/pools/one-{lane}", {"slots": 1}, If_None_Match="*")
        _put_and_trigger(place, {"name": f"long-{lane}", "priority": str(lane), "tasks": tasks}, times=2)
    place.go_on(minutes=2)
    for lane in LANES_OF_RUNS:
        for run in place.world.runs.of_job(JobKey(DEFAULT, JobName(f"long-{lane}")), limit=2):
            place.admin.post(f"/jobs/long-{lane}/runs/{run.key.run_id}/cancel").expect(200)
    place.go_on(minutes=2)


def several_tasks_that_nobody_waits_for(place: VirtualCloud) -> None:
    """Cancelled with tasks that hold places; ended unheard; given up; looked at; gone on with by the next execution."""
    place.admin.put("/pools/few", {"slots": 9}, If_None_Match="*")
    again = {"attempts": 2, "delays": ["30m"]}
    for lane in LANES_OF_RUNS:
        tasks = [{**one, "retry": again, "pool": "few"} for one in _tasks()]
        job = {"name": f"dag-{lane}", "priority": str(lane), "tasks": tasks}
        place.on(f"dag-{lane}", _fails)
        _put_and_trigger(place, job, times=4)
        place.go_on(seconds=20)
        cancelled, unheard, given_up, old = place.world.runs.of_job(JobKey(DEFAULT, JobName(f"dag-{lane}")), limit=4)
        place.admin.post(f"/jobs/dag-{lane}/runs/{cancelled.key.run_id}/cancel").expect(200)
        _end_unheard(place, unheard.key.of_task("a"))
        body = encode(AttemptRun(given_up.key.of_task("a"), redriven=REDRIVES_MAX))
        place.deployment.sqs.send_message(QueueUrl=_url(place, f"{lane}-dead"), MessageBody=body)
        place.deployment.invoke("watch", {})
        progress = place.world.dags.get(old.key)
        assert progress is not None
        later = progress.moved(nonce="late", waves=WAVES_MAX, changed=progress.changed)
        assert place.world.dags.absorb(progress, later)
    place.go_on(minutes=45)


def backfills_that_only_one_sees_to(place: VirtualCloud) -> None:
    """Whoever goes on with a backfill does all of it: counts, puts what is next, ends what was cancelled, hands on."""
    day = {"name": "daily", "schedule": "0 6 * * *", "command": "x", "timeout": "30s"}
    place.admin.post("/jobs", day).expect(201)
    window = Wanted(place.now - timedelta(days=9), place.now, max_active=1)
    for who in ("backfill", "audit", "project"):
        window = replace(window, only=Only.ALL)
        own = start_backfill(place.world, JobKey(DEFAULT, JobName("daily")), window, actor="test").key
        told = {"backfill": str(own), "generation": 0, "came": {"looks": LOOKS_MAX if who == "backfill" else 0}}

        def sees(who: str = who, told: dict[str, Any] = told) -> None:
            if who == "project":
                place.jump(seconds=10)
                _poll(place, who)
            else:
                place.deployment.invoke(who, told)

        _poll(place, "low")
        sees()
        rev, left = read(place.world, own) or (0, None)
        assert left is not None
        assert (left.made, left.generation) == (2, int(who == "backfill")), who
        _poll(place, "low")
        stopped = left.after(BackfillEvent.CANCELLED, now=place.now)
        unstarted = _unstarted(place, own, who)
        taken = replace(stopped, active=(*stopped.active, unstarted.key.run_id))
        assert place.world.runs.create([unstarted]) == [True]
        assert write(place.world, taken, expected=rev)
        sees()
        assert found_backfill(place.world, own).is_over, who


def a_resume_that_is_left_to_a_sweep(place: VirtualCloud) -> None:
    """Whoever resumed a job died before what the pause had held was given up."""
    place.admin.post("/jobs", {"name": "held", "schedule": "* * * * *", "command": "x", "timeout": "30s"}).expect(201)
    place.admin.post("/jobs/held/pause").expect(200)
    place.go_on(minutes=5)
    key = JobKey(DEFAULT, JobName("held"))
    with suppress(Crash):
        resume(dying_before(place.world, "runs.drop"), key, catchup=CatchupPolicy.NONE, actor="test")
    assert ReasonCode.PAUSED in _reasons(place, key)
    place.go_on(minutes=5)
    assert ReasonCode.PAUSED not in _reasons(place, key)


def _reasons(place: VirtualCloud, key: JobKey) -> set[ReasonCode]:
    """Why runs of a job wait."""
    runs = place.world.runs.of_job(key, limit=100)
    return {run.reason.code for run in runs if run.state is RunState.QUEUED and run.reason is not None}


def _unstarted(place: VirtualCloud, own: BackfillKey, who: str) -> Run:
    """A run of the backfill that waits for nobody."""
    fire_at = instant("2020-01-01T06:00:00Z", "")
    return Run(
        RunKey(own.job, RunId(f"20200101T060000Z.{len(who)}")),
        fire_at,
        fire_at,
        place.now,
        place.now,
        trigger=Trigger.BACKFILL,
        backfill=own.id,
        state=RunState.QUEUED,
    )


def _poll(place: VirtualCloud, name: str) -> None:
    """Only this source does all that it can."""
    (source,) = [one for one in place.deployment.sources if one.name == name]
    while source.poll():
        continue


def _put_and_trigger(place: VirtualCloud, job: dict[str, Any], *, times: int) -> None:
    head = put(place.world, DEFAULT, job, actor="test", expected=None)
    for _ in range(times):
        trigger(place.world, head.key)


def _tasks() -> list[dict[str, Any]]:
    run = {"run": {"command": ["x"]}, "timeout": "30s"}
    return [
        {"id": "a", **run},
        {"id": "b", "needs": ["a"], "map": {"over": [1, 2, 3]}, "pool": "few", **run},
        {"id": "c", "needs": ["b"], **run},
    ]


def _end_unheard(place: VirtualCloud, key: RunKey) -> None:
    """A task's end is stored, and nobody says so."""
    task = place.world.runs.get(key)
    assert task is not None
    reason = Reason(ReasonCode.CANCELLED, "")
    assert place.world.runs.move(task, task.cancelled(reason, now=place.now, nonce="unheard"))


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
    datasets_and_days,
    a_fire_that_waits_for_what_another_run_stands_for,
    events_of_a_bus,
    job_files_that_come_and_go,
    documents_and_refusals,
    looking_at_what_is_left_of_a_run,
    a_long_task_with_a_secret,
    tasks_that_call_aws,
    containers_that_come_and_go,
    outputs_that_are_large,
    several_tasks,
    several_tasks_that_nobody_waits_for,
    backfills_that_only_one_sees_to,
    a_resume_that_is_left_to_a_sweep,
]

_TIMELINE: Final = "what was in force is read where a job was changed between a fire, or a success, and now"
_PARTS: Final = "a definition that is too large for one item is read in parts"
_CHECKPOINT: Final = "an external task's checkpoint is forgotten with its run, which may end here"
_GIVEN_UP: Final = "what follows from giving a run up is what follows from any end: waiters, a pause, what that settles"
_PAUSED: Final = "a pause after failures settles what no sweep has planned"
_HELD: Final = "an edit right after a resume looks at what the pause held, and skips what is not made up for"
_GONE: Final = "without it S3 says of an output that is gone, as of any, that it may not be read"
UNUSED: Final[dict[tuple[str, str, str], str]] = {
    ("advance", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("advance", "dynamodb:DeleteItem", "sweephand-control"): _CHECKPOINT,
    ("advance", "s3:ListBucket", ARTIFACTS): _GONE,
    ("backfill", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("settle", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("settle", "dynamodb:BatchWriteItem", "sweephand-due"): _PAUSED,
    ("settle", "dynamodb:PutItem", "sweephand-runs"): _PAUSED,
    ("settle", "dynamodb:Query", "sweephand-jobs"): _TIMELINE,
    ("sweep", "sqs:ChangeMessageVisibility", "sweephand-sweep"): "a sweep that fails is tried again soon",
    ("sweep", "sqs:GetQueueUrl", "sweephand-sweep"): "as the next",
    ("sweep", "sqs:SendMessage", "sweephand-sweep"): "under load a sweep hands its other shards on",
    ("attempt", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("occur", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("scan", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
    ("scan", "dynamodb:Query", "sweephand-runs"): _HELD,
    ("scan", "dynamodb:UpdateItem", "sweephand-runs"): _HELD,
    ("attempt", "dynamodb:DeleteItem", "sweephand-control"): _CHECKPOINT,
    ("attempt", "s3:ListBucket", ARTIFACTS): _GONE,
    ("project", "dynamodb:BatchGetItem", "sweephand-jobs"): _PARTS,
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


def test_what_is_listed_is_granted_as_it_is_called_and_nothing_else(tmp_path: Path) -> None:
    """The stories of every operator of AWS, on a neighbourhood, against the role that the same list becomes."""
    done = synthesized(tmp_path / "listed", {"targets": ",".join(TARGETS)})
    assert done.returncode == 0, done.stdout + done.stderr
    rights = {action for action, _ in granted(Assembly(tmp_path / "listed"))["call"]}
    with neighbourhood(VirtualClock(FIRE_AT)) as place:
        place.functions["load-sales"] = lambda _event: None
        there = operators(tmp_path / "work", place.clock)
        for task in CALLS.values():
            if "awsSdk" not in task:
                there.execute(a_call(task))
        there.stop(a_call(CALLS["stateMachine"]))
        called = {
            TOLD_APART.get((call.service, call.operation), f"{IAM[call.service]}:{call.operation}")
            for call in place.calls
        }
    assert called == rights


def test_the_function_of_users_code_may_only_read_code_write_what_is_left_and_open_what_it_is_given(
    assembly: Assembly,
) -> None:
    logs = {(action, NAMES.run_log) for action in LOG}
    files = {("s3:PutObject", BENEATH), ("s3:GetObject", CODE)}
    assert granted(assembly)["execute"] == logs | files | {("kms:Decrypt", "order")}
