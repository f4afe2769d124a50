"""`sns`: a message to a topic, which the task names by its ARN or its name."""

from __future__ import annotations

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.templates import as_text
from sweephand.operators.aws.clients import Caller, made, soon
from sweephand.operators.aws.letters import attributes_of, order_of, text_of
from sweephand.operators.operator import Attempt


class Topic(Caller):
    """Publishes messages; that one was taken is success."""

    service = kind = "sns"

    def call(self, attempt: Attempt) -> Outcome:
        within = soon(attempt.call)
        client, arn = self.target(attempt, within)
        subject = as_text(attempt.option("subject", ""))
        answer = made(
            client,
            "publish",
            within,
            TopicArn=str(arn),
            Message=text_of(attempt, "message"),
            MessageAttributes=attributes_of(attempt),
            **({"Subject": subject} if subject else {}),
            **order_of(attempt, arn.resource),
        )
        sequence = {"sequenceNumber": answer["SequenceNumber"]} if "SequenceNumber" in answer else {}
        return Succeeded({"messageId": answer["MessageId"], **sequence})
