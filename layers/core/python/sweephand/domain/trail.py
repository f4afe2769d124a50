"""The audit log's rows: who did what to what, when, and what it was before and after."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from sweephand.domain.ids import Namespace
from sweephand.domain.job import Change, Head


class Deed(Struct, frozen=True):
    """One row. `id` is its own within the instant, so that two deeds of one microsecond are two rows, and the same
    deed written again is one."""

    namespace: Namespace
    at: datetime
    id: str
    actor: str
    action: str
    """What was done, as `noun.verb`: `job.put`, `run.cancel`, `member.put`."""
    subject: str
    """What it was done to, as the path of its resource: `jobs/report`."""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    note: str = ""

    def encode(self) -> dict[str, Any]:
        """What is stored beside the namespace, the time and the id."""
        return {
            "actor": self.actor,
            "action": self.action,
            "subject": self.subject,
            "before": dict(self.before) if self.before is not None else None,
            "after": dict(self.after) if self.after is not None else None,
            "note": self.note,
        }

    @classmethod
    def decode(cls, namespace: Namespace, at: datetime, deed_id: str, stored: Mapping[str, Any]) -> Deed:
        return cls(
            namespace,
            at,
            deed_id,
            stored["actor"],
            stored["action"],
            stored["subject"],
            stored["before"],
            stored["after"],
            stored["note"],
        )


def deed_of(change: Change, before: Head | None, after: Head) -> Deed:
    """The row of a job's change; the definitions themselves are the versions that it names."""
    return Deed(
        change.key.namespace,
        change.at,
        f"job-{change.key.name}",
        change.actor,
        f"job.{_VERBS[change.event]}",
        f"jobs/{change.key.name}",
        _of_head(before),
        {**_of_head(after), **({"catchup": str(change.catchup)} if change.catchup else {})},
        change.note,
    )


_VERBS: Mapping[str, str] = {"put": "put", "paused": "pause", "resumed": "resume", "deleted": "delete"}


def _of_head(head: Head | None) -> dict[str, Any]:
    return {"version": head.version, "status": str(head.status)} if head is not None else {}
