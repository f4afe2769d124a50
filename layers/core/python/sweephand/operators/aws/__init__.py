"""Tasks that call AWS services: one module each. boto3 is imported with the first call, since most places make none."""

from __future__ import annotations

from sweephand.domain.targets import SDK, Targets
from sweephand.operators.aws.clients import Clients
from sweephand.operators.aws.event import Event
from sweephand.operators.aws.function import Function
from sweephand.operators.aws.objects import Objects
from sweephand.operators.aws.queue import Queue
from sweephand.operators.aws.sdk import Sdk
from sweephand.operators.aws.state_machine import StateMachine
from sweephand.operators.aws.topic import Topic
from sweephand.operators.operator import Operator
from sweephand.ports import Clock

__all__ = ["aws_operators"]


def aws_operators(targets: Targets, *, clock: Clock, agent: str = "sweephand") -> dict[str, Operator]:
    """An operator for each kind that calls AWS, with the credentials of the environment; calls name `agent`."""
    clients = Clients(agent)
    return {
        "lambda": Function(targets, clients),
        "sqs": Queue(targets, clients),
        "sns": Topic(targets, clients),
        "event": Event(targets, clients),
        "stateMachine": StateMachine(targets, clients, clock),
        SDK: Sdk(targets, clients),
        "sensor.s3": Objects(targets, clients),
    }
