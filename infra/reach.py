"""What `call` may reach: the options targets, sdkActions and sdkResources as policies, and nothing of ours.

Without these options it can reach nothing. It is told the same list, and refuses all else before it calls: see
`sweephand/domain/targets.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from infra.budget import TAG
from infra.options import Options
from sweephand.topology import CALL, Names

Actions = tuple[str, ...]

_ACTIONS: Final[Mapping[str, Actions]] = MappingProxyType(
    {
        "lambda": ("lambda:InvokeFunction",),
        "sqs": ("sqs:SendMessage",),
        "sns": ("sns:Publish",),
        "events": ("events:PutEvents",),
        "states": ("states:StartExecution",),
        "kms": ("kms:Decrypt", "kms:GenerateDataKey"),
        "s3": ("s3:ListBucket",),
    }
)
"""What is done to the targets of each service."""
_LOOK: Final = ("states:DescribeExecution", "states:StopExecution")
_MACHINE: Final = "stateMachine:"
_OWN: Final[Mapping[str, Actions]] = MappingProxyType(
    {
        "lambda": ("function:{}-*",),
        "sqs": ("{}-*",),
        "sns": ("{}-*",),
        "events": ("event-bus/{}-*", "rule/{}-*"),
        "states": ("stateMachine:{}-*", "execution:{}-*"),
        "dynamodb": ("table/{}-*",),
        "firehose": ("deliverystream/{}-*",),
        "scheduler": ("schedule/*/{}-*",),
    }
)
"""How what belongs to a deployment is named."""
_LISTED: Final = "Whoever deploys has listed it: the option is the review."


def reach(names: Names, options: Options) -> dict[str, list[iam.PolicyStatement]]:
    """The policies of the role of `call`, by their names."""
    return {
        "Targets": list(_targets(options)),
        "Sdk": [_allow(options.sdk_actions, *_sdk_resources(options))] if options.sdk_actions else [],
        "Own": list(_never(names, options)),
    }


def reviewed(options: Options) -> Iterator[tuple[str, str, str]]:
    """What cdk-nag would say of patterns that whoever deploys has written: where, which rule, and why it is meant."""
    granted = [resource for statement in _targets(options) for resource in statement.resources]
    granted += _sdk_resources(options) if options.sdk_actions else []
    for resource in dict.fromkeys(granted):
        if "*" in resource:
            yield f"App/Functions/{CALL.name.capitalize()}Role", f"IAM5[Resource::{resource}]", _LISTED


def _targets(options: Options) -> Iterator[iam.PolicyStatement]:
    for service, actions in _ACTIONS.items():
        listed = [arn for arn in options.targets if arn.split(":")[2] == service]
        if not listed:
            continue
        if service == "kms":
            holders = [f"{holder}.*.{Aws.URL_SUFFIX}" for holder in ("sqs", "sns", "events", "states")]
            yield iam.PolicyStatement(
                actions=list(actions), resources=listed, conditions={"StringLike": {"kms:ViaService": holders}}
            )
            continue
        if service == "s3":
            yield from map(_keys, listed)
            continue
        yield _allow(actions, *listed)
        if service == "states":
            yield _allow(_LOOK, *dict.fromkeys(map(_executions, listed)))


def _keys(listed: str) -> iam.PolicyStatement:
    """Some keys of a bucket can be listed; nothing of it can be read."""
    bucket, _, keys = listed.partition("/")
    condition = {"StringLike": {"s3:prefix": keys}} if keys else {}
    return iam.PolicyStatement(actions=list(_ACTIONS["s3"]), resources=[bucket], conditions=condition)


def _executions(machine: str) -> str:
    """Executions are named after their machine, without its version or alias."""
    where, _, name = machine.partition(_MACHINE)
    return f"{where}execution:{name.split(':')[0]}:*"


def _sdk_resources(options: Options) -> list[str]:
    return list(options.sdk_resources) or ["*"]


def _never(names: Names, options: Options) -> Iterator[iam.PolicyStatement]:
    """Whatever is listed: by name, and by the tag that everything of a deployment carries.

    The key and the logs are spared, since Lambda itself uses them in the name of the role.
    """
    own = [
        f"arn:{Aws.PARTITION}:{service}:*:{Aws.ACCOUNT_ID}:{named.format(names.prefix)}"
        for service, all_named in _OWN.items()
        for named in all_named
    ]
    own.append(f"arn:{Aws.PARTITION}:s3:::{names.prefix}-*")
    yield iam.PolicyStatement(effect=iam.Effect.DENY, actions=["*"], resources=own)
    yield iam.PolicyStatement(
        effect=iam.Effect.DENY,
        not_actions=["kms:*", "logs:*"],
        resources=["*"],
        conditions={"StringEquals": {f"aws:ResourceTag/{TAG}": names.prefix}},
    )
    about_logs = [action for action in options.sdk_actions if action.startswith("logs:")]
    if about_logs:
        groups = f"arn:{Aws.PARTITION}:logs:*:{Aws.ACCOUNT_ID}:log-group:/*{names.prefix}*"
        yield iam.PolicyStatement(effect=iam.Effect.DENY, actions=about_logs, resources=[groups])


def _allow(actions: Actions, *resources: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))
