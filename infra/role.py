"""The role of a function: the row of `rights.py` with its name, written as policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.data import DataStack
from infra.rights import LOG, POLL_QUEUE, POLL_STREAM, PUT_ASIDE, RIGHTS, USE_KEY, Rights
from sweephand.topology import MACHINES, RUNS, UNDELIVERED, Changes, Function, Messages, Names


@dataclass(frozen=True, slots=True)
class Places:
    """Where the resources are that rights are about."""

    names: Names
    data: DataStack
    live_api: str
    """The id of the WebSocket API."""


class FunctionRole(iam.Role):
    """One for each function, and nothing that is not written in `rights.py`."""

    def __init__(
        self, scope: Construct, id_: str, *, function: Function, places: Places, log_group: logs.ILogGroup
    ) -> None:
        self._places = places
        self._own = Stack.of(scope)
        rights = RIGHTS[function.name]
        policies = {
            "Log": [_allow(LOG, log_group.log_group_arn)],
            "Tables": [_allow(actions, self._table(name)) for name, actions in rights.tables.items()],
            "Queues": [_allow(actions, self._queue(name)) for name, actions in rights.queues.items()],
            "Calls": list(self._calls(rights)),
            "Triggers": list(self._triggers(function)),
        }
        if rights.tables or rights.queues:
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
        holders = ["dynamodb", "sqs", *(["states"] if rights.starts else [])]
        services = [f"{service}.{Aws.REGION}.{Aws.URL_SUFFIX}" for service in holders]
        return iam.PolicyStatement(
            actions=list(USE_KEY),
            resources=[self._places.data.key.key_arn],
            conditions={"StringEquals": {"kms:ViaService": services}},
        )

    def _calls(self, rights: Rights) -> Iterator[iam.PolicyStatement]:
        """ARNs are made of names: a reference would make a circle of those who call each other."""
        names = self._places.names
        for name in rights.invokes:
            yield _allow(("lambda:InvokeFunction",), self._arn("lambda", "function", names.of(name)))
        for machine in MACHINES:
            if machine.name in rights.starts:
                arn = self._arn("states", "stateMachine", names.machine(machine))
                yield _allow(("states:StartExecution",), arn)
        if rights.archives:
            yield _allow(("firehose:PutRecordBatch",), self._places.data.archive.stream.attr_arn)
        if rights.tells:
            connections = f"arn:{Aws.PARTITION}:execute-api:{Aws.REGION}:{Aws.ACCOUNT_ID}:{self._places.live_api}"
            for verb in ("POST", "DELETE"):
                yield _allow(("execute-api:ManageConnections",), f"{connections}/live/{verb}/@connections/*")

    def _triggers(self, function: Function) -> Iterator[iam.PolicyStatement]:
        """What Lambda does in the function's name to bring it its work, and to put aside what failed."""
        for trigger in function.triggers:
            if isinstance(trigger, Messages):
                yield _allow(POLL_QUEUE, self._queue(trigger.queue))
            elif isinstance(trigger, Changes):
                stream = self._places.data.tables.all[RUNS.name].table_stream_arn
                yield _allow(POLL_STREAM, stream or "")
        if any(not isinstance(trigger, Messages) for trigger in function.triggers):
            yield _allow(PUT_ASIDE, self._queue(UNDELIVERED))

    def _arn(self, service: str, resource: str, name: str) -> str:
        return self._own.format_arn(
            service=service, resource=resource, resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )


def _allow(actions: Sequence[str], resource: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=[resource])


def _documents(policies: Mapping[str, Sequence[iam.PolicyStatement]]) -> dict[str, iam.PolicyDocument]:
    """A policy for each kind of right, and none that is empty."""
    return {name: iam.PolicyDocument(statements=list(rules)) for name, rules in policies.items() if rules}
