"""Why does a task not go on? From what decides about it."""

from __future__ import annotations

from typing import Final

from sweephand.domain.dag import ENDED, state_of
from sweephand.domain.ids import RunKey
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.domain.task import TaskState
from sweephand.engine.lookup import definition_of
from sweephand.engine.overview import Overview, TaskSeen, overview
from sweephand.engine.why import Explained, blocker, full_slot, running, told, why_run
from sweephand.ports import World

_NAMED: Final = 5


def why_task(world: World, key: RunKey, task: str) -> Explained:
    """Why the task does not go on, or why it ended as it did. Reads only."""
    seen = overview(world, key)
    found = seen.found(task)
    if not seen.is_dag:
        return why_run(world, key)
    if found.run is not None:
        return _begun(world, found.run)
    if found.state is TaskState.WAITING:
        return _waiting(world, seen, found)
    if found.is_open:
        counts = found.counts or {}
        over = counts.get("total", 0) - counts.get("open", 0)
        return Explained(found.state, f"{over} of its {counts.get('total', 0)} instances are over.")
    blockers = (blocker(found.reason),) if found.reason else ()
    return Explained(found.state, f"It is {found.state}{f': {found.reason}' if found.reason else ''}.", blockers)


def _begun(world: World, run: Run) -> Explained:
    now = world.clock.now()
    match run.state:
        case RunState.RUNNING:
            return running(run, now)
        case RunState.QUEUED:
            job = definition_of(world, run)
            reason = full_slot(world, run, job, now) if job is not None else None
            if reason is None and run.reason is not None and run.reason.code is ReasonCode.WORKER:
                reason = run.reason
            if reason is None:
                return Explained(run.state, "Nothing stands in the way: it starts as soon as a worker is free.")
            return Explained(run.state, f"It waits: {reason}.", (blocker(reason),))
        case _:
            return told(run)


def _waiting(world: World, seen: Overview, found: TaskSeen) -> Explained:
    """It has not been released: its run has not begun, or has ended, or some of what it needs is open."""
    if seen.run.state is not RunState.RUNNING:
        why = why_run(world, seen.run.key)
        return Explained(found.state, f"Its run is {seen.run.state}. {why.summary}", why.blockers)
    place = seen.graph.places[found.name]
    open_ones = [parent for parent in seen.graph.parents[place] if seen.states[parent] not in ENDED]
    if not open_ones:
        return Explained(found.state, "All that it needs is over: it is about to be decided.")
    parents = seen.seen([seen.graph.tasks[parent].id for parent in open_ones[:_NAMED]])
    words = [f"{parent.name} is {parent.state}" for parent in parents]
    more = f", and {len(open_ones) - _NAMED} more" if len(open_ones) > _NAMED else ""
    over = [parent for parent in seen.graph.parents[place] if parent not in open_ones][:_NAMED]
    ended = ", ".join(f"{seen.graph.tasks[n].id} {state_of(seen.states[n])}" for n in over)
    done = f" ({ended})" if ended else ""
    reason = Reason(ReasonCode.UPSTREAM, f"{found.definition.when}: {', '.join(words)}{more}{done}")
    return Explained(found.state, f"It waits for {', '.join(one.name for one in parents)}{more}.", (blocker(reason),))
