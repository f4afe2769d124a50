"""What brings functions their work: schedules, messages, and changes of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.data import DataStack
from infra.options import Options
from sweephand.topology import FUNCTIONS, Changes, EventFeed, Every, Function, Happens, Listed, Messages, Names, Origin


class Feeds(Construct):
    """One for each trigger of the topology, and one role for all schedules: they may only call what is scheduled."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        names: Names,
        data: DataStack,
        functions: Mapping[str, lambda_.Function],
        options: Options,
        cluster_arn: str,
    ) -> None:
        super().__init__(scope, id_)
        self._batch_seconds = options.batch_seconds
        self._cluster_arn = cluster_arn
        self._names, self._data, self._functions = names, data, functions
        self._role = self._schedule_role()
        for function in FUNCTIONS:
            for trigger in function.triggers:
                match trigger:
                    case Every():
                        self._schedule(function, trigger)
                    case Messages():
                        self._messages(function, trigger)
                    case Changes():
                        self._changes(function, trigger)
                    case Happens():
                        self._events(function, trigger)
                    case Listed():
                        for number, feed in enumerate(options.feeds):
                            self._listed(function, number, feed)

    def _schedule_role(self) -> iam.Role:
        scheduled = [
            self._functions[function.name].function_arn
            for function in FUNCTIONS
            if any(isinstance(trigger, Every) for trigger in function.triggers)
        ]
        undelivered, key = self._data.queues.undelivered, self._data.key
        return iam.Role(
            self,
            "ScheduleRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            inline_policies={
                "Call": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=scheduled),
                        iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[undelivered.queue_arn]),
                        iam.PolicyStatement(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[key.key_arn]),
                    ]
                )
            },
        )

    def _schedule(self, function: Function, every: Every) -> None:
        """What comes too late is worth nothing: the next one does the same."""
        minutes = int(every.period.total_seconds()) // 60
        scheduler.CfnSchedule(
            self,
            f"{function.name.capitalize()}Schedule",
            name=self._names.function(function),
            schedule_expression=f"rate({minutes} minute{'s' if minutes > 1 else ''})",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self._functions[function.name].function_arn,
                role_arn=self._role.role_arn,
                input="{}",
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=2, maximum_event_age_in_seconds=60 * max(minutes, 1)
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=self._data.queues.undelivered.queue_arn
                ),
            ),
        )

    def _messages(self, function: Function, messages: Messages) -> None:
        lambda_.CfnEventSourceMapping(
            self,
            f"{function.name.capitalize()}{messages.queue.capitalize()}",
            function_name=self._functions[function.name].function_arn,
            event_source_arn=self._data.queues.lanes[messages.queue].queue_arn,
            batch_size=messages.batch,
            maximum_batching_window_in_seconds=self._batch_seconds if messages.may_wait else 0,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=lambda_.CfnEventSourceMapping.ScalingConfigProperty(maximum_concurrency=messages.at_once),
        )

    def _changes(self, function: Function, changes: Changes) -> None:
        """From the oldest record that is still there: a feed made anew repeats some, and misses none."""
        lambda_.CfnEventSourceMapping(
            self,
            f"{function.name.capitalize()}{changes.table.name.capitalize()}",
            function_name=self._functions[function.name].function_arn,
            event_source_arn=self._data.tables.all[changes.table.name].table_stream_arn,
            starting_position="TRIM_HORIZON",
            batch_size=changes.batch,
            maximum_batching_window_in_seconds=int(changes.window.total_seconds()),
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=changes.attempts - 1,
            function_response_types=["ReportBatchItemFailures"],
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[
                    lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(one)) for one in changes.patterns
                ]
            ),
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(
                    destination=self._data.queues.undelivered.queue_arn
                )
            ),
        )

    def _events(self, function: Function, happens: Happens) -> None:
        """Of the deployment alone. What cannot be delivered within an hour is of no use: a timer, or the next scan, was
        earlier."""
        own: dict[str, Any] = {"clusterArn": [self._cluster_arn]}
        if happens.origin is Origin.BUCKET:
            own = {"bucket": {"name": [self._data.buckets.artifacts.bucket_name]}}
        detail = {**happens.pattern.get("detail", {}), **own}
        self._rule(
            function,
            f"{function.name.capitalize()}Events",
            self._target(function, hours=1),
            name=self._names.function(function),
            description=f"What happens in the {happens.origin} of {self._names.prefix}",
            event_pattern={**happens.pattern, "detail": detail},
        )

    def _listed(self, function: Function, number: int, feed: EventFeed) -> None:
        """With the namespace whose jobs hear of it. It is tried for as long as an event's id is remembered."""
        handed = f'{{"namespace": {json.dumps(feed.namespace)}, "event": <aws.events.event.json>}}'
        template = events.CfnRule.InputTransformerProperty(input_template=handed)
        self._rule(
            function,
            f"{function.name.capitalize()}Events{number}",
            self._target(function, hours=24, input_transformer=template),
            name=f"{self._names.function(function)}-{number}",
            description=f"Events that jobs of {feed.namespace} may listen for",
            event_bus_name=None if feed.bus == "default" else feed.bus,
            event_pattern=dict(feed.pattern),
        )

    def _target(self, function: Function, *, hours: int, **more: Any) -> events.CfnRule.TargetProperty:
        return events.CfnRule.TargetProperty(
            id=function.name,
            arn=self._functions[function.name].function_arn,
            retry_policy=events.CfnRule.RetryPolicyProperty(
                maximum_retry_attempts=60 * min(hours, 3), maximum_event_age_in_seconds=3_600 * hours
            ),
            dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=self._data.queues.undelivered.queue_arn),
            **more,
        )

    def _rule(self, function: Function, id_: str, target: events.CfnRule.TargetProperty, **described: Any) -> None:
        rule = events.CfnRule(self, id_, targets=[target], **described)
        lambda_.CfnPermission(
            self,
            f"{id_}Permission",
            action="lambda:InvokeFunction",
            function_name=self._functions[function.name].function_arn,
            principal="events.amazonaws.com",
            source_arn=rule.attr_arn,
        )
