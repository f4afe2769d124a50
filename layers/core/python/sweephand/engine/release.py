"""Jobs that come after other jobs: an upstream's success makes them run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct, field

from sweephand.domain.ids import JobKey, JobName, RunId, RunKey, run_id_of_trigger
from sweephand.domain.job import Head, Job, JobStatus
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.lookup import job_of, version_of
from sweephand.engine.trigger import queue_once
from sweephand.errors import Unavailable
from sweephand.ports import World

GATE: Final = "gate"
_TRIES: Final = 8
_REPEATED_FOR: Final = timedelta(days=1)
"""How long a gate's last run is put again if it is absent: much longer than a follower's stop, and much shorter than
runs are kept."""


class _Success(Struct, frozen=True, order=True):
    """When an upstream's run ended, and which it was; a job's successes are in the order of these."""

    ended_at: str
    run_id: str


class _Gate(Struct, frozen=True):
    """Of each upstream, the last success that no run has used yet; and the successes that the last run used."""

    waiting: Mapping[str, _Success] = field(default_factory=dict)
    used: Mapping[str, _Success] = field(default_factory=dict)

    def reached(self, name: str, success: _Success) -> _Gate:
        """With this success waiting, unless it was used, or a later one was."""
        known = max(one for one in (self.waiting.get(name), self.used.get(name), success) if one is not None)
        if known != success or success == self.used.get(name):
            return self
        return _Gate({**self.waiting, name: success}, self.used)

    def passed(self, names: Iterable[str], *, since: str) -> _Gate:
        """With its waiting successes used, if there is one of every name."""
        ready = {name: self.waiting[name] for name in names if name in self.waiting}
        if not all(name in ready and ready[name].ended_at >= since for name in names):
            return self
        return _Gate({name: one for name, one in self.waiting.items() if name not in ready}, ready)


def release(world: World, names: Iterable[str], run: Run) -> int:
    """Let the jobs of these names go on after a run that succeeded; how many new runs that made.

    A job after one other runs once for each success of it; a job after several runs whenever all of them have
    succeeded since it last did. Repeating it makes nothing twice: the runs' ids follow from the upstream's.
    """
    if run.state is not RunState.SUCCEEDED or run.ended_at is None:
        return 0
    return sum(_release_one(world, JobKey(run.key.job.namespace, JobName(name)), run, run.ended_at) for name in names)


def _release_one(world: World, key: JobKey, upstream: Run, ended_at: datetime) -> bool:
    """A success belongs to the definition that was in force when it came, as a fire does."""
    head = world.jobs.head(key)
    if head is None or head.status is JobStatus.DELETED or ended_at < head.created_at:
        return False
    name, success = upstream.key.job.name, _Success(_stamp(ended_at), upstream.key.run_id)
    jobs = _in_force_since(world, head, ended_at)
    if name not in jobs[0].after:
        return False  # it was edited since it was noted down
    if len(jobs[0].after) == 1:
        return _put(world, jobs[-1], _dependency_run(world, key, {name: success}))
    # An upstream that was taken out meanwhile begins anew where it comes back.
    still = all(name in job.after for job in jobs)
    return _pass_gate(world, head, jobs[-1], name, success if still else None)


def _in_force_since(world: World, head: Head, moment: datetime) -> list[Job]:
    """The job's definitions from the one in force at a moment of its life to the present one."""
    present = job_of(world, head)
    jobs: list[Job | None] = []
    if moment < head.in_force_since:
        changes = world.jobs.timeline(head.key, since=moment)
        jobs = [version_of(world, head.key, change.version).job for change in changes]
    return [job for job in (*jobs, present) if job is not None]


def _pass_gate(world: World, head: Head, job: Job, name: str, success: _Success | None) -> bool:
    """Note the success, and run the job if every upstream has one that no run has used.

    The gate moves by compare-and-set before the run is put, and what it moved for is put again by whoever comes next,
    before it can move on: a stop in between costs nothing. Every follower that was stopped comes again.
    """
    key, since = head.key, _stamp(head.created_at)
    for _ in range(_TRIES):
        stored = world.shared.get(key.namespace, GATE, key.name)
        gate = _decode(stored[1]) if stored else _Gate()
        made = _put(world, job, _left_to_do(world, key, gate, since))
        reached = gate.reached(name, success) if success is not None else gate
        passed = reached.passed(job.after, since=since) if len(job.after) > 1 else reached
        if passed == gate:
            return made
        expected = stored[0] if stored else 0
        if world.shared.put(key.namespace, GATE, key.name, _encode(passed), expected=expected):
            is_through = passed.used != gate.used
            return (is_through and _put(world, job, _dependency_run(world, key, passed.used))) or made
    raise Unavailable(f"The gate of {key} keeps changing: try again.")  # the success must not pass for followed


def _left_to_do(world: World, key: JobKey, gate: _Gate, since: str) -> Run | None:
    """The run that the gate last moved for: whoever moved it may have died before putting it."""
    recent = max(since, _stamp(world.clock.now() - _REPEATED_FOR))
    is_recent = bool(gate.used) and max(gate.used.values()).ended_at >= recent
    return _dependency_run(world, key, gate.used) if is_recent else None


def _put(world: World, job: Job, run: Run | None) -> bool:
    if run is None or world.runs.get(run.key) is not None:
        return False
    _, is_new = queue_once(world, run, job, now=world.clock.now())
    return is_new


def _dependency_run(world: World, key: JobKey, upstreams: Mapping[str, _Success]) -> Run:
    """The run that these successes make, under an id of theirs."""
    ended_at = datetime.fromisoformat(max(upstreams.values()).ended_at).replace(microsecond=0)
    named = sorted(f"{key.namespace}/{name}/{one.run_id}" for name, one in upstreams.items())
    token = blake2b(f"{key}<{'&'.join(named)}".encode(), digest_size=4).hexdigest()
    now = world.clock.now()
    return Run(
        RunKey(key, run_id_of_trigger(ended_at, token)),
        ended_at,
        ended_at,
        trigger=Trigger.DEPENDENCY,
        created_at=now,
        params={"after": {name: RunId(one.run_id) for name, one in sorted(upstreams.items())}},
        state=RunState.QUEUED,
        changed_at=now,
        nonce=world.dice.nonce(),
    )


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _encode(gate: _Gate) -> dict[str, Any]:
    return {
        part: {name: [one.ended_at, one.run_id] for name, one in successes.items()}
        for part, successes in (("waiting", gate.waiting), ("used", gate.used))
    }


def _decode(stored: Mapping[str, Any]) -> _Gate:
    waiting, used = (
        {name: _Success(*one) for name, one in stored.get(part, {}).items()} for part in ("waiting", "used")
    )
    return _Gate(waiting, used)
