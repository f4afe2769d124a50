"""Names of things: checked at the edge, joined into keys with a separator that no name can contain."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import blake2b
from typing import NewType

from msgspec import Struct

from sweephand.errors import InvalidInput

Namespace = NewType("Namespace", str)
JobName = NewType("JobName", str)
RunId = NewType("RunId", str)

DEFAULT = Namespace("default")
"""The namespace that is always there."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z", re.ASCII)
_COMPACT = "%Y%m%dT%H%M%SZ"
_COMPACT_LENGTH = 16


def check_name(text: object, *, path: str) -> str:
    """The text itself, if it can name something."""
    if not isinstance(text, str) or not _NAME.match(text):
        raise InvalidInput(
            f"{path} must be 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit.",
            path,
        )
    return text


class JobKey(Struct, frozen=True, order=True):
    """A job's identity: its name within a namespace."""

    namespace: Namespace
    name: JobName

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, text: str) -> JobKey:
        namespace, name = text.split("/")
        return cls(Namespace(namespace), JobName(name))


class RunKey(Struct, frozen=True, order=True):
    """A run's identity: its id within its job."""

    job: JobKey
    run_id: RunId

    def __str__(self) -> str:
        return f"{self.job}/{self.run_id}"

    @classmethod
    def of(cls, text: str) -> RunKey:
        namespace, name, run_id = text.split("/")
        return cls(JobKey(Namespace(namespace), JobName(name)), RunId(run_id))


def run_id_of_fire(fire_at: datetime) -> RunId:
    """The id of a scheduled run: its nominal fire time, so that a second run of it has nowhere to be."""
    return RunId(fire_at.astimezone(UTC).strftime(_COMPACT))


def run_id_of_rerun(original: RunId, generation: int) -> RunId:
    """The id of the n-th repetition of a run."""
    return RunId(f"{original.partition('.')[0]}.{generation}")


def run_id_of_trigger(at: datetime, token: str) -> RunId:
    """The id of a run without a nominal fire time; it begins with its second so that ids sort by time."""
    return RunId(f"{at.astimezone(UTC).strftime(_COMPACT)}-{token}")


def instant_of(run_id: str) -> datetime:
    """The second that a run id begins with."""
    return datetime.strptime(run_id[:_COMPACT_LENGTH], _COMPACT).replace(tzinfo=UTC)


def spread(text: str, buckets: int) -> int:
    """A bucket for a text, the same on every node and for ever."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % buckets
