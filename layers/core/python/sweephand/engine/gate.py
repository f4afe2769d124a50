"""Gates: what a job that waits for several things has seen of each, and used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct, field

from sweephand.domain.ids import JobKey, RunKey, run_id_of_trigger
from sweephand.domain.job import Head, Job
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.lookup import job_of, version_of
from sweephand.engine.trigger import queue_once
from sweephand.errors import Unavailable
from sweephand.ports import World

_TRIES: Final = 8
_REPEATED_FOR: Final = timedelta(days=1)
"""How long a gate's last run is put again if it is absent: much longer than a follower's stop, and much shorter than
runs are kept."""


class Mark(Struct, frozen=True, order=True):
    """When something was done, and what names it; what is done under one name is in the order of these."""

    at: str
    id: str


Marks = Mapping[str, Mark]


class _Gate(Struct, frozen=True):
    """Under each name, the last mark that no run has used yet; and the marks that the last run used."""

    waiting: Marks = field(default_factory=dict)
    used: Marks = field(default_factory=dict)

    def reached(self, name: str, mark: Mark) -> _Gate:
        """With this mark waiting, unless it was used, or a later one was."""
        known = max(one for one in (self.waiting.get(name), self.used.get(name), mark) if one is not None)
        if known != mark or mark == self.used.get(name):
            return self
        return _Gate({**self.waiting, name: mark}, self.used)

    def passed(self, names: Iterable[str], *, since: str) -> _Gate:
        """With its waiting marks used, if there is one of every name."""
        ready = {name: self.waiting[name] for name in names if name in self.waiting}
        if not all(name in ready and ready[name].at >= since for name in names):
            return self
        return _Gate({name: one for name, one in self.waiting.items() if name not in ready}, ready)


def pass_gate(
    world: World, kind: str, head: Head, job: Job, names: Iterable[str], marks: Marks, run_of: Callable[[Marks], Run]
) -> list[Run]:
    """Note the marks, and run the job if there is one of every name that no run has used; the new runs.

    The gate moves by compare-and-set before the run is put, and what it moved for is put again by whoever comes next,
    before it can move on: a stop in between costs nothing. Every follower that was stopped comes again. Without names
    nothing passes.
    """
    key, since, names = head.key, stamp(head.created_at), list(names)
    for _ in range(_TRIES):
        stored = world.shared.get(key.namespace, kind, key.name)
        gate = _decode(stored[1]) if stored else _Gate()
        made = put_once(world, job, run_of(gate.used)) if _left_to_do(world, gate, since) else []
        passed = gate
        for name, mark in marks.items():
            passed = passed.reached(name, mark)
        passed = passed.passed(names, since=since) if names else passed
        if passed == gate:
            return made
        expected = stored[0] if stored else 0
        if world.shared.put(key.namespace, kind, key.name, _encode(passed), expected=expected):
            is_through = passed.used != gate.used
            return [*made, *(put_once(world, job, run_of(passed.used)) if is_through else [])]
    raise Unavailable(f"The gate of {key} keeps changing: try again.")  # the mark must not pass for followed


def _left_to_do(world: World, gate: _Gate, since: str) -> bool:
    """Whether the run that the gate last moved for may be absent: whoever moved it may have died before putting it."""
    recent = max(since, stamp(world.clock.now() - _REPEATED_FOR))
    return bool(gate.used) and max(gate.used.values()).at >= recent


def in_force_since(world: World, head: Head, moment: datetime) -> list[Job]:
    """The job's definitions from the one in force at a moment of its life to the present one."""
    present = job_of(world, head)
    jobs: list[Job | None] = []
    if moment < head.in_force_since:
        changes = world.jobs.timeline(head.key, since=moment)
        jobs = [version_of(world, head.key, change.version).job for change in changes]
    return [job for job in (*jobs, present) if job is not None]


def put_once(world: World, job: Job, run: Run) -> list[Run]:
    """Put the run and send it, unless it is there; itself, if it is new. Repeating it finds it: its cause names it."""
    if world.runs.get(run.key) is not None:
        return []
    queued, is_new = queue_once(world, run, job, now=world.clock.now())
    return [queued] if is_new else []


def caused_run(
    world: World,
    key: JobKey,
    causes: str,
    params: Mapping[str, Any],
    *,
    fire_at: datetime,
    start_at: datetime | None = None,
) -> Run:
    """The run that something makes which happened elsewhere: its id follows from the causes and from `fire_at`."""
    token = blake2b(f"{key}<{causes}".encode(), digest_size=4).hexdigest()
    now = world.clock.now()
    return Run(
        RunKey(key, run_id_of_trigger(fire_at, token)),
        fire_at,
        start_at or fire_at,
        trigger=Trigger.DEPENDENCY,
        created_at=now,
        params=params,
        state=RunState.QUEUED,
        changed_at=now,
        nonce=world.dice.nonce(),
    )


def stamp(moment: datetime) -> str:
    """A moment as text that sorts by time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def second_of(marks: Marks) -> datetime:
    """The second of the last of these marks."""
    return datetime.fromisoformat(max(marks.values()).at).replace(microsecond=0)


def _encode(gate: _Gate) -> dict[str, Any]:
    return {
        part: {name: [one.at, one.id] for name, one in marks.items()}
        for part, marks in (("waiting", gate.waiting), ("used", gate.used))
    }


def _decode(stored: Mapping[str, Any]) -> _Gate:
    waiting, used = ({name: Mark(*one) for name, one in stored.get(part, {}).items()} for part in ("waiting", "used"))
    return _Gate(waiting, used)
