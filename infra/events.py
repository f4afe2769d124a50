"""The bus that a deployment's events go to, for whoever wants to listen."""

from __future__ import annotations

from aws_cdk import aws_events as events
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.queues import BUS
from sweephand.topology import Names


class Events(events.EventBus):
    """Encrypted; what it cannot deliver goes where everything goes that could not be delivered."""

    def __init__(self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, undelivered: sqs.IQueue) -> None:
        super().__init__(
            scope,
            id_,
            event_bus_name=names.of(BUS),
            description=f"What happened in {names.prefix}",
            kms_key=key,
            dead_letter_queue=undelivered,
        )
