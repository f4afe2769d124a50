"""An AWS account in memory with things that tasks can call, and the operators that call them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.response import StreamingBody
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.job import Task
from sweephand.domain.kinds import read_step
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.targets import Targets
from sweephand.local.cloud.account import ACCOUNT, CONFIG, REGION, AwsCall, Perform, account, refusal
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.operators import Operators
from sweephand.operators.aws import aws_operators
from sweephand.ports import Clock
from tests.moto_world import Fault
from tests.operators.calls import call

TARGETS: Final = (
    *(
        f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"
        for service, resource in (
            ("lambda", "function:load-*"),
            ("sqs", "orders*"),
            ("sns", "news*"),
            ("events", "event-bus/shop"),
            ("states", "stateMachine:bake"),
        )
    ),
    "arn:aws:s3:::inbox/orders/*",
)
LISTED: Final = Targets.of(TARGETS, ("dynamodb:PutItem", "dynamodb:GetItem", "s3:GetObject"), own="sweephand")
MACHINE: Final = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/machines"


class Neighbourhood:
    """Functions, queues, topics, buses and machines that belong to somebody."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: list[AwsCall] = []
        """What the operators called."""
        self.faults: list[Fault | None] = []
        """What the next calls end in; None: as they do."""
        self.functions: dict[str, Callable[[Any], Any]] = {}
        """By their names with qualifier; `FunctionFailed` is their own error."""
        self.told: dict[str, Any] = {}
        """What some operations answer, whatever they are asked."""
        self.ended: dict[str, Any] = {}
        """How executions have ended, by names of machines: what DescribeExecution tells of them."""
        self.began_at: datetime = clock.now()
        self.meanwhile: Callable[[], None] | None = None
        """What happens while the next call is under way."""

    def around(self, call: AwsCall, perform: Perform) -> Any:
        if not call.function:
            return perform(call.params)
        self.calls.append(call)
        if (happens := self.meanwhile) is not None:
            self.meanwhile = None
            happens()
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not fault.applied:
            raise fault.error
        answer = self.told[call.operation] if call.operation in self.told else perform(call.params)
        if fault is not None:
            raise fault.error
        if call.operation == "DescribeExecution":
            machine = call.params["executionArn"].split(":")[6]
            return {**answer, "startDate": self.began_at, **self.ended.get(machine, {})}
        return answer

    def invoke(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Lambda, as moto cannot play it without Docker."""
        does = self.functions.get(params["FunctionName"].partition("function:")[2])
        if does is None:
            raise refusal("ResourceNotFoundException", "Invoke", status=404, message="Function not found")
        failed: dict[str, Any] = {}
        try:
            answer = does(json.loads(params["Payload"]))
        except FunctionFailed as error:
            answer, failed = error.payload, {"FunctionError": "Unhandled"}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        is_async = params["InvocationType"] == "Event"
        body = StreamingBody(BytesIO(b"" if is_async else content), 0 if is_async else len(content))
        request = {"RequestId": "request-1", "HTTPStatusCode": 202 if is_async else 200}
        return {"StatusCode": request["HTTPStatusCode"], "Payload": body, "ResponseMetadata": request, **failed}

    def named(self) -> list[str]:
        return [one.operation for one in self.calls]

    def status_of(self, execution: str) -> str:
        """As moto has it."""
        status: str = client("stepfunctions").describe_execution(executionArn=execution)["status"]
        return status


@contextmanager
def neighbourhood(clock: Clock) -> Iterator[Neighbourhood]:
    """What there is to call, in an account of its own."""
    place = Neighbourhood(clock)
    with account(clock, around=place.around, answers={("lambda", "Invoke"): place.invoke}):
        build()
        yield place


def build() -> None:
    """The things of the neighbourhood."""
    sqs, sns = client("sqs"), client("sns")
    sqs.create_queue(QueueName="orders")
    sqs.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})
    for topic, fifo in (("news", {}), ("news.fifo", {"FifoTopic": "true"})):
        arn = sns.create_topic(Name=topic, Attributes=fifo)["TopicArn"]
        sqs.create_queue(QueueName=f"reader-{topic}", Attributes={"FifoQueue": "true"} if fifo else {})
        sns.subscribe(
            TopicArn=arn,
            Protocol="sqs",
            Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:reader-{topic}",
            Attributes={"RawMessageDelivery": "true"},
        )
    client("s3").create_bucket(Bucket="inbox")
    client("events").create_event_bus(Name="shop")
    client("stepfunctions").create_state_machine(name="bake", definition=MACHINE, roleArn=ROLE)


def client(service: Any) -> Any:
    """A client of whoever owns all this: its calls are no operator's."""
    return boto3.client(service, config=CONFIG)


def received(queue: str) -> list[dict[str, Any]]:
    """The messages in a queue, with all that is known of them."""
    sqs = client("sqs")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    found = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return list(found.get("Messages", []))


def operators(folder: Path, clock: Clock, targets: Targets = LISTED) -> Operators:
    return Operators(folder, only=aws_operators(targets, clock=clock, agent="sweephand/call"))


def a_call(run: Mapping[str, Any], *, attempt: int = 1, lost: int = 0, timeout_s: float = 60, **params: Any) -> Call:
    """A call as the engine makes it of a `run` object."""
    kind = next(iter(run))
    made = call(kind, run[kind], attempt=attempt, timeout_s=timeout_s, params=params)
    return replace(made, task=Task("main", *read_step(run, "run")), run=replace(made.run, lost=lost))


def output_of(outcome: Outcome) -> Any:
    assert isinstance(outcome, Succeeded), outcome
    return outcome.output


def permanent(outcome: Outcome) -> tuple[str, str]:
    """Name and words of a failure that is not tried again."""
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind is FailureClass.PERMANENT, outcome
    return outcome.error, outcome.message


def transient(outcome: Outcome) -> tuple[str, str]:
    """Name and words of a failure that may be tried again."""
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind is FailureClass.TRANSIENT, outcome
    return outcome.error, outcome.message
