"""`sqs`: a message to a queue, which the task names by its URL, its ARN or its name."""

from __future__ import annotations

from typing import Any

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.duration import parse_duration
from sweephand.domain.limits import MESSAGE_DELAY_MAX
from sweephand.domain.targets import Arn
from sweephand.errors import InvalidInput
from sweephand.operators.aws.clients import Caller, made, soon
from sweephand.operators.aws.letters import attributes_of, order_of, text_of
from sweephand.operators.operator import Attempt


class Queue(Caller):
    """Sends messages; that one was taken is success."""

    service = kind = "sqs"

    def call(self, attempt: Attempt) -> Outcome:
        within = soon(attempt.call)
        client, arn = self.target(attempt, within)
        answer = made(
            client,
            "send_message",
            within,
            QueueUrl=_url(arn),
            MessageBody=text_of(attempt, "body"),
            MessageAttributes=attributes_of(attempt),
            **order_of(attempt, arn.resource),
            **_delay(attempt, arn.resource),
        )
        sequence = {"sequenceNumber": answer["SequenceNumber"]} if "SequenceNumber" in answer else {}
        return Succeeded({"messageId": answer["MessageId"], **sequence})


def _url(arn: Arn) -> str:
    """Made here and never taken from a task: a client may send its signed request to whatever host it names."""
    suffix = "amazonaws.com.cn" if arn.partition == "aws-cn" else "amazonaws.com"
    return f"https://sqs.{arn.region}.{suffix}/{arn.account}/{arn.resource}"


def _delay(attempt: Attempt, name: str) -> dict[str, Any]:
    given = attempt.option("delay")
    if given is None:
        return {}
    if name.endswith(".fifo"):
        raise InvalidInput("A FIFO queue delays all its messages or none: leave 'delay' out.", "delay")
    delay = parse_duration(given, path="delay", at_most=MESSAGE_DELAY_MAX)
    return {"DelaySeconds": int(delay.total_seconds())}
