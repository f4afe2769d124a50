"""What a deployment can choose: the context of `cdk.json`, or `-c name=value`, read once and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Final

from sweephand.settings import Settings
from sweephand.topology import EventFeed

_FIRST_SEGMENT: Final = re.compile(r"_([a-z])")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,23}")
_VPC: Final = re.compile(r"vpc-[0-9a-f]+")
_SUBNET: Final = re.compile(r"subnet-[0-9a-f]+")
_CERTIFICATE: Final = re.compile(r"arn:aws[a-z-]*:acm:us-east-1:\d{12}:certificate/.+")
_SECRET: Final = re.compile(
    r"arn:aws[a-z-]*:(secretsmanager:[^:]+:\d{12}:secret:|ssm:[^:]+:\d{12}:parameter/|kms:[^:]+:\d{12}:key/)[^,\s]+"
)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_TARGET: Final = re.compile(
    r"arn:aws[a-z-]*:(lambda:{at}:function:|sqs:{at}:|sns:{at}:|events:{at}:event-bus/|states:{at}:stateMachine:|kms:{at}:key/)"
    r"[\w.$/:*?-]+|arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/\S{1,512})?".replace(
        "{at}", r"(\*|[a-z0-9-]+):\d{12}"
    ),
    re.ASCII,
)
_ACTION: Final = re.compile(r"(?!(iam|sts|organizations|sso|account|kms):)[a-z0-9-]+:[A-Za-z0-9]+", re.ASCII)
_RESOURCE: Final = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9*-]*:(\d{12})?:\S+", re.ASCII)
_LISTED_CHARS_MAX: Final = 2_500
"""Lambda takes 4 KB of variables."""
_DOMAIN: Final = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")

_BUS: Final = re.compile(r"[A-Za-z0-9][\w./-]{0,255}", re.ASCII)
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_IMAGES: Final = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._:/@*-]*", re.ASCII)

IMAGES_CHARS_MAX: Final = 1_000
PLACES_CHARS_MAX: Final = 2_000
"""A function's variables have 4 KB, all together."""
LOG_DAYS: Final = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653)
"""Retentions that CloudWatch Logs knows."""


class WrongOption(Exception):
    """An option that means nothing, or whose value cannot be."""

    def __init__(self, option: str, what: str) -> None:
        super().__init__(f"Option {option}: {what}.")
        self.option = option


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Each is documented in docs/operating.md; in the context it is written in camel case."""

    name: str = "sweephand"
    keep_runs_days: int = 35
    log_retention_days: int = 30
    shards: int = 8
    lookahead_minutes: int = 14
    peak_runs_per_second: int = 0
    execute_concurrency: int = 0
    batch_seconds: int = 0
    domain_name: str = ""
    certificate_arn: str = ""
    vpc_id: str = ""
    subnet_ids: tuple[str, ...] = ()
    alarm_email: str = ""
    monthly_budget_usd: int = 25
    waf: bool = False
    agent_image: str = ""
    container_images: tuple[str, ...] = ()
    x86_containers: bool = False
    http_may_reach: tuple[str, ...] = ()
    secret_arns: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    sdk_actions: tuple[str, ...] = ()
    sdk_resources: tuple[str, ...] = ()
    keep_jobs: bool = False
    event_rules: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Options:
        """What the context says; keys with a colon or an at sign are CDK's own."""
        known = {option_of(field.name): field for field in fields(cls)}
        for key in context:
            if key not in known and not re.search("[:@]", key):
                raise WrongOption(key, f"there is no such option; there are {', '.join(known)}")
        options = cls(**{field.name: _read(key, field, context[key]) for key, field in known.items() if key in context})
        options.check()
        return options

    def check(self) -> None:
        """Refuse what could only fail later, at AWS, half way through a deployment."""
        _match("name", self.name, _NAME, "up to 24 small letters, digits and hyphens, beginning with a letter")
        _within("keepRunsDays", self.keep_runs_days, 2, 3_650)
        _within("shards", self.shards, 1, 512)
        _within("lookaheadMinutes", self.lookahead_minutes, 12, 14)
        _within("peakRunsPerSecond", self.peak_runs_per_second, 0, 4_000)
        _within("executeConcurrency", self.execute_concurrency, 0, 10_000)
        _within("batchSeconds", self.batch_seconds, 0, 60)
        _within("monthlyBudgetUsd", self.monthly_budget_usd, 0, 1_000_000)
        if self.log_retention_days not in LOG_DAYS:
            raise WrongOption("logRetentionDays", f"must be one of {', '.join(map(str, LOG_DAYS))}")
        _match("domainName", self.domain_name, _DOMAIN, "a domain name, such as jobs.example.org")
        _match("certificateArn", self.certificate_arn, _CERTIFICATE, "the ARN of an ACM certificate in us-east-1")
        _match("vpcId", self.vpc_id, _VPC, "the id of a VPC, such as vpc-0123abcd")
        for subnet in self.subnet_ids:
            _match("subnetIds", subnet, _SUBNET, "ids of subnets, such as subnet-0123abcd")
        for arn in self.secret_arns:
            wanted = (
                "ARNs of secrets, parameters and their keys, such as arn:aws:ssm:eu-west-1:123456789012:parameter/x/*"
            )
            _match("secretArns", arn, _SECRET, wanted)
        self._check_reach()
        for rule in self.event_rules:
            feed_of(rule)
        for pattern in self.container_images:
            _match("containerImages", pattern, _IMAGES, "names of images, such as registry.example.org/team/*")
        if len(" ".join(self.container_images)) > IMAGES_CHARS_MAX:
            raise WrongOption("containerImages", f"takes more than {IMAGES_CHARS_MAX} characters: use patterns")
        _match("alarmEmail", self.alarm_email, _EMAIL, "an e-mail address")
        _check_places("httpMayReach", self.http_may_reach)
        _together("domainName", self.domain_name, "certificateArn", self.certificate_arn)
        _together("vpcId", self.vpc_id, "subnetIds", self.subnet_ids)

    @property
    def feeds(self) -> tuple[EventFeed, ...]:
        """The events that jobs may listen for."""
        return tuple(map(feed_of, self.event_rules))

    def _check_reach(self) -> None:
        """What tasks may call is named in full: a service, an account, and no action about rights or keys."""
        wanted = "ARNs with their account, such as arn:aws:sqs:eu-west-1:123456789012:orders-*"
        for target in self.targets:
            _match("targets", target, _TARGET, f"{wanted}, of lambda, sqs, sns, events, states or kms, or of a bucket")
        for action in self.sdk_actions:
            _match("sdkActions", action, _ACTION, "actions such as glue:StartJobRun, none of them about rights or keys")
        for resource in self.sdk_resources:
            _match("sdkResources", resource, _RESOURCE, "ARNs, such as arn:aws:glue:eu-west-1:123456789012:job/*")
        if self.sdk_resources and not self.sdk_actions:
            raise WrongOption("sdkActions", "is needed, because sdkResources is given")
        if len(" ".join((*self.targets, *self.sdk_actions))) > _LISTED_CHARS_MAX:
            raise WrongOption("targets", f"and sdkActions take more than {_LISTED_CHARS_MAX} characters: use patterns")


def option_of(field: str) -> str:
    """The name of an option in the context: `keep_runs_days` is keepRunsDays."""
    return _FIRST_SEGMENT.sub(lambda found: found[1].upper(), field)


def _read(option: str, field: Field[Any], value: object) -> Any:
    """The value as the option's type; on the command line everything is a text."""
    kind = type(field.default)
    if option == "eventRules":
        return _rules(option, value)
    if kind is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
            return tuple(part.strip() for part in parts if part.strip())
        raise WrongOption(option, "must be a list of texts")
    if isinstance(value, str) and kind is bool and value in {"true", "false"}:
        return value == "true"
    if isinstance(value, str) and kind is int and re.fullmatch(r"\d{1,9}", value, re.ASCII):
        return int(value)
    if type(value) is not kind:
        wanted = {bool: "true or false", int: "a whole number", str: "a text"}[kind]
        raise WrongOption(option, f"must be {wanted}, and is {value!r}")
    return value


def _rules(option: str, value: object) -> tuple[Mapping[str, Any], ...]:
    """Objects, or their JSON on the command line."""
    try:
        parts = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise WrongOption(option, "must be a list of objects, on the command line as JSON")
    return tuple(parts)


def feed_of(rule: Mapping[str, Any]) -> EventFeed:
    """What a rule of `eventRules` listens for: a pattern, or what is made in a bucket."""
    option = "eventRules"
    unknown = sorted(rule.keys() - {"pattern", "bucket", "prefix", "bus", "namespace"})
    if unknown:
        raise WrongOption(option, f"has no {unknown[0]}: a rule has pattern, or bucket and prefix; bus; namespace")
    bus, namespace = rule.get("bus", "default"), rule.get("namespace", "default")
    for value, pattern, what in ((bus, _BUS, "the name of a bus"), (namespace, _NAMESPACE, "the name of a namespace")):
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise WrongOption(option, f"wants {what}, and got {value!r}")
    if ("pattern" in rule) == ("bucket" in rule):
        raise WrongOption(option, "needs a pattern or a bucket in each rule, and not both")
    if "bucket" in rule:
        return EventFeed(_made_in(option, rule["bucket"], rule.get("prefix", "")), bus, namespace)
    pattern = rule["pattern"]
    if "prefix" in rule or not isinstance(pattern, dict) or not pattern:
        raise WrongOption(option, "wants a pattern as EventBridge has it, and a prefix only beside a bucket")
    return EventFeed(pattern, bus, namespace)


def _made_in(option: str, bucket: object, prefix: object) -> dict[str, Any]:
    if not isinstance(bucket, str) or not _BUCKET.fullmatch(bucket) or not isinstance(prefix, str):
        raise WrongOption(option, f"wants the name of a bucket and a prefix, and got {bucket!r}, {prefix!r}")
    key = {"object": {"key": [{"prefix": prefix}]}} if prefix else {}
    return {"source": ["aws.s3"], "detail-type": ["Object Created"], "detail": {"bucket": {"name": [bucket]}, **key}}


def _match(option: str, value: str, pattern: re.Pattern[str], wanted: str) -> None:
    """An empty text means that the option is not used; the name is always used."""
    if (value or option == "name") and not pattern.fullmatch(value):
        raise WrongOption(option, f"must be {wanted}, and is {value!r}")


def _within(option: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise WrongOption(option, f"must be between {low} and {high}, and is {value}")


def _check_places(option: str, places: tuple[str, ...]) -> None:
    listed = ",".join(places)
    if len(listed) > PLACES_CHARS_MAX:
        raise WrongOption(option, f"must have {PLACES_CHARS_MAX} characters at most, and has {len(listed)}")
    if wrong := Settings(http_may_reach=listed).wrong_place:
        raise WrongOption(option, wrong.rstrip("."))


def _together(first: str, one: object, second: str, other: object) -> None:
    if bool(one) != bool(other):
        raise WrongOption(first if other else second, f"is needed, because {second if other else first} is given")
