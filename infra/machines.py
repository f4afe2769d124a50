"""The state machines of the topology: their text is in `statemachines/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.layers import ROOT
from infra.logs import LogGroup
from infra.options import Options
from infra.queues import FAILED
from sweephand.topology import BACKFILLING, DAG_RUN, MACHINES, Machine, Names


class Machines(Construct):
    """Each may call the functions that its text names, or that it is told, and nothing else."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        names: Names,
        key: kms.IKey,
        functions: Mapping[str, lambda_.Function],
        undelivered: sqs.IQueue,
        options: Options,
    ) -> None:
        super().__init__(scope, id_)
        # By its ARN: CDK would let every account's log deliveries use the key. `key.py` names those of this one.
        self._key = kms.Key.from_key_arn(self, "Key", key.key_arn)
        self._names, self._functions, self._options = names, functions, options
        self.all = {machine.name: self._machine(machine) for machine in MACHINES}
        self._put_aside([self.all[machine.name] for machine in (DAG_RUN, BACKFILLING)], undelivered)

    def _machine(self, machine: Machine) -> sfn.StateMachine:
        id_, name = "".join(map(str.capitalize, machine.name.split("_"))), self._names.machine(machine)
        called = {called: self._functions[called].function_arn for called in machine.calls}
        # Step Functions names groups of this prefix only in its resource policy, which is limited in size.
        group = LogGroup(self, f"{id_}Log", name=f"/aws/vendedlogs/states/{name}", key=self._key, options=self._options)
        return sfn.StateMachine(
            self,
            id_,
            state_machine_name=name,
            definition_body=sfn.DefinitionBody.from_file(str(ROOT / "statemachines" / f"{machine.name}.asl.json")),
            definition_substitutions=called,
            role=self._role(f"{id_}Role", [self._functions[name].function_arn for name in (*machine.told, *called)]),
            timeout=Duration.seconds(machine.lasts_max.total_seconds()) if machine.lasts_max else None,
            encryption_configuration=sfn.CustomerManagedEncryptionConfiguration(self._key, Duration.minutes(15)),
            logs=sfn.LogOptions(destination=group, level=sfn.LogLevel.ALL, include_execution_data=False),
        )

    def _put_aside(self, machines: Sequence[sfn.StateMachine], undelivered: sqs.IQueue) -> None:
        """Executions that failed are told of where one alarm watches: a metric of their own would be paid for."""
        events.CfnRule(
            self,
            "Failed",
            name=self._names.of(FAILED),
            event_pattern={
                "source": ["aws.states"],
                "detail-type": ["Step Functions Execution Status Change"],
                "detail": {
                    "stateMachineArn": [machine.state_machine_arn for machine in machines],
                    "status": ["FAILED", "TIMED_OUT"],
                },
            },
            targets=[events.CfnRule.TargetProperty(id="Undelivered", arn=undelivered.queue_arn)],
        )

    def _role(self, id_: str, functions: list[str]) -> iam.Role:
        call = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=functions)
        return iam.Role(
            self,
            id_,
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            inline_policies={"Call": iam.PolicyDocument(statements=[call])},
        )
