"""AWS in this process: events come as AWS sends them, and what is not dealt with comes back as it does there."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from sweephand.calls import Succeeded
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.run import RunState
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud import Deployment, FunctionFailed, Later
from sweephand.local.cloud.account import CONFIG, AwsCall, Perform, directly, refusal
from sweephand.local.cloud.functions import Functions
from sweephand.orders import encode_outcome
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from sweephand.topology import ATTEMPT, EXECUTE, FUNCTIONS, PROJECT, QUEUES, RUNS, UNDELIVERED

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 3, 2, 0, 10, 20, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
NORMAL = next(queue for queue in QUEUES if queue.name == "normal")
DEFAULT = Namespace("default")

Answer = Callable[[Any], Any]
Made = Callable[..., AbstractContextManager[Deployment]]


class Heard:
    """A tiny function: it keeps its events, and answers what the test says."""

    def __init__(self, answer: Answer = lambda _event: None) -> None:
        self.events: list[Any] = []
        self.answer = answer

    def __call__(self, event: Any, _context: object) -> Any:
        self.events.append(event)
        return self.answer(event)

    @property
    def bodies(self) -> list[list[str]]:
        return [[record["body"] for record in event["Records"]] for event in self.events]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def made(clock: VirtualClock, tmp_path: Path) -> Made:
    """A deployment whose functions do nothing, but for those given."""

    def make(**functions: Any) -> Deployment:
        substitutes = {function.name: Heard() for function in FUNCTIONS} | functions
        return Deployment(ROOT, tmp=tmp_path, clock=clock, dice=SeededDice(1), substitutes=substitutes)

    return make


def pass_time(deployment: Deployment, clock: VirtualClock, length: timedelta) -> None:
    until = clock.now() + length
    while (following := deployment.step()) is not None and following <= until:
        clock.move(following)
    clock.move(until)


def send(deployment: Deployment, *bodies: str, queue: str = "normal", delay: int = 0) -> None:
    for body in bodies:
        deployment.sqs.send_message(QueueUrl=url(deployment, queue), MessageBody=body, DelaySeconds=delay)


def url(deployment: Deployment, queue: str) -> str:
    found: str = deployment.sqs.get_queue_url(QueueName=deployment.names.queue(queue))["QueueUrl"]
    return found


def lying_in(deployment: Deployment, queue: str) -> list[str]:
    answer = deployment.sqs.receive_message(QueueUrl=url(deployment, queue), MaxNumberOfMessages=10)
    return [message["Body"] for message in answer.get("Messages", [])]


def failures(event: Mapping[str, Any], *bodies: str) -> Any:
    """The answer of a function that did not deal with these."""
    kept = [record["messageId"] for record in event["Records"] if record["body"] in bodies]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in kept]}


# Queues.


def test_of_a_batch_only_the_message_that_failed_comes_back_when_its_hold_is_over(
    made: Made, clock: VirtualClock
) -> None:
    attempt = Heard(lambda event: failures(event, "b"))
    with made(attempt=attempt) as deployment:
        send(deployment, "a", "b", "c")
        deployment.step()
        assert attempt.bodies == [["a", "b", "c"]]
        pass_time(deployment, clock, NORMAL.visibility - SECOND)
        assert len(attempt.events) == 1
        attempt.answer = lambda _event: {"batchItemFailures": []}
        pass_time(deployment, clock, SECOND)
        assert attempt.bodies[1:] == [["b"]]
        pass_time(deployment, clock, 2 * NORMAL.visibility)
        assert len(attempt.events) == 2


def test_a_message_comes_as_lambda_sends_it(made: Made) -> None:
    attempt = Heard()
    with made(attempt=attempt) as deployment:
        deployment.sqs.send_message(QueueUrl=url(deployment, "high"), MessageBody="a", MessageGroupId="team")
        deployment.step()
    ((record,),) = [event["Records"] for event in attempt.events]
    assert record["eventSourceARN"] == "arn:aws:sqs:us-east-1:123456789012:sweephand-high"
    assert (record["eventSource"], record["awsRegion"], record["body"]) == ("aws:sqs", "us-east-1", "a")
    sent_at = str(int(START.timestamp() * 1000))
    assert record["attributes"].items() >= {
        ("ApproximateReceiveCount", "1"),
        ("MessageGroupId", "team"),
        ("SentTimestamp", sent_at),
        ("ApproximateFirstReceiveTimestamp", sent_at),
    }
    assert record["messageId"] != record["receiptHandle"]


def raised(_event: object) -> None:
    raise ValueError("no")


@pytest.mark.parametrize(
    "answer",
    [raised, lambda _event: {"batchItemFailures": [{"itemIdentifier": "unheard-of"}]}],
    ids=["an error", "an answer about something else"],
)
def test_a_batch_that_fails_comes_back_until_it_is_dead(made: Made, clock: VirtualClock, answer: Answer) -> None:
    attempt = Heard(answer)
    with made(attempt=attempt) as deployment:
        send(deployment, "a")
        pass_time(deployment, clock, (NORMAL.receives_max + 1) * NORMAL.visibility)
        counts = [event["Records"][0]["attributes"]["ApproximateReceiveCount"] for event in attempt.events]
        assert counts == [str(n) for n in range(1, NORMAL.receives_max + 1)]
        assert lying_in(deployment, NORMAL.dead) == ["a"]


def test_a_function_that_takes_too_long_has_failed(made: Made, clock: VirtualClock) -> None:
    attempt = Heard(lambda _event: clock.move(clock.now() + ATTEMPT.timeout + SECOND))
    with made(attempt=attempt) as deployment:
        send(deployment, "a")
        deployment.step()
        attempt.answer = lambda _event: None
        pass_time(deployment, clock, NORMAL.visibility)
        assert attempt.bodies == [["a"], ["a"]]


def test_a_delayed_message_comes_to_the_second(made: Made, clock: VirtualClock) -> None:
    arrivals: list[datetime] = []
    with made(attempt=Heard(lambda _event: arrivals.append(clock.now()))) as deployment:
        send(deployment, "a", delay=10)
        pass_time(deployment, clock, MINUTE)
    assert arrivals == [START + 10 * SECOND]


# Streams.


def change(deployment: Deployment, *names: str, state: str = "queued", kind: str = "r#") -> None:
    """Runs that are created or moved."""
    client = boto3.client("dynamodb", config=CONFIG)
    for name in names:
        item = {"pk": {"S": "default/report"}, "sk": {"S": f"{kind}{name}"}, "st": {"S": state}}
        client.put_item(TableName=deployment.names.table(RUNS), Item=item)


def changed(event: Mapping[str, Any]) -> list[str]:
    return [record["dynamodb"]["NewImage"]["sk"]["S"].removeprefix("r#") for record in event["Records"]]


def test_only_changes_that_match_come_in_order_and_as_dynamodb_sends_them(made: Made) -> None:
    project = Heard()
    with made(project=project) as deployment:
        change(deployment, "1")
        change(deployment, "2", state="planned")
        change(deployment, "3", kind="page#")
        change(deployment, "1", state="running")
        deployment.step()
    (event,) = project.events
    assert changed(event) == ["1", "1"]
    assert [record["eventName"] for record in event["Records"]] == ["INSERT", "MODIFY"]
    first, second = (record["dynamodb"] for record in event["Records"])
    assert first["Keys"] == {"pk": {"S": "default/report"}, "sk": {"S": "r#1"}}
    assert first["ApproximateCreationDateTime"] == START.timestamp()
    assert int(first["SequenceNumber"]) < int(second["SequenceNumber"])
    assert event["Records"][0]["eventSource"] == "aws:dynamodb"
    assert ":table/sweephand-runs/stream/" in event["Records"][0]["eventSourceARN"]


def test_a_change_that_cannot_be_dealt_with_is_found_by_halves_and_put_aside(made: Made, clock: VirtualClock) -> None:
    done: list[str] = []

    def deal(event: Mapping[str, Any]) -> None:
        names = changed(event)
        if "3" in names:
            raise ValueError("poison")
        done.extend(names)

    project = Heard(deal)
    with made(project=project) as deployment:
        change(deployment, "1", "2", "3", "4", "5")
        pass_time(deployment, clock, 10 * MINUTE)
        assert done == ["1", "2", "4", "5"]
        sizes = [len(event["Records"]) for event in project.events]
        (trigger_,) = PROJECT.triggers
        assert sizes == [5, 2, 3, *[1] * trigger_.attempts, 2]  # type: ignore[union-attr]
        (aside,) = map(json.loads, lying_in(deployment, UNDELIVERED))
    number = project.events[-2]["Records"][0]["dynamodb"]["SequenceNumber"]
    told = aside["DDBStreamBatchInfo"]
    assert (told["startSequenceNumber"], told["endSequenceNumber"], told["batchSize"]) == (number, number, 1)
    assert aside["requestContext"]["condition"] == "RetryAttemptsExhausted"


def test_what_comes_before_the_change_that_a_function_names_is_done(made: Made) -> None:
    project = Heard()

    def deal(event: Mapping[str, Any]) -> Any:
        third = event["Records"][2]["dynamodb"]["SequenceNumber"] if len(project.events) == 1 else None
        return {"batchItemFailures": [{"itemIdentifier": third}] if third else []}

    project.answer = deal
    with made(project=project) as deployment:
        change(deployment, "1", "2", "3", "4")
        deployment.step()
    assert [changed(event) for event in project.events] == [["1", "2", "3", "4"], ["3", "4"]]


def test_a_transaction_that_is_rolled_back_changes_nothing_that_is_told(made: Made) -> None:
    project = Heard()
    with made(project=project) as deployment:
        change(deployment, "1")
        table = deployment.names.table(RUNS)
        key = {"pk": {"S": "default/report"}, "sk": {"S": "r#2"}, "st": {"S": "queued"}}
        absent = {"pk": key["pk"], "sk": {"S": "r#absent"}}
        with pytest.raises(ClientError):
            boto3.client("dynamodb", config=CONFIG).transact_write_items(
                TransactItems=[
                    {"Put": {"TableName": table, "Item": key}},
                    {
                        "ConditionCheck": {
                            "TableName": table,
                            "Key": absent,
                            "ConditionExpression": "attribute_exists(pk)",
                        }
                    },
                ]
            )
        change(deployment, "3")
        deployment.step()
    assert [name for event in project.events for name in changed(event)] == ["1", "3"]


# Schedules.


def test_a_schedule_ticks_at_once_and_then_every_period(made: Made, clock: VirtualClock) -> None:
    tick, audit = Heard(), Heard()
    with made(tick=tick, audit=audit) as deployment:
        pass_time(deployment, clock, 6 * MINUTE)
    assert [event["time"] for event in tick.events] == [
        "2026-03-02T00:10:20Z",
        *(f"2026-03-02T00:{minute}:00Z" for minute in range(11, 17)),
    ]
    assert [event["time"] for event in audit.events] == ["2026-03-02T00:10:20Z", "2026-03-02T00:15:00Z"]
    assert tick.events[0]["source"] == "aws.scheduler"
    assert tick.events[0]["resources"] == ["arn:aws:scheduler:us-east-1:123456789012:schedule/default/sweephand-tick"]


def test_a_tick_that_fails_is_put_aside(made: Made) -> None:
    with made(tick=Heard(raised)) as deployment:
        deployment.step()
        (aside,) = map(json.loads, lying_in(deployment, UNDELIVERED))
    assert aside["detail-type"] == "Scheduled Event"


# Functions.


@pytest.fixture
def recorded() -> defaultdict[str, Counter[str]]:
    return defaultdict(Counter)


@pytest.fixture
def real(clock: VirtualClock, tmp_path: Path, recorded: defaultdict[str, Counter[str]]) -> Iterator[Deployment]:
    """The real handlers, whose calls are recorded; users' code takes two minutes where it may."""

    def record(call: AwsCall, perform: Perform) -> Any:
        recorded[call.function][f"{call.service}:{call.operation}"] += 1
        return perform(call.params)

    def execute(event: Mapping[str, Any], _context: object) -> Any:
        outcome = encode_outcome(Succeeded({"rows": 7}))
        return Later(outcome, 2 * MINUTE) if event["timeoutSeconds"] > 60 else outcome

    deployment = Deployment(
        ROOT,
        tmp=tmp_path,
        clock=clock,
        dice=SeededDice(1),
        settings=Settings(shards=1),
        around=record,
        substitutes={"execute": execute},
    )
    with deployment:
        yield deployment


def run_of(deployment: Deployment, **fields: Any) -> JobKey:
    put(deployment.world, DEFAULT, {"name": "report", "command": "x", **fields}, actor="test", expected=None)
    key = JobKey(DEFAULT, JobName("report"))
    trigger(deployment.world, key)
    return key


def only_run(deployment: Deployment, key: JobKey) -> Any:
    (run,) = deployment.world.runs.of_job(key, limit=10)
    return run


def test_every_call_is_put_down_to_the_function_that_makes_it(
    real: Deployment, recorded: defaultdict[str, Counter[str]], clock: VirtualClock
) -> None:
    key = run_of(real, timeout="30s")
    pass_time(real, clock, MINUTE)
    run = only_run(real, key)
    assert (run.state, run.output) == (RunState.SUCCEEDED, {"rows": 7})
    assert recorded["tick"].keys() >= {"sqs:SendMessageBatch"}
    assert recorded["attempt"].keys() >= {"dynamodb:GetItem", "dynamodb:UpdateItem", "lambda:Invoke"}
    assert recorded["project"].keys() >= {"firehose:PutRecordBatch"}
    assert not recorded["execute"]
    assert "lambda:Invoke" not in recorded[""]
    assert recorded[""].keys() >= {"sqs:ReceiveMessage", "sqs:DeleteMessageBatch"}


def test_a_long_task_goes_on_in_its_machine_while_all_else_does(
    real: Deployment, recorded: defaultdict[str, Counter[str]], clock: VirtualClock
) -> None:
    key = run_of(real, timeout="10m")
    pass_time(real, clock, MINUTE)
    assert only_run(real, key).state is RunState.RUNNING
    assert recorded["attempt"]["stepfunctions:StartExecution"] == 1
    pass_time(real, clock, MINUTE)
    run = only_run(real, key)
    assert (run.state, run.ended_at) == (RunState.SUCCEEDED, START + 2 * MINUTE)


def test_a_machine_tries_its_report_again_and_reports_errors_too(made: Made, clock: VirtualClock) -> None:
    def report(_event: object) -> None:
        if len(attempt.events) < 3:
            raise ValueError("not yet")

    attempt = Heard(report)
    with made(execute=Heard(raised), attempt=attempt) as deployment:
        machines = boto3.client("stepfunctions", config=CONFIG)
        order = {"run": "default/report/1", "epoch": 2, "function": deployment.names.function(EXECUTE), "call": {}}
        start = {"stateMachineArn": deployment.settings.machine, "name": "one", "input": json.dumps(order)}
        first = machines.start_execution(**start)
        assert machines.start_execution(**start)["executionArn"] == first["executionArn"]
        pass_time(deployment, clock, MINUTE)
        (told, *again) = [event["report"] for event in attempt.events]
        assert again == [told, told]
        assert (told["run"], told["epoch"], told["came"]["Error"]) == ("default/report/1", 2, "ValueError")
        for wrong in ({**start}, {**start, "stateMachineArn": f"{start['stateMachineArn']}s", "name": "two"}):
            with pytest.raises(ClientError, match=r"ExecutionAlreadyExists|StateMachineDoesNotExist"):
                machines.start_execution(**wrong)


def test_a_hook_can_fail_a_call_of_one_function_and_the_run_ends_well_all_the_same(
    clock: VirtualClock, tmp_path: Path
) -> None:
    struck: list[AwsCall] = []

    def strike(call: AwsCall, perform: Perform) -> Any:
        if call.function == "attempt" and call.operation == "UpdateItem" and len(struck) < 2:
            struck.append(call)
            raise refusal("InternalServerError", call.operation, status=500)
        return directly(call, perform)

    done = {"execute": lambda _event, _context: encode_outcome(Succeeded())}
    with Deployment(
        ROOT,
        tmp=tmp_path,
        clock=clock,
        dice=SeededDice(1),
        settings=Settings(shards=1),
        around=strike,
        substitutes=done,
    ) as deployment:
        key = run_of(deployment, timeout="30s")
        pass_time(deployment, clock, 5 * MINUTE)
        assert only_run(deployment, key).state is RunState.SUCCEEDED
    assert len(struck) == 2


BARRIER = Barrier(2)
HANDLER = """
from sweephand.entrypoint import settings
name, events = settings().name, []

def handler(event, context):
    events.append(event["n"])
    return {"name": name, "events": events, "left": context.get_remaining_time_in_millis()}
"""


def functions(folder: Path, clock: VirtualClock, handler: str) -> Functions:
    (folder / "tick").mkdir()
    (folder / "tick" / "handler.py").write_text(handler)
    return Functions(folder, Settings(name="blue"), tmp=folder, clock=clock, dice=SeededDice(1))


def test_an_environment_is_used_again(tmp_path: Path, clock: VirtualClock) -> None:
    made = functions(tmp_path, clock, HANDLER)
    assert made.invoke("tick", {"n": 1}) == {"name": "blue", "events": [1], "left": 30_000}
    assert made.invoke("tick", {"n": 2})["events"] == [1, 2]


def test_an_environment_deals_with_one_event_at_a_time(tmp_path: Path, clock: VirtualClock) -> None:
    waiting = HANDLER.replace("    events.append", "    event['n'] and BARRIER.wait(10)\n    events.append")
    made = functions(tmp_path, clock, f"from {__name__} import BARRIER\n{waiting}")
    made.invoke("tick", {"n": 0})
    answers: list[Any] = []
    threads = [Thread(target=lambda n=n: answers.append(made.invoke("tick", {"n": n})["events"])) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, answers)) == [1, 2]


def test_what_json_cannot_carry_is_a_failure(tmp_path: Path, clock: VirtualClock) -> None:
    made = functions(tmp_path, clock, "def handler(event, context):\n    return {1, 2}\n")
    with pytest.raises(FunctionFailed, match=r"Runtime\.MarshalError"):
        made.invoke("tick", {})
