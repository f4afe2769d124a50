"""What wakes somebody up. Each has its run book in docs/operating.md, under its own name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.data import DataStack
from infra.options import Options
from sweephand.topology import EXECUTION, RUNS, TICK, Names

NAMESPACE: Final = "Sweephand"
_MINUTE: Final = Duration.minutes(1)
_FIVE_MINUTES: Final = Duration.minutes(5)
_ABOVE: Final = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
_BELOW: Final = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
_SILENCE_IS_FINE: Final = cloudwatch.TreatMissingData.NOT_BREACHING
_SILENCE_IS_TROUBLE: Final = cloudwatch.TreatMissingData.BREACHING

SWEEP_LAG_S: Final = 180
LANE_AGE_S: Final = 3_600
"""A message is sent up to 14 minutes ahead, and lies hidden for as long as its run's lease: at most 15 minutes in
`execute`. An hour is none of that."""
SERVER_ERRORS: Final = 5


class Alarms(Construct):
    """Few, since each metric of an alarm is paid for, and each of them about something that nobody else puts right."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        names: Names,
        data: DataStack,
        functions: Mapping[str, lambda_.Function],
        machines: Mapping[str, sfn.StateMachine],
        api: apigateway.RestApi,
        options: Options,
    ) -> None:
        super().__init__(scope, id_)
        self._names = names
        self.topic = _Topic(self, "Topic", names=names, key=data.key, options=options)
        self._sweeping(functions)
        self._messages(data)
        self._answers(functions, machines, api, data)

    def _sweeping(self, functions: Mapping[str, lambda_.Function]) -> None:
        self._alarm(
            "no-tick",
            "No tick in 3 minutes: nothing new is planned.",
            functions[TICK.name].metric_invocations(period=_MINUTE, statistic="Sum"),
            below=1,
            periods=3,
            missing=_SILENCE_IS_TROUBLE,
        )
        self._alarm(
            "sweep-lag",
            "Planning is behind, or nobody plans: runs will start late once the look-ahead is used up.",
            self._own("SweepLag", "Maximum"),
            above=SWEEP_LAG_S,
            periods=3,
            missing=_SILENCE_IS_TROUBLE,
        )
        self._alarm(
            "ledger-hole",
            "A fire time has neither a run nor a reason, or a run has no fire time.",
            self._own("LedgerHoles", "Sum"),
            above=0,
        )

    def _messages(self, data: DataStack) -> None:
        for name, queue in data.queues.lanes.items():
            if name != "sweep":  # a sweep that waits is a sweep that reports no lag
                self._alarm(
                    f"oldest-message-{name}",
                    f"Runs of the lane {name} wait too long for a function.",
                    queue.metric_approximate_age_of_oldest_message(period=_FIVE_MINUTES, statistic="Maximum"),
                    above=LANE_AGE_S,
                    periods=3,
                )
        letters = {
            name.replace("-", "_"): queue.metric_approximate_number_of_messages_visible(
                period=_FIVE_MINUTES, statistic="Minimum"
            )
            for name, queue in data.queues.dead.items()
        }
        self._alarm(
            "dead-letters",
            "Dead letters that `watch` did not see to within a quarter of an hour.",
            cloudwatch.MathExpression(
                expression=" + ".join(letters), using_metrics=dict(letters), period=_FIVE_MINUTES, label="dead letters"
            ),
            above=0,
            periods=3,
        )
        self._alarm(
            "undelivered",
            "Something could not be handed to a function, or a function, or a run's machine, failed at it for good.",
            data.queues.undelivered.metric_approximate_number_of_messages_visible(
                period=_FIVE_MINUTES, statistic="Maximum"
            ),
            above=0,
        )

    def _answers(
        self,
        functions: Mapping[str, lambda_.Function],
        machines: Mapping[str, sfn.StateMachine],
        api: apigateway.RestApi,
        data: DataStack,
    ) -> None:
        self._alarm(
            "api-errors",
            "The API or its authorizer fails.",
            api.deployment_stage.metric_server_error(period=_FIVE_MINUTES, statistic="Sum"),
            above=SERVER_ERRORS,
            periods=2,
        )
        self._alarm(
            "attempt-errors",
            "Batches of runs fail as a whole, again and again.",
            functions["attempt"].metric_errors(period=_FIVE_MINUTES, statistic="Sum"),
            above=SERVER_ERRORS,
            periods=3,
        )
        self._alarm(
            "machine-execute",
            "An execution failed: what became of a long task was not reported.",
            machines[EXECUTION.name].metric_failed(period=_FIVE_MINUTES, statistic="Sum"),
            above=0,
        )
        self._alarm(
            "throttled-functions",
            "Functions are throttled: the account's concurrency is used up, by these or by others.",
            lambda_.Function.metric_all_throttles(period=_FIVE_MINUTES, statistic="Sum"),
            above=0,
            periods=3,
        )
        self._alarm(
            "throttled-writes",
            "Writes to the table of runs are throttled.",
            _throttled(data.tables.all[RUNS.name]),
            above=0,
            periods=3,
        )

    def _own(self, metric: str, statistic: str) -> cloudwatch.Metric:
        """What functions print into their logs."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric,
            dimensions_map={"Deployment": self._names.prefix},
            period=_MINUTE if statistic == "Maximum" else _FIVE_MINUTES,
            statistic=statistic,
        )

    def _alarm(
        self,
        name: str,
        means: str,
        metric: cloudwatch.IMetric,
        *,
        above: float = 0,
        below: float | None = None,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = _SILENCE_IS_FINE,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            "".join(part.capitalize() for part in name.split("-")),
            alarm_name=self._names.of(name),
            alarm_description=f"{means} See docs/operating.md, {name}.",
            metric=metric,
            threshold=above if below is None else below,
            comparison_operator=_ABOVE if below is None else _BELOW,
            evaluation_periods=periods,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        alarm.add_ok_action(actions.SnsAction(self.topic))


class _Topic(sns.Topic):
    """Who is told."""

    def __init__(self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, options: Options) -> None:
        super().__init__(
            scope, id_, topic_name=names.of("alarms"), display_name=names.prefix, master_key=key, enforce_ssl=True
        )
        # A policy of its own takes the place of the usual one, by which alarms may publish.
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if options.alarm_email:
            self.add_subscription(subscriptions.EmailSubscription(options.alarm_email))


def _throttled(table: dynamodb.TableV2) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name="WriteThrottleEvents",
        dimensions_map={"TableName": table.table_name},
        period=_FIVE_MINUTES,
        statistic="Sum",
    )
