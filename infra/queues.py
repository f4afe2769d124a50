"""The queues of the topology, with their dead-letter queues, and the one for what could not be delivered at all."""

from __future__ import annotations

from typing import Final

from aws_cdk import CfnDeletionPolicy, CfnResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from sweephand.topology import FUNCTIONS, UNDELIVERED, Happens, Listed, Names

BUS: Final = "events"
"""The event bus, whose undeliverable events end up here too."""
FAILED: Final = "failed-executions"
"""The rule that tells of executions that failed."""

_LONGEST: Final = Duration.days(14)


class Queues(Construct):
    """They live with the data: an upgrade of the functions must find the messages that were there before it.

    Fair among namespaces, which are the message groups of their senders. A queue that a change of its description
    would replace stays, with what is in it.
    """

    def __init__(self, scope: Construct, id_: str, *, names: Names, key: kms.IKey) -> None:
        super().__init__(scope, id_)
        self._key = key
        self.undelivered = self._queue(UNDELIVERED, names.of(UNDELIVERED), _LONGEST)
        stack = Stack.of(self)
        bus, failed = (
            stack.format_arn(service="events", resource=kind, resource_name=names.of(name))
            for kind, name in (("event-bus", BUS), ("rule", FAILED))
        )
        rules = [
            stack.format_arn(service="events", resource="rule", resource_name=names.function(function))
            for function in FUNCTIONS
            if any(isinstance(trigger, Happens) for trigger in function.triggers)
        ]
        # Rules that are listed have numbers, and are on buses of their own.
        rules += [
            stack.format_arn(service="events", resource="rule", resource_name=f"{place}{names.function(function)}-*")
            for function in FUNCTIONS
            if any(isinstance(trigger, Listed) for trigger in function.triggers)
            for place in ("", "*/")
        ]
        self.undelivered.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[self.undelivered.queue_arn],
                conditions={"ArnEquals": {"aws:SourceArn": [bus, failed, *rules]}},
            )
        )
        self.dead: dict[str, sqs.Queue] = {}
        self.lanes: dict[str, sqs.Queue] = {}
        for name, dead_name, queue in names.queues():
            dead = self.dead[queue.dead] = self._queue(queue.dead, dead_name, _LONGEST)
            self.lanes[queue.name] = self._queue(
                queue.name,
                name,
                Duration.seconds(queue.retention.total_seconds()),
                visibility_timeout=Duration.seconds(queue.visibility.total_seconds()),
                dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=queue.receives_max),
            )

    @property
    def all(self) -> dict[str, sqs.Queue]:
        """Every queue that functions use, by its name in the topology."""
        return {**self.lanes, **self.dead, UNDELIVERED: self.undelivered}

    def _queue(
        self,
        id_: str,
        name: str,
        retention: Duration,
        *,
        visibility_timeout: Duration | None = None,
        dead_letter_queue: sqs.DeadLetterQueue | None = None,
    ) -> sqs.Queue:
        made = sqs.Queue(
            self,
            "".join(part.capitalize() for part in id_.split("-")),
            queue_name=name,
            retention_period=retention,
            visibility_timeout=visibility_timeout,
            dead_letter_queue=dead_letter_queue,
            encryption=sqs.QueueEncryption.KMS,
            encryption_master_key=self._key,
            data_key_reuse=Duration.hours(1),
            enforce_ssl=True,
        )
        resource = made.node.default_child
        if isinstance(resource, CfnResource):
            resource.cfn_options.update_replace_policy = CfnDeletionPolicy.RETAIN
        return made
