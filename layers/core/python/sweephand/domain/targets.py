"""Which AWS resources tasks may call: a list that whoever operates the place has written, and nothing by default.

An entry is an ARN in which `*` and `?` are wildcards as IAM has them, except in the service and the account: those are
always named. A bucket's ARN has no account, so the bucket is always named; wildcards are for its keys. The same
list becomes the role of the function that calls (`infra/reach.py`): what is refused here could not be done either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from msgspec import Struct

from sweephand.domain.fields import shown
from sweephand.domain.sensor import SENSOR
from sweephand.errors import InvalidInput

__all__ = ["AWS_KINDS", "SDK", "Arn", "Remedy", "Targets", "check_action"]


class _Kind(Struct, frozen=True):
    """How the targets of a kind are named: their service, and what comes before a name in an ARN."""

    service: str
    before: str
    name: re.Pattern[str]


_NAMES: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "lambda": _Kind("lambda", "function:", re.compile(r"[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9$_-]{1,128})?")),
        "sqs": _Kind("sqs", "", re.compile(r"[A-Za-z0-9_-]{1,80}(\.fifo)?")),
        "sns": _Kind("sns", "", re.compile(r"[A-Za-z0-9_-]{1,256}(\.fifo)?")),
        "event": _Kind("events", "event-bus/", re.compile(r"[A-Za-z0-9/._-]{1,256}")),
        "stateMachine": _Kind("states", "stateMachine:", re.compile(r"[A-Za-z0-9_-]{1,80}(:[A-Za-z0-9_.-]{1,80})?")),
    }
)
SDK: Final = "awsSdk"
AWS_KINDS: Final = frozenset({*_NAMES, SDK})
"""Kinds of steps that call AWS."""

_PATTERN: Final = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):(?P<service>lambda|sqs|sns|events|states|kms)"
    r":(?P<region>\*|[a-z0-9-]+):(?P<account>\d{12}):(?P<resource>[\w.$/:*?-]{1,512})",
    re.ASCII,
)
_KEYS: Final = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):s3:::(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/(?P<keys>\S{1,512}))?", re.ASCII
)
_ARN: Final = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):(?P<service>[a-z]+):(?P<region>[a-z0-9-]+):(?P<account>\d{12}):(?P<resource>\S{1,512})",
    re.ASCII,
)
_QUEUE_URL: Final = re.compile(
    r"https://sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?P<china>\.cn)?/(?P<account>\d{12})/(?P<resource>[\w.-]+)",
    re.ASCII,
)
_ACTION: Final = re.compile(r"(?P<service>[a-z0-9-]{1,63}):[A-Za-z0-9]{1,128}", re.ASCII)
_RIGHTS: Final = frozenset({"iam", "sts", "organizations", "sso", "account", "kms"})
"""Services of rights and keys: no task calls these."""


class Arn(Struct, frozen=True):
    """A resource of AWS, or a pattern of some."""

    partition: str
    service: str
    region: str
    account: str
    resource: str

    def __str__(self) -> str:
        return f"arn:{self.partition}:{self.service}:{self.region}:{self.account}:{self.resource}"

    def covers(self, other: Arn) -> bool:
        """Whether the other is named by this pattern, part by part: a wildcard never reaches beyond a part."""
        return (
            (self.partition, self.service, self.account) == (other.partition, other.service, other.account)
            and self.region in {"*", other.region}
            and self.names(other.resource)
        )

    def names(self, resource: str) -> bool:
        wild = re.escape(self.resource).replace(r"\*", ".*").replace(r"\?", ".")
        return re.fullmatch(wild, resource) is not None


class Remedy(Struct, frozen=True):
    """What to do so that a target, or an action, may be called from here: a sentence with a place for it."""

    target: str = "List {} in the option targets of the deployment."
    action: str = "List {} in the option sdkActions of the deployment."


class Targets(Struct, frozen=True):
    """What may be called. `own` is how the names of our own resources begin: those are never a target."""

    patterns: tuple[Arn, ...] = ()
    actions: frozenset[str] = frozenset()
    own: str = ""
    remedy: Remedy = Remedy()

    @classmethod
    def of(
        cls, patterns: Iterable[str], actions: Iterable[str] = (), *, own: str = "", remedy: Remedy | None = None
    ) -> Self:
        """The list as it was written; an entry that could name nothing, or anything, is refused."""
        read = tuple(_pattern(text) for text in patterns)
        return cls(read, frozenset(map(check_action, actions)), own, remedy or Remedy())

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of steps for which there is anything to call."""
        services = {one.service for one in self.patterns}
        found = {kind for kind, named in _NAMES.items() if named.service in services}
        return frozenset(found | ({SDK} if self.actions else set()))

    def find(self, kind: str, written: str, path: str, *, qualifier: str = "") -> Arn:
        """The target that a task names by its ARN, its name or, of a queue, its URL; `InvalidInput` where it may not.

        A bare name is looked for in the list, and has region and account from the first entry that fits it. The region
        is `*` where the entry leaves it open: then it is the one that the caller lives in.
        """
        named = _NAMES[kind]
        given = _read(kind, written, path)
        resource = given.resource if given else f"{named.before}{written}"
        if qualifier:
            if resource.removeprefix(named.before).count(":"):
                raise InvalidInput(f"{shown(written)} has a qualifier of its own.", "qualifier")
            resource = f"{resource}:{qualifier}"
        self._check_name(kind, resource, written, path)
        fitting = (self._as_given(one, given, resource) for one in self.patterns if one.service == named.service)
        for arn in fitting:
            if arn is not None:
                return arn
        whole = Arn("aws", named.service, "REGION", "ACCOUNT", resource)
        missing = str(Arn(given.partition, given.service, given.region, given.account, resource) if given else whole)
        raise InvalidInput(f"Tasks may not call {shown(written)} from here. {self.remedy.target.format(missing)}", path)

    def check_keys(self, bucket: str, keys: str, path: str) -> None:
        """Refuse a key, or what keys begin with, that no entry names."""
        if self.own and bucket.startswith(f"{self.own}-"):
            raise InvalidInput(f"{shown(bucket)} belongs to Sweephand itself, and is no target for tasks.", path)
        if not any(one.service == "s3" and one.names(f"{bucket}/{keys}") for one in self.patterns):
            missing = str(Arn("aws", "s3", "", "", f"{bucket}/*"))
            message = f"Tasks may not look at {shown(keys)} in {shown(bucket)} from here."
            raise InvalidInput(f"{message} {self.remedy.target.format(missing)}", path)

    def check_action(self, names: Iterable[str], path: str) -> None:
        """Refuse an action that has none of its names in the list."""
        if self.actions.isdisjoint(names):
            first = next(iter(names))
            raise InvalidInput(f"Tasks may not call {first} from here. {self.remedy.action.format(first)}", path)

    def check_step(self, kind: str, spec: Mapping[str, Any], path: str) -> None:
        """Refuse, when a job is saved, what could only be refused when it runs; a template shows only then."""
        if kind == SENSOR:
            looked = spec.get("s3") or {}
            bucket, keys = looked.get("bucket"), looked.get("key") or looked.get("prefix")
            if isinstance(bucket, str) and isinstance(keys, str) and "${" not in f"{bucket}{keys}":
                self.check_keys(bucket, keys, f"{path}.s3")
            return
        if kind == SDK:
            if not self.actions:
                named = f"{spec.get('service')}:{spec.get('action')}"
                raise InvalidInput(f"Tasks may not call {named} from here. {self.remedy.action.format(named)}", path)
            return
        written, qualifier = spec.get("bus", "default") if kind == "event" else spec.get("value"), spec.get("qualifier")
        if not any("${" in str(one) for one in (written, qualifier)) and isinstance(written, str):
            self.find(kind, written, path, qualifier=qualifier or "")

    def _check_name(self, kind: str, resource: str, written: str, path: str) -> None:
        named = _NAMES[kind]
        name = resource.removeprefix(named.before)
        if not resource.startswith(named.before) or not named.name.fullmatch(name):
            raise InvalidInput(f"{shown(written)} names no target of a '{kind}' step: use its ARN or its name.", path)
        if self.own and name.startswith(f"{self.own}-"):
            raise InvalidInput(f"{shown(written)} belongs to Sweephand itself, and is no target for tasks.", path)

    def _as_given(self, pattern: Arn, given: Arn | None, resource: str) -> Arn | None:
        if given is None:
            if not pattern.names(resource):
                return None
            return Arn(pattern.partition, pattern.service, pattern.region, pattern.account, resource)
        arn = Arn(given.partition, given.service, given.region, given.account, resource)
        return arn if pattern.covers(arn) else None


def check_action(action: str) -> str:
    """The IAM name of an action, such as glue:StartJobRun; roles are nothing for tasks."""
    found = _ACTION.fullmatch(action)
    if found is None:
        raise InvalidInput(f"{shown(action)} is no action: write it as glue:StartJobRun, without wildcards.", "actions")
    if found["service"] in _RIGHTS:
        raise InvalidInput(f"{shown(action)} is about rights or keys, which are nothing for tasks.", "actions")
    return action


def _pattern(text: str) -> Arn:
    keys = _KEYS.fullmatch(text)
    if keys is not None:
        return Arn(keys["partition"], "s3", "", "", f"{keys['bucket']}/{keys['keys'] or '*'}")
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"{shown(text)} is no target: write an ARN of lambda, sqs, sns, events or states with its account, such as "
            "arn:aws:sqs:eu-west-1:123456789012:orders-*, or of a bucket, such as arn:aws:s3:::inbox/orders/*.",
            "targets",
        )
    before = {"kms": "key/", **{kind.service: kind.before for kind in _NAMES.values()}}[found["service"]]
    if not found["resource"].startswith(before):
        raise InvalidInput(
            f"{shown(text)} is no target: what comes after its account begins with '{before}'.", "targets"
        )
    return Arn(**found.groupdict())


def _read(kind: str, written: str, path: str) -> Arn | None:
    """The ARN that was written, or that of a queue's URL; None where it is a bare name."""
    if kind == "sqs" and (url := _QUEUE_URL.fullmatch(written)):
        return Arn("aws-cn" if url["china"] else "aws", "sqs", url["region"], url["account"], url["resource"])
    if not written.startswith(("arn:", "http:", "https:")):
        return None
    found = _ARN.fullmatch(written)
    if found is None or found["service"] != _NAMES[kind].service:
        raise InvalidInput(f"{shown(written)} names no target of a '{kind}' step: use its ARN or its name.", path)
    return Arn(**found.groupdict())
