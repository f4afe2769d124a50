"""What ECS says of a task that stopped: whose attempt it was, and what that means for it.

The agent reports by itself; this is for those that could not. Where it was heard before, or its epoch is over, what is
said here changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from sweephand.calls import Outcome
from sweephand.domain.ids import RunKey
from sweephand.domain.retry import Failure, FailureClass
from sweephand.engine.offer import read_lease_id
from sweephand.messages import Unstarted
from sweephand.topology import AGENT_CONTAINER, TASK_CONTAINER

DETAIL_TYPE: Final = "ECS Task State Change"
_INTERRUPTED: Final = frozenset({"SpotInterruption", "TerminationNotice", "ServiceSchedulerInitiated"})
_PULL: Final = ("CannotPullContainer", "CannotPullImage")
_FOR_NOW: Final = (
    "timeout",
    "timed out",
    "toomanyrequests",
    "rate limit",
    "connection",
    "503",
    "500 internal",
    "dial ",
)
_NO_ROOM: Final = ("Capacity is unavailable", "capacity is not available")
_NEVER: Final = ("CannotStartContainerError", "CannotCreateContainerError", "CannotCreateVolumeError")
_MESSAGE_CHARS_MAX: Final = 600


class Stopped(Struct, frozen=True):
    """A task of ours has stopped."""

    run: RunKey
    epoch: int
    outcome: Outcome


def stopped_of(event: Mapping[str, Any]) -> Stopped | None:
    """Whose task an event of ECS is about; None where it is none of ours, or has not stopped."""
    detail = event.get("detail") or {}
    if event.get("detail-type") != DETAIL_TYPE or detail.get("lastStatus") != "STOPPED":
        return None
    told = _told(detail)
    try:
        run, _ = read_lease_id(told["SWEEPHAND_LEASE"])
        epoch = int(told["SWEEPHAND_EPOCH"])
    except (KeyError, ValueError):
        return None
    return Stopped(run, epoch, meaning_of(detail))


def _told(detail: Mapping[str, Any]) -> dict[str, str]:
    """What the agent was told at its start."""
    for one in (detail.get("overrides") or {}).get("containerOverrides") or ():
        if one.get("name") == AGENT_CONTAINER:
            return {str(pair.get("name")): str(pair.get("value")) for pair in one.get("environment") or ()}
    return {}


def meaning_of(detail: Mapping[str, Any]) -> Outcome:
    """How the attempt ended whose task stopped so."""
    why = str(detail.get("stoppedReason") or "")
    containers = {str(one.get("name")): one for one in detail.get("containers") or ()}
    reasons = " ".join(str(one.get("reason") or "") for one in containers.values())
    said = f"{why} {reasons}".strip()[:_MESSAGE_CHARS_MAX]
    if any(mark in said for mark in _NO_ROOM):
        return Unstarted(f"AWS had no room for it: {said}")
    if detail.get("stopCode") in _INTERRUPTED:
        return Failure("Interrupted", f"AWS took the place back: {said}")
    if any(mark in said for mark in _PULL):
        is_for_now = any(mark in said.lower() for mark in _FOR_NOW)
        kind = FailureClass.TRANSIENT if is_for_now else FailureClass.PERMANENT
        return Failure("ImagePull", f"The image cannot be had: {said}", kind)
    if "OutOfMemory" in said:
        return Failure("OutOfMemory", f"Memory ran out: {said}")
    if any(mark in said for mark in _NEVER):
        return Failure("NotStarted", f"The container could not be started: {said}", FailureClass.PERMANENT)
    code = containers.get(TASK_CONTAINER, {}).get("exitCode")
    ended = f" The task's own container ended with exit code {code}." if code is not None else ""
    return Failure("Stopped", f"The task stopped before its agent had reported: {said or 'nobody says why'}.{ended}")
