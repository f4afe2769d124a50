"""A run of several tasks from outside: started, looked after while its tasks go on, and ended when they are over.

It is claimed once, under one epoch. Its lease says until when it is looked after, and its timer is the lease's end:
should whoever advances it die, the next look finds that nobody has for too long, and somebody else goes on.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.dag import Graph, is_over, state_of, summary
from sweephand.domain.duration import format_duration
from sweephand.domain.fields import json_bytes
from sweephand.domain.job import Job
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run
from sweephand.domain.task import TaskState
from sweephand.engine.advance import Step, advance, begin, next_generation
from sweephand.engine.carry import tasks_of
from sweephand.engine.claim import claim
from sweephand.engine.complete import TIMEOUT, complete, follow_up, set_timer
from sweephand.engine.insist import move
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.outputs import Outputs
from sweephand.engine.wake import end_soon, note, send_on
from sweephand.errors import StaleEpoch
from sweephand.ports import World

SILENT_FOR: Final = timedelta(minutes=8)
"""Whoever advances a run looks at it at least every five minutes: one that has not for so long is gone."""
_NAMES_SHOWN: Final = 5


def start(world: World, run: Run, job: Job, version: int, *, now: datetime) -> bool:
    """Claim a run of several tasks and have it advanced; False where another delivery claimed it.

    Its timer is set first, and finds out if this stops half way.
    """
    lease = _until_next(world, run, job, now=now)
    set_timer(world, run, job, at=now + lease, now=now)
    claimed = claim(replace(world, pace=replace(world.pace, lease=lease)), run, job, version=version, now=now)
    if claimed is None:
        return False
    begin(world, claimed, now=now)
    if world.machines is None:
        send_on(world, claimed.key)
    else:
        world.machines.start(claimed.key, generation=0)
    return True


def look_after(world: World, run: Run, job: Job, *, timer: datetime | None, now: datetime) -> datetime | None:
    """Somebody was sent to a run of several tasks that goes on; the moment to come again, if that is not known already.

    Before its lease ends that is a call to advance it, where nobody else does. Then it is looked at as a whole, and
    looked after for another while. Of several timers, the one of the present lease goes on; an older one may be what
    started the run, come again because whoever had it stopped before anybody was sent to advance it.
    """
    lease_until = run.lease_until or now
    if now < lease_until:
        if timer == lease_until:
            return lease_until
        if world.machines is None:
            _advance_here(world, run, look=False)
        elif (world.dags.get(run.key) or begin(world, run, now=now)).rev == 0:
            world.machines.start(run.key, generation=0)  # whoever claimed it may have died before that
        return None
    if job.run_timeout is not None and run.started_at is not None and now >= run.started_at + job.run_timeout:
        _end_late(world, run, job, now=now)
        return None
    lease = _until_next(world, run, job, now=now)
    set_timer(world, run, job, at=now + lease, now=now)
    beaten = run.beaten(now=now, nonce=world.dice.nonce(), lease=lease, progress=None)
    if move(world, run, beaten):
        _see_to(world, beaten, now=now)
    return None


def end_tasks(world: World, run: Run) -> None:
    """A run has ended that may have open tasks: they end, by whoever advances it.

    Where nobody did so by now, another execution begins; should that die too, the message that is sent before it leads
    here again.
    """
    if world.machines is None:
        advance(world, run.key, token=world.dice.nonce())
        return
    note(world, run.key, again=True)
    progress = world.dags.get(run.key)
    if progress is None or (is_over(progress.states) and all(task.is_terminal for task in tasks_of(world, run.key))):
        return
    end_soon(world, run, within=SILENT_FOR)
    next_generation(world, progress, now=world.clock.now())


def settle(world: World, run: Run) -> Run:
    """End a run whose tasks are over: the last of them decide. Repeating it changes nothing."""
    if run.is_terminal or run.version is None:
        return run
    job = version_of(world, run.key.job, run.version).job
    progress = world.dags.get(run.key)
    if job is None or progress is None:
        return run
    graph = graph_of(world, run.key.job, run.version, job)
    counts = {place: len(one) for place, one in progress.instances.items()}
    outcome = _outcome(graph, progress.states, Outputs(world, run.key, graph, counts))
    with suppress(StaleEpoch):  # it was cancelled meanwhile
        return complete(world, run.key, epoch=run.epoch, outcome=outcome)
    return run


def _until_next(world: World, run: Run, job: Job, *, now: datetime) -> timedelta:
    """Until somebody must look again: soon enough for the end of the run's time."""
    usual = world.pace.looked_after
    if job.run_timeout is None:
        return usual
    ends_at = (run.started_at or now) + job.run_timeout
    return max(min(usual, ends_at - now), timedelta(seconds=1))


def _see_to(world: World, run: Run, *, now: datetime) -> None:
    """Have a run advanced that nobody has for too long."""
    if world.machines is None:
        _advance_here(world, run, look=True)
        return
    progress = world.dags.get(run.key) or begin(world, run, now=now)
    if now - progress.looked_at > SILENT_FOR:
        next_generation(world, progress, now=now)


def _advance_here(world: World, run: Run, *, look: bool) -> None:
    # Each sleep has its own token: a belated word that one is over must not end the next.
    match advance(world, run.key, token=world.dice.nonce(), look=look).step:
        case Step.SETTLE:
            settle(world, run)
        case Step.ADVANCE:
            send_on(world, run.key)
        case Step.SLEEP | Step.STOP:
            pass


def _end_late(world: World, run: Run, job: Job, *, now: datetime) -> None:
    limit = format_duration(job.run_timeout) if job.run_timeout else "it may"
    failure = Failure(TIMEOUT, f"The run took longer than {limit}.", FailureClass.PERMANENT)
    reason = Reason(ReasonCode.TIMEOUT, failure.message)
    after = run.failed(failure, reason, now=now, nonce=world.dice.nonce())
    end_soon(world, run)  # the word to whoever should advance it may be what got lost
    if move(world, run, after):
        follow_up(world, after)
        if world.machines is None:
            end_tasks(world, after)


def _outcome(graph: Graph, states: bytes, outputs: Outputs) -> Outcome:
    ended = summary(graph, states)
    if not ended.is_failed:
        lost = _listed(graph, states, TaskState.FAILED, TaskState.CANCELLED) if ended.forgiven else ""
        return Succeeded(_output(graph, outputs), in_part=lost and f"{lost}, and what came after made up for it")
    culprits = _listed(graph, states, TaskState.FAILED)
    return Failure("TaskFailed", f"{culprits}." if culprits else "A last task was cancelled.", FailureClass.PERMANENT)


def _listed(graph: Graph, states: bytes, *failed: TaskState) -> str:
    """How many tasks failed, and the first of them; nothing where none did."""
    names = [graph.tasks[n].id for n, byte in enumerate(states) if state_of(byte) in failed]
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
    return f"{len(names)} of {len(states)} tasks failed: {shown}" if names else ""


def _output(graph: Graph, outputs: Outputs) -> Any:
    """Of a run with one last task, what that gave."""
    if len(graph.leaves) != 1:
        return None
    output = outputs[graph.tasks[graph.leaves[0]].id]["output"]
    return output if json_bytes(output) <= OUTPUT_BYTES_MAX else None
