"""Options: read once, typed, and refused with their name where they cannot be."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import pytest

from infra.options import Options, WrongOption, option_of
from sweephand.domain.targets import Targets
from tests.infra.assembly import ROOT

DEFAULTS = {option_of(field.name): field.default for field in fields(Options)}
IN_CONTEXT = {
    key: value
    for key, value in json.loads((ROOT / "cdk.json").read_text())["context"].items()
    if not re.search("[:@]", key)
}


def test_the_defaults_of_the_code_are_those_of_the_context_file() -> None:
    assert {key: tuple(value) if isinstance(value, list) else value for key, value in IN_CONTEXT.items()} == DEFAULTS


def test_every_option_is_documented_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", (ROOT / "docs" / "operating.md").read_text(), re.MULTILINE)
    assert dict(rows) == {key: json.dumps(value) for key, value in IN_CONTEXT.items()}


def test_what_an_option_lets_pass_the_function_reads_too() -> None:
    """Else it would be deployed, and no function that reads it would start."""
    targets = [
        "arn:aws:lambda:*:123456789012:function:load-*:prod",
        "arn:aws:sqs:eu-west-1:123456789012:orders?.fifo",
        "arn:aws-us-gov:sns:us-gov-west-1:123456789012:news",
        "arn:aws:events:eu-west-1:123456789012:event-bus/shop",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:bake",
        "arn:aws:kms:eu-west-1:123456789012:key/0c0c0c0c-0c0c-0c0c-0c0c-0c0c0c0c0c0c",
    ]
    options = Options.from_context({"targets": targets, "sdkActions": "glue:StartJobRun, ecs:RunTask"})
    read = Targets.of(options.targets, options.sdk_actions)
    assert [str(one) for one in read.patterns] == targets
    assert read.actions == {"glue:StartJobRun", "ecs:RunTask"}


def test_on_the_command_line_everything_is_a_text() -> None:
    options = Options.from_context(
        {"shards": "16", "waf": "true", "vpcId": "vpc-0a", "subnetIds": "subnet-0a, subnet-0b", "@aws-cdk/x": "y"}
    )
    assert (options.shards, options.waf, options.subnet_ids) == (16, True, ("subnet-0a", "subnet-0b"))


@pytest.mark.parametrize(
    ("context", "option"),
    [
        ({"shardz": 8}, "shardz"),
        ({"eventRules": "x"}, "eventRules"),
        ({"eventRules": ["x"]}, "eventRules"),
        ({"eventRules": [{}]}, "eventRules"),
        ({"eventRules": [{"pattern": {}}]}, "eventRules"),
        ({"eventRules": [{"pattern": {"source": ["a"]}, "bucket": "one"}]}, "eventRules"),
        ({"eventRules": [{"pattern": {"source": ["a"]}, "prefix": "one"}]}, "eventRules"),
        ({"eventRules": [{"bucket": "No_Bucket"}]}, "eventRules"),
        ({"eventRules": [{"bucket": "inbox", "namespace": "a b"}]}, "eventRules"),
        ({"eventRules": [{"bucket": "inbox", "bus": ""}]}, "eventRules"),
        ({"eventRules": [{"bucket": "inbox", "topic": "x"}]}, "eventRules"),
        ({"shards": "many"}, "shards"),
        ({"shards": 0}, "shards"),
        ({"shards": True}, "shards"),
        ({"shards": "٣"}, "shards"),
        ({"waf": "yes"}, "waf"),
        ({"waf": 1}, "waf"),
        ({"name": ""}, "name"),
        ({"name": "Sweep_Hand"}, "name"),
        ({"name": "a" * 25}, "name"),
        ({"keepRunsDays": 1}, "keepRunsDays"),
        ({"logRetentionDays": 31}, "logRetentionDays"),
        ({"lookaheadMinutes": 15}, "lookaheadMinutes"),
        ({"lookaheadMinutes": 11}, "lookaheadMinutes"),
        ({"peakRunsPerSecond": 100_000}, "peakRunsPerSecond"),
        ({"executeConcurrency": -1}, "executeConcurrency"),
        ({"monthlyBudgetUsd": 2.5}, "monthlyBudgetUsd"),
        ({"alarmEmail": "oncall"}, "alarmEmail"),
        ({"domainName": "jobs.example.org"}, "certificateArn"),
        ({"domainName": "https://x", "certificateArn": "y"}, "domainName"),
        ({"certificateArn": "arn:aws:acm:us-east-1:111111111111:certificate/0c"}, "domainName"),
        ({"certificateArn": "arn:aws:acm:eu-west-1:111111111111:certificate/0c"}, "certificateArn"),
        ({"vpcId": "vpc-0a"}, "subnetIds"),
        ({"subnetIds": ["subnet-0a"]}, "vpcId"),
        ({"vpcId": "mine", "subnetIds": ["subnet-0a"]}, "vpcId"),
        ({"vpcId": "vpc-0a", "subnetIds": ["a"]}, "subnetIds"),
        ({"subnetIds": [1]}, "subnetIds"),
        ({"httpMayReach": "10.1.0.0/16,everything else"}, "httpMayReach"),
        ({"httpMayReach": ["169.254.169.254"]}, "httpMayReach"),
        ({"httpMayReach": [f"host-{n}.{'a' * 40}.internal" for n in range(60)]}, "httpMayReach"),
        ({"targets": "*"}, "targets"),
        ({"targets": ["orders"]}, "targets"),
        ({"targets": ["arn:aws:sqs:eu-west-1:*:orders"]}, "targets"),
        ({"targets": ["arn:aws:dynamodb:eu-west-1:123456789012:table/t"]}, "targets"),
        ({"targets": ["arn:aws:lambda:eu-west-1:123456789012:*"]}, "targets"),
        ({"targets": ["arn:aws:sqs:eu-west-1:123456789012:" + "q" * 80] * 30}, "targets"),
        ({"sdkActions": ["glue:*"]}, "sdkActions"),
        ({"sdkActions": ["iam:PassRole"]}, "sdkActions"),
        ({"sdkActions": ["sts:AssumeRole"]}, "sdkActions"),
        ({"sdkActions": ["kms:Decrypt"]}, "sdkActions"),
        ({"sdkResources": ["arn:aws:glue:eu-west-1:123456789012:job/*"]}, "sdkActions"),
        ({"sdkActions": ["glue:StartJobRun"], "sdkResources": ["*"]}, "sdkResources"),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value, ensure_ascii=True),
)
def test_a_value_that_cannot_be_is_refused_by_the_name_of_its_option(context: dict[str, Any], option: str) -> None:
    with pytest.raises(WrongOption) as refused:
        Options.from_context(context)
    assert refused.value.option == option
    assert option in str(refused.value)


def test_a_rule_of_a_bucket_is_a_pattern_of_what_is_made_in_it() -> None:
    text = (
        '[{"bucket": "inbox", "prefix": "in/", "namespace": "team"}, {"pattern": {"source": ["shop"]}, "bus": "own"}]'
    )
    made, other = Options.from_context({"eventRules": text}).feeds
    assert (made.bus, made.namespace, other.bus, other.namespace) == ("default", "team", "own", "default")
    assert made.pattern == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": ["inbox"]}, "object": {"key": [{"prefix": "in/"}]}},
    }
    assert other.pattern == {"source": ["shop"]}
