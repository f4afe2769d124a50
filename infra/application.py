"""The stateless stack: everything that can be made anew from its sources."""

from __future__ import annotations

from aws_cdk import ArnFormat, CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct
from msgspec.structs import replace

from infra.alarms import Alarms
from infra.budget import Budget
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
from sweephand.topology import EXECUTION, Names


class ApplicationStack(Stack):
    """The functions and what feeds them, the APIs and their front, and what watches over them."""

    def __init__(self, scope: Construct, id_: str, *, data: DataStack, options: Options) -> None:
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
            options=options,
        )
        functions = self._functions(names, data, options)
        Feeds(self, "Feeds", names=names, data=data, functions=functions)
        machines = Machines(self, "Machines", names=names, key=data.key, functions=functions, options=options)
        self._rest.route(api=functions["api"], authorize=functions["authorize"])
        self._live.route(functions["live"])
        Containers(self, "Containers", names=names, key=data.key, address=self._front.address, options=options)
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
        """The functions, each with the settings that it reads; `execute` reads none, and tells users' code nothing."""
        usual = Settings(
            name=options.name,
            keep_runs_days=options.keep_runs_days,
            lookahead_minutes=options.lookahead_minutes,
            shards=options.shards,
        )
        client = self._front.client(data.people, names)
        knows_people = replace(usual, issuer=data.people.issuer, audience=client.user_pool_client_id)
        machine = self.format_arn(
            service="states",
            resource="stateMachine",
            resource_name=names.machine(EXECUTION),
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        settings = {
            **dict.fromkeys(("tick", "sweep", "project", "audit", "watch", "api"), usual),
            "attempt": replace(usual, machine=machine),
            "authorize": knows_people,
            "live": replace(knows_people, live=self._live.way_back, origin=self._front.address),
        }
        return Functions(
            self,
            "Functions",
            places=Places(names, data, self._live.api_id),
            environments={name: _environment(one) for name, one in settings.items()},
            options=options,
        ).all


def _environment(settings: Settings) -> dict[str, str]:
    """Only what is set: a function need not know that there is something it does not need."""
    return {name: value for name, value in settings.to_environ().items() if value}
