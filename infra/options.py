"""What a deployment can choose: the context of `cdk.json`, or `-c name=value`, read once and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Final

_FIRST_SEGMENT: Final = re.compile(r"_([a-z])")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,23}")
_VPC: Final = re.compile(r"vpc-[0-9a-f]+")
_SUBNET: Final = re.compile(r"subnet-[0-9a-f]+")
_CERTIFICATE: Final = re.compile(r"arn:aws[a-z-]*:acm:us-east-1:\d{12}:certificate/.+")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_DOMAIN: Final = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")

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
    domain_name: str = ""
    certificate_arn: str = ""
    vpc_id: str = ""
    subnet_ids: tuple[str, ...] = ()
    alarm_email: str = ""
    monthly_budget_usd: int = 25
    waf: bool = False
    agent_image: str = ""

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
        _within("monthlyBudgetUsd", self.monthly_budget_usd, 0, 1_000_000)
        if self.log_retention_days not in LOG_DAYS:
            raise WrongOption("logRetentionDays", f"must be one of {', '.join(map(str, LOG_DAYS))}")
        _match("domainName", self.domain_name, _DOMAIN, "a domain name, such as jobs.example.org")
        _match("certificateArn", self.certificate_arn, _CERTIFICATE, "the ARN of an ACM certificate in us-east-1")
        _match("vpcId", self.vpc_id, _VPC, "the id of a VPC, such as vpc-0123abcd")
        for subnet in self.subnet_ids:
            _match("subnetIds", subnet, _SUBNET, "ids of subnets, such as subnet-0123abcd")
        _match("alarmEmail", self.alarm_email, _EMAIL, "an e-mail address")
        _together("domainName", self.domain_name, "certificateArn", self.certificate_arn)
        _together("vpcId", self.vpc_id, "subnetIds", self.subnet_ids)


def option_of(field: str) -> str:
    """The name of an option in the context: `keep_runs_days` is keepRunsDays."""
    return _FIRST_SEGMENT.sub(lambda found: found[1].upper(), field)


def _read(option: str, field: Field[Any], value: object) -> Any:
    """The value as the option's type; on the command line everything is a text."""
    kind = type(field.default)
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


def _match(option: str, value: str, pattern: re.Pattern[str], wanted: str) -> None:
    """An empty text means that the option is not used; the name is always used."""
    if (value or option == "name") and not pattern.fullmatch(value):
        raise WrongOption(option, f"must be {wanted}, and is {value!r}")


def _within(option: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise WrongOption(option, f"must be between {low} and {high}, and is {value}")


def _together(first: str, one: object, second: str, other: object) -> None:
    if bool(one) != bool(other):
        raise WrongOption(first if other else second, f"is needed, because {second if other else first} is given")
