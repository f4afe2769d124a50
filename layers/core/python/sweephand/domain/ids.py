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
_TASK_KEY_PARTS = 4


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
    """A run's identity: its id within its job. A task of a run of several has a run of its own, one level down."""

    job: JobKey
    run_id: RunId
    task: str = ""
    """Empty for a whole run; an instance of a mapped task has its index, as in `load[3]`."""

    def __str__(self) -> str:
        whole = f"{self.job}/{self.run_id}"
        return f"{whole}/{self.task}" if self.task else whole

    @property
    def whole(self) -> RunKey:
        """The run that this is a task of; itself where it is a whole run."""
        return RunKey(self.job, self.run_id) if self.task else self

    def of_task(self, task: str) -> RunKey:
        """The key of one of its tasks."""
        return RunKey(self.job, self.run_id, task)

    @property
    def place(self) -> tuple[str, str]:
        """Where stores keep it: a job's runs together in the order of their ids, and a run's tasks together."""
        return (f"{self.job}/{self.run_id}", self.task) if self.task else (str(self.job), self.run_id)

    @classmethod
    def of(cls, text: str) -> RunKey:
        within, task = text.split("/"), ""
        if len(within) == _TASK_KEY_PARTS:
            task = within.pop()
        namespace, name, run_id = within
        return cls(JobKey(Namespace(namespace), JobName(name)), RunId(run_id), task)

    @classmethod
    def at(cls, within: str, name: str) -> RunKey:
        """The key that is kept at a place."""
        return cls.of(f"{within}/{name}")


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
