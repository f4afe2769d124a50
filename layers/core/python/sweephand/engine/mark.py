"""End a task because somebody says so: as succeeded, failed, skipped or cancelled, whatever its attempts would say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.dag import ENDED
from sweephand.domain.ids import RunKey
from sweephand.domain.mapping import instance_id
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import UNSTARTED, Run, RunEvent, RunState
from sweephand.domain.task import TaskState
from sweephand.engine.complete import follow_up
from sweephand.engine.insist import insist, move
from sweephand.engine.overview import Overview, overview
from sweephand.engine.whereabouts import APPROVAL
from sweephand.errors import Conflict
from sweephand.ports import World

INSTANCES_MAX: Final = 500
"""Instances of a mapped task that one call can end."""

_EVENTS: Final[Mapping[TaskState, RunEvent]] = MappingProxyType(
    {
        TaskState.SUCCEEDED: RunEvent.SUCCEEDED,
        TaskState.FAILED: RunEvent.FAILED,
        TaskState.SKIPPED: RunEvent.SKIPPED,
        TaskState.CANCELLED: RunEvent.CANCELLED,
    }
)


class Verdict(Struct, frozen=True):
    """How a task ends, who says so, and why."""

    state: TaskState
    actor: str
    note: str = ""
    output: Any = None
    words: str = ""
    """What was done, where that is more than marking it."""

    @property
    def reason(self) -> Reason:
        code = ReasonCode.CANCELLED if self.state is TaskState.CANCELLED else ReasonCode.MARKED
        what = "" if code is ReasonCode.CANCELLED else f"{self.words or f'as {self.state}'} "
        return Reason(code, f"{what}by {self.actor}{': ' + self.note if self.note else ''}"[:200])

    @property
    def changes(self) -> dict[str, Any]:
        if self.state is TaskState.SUCCEEDED:
            return {"output": self.output, "progress": 100, "failure": None}
        if self.state is TaskState.FAILED:
            return {"failure": Failure("Marked", self.reason.detail, FailureClass.PERMANENT)}
        return {}


def mark(world: World, key: RunKey, task: str, verdict: Verdict) -> None:
    """End a task that has not ended; its run goes on with that. What has ended is refused, unless it did so by this.

    A task that waits gets a run of its own that is over, so that the word outlives the moment. Whoever works on one is
    fenced. Repeating it changes nothing.
    """
    seen = overview(world, key)
    found = seen.found(task)
    if seen.is_dag and seen.run.state in UNSTARTED:
        raise Conflict(f"Run {key} has not begun: cancel the run, or wait.")
    places = _targets(seen, task)
    if not places:
        _refuse(seen, task, str(found.state))
    for one in places:
        _end(world, seen, one, verdict)


def decide(world: World, key: RunKey, task: str, *, approved: bool, actor: str, note: str = "") -> None:
    """Say yes or no to a task that waits for it. Repeating it changes nothing; another word after it is refused."""
    seen = overview(world, key)
    found = seen.found(task)
    if found.definition.kind != APPROVAL:
        raise Conflict(f"Task '{task}' asks for no approval: it is a {found.definition.kind} step.")
    if found.run is None and found.state is TaskState.WAITING:
        raise Conflict(f"Task '{task}' does not ask yet: it waits for what it needs.")
    at = world.clock.now().isoformat(timespec="seconds").replace("+00:00", "Z")
    output = {"approved": approved, "by": actor, "at": at, "note": note}
    state, words = (TaskState.SUCCEEDED, "approved") if approved else (TaskState.FAILED, "rejected")
    mark(world, key, task, Verdict(state, actor, note, output if approved else None, words))


def _targets(seen: Overview, task: str) -> list[str]:
    """The runs that a word about a task is about: its own, or those of its instances that are open."""
    place, index = seen.place_of(task)
    instances = seen.instances.get(place)
    if index is not None or instances is None:
        return [task] if seen.found(task).is_open else []
    found = [instance_id(task, n) for n, byte in enumerate(instances) if byte not in ENDED]
    if len(found) > INSTANCES_MAX:
        raise Conflict(f"Task '{task}' has {len(found)} open instances: end them one by one, or cancel the run.")
    return found


def _end(world: World, seen: Overview, task: str, verdict: Verdict) -> None:
    key = seen.key_of(task)
    while True:
        now, run = world.clock.now(), world.runs.get(key)
        if run is None:
            fresh = ended_at_once(world, seen.run, key, verdict, now=now)
            (created,) = insist(lambda fresh=fresh: world.runs.create([fresh]))  # type: ignore[misc]
            if created:
                follow_up(world, fresh)
                return
            continue
        if run.is_terminal:
            if str(run.state) != str(verdict.state) or run.reason != verdict.reason:
                _refuse(seen, task, str(run.state))
            follow_up(world, run)  # whoever said so before may have been stopped
            return
        if run.state is RunState.PLANNED:
            raise Conflict(f"Run {key} is planned: it can be cancelled, and marked once it is queued.")
        nonce = world.dice.nonce()
        after = run.marked(_EVENTS[verdict.state], verdict.reason, now=now, nonce=nonce, **verdict.changes)
        if move(world, run, after):
            follow_up(world, after)
            return


def ended_at_once(world: World, whole: Run, key: RunKey, verdict: Verdict, *, now: datetime) -> Run:
    """The run of a task that never began, as it is put: over."""
    waiting = Run(
        key,
        whole.fire_at,
        now,
        trigger=whole.trigger,
        created_at=now,
        state=RunState.QUEUED,
        changed_at=now,
        version=whole.version,
    )
    return ended_by(world, waiting, verdict, now=now)


def ended_by(world: World, run: Run, verdict: Verdict, *, now: datetime) -> Run:
    """A run that is not there yet, as it is put: over by this word."""
    nonce = world.dice.nonce()
    after = run.marked(_EVENTS[verdict.state], verdict.reason, now=now, nonce=nonce, **verdict.changes)
    return replace(after, rev=0)


def _refuse(seen: Overview, task: str, state: str) -> NoReturn:
    """Refuse a word that comes too late, with what helps."""
    if seen.run.is_terminal:
        raise Conflict(
            f"Run {seen.run.key} has ended: it {seen.run.state}. Rerun it from task '{task}' to have it done again."
        )
    raise Conflict(f"Task '{task}' has ended: it {state}. Once the run is over, rerun it from task '{task}'.")
