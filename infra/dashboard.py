"""One page with what a deployment does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms import NAMESPACE
from infra.data import DataStack
from sweephand.topology import AUDIT, BACKFILL, CALL, EXECUTE, OCCUR, SCAN, SETTLE, TABLES, TICK, WATCH, Names

_FIVE_MINUTES = Duration.minutes(5)


class Dashboard(cloudwatch.Dashboard):
    """From the clock to the answers, in the order in which a fire time passes through."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        names: Names,
        data: DataStack,
        functions: Mapping[str, lambda_.Function],
        api: apigateway.RestApi,
    ) -> None:
        super().__init__(scope, id_, dashboard_name=names.prefix, default_interval=Duration.hours(12))
        lag = cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name="SweepLag",
            dimensions_map={"Deployment": names.prefix},
            statistic="Maximum",
            period=Duration.minutes(1),
        )
        lanes, dead = data.queues.lanes.values(), data.queues.dead.values()
        waited_for = [queue for name, queue in data.queues.lanes.items() if name != "sweep"]  # 50 metrics are free
        self.add_widgets(
            _graph("How far planning is behind (s)", [lag]),
            _graph("Messages to be dealt with", [q.metric_approximate_number_of_messages_visible() for q in lanes]),
            _graph("The oldest message (s)", [q.metric_approximate_age_of_oldest_message() for q in waited_for]),
        )
        # Their machines say where a run's end or a backfill fails, an alarm and `GET /files` where a scan or an event
        # does; ticks are counted by an alarm, and take nothing.
        elsewhere = {function.name for function in (SETTLE, BACKFILL, OCCUR, SCAN)}
        watched = {name: one for name, one in functions.items() if name not in elsewhere}
        counted = [one for name, one in watched.items() if name != TICK.name]
        # What tasks take is theirs, and what comes every few minutes takes what it takes.
        untimed = {function.name for function in (EXECUTE, CALL, TICK, AUDIT, WATCH)}
        timed = [one for name, one in watched.items() if name not in untimed]
        self.add_widgets(
            _graph("Calls", [one.metric_invocations(period=_FIVE_MINUTES) for one in counted]),
            _graph("Errors", [one.metric_errors(period=_FIVE_MINUTES) for one in watched.values()]),
            _graph("Slowest hundredth (ms)", [one.metric_duration(statistic="p99") for one in timed]),
        )
        self.add_widgets(
            _graph(
                "Write units",
                [_units("ConsumedWriteCapacityUnits", names.table(table), table.name) for table in TABLES],
            ),
            _graph("Dead letters", [q.metric_approximate_number_of_messages_visible() for q in dead]),
            _graph("API", [api.metric_count(), api.metric_client_error(), api.metric_server_error()]),
        )


def _graph(title: str, metrics: Iterable[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, width=8, height=6, left=list(metrics))


def _units(metric: str, table: str, label: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name=metric,
        dimensions_map={"TableName": table},
        statistic="Sum",
        period=_FIVE_MINUTES,
        label=label,
    )
