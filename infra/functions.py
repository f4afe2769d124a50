"""The functions of the topology."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.layers import ARCHITECTURE, ROOT, RUNTIME, Layers
from infra.logs import LogGroup
from infra.options import Options
from infra.reach import reach
from infra.role import FunctionRole, Places
from sweephand.topology import CALL, EXECUTE, FUNCTIONS, Every, Function, Listed


class Functions(Construct):
    """Each with a role, a log group and an environment of its own.

    No concurrency is reserved by default: event sources bound it, and in a new account a reservation fails to deploy.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        places: Places,
        environments: Mapping[str, Mapping[str, str]],
        options: Options,
    ) -> None:
        super().__init__(scope, id_)
        self._places, self._environments, self._options = places, environments, options
        self._layers = Layers(self, "Layers", names=places.names).all
        self.all = {function.name: self._function(function) for function in FUNCTIONS}

    def _function(self, function: Function) -> lambda_.Function:
        name, data = self._places.names.function(function), self._places.data
        id_ = function.name.capitalize()
        group = LogGroup(self, f"{id_}Log", name=f"/aws/lambda/{name}", key=data.key, options=self._options)
        own = reach(self._places.names, self._options) if function == CALL else None
        role = FunctionRole(self, f"{id_}Role", function=function, places=self._places, log_group=group, reach=own)
        # Schedules and rules hand a function its event and do not wait: what it fails at, Lambda tries again, and then
        # puts aside.
        is_scheduled = any(isinstance(trigger, Every) for trigger in function.triggers)
        is_told = any(isinstance(trigger, Listed) for trigger in function.triggers)
        reserved = self._options.execute_concurrency if function == EXECUTE else 0
        return lambda_.Function(
            self,
            id_,
            function_name=name,
            code=lambda_.Code.from_asset(str(ROOT / "functions" / function.name), exclude=["**/__pycache__"]),
            handler="handler.handler",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            layers=self._layers,
            memory_size=function.memory_mb,
            timeout=Duration.seconds(function.timeout.total_seconds()),
            environment=dict(self._environments.get(function.name, {})) or None,
            environment_encryption=data.key,
            role=role.without_policy_updates(),
            log_group=group,
            logging_format=lambda_.LoggingFormat.JSON,
            dead_letter_queue=data.queues.undelivered if is_scheduled or is_told else None,
            # What a schedule said is soon said again; an event is not.
            max_event_age=Duration.hours(6) if is_told else Duration.minutes(5) if is_scheduled else None,
            retry_attempts=2 if is_told else 1 if is_scheduled else None,
            reserved_concurrent_executions=reserved or None,
        )
