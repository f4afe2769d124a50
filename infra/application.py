"""The stateless stack: everything that can be made anew from its sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import ArnFormat, CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct
from msgspec.structs import replace

from infra.alarms import Alarms
from infra.budget import Budget
from infra.console import Console
from infra.containers import Containers
from infra.dashboard import Dashboard
from infra.data import DataStack
from infra.events import Events
from infra.feeds import Feeds
from infra.front import Front
from infra.functions import Functions
from infra.gateway_account import GatewayAccount
from infra.live import LiveApi
from infra.machines import Machines
from infra.options import Options
from infra.rest import RestApi
from infra.role import Places
from sweephand.settings import Settings
from sweephand.topology import BACKFILLING, DAG_RUN, EXECUTION, Machine, Names


class ApplicationStack(Stack):
    """The functions and what feeds them, the APIs and their front, and what watches over them."""

    def __init__(self, scope: Construct, id_: str, *, data: DataStack, site: Path, options: Options) -> None:
        super().__init__(scope, id_, description=f"{options.name}: functions, APIs and alarms")
        names = Names(options.name)
        account = GatewayAccount(self, "GatewayAccount")
        self._rest = RestApi(self, "Rest", names=names, key=data.key, options=options)
        self._live = LiveApi(self, "Live", names=names, key=data.key, options=options)
        for stage in (self._rest.deployment_stage, self._live.stage):
            stage.node.add_dependency(account)
        self._front = Front(
            self,
            "Front",
            names=names,
            rest_host=self._rest.host,
            live_host=self._live.host,
            logs=data.buckets.logs,
            site=site,
            options=options,
        )
        self._client = self._front.client(data.people, names)
        Console(
            self,
            "Console",
            names=names,
            key=data.key,
            front=self._front,
            client=self._client,
            site=site,
            options=options,
        )
        self._containers = Containers(
            self, "Containers", names=names, data=data, address=self._front.address, options=options
        )
        functions = self._functions(names, data, options)
        Feeds(
            self,
            "Feeds",
            names=names,
            data=data,
            functions=functions,
            options=options,
            cluster_arn=self._containers.cluster_arn,
        )
        machines = Machines(
            self,
            "Machines",
            names=names,
            key=data.key,
            functions=functions,
            undelivered=data.queues.undelivered,
            options=options,
        )
        self._rest.route(api=functions["api"], authorize=functions["authorize"])
        self._live.route(functions["live"])
        bus = Events(self, "Events", names=names, key=data.key, undelivered=data.queues.undelivered)
        alarms = Alarms(
            self,
            "Alarms",
            names=names,
            data=data,
            functions=functions,
            machines=machines.all,
            api=self._rest,
            options=options,
        )
        Dashboard(self, "Dashboard", names=names, data=data, functions=functions, api=self._rest)
        if options.monthly_budget_usd:
            Budget(self, "Budget", names=names, topic=alarms.topic, dollars=options.monthly_budget_usd)
        CfnOutput(self, "Address", value=self._front.address, description="Console, API and live updates")
        CfnOutput(self, "ConsoleBucket", value=self._front.console.bucket_name)
        CfnOutput(self, "DistributionId", value=self._front.distribution.distribution_id)
        CfnOutput(self, "SignIn", value=self._front.sign_in)
        CfnOutput(self, "EventBus", value=bus.event_bus_name)

    def _functions(self, names: Names, data: DataStack, options: Options) -> dict[str, lambda_.Function]:
        """The functions, each with the settings that it reads; `execute` knows where to write, and no more."""
        usual = Settings(
            name=options.name,
            keep_runs_days=options.keep_runs_days,
            lookahead_minutes=options.lookahead_minutes,
            shards=options.shards,
        )
        reaches = replace(usual, http_may_reach=",".join(options.http_may_reach))
        knows_people = replace(usual, issuer=data.people.issuer, audience=self._client.user_pool_client_id)
        knows_targets = replace(usual, targets=" ".join(options.targets), sdk_actions=" ".join(options.sdk_actions))
        machine, dag_machine, backfilling = (self._machine_arn(names, one) for one in (EXECUTION, DAG_RUN, BACKFILLING))
        bucket = data.buckets.artifacts.bucket_name
        resolves = replace(usual, secret_arns=",".join(options.secret_arns))
        settings = {
            **dict.fromkeys(("tick", "sweep", "settle", "project", "audit", "watch", "occur"), usual),
            "attempt": self._containers.told(
                replace(resolves, machine=machine, dag_machine=dag_machine, batch_seconds=options.batch_seconds)
            ),
            "advance": replace(usual, dag_machine=dag_machine, artifacts=bucket),
            "backfill": replace(usual, backfill_machine=backfilling),
            "api": self._containers.allowed(
                replace(
                    knows_targets,
                    secret_arns=resolves.secret_arns,
                    http_may_reach=reaches.http_may_reach,
                    artifacts=bucket,
                    backfill_machine=backfilling,
                )
            ),
            "scan": self._containers.allowed(
                replace(
                    knows_targets,
                    http_may_reach=reaches.http_may_reach,
                    artifacts=bucket,
                    keep_jobs="yes" if options.keep_jobs else "",
                )
            ),
            "call": knows_targets,
            "authorize": knows_people,
            "live": replace(knows_people, live=self._live.way_back, origin=self._front.address),
        }
        told = {name: one.to_environ() for name, one in settings.items()}
        told["execute"] = replace(reaches, artifacts=bucket).to_environ("name", "artifacts", "http_may_reach")
        return Functions(
            self,
            "Functions",
            places=Places(
                names,
                data,
                self._live.api_id,
                options.secret_arns,
                self._containers.cluster_arn,
                self._containers.role_arns,
            ),
            environments={name: _environment(one) for name, one in told.items()},
            options=options,
        ).all

    def _machine_arn(self, names: Names, machine: Machine) -> str:
        """Made of its name: a reference would make a circle of those who call each other."""
        return self.format_arn(
            service="states",
            resource="stateMachine",
            resource_name=names.machine(machine),
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Only what is set: a function need not know that there is something it does not need."""
    return {name: value for name, value in variables.items() if value}
