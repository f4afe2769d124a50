"""The role of a function: the row of `rights.py` with its name, written as policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.data import DataStack
from infra.rights import LOG, POLL_QUEUE, POLL_STREAM, PUT_ASIDE, READ_KEY, RIGHTS, USE_KEY, WRITE_KEY, Actions, Rights
from sweephand.topology import (
    ARTIFACTS_PREFIX,
    DAG_RUN,
    JOB_FILES_PREFIX,
    MACHINES,
    PACKS_PREFIX,
    RUNS,
    UNDELIVERED,
    Changes,
    Function,
    Happens,
    Messages,
    Names,
)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the resources are that rights are about."""

    names: Names
    data: DataStack
    live_api: str
    """The id of the WebSocket API."""
    secret_arns: tuple[str, ...] = ()
    """Patterns of what tasks may refer to."""
    cluster: str = ""
    """The ARN of the cluster that agents are launched in."""
    passed: tuple[str, ...] = ()
    """The roles that launched agents have."""


class FunctionRole(iam.Role):
    """One for each function, and nothing that is not written in `rights.py`, or, of `call`, in `reach.py`."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        function: Function,
        places: Places,
        log_group: logs.ILogGroup,
        reach: Mapping[str, Sequence[iam.PolicyStatement]] | None = None,
    ) -> None:
        self._places = places
        self._own = Stack.of(scope)
        rights = RIGHTS[function.name]
        policies = {
            "Log": [_allow(LOG, log_group.log_group_arn)],
            "Tables": [_allow(actions, self._table(name)) for name, actions in rights.tables.items()],
            "Queues": [_allow(actions, self._queue(name)) for name, actions in rights.queues.items()],
            "Calls": list(self._calls(rights)),
            "RunLog": [_allow(rights.run_log, places.data.run_log.log_group_arn)] if rights.run_log else [],
            "Secrets": list(self._secrets(rights)),
            "References": list(self._references()) if rights.refers else [],
            "Launch": list(self._launch()) if rights.launches else [],
            "Pass": [self._pass()] if rights.launches else [],
            "Triggers": list(self._triggers(function)),
            **(reach or {}),
        }
        policies["Artifacts"] = [
            *self._beneath(ARTIFACTS_PREFIX, rights.artifacts),
            *self._beneath(PACKS_PREFIX, rights.packs),
        ]
        policies["JobFiles"] = list(self._beneath(JOB_FILES_PREFIX, rights.job_files))
        if rights.tables or rights.queues or rights.artifacts:
            policies["Key"] = [self._key(rights)]
        super().__init__(
            scope,
            id_,
            description=f"What {function.name} of {places.names.prefix} may do",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies=_documents(policies),
        )

    def _table(self, name: str) -> str:
        return self._places.data.tables.all[name].table_arn

    def _queue(self, name: str) -> str:
        return self._places.data.queues.all[name].queue_arn

    def _key(self, rights: Rights) -> iam.PolicyStatement:
        """Only by way of the services that hold the data."""
        holders = [
            *(["dynamodb", "sqs"] if rights.tables or rights.queues else []),
            *(["states"] if rights.starts or rights.wakes else []),
            *(["s3"] if rights.artifacts or rights.job_files else []),
        ]
        services = [f"{service}.{Aws.REGION}.{Aws.URL_SUFFIX}" for service in holders]
        return iam.PolicyStatement(
            actions=list(USE_KEY if rights.tables or rights.queues else _key_of_files(rights)),
            resources=[self._places.data.key.key_arn],
            conditions={"StringEquals": {"kms:ViaService": services}},
        )

    def _beneath(self, prefix: str, actions: Actions) -> Iterator[iam.PolicyStatement]:
        """Only beneath one prefix: what else is in the bucket is none of its business."""
        bucket = self._places.data.buckets.artifacts
        for action in actions:
            if action == "s3:ListBucket":
                yield iam.PolicyStatement(
                    actions=[action],
                    resources=[bucket.bucket_arn],
                    conditions={"StringLike": {"s3:prefix": f"{prefix}*"}},
                )
            else:
                yield _allow((action,), bucket.arn_for_objects(f"{prefix}*"))

    def _calls(self, rights: Rights) -> Iterator[iam.PolicyStatement]:
        """ARNs are made of names: a reference would make a circle of those who call each other."""
        names = self._places.names
        for name in rights.invokes:
            yield _allow(("lambda:InvokeFunction",), self._arn("lambda", "function", names.of(name)))
        for machine in MACHINES:
            if machine.name in rights.starts:
                arn = self._arn("states", "stateMachine", names.machine(machine))
                yield _allow(("states:StartExecution",), arn)
        if rights.wakes:
            # A token is answered in the name of the machine that gave it out.
            yield _allow(("states:SendTaskSuccess",), self._arn("states", "stateMachine", names.machine(DAG_RUN)))
        if rights.archives:
            yield _allow(("firehose:PutRecordBatch",), self._places.data.archive.stream.attr_arn)
        if rights.tells:
            connections = f"arn:{Aws.PARTITION}:execute-api:{Aws.REGION}:{Aws.ACCOUNT_ID}:{self._places.live_api}"
            for verb in ("POST", "DELETE"):
                yield _allow(("execute-api:ManageConnections",), f"{connections}/live/{verb}/@connections/*")

    def _secrets(self, rights: Rights) -> Iterator[iam.PolicyStatement]:
        """Data keys of what they are for, by the encryption context that `sweephand.secrets` gives them."""
        for action, purposes in (("kms:GenerateDataKey", rights.seals), ("kms:Decrypt", rights.opens)):
            for purpose in purposes:
                yield iam.PolicyStatement(
                    actions=[action],
                    resources=[self._places.data.key.key_arn],
                    conditions={"StringEquals": {"kms:EncryptionContext:sweephand": purpose}},
                )

    def _references(self) -> Iterator[iam.PolicyStatement]:
        """What the deployment lets tasks refer to; whose namespace may read what, the function decides."""
        actions = {"secretsmanager": "secretsmanager:GetSecretValue", "ssm": "ssm:GetParameter"}
        for pattern in self._places.secret_arns:
            service = pattern.split(":")[2]
            resource = pattern.replace("{namespace}", "*")
            if service != "kms":
                yield _allow((actions[service],), resource)
                continue
            services = [f"{one}.{Aws.REGION}.{Aws.URL_SUFFIX}" for one in actions]
            yield iam.PolicyStatement(
                actions=["kms:Decrypt"],
                resources=[resource],
                conditions={"StringEquals": {"kms:ViaService": services}},
            )

    def _launch(self) -> Iterator[iam.PolicyStatement]:
        """Agents in the one cluster, from definitions with our name."""
        within = {"ArnEquals": {"ecs:cluster": self._places.cluster}}
        prefix = self._places.names.prefix
        for action, resource, conditions in (
            ("ecs:RunTask", self._path("ecs", "task-definition", f"{prefix}-*"), within),
            ("ecs:StopTask", self._path("ecs", "task", f"{prefix}/*"), within),
            ("ecs:ListTasks", "*", within),
            ("ecs:RegisterTaskDefinition", "*", None),
        ):
            yield iam.PolicyStatement(actions=[action], resources=[resource], conditions=conditions)

    def _pass(self) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            actions=["iam:PassRole"],
            resources=list(self._places.passed),
            conditions={"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
        )

    def _path(self, service: str, resource: str, name: str) -> str:
        return self._own.format_arn(service=service, resource=resource, resource_name=name)

    def _triggers(self, function: Function) -> Iterator[iam.PolicyStatement]:
        """What Lambda does in the function's name to bring it its work, and to put aside what failed."""
        for trigger in function.triggers:
            if isinstance(trigger, Messages):
                yield _allow(POLL_QUEUE, self._queue(trigger.queue))
            elif isinstance(trigger, Changes):
                stream = self._places.data.tables.all[RUNS.name].table_stream_arn
                yield _allow(POLL_STREAM, stream or "")
        if any(not isinstance(trigger, Messages | Happens) for trigger in function.triggers):
            yield _allow(PUT_ASIDE, self._queue(UNDELIVERED))

    def _arn(self, service: str, resource: str, name: str) -> str:
        return self._own.format_arn(
            service=service, resource=resource, resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )


def _key_of_files(rights: Rights) -> tuple[str, ...]:
    """Of those that only keep files, and those that read some too."""
    reads = "s3:GetObject" in (*rights.artifacts, *rights.packs)
    return WRITE_KEY + READ_KEY if reads else WRITE_KEY


def _allow(actions: Sequence[str], resource: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=[resource])


def _documents(policies: Mapping[str, Sequence[iam.PolicyStatement]]) -> dict[str, iam.PolicyDocument]:
    """A policy for each kind of right, and none that is empty."""
    return {name: iam.PolicyDocument(statements=list(rules)) for name, rules in policies.items() if rules}
