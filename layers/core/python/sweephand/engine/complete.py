"""Report an attempt's outcome (004-O5) and do what follows from it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from sweephand.calls import Outcome, Skipped, Succeeded
from sweephand.domain.dag import chosen
from sweephand.domain.ids import RunKey, run_id_of_fire
from sweephand.domain.job import Guarantee, Job
from sweephand.domain.limits import MESSAGE_DELAY_MAX
from sweephand.domain.output import Kept, is_reserved
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure, FailureClass, Retry
from sweephand.domain.run import Run, RunState
from sweephand.engine.budget import draw
from sweephand.engine.checkpoint import forget_checkpoint
from sweephand.engine.holding import give_back, needs_of, released_by
from sweephand.engine.insist import move
from sweephand.engine.lookup import definition_of, graph_of, version_of
from sweephand.engine.pause import pause
from sweephand.engine.planning import run_entry, timer_for
from sweephand.engine.recall import remember
from sweephand.engine.subrun import subrun_key
from sweephand.engine.wake import end_soon, note
from sweephand.engine.whereabouts import APPROVAL, renews_by_itself, task_of
from sweephand.errors import InvalidInput, NotFound, StaleEpoch
from sweephand.messages import Again, Unstarted
from sweephand.ports import World

LOST: Final = "Lost"
"""The error of a run whose worker was lost for good."""
TIMEOUT: Final = "Timeout"
"""The error of an attempt, or of a run, that took too long."""
ROOM_AGAIN_WITHIN: Final = timedelta(minutes=1)
"""When a run for which there was no room is begun again."""
LOOK_AGAIN_AFTER: Final = timedelta(seconds=1)
"""The shortest wait between two looks."""


def complete(world: World, key: RunKey, *, epoch: int, outcome: Outcome, claimed: Run | None = None) -> Run:
    """Store the outcome under the attempt's epoch; `claimed` saves a read where the caller has just claimed.

    Completing again under the same epoch answers the same and changes nothing; under another it is refused. If
    it stops half way, the next attempt's timer is set already, and freed places are noticed by those who wait for them.
    """
    run = claimed or _read(world, key)
    while True:
        if run.epoch != epoch:
            raise StaleEpoch(str(key), epoch, run.epoch)
        if run.state is not RunState.RUNNING:
            break
        after = _after(world, run, outcome)
        if after.wake_at is not None:
            set_timer(world, run, _job(world, run), at=after.wake_at, now=after.changed_at)
        if move(world, run, after):
            run = after
            break
        run = _read(world, key)
    if run.state is RunState.CANCELLED or (run.failure is not None and run.failure.error == LOST):
        raise StaleEpoch(str(key), epoch, run.epoch)
    follow_up(world, run)
    return run


def follow_up(world: World, run: Run, *, is_heard: bool = False) -> None:
    """What the state of a run that just left `running` asks for; safe to repeat.

    With `is_heard`, whoever advances the run of a task has ended it and needs nobody to say so.
    """
    job = _job(world, run)
    if job is None:
        return
    remember(world, run, job)
    released = released_by(run.state, needs_of(world, job, run))
    give_back(world, run.key, job, released, epoch=run.epoch + run.is_terminal)
    if run.is_terminal and renews_by_itself(world.pace, job):
        forget_checkpoint(world, run.key)
    if run.is_terminal and (run.key.task or (job.is_dag and run.state is not RunState.SUCCEEDED)) and not is_heard:
        note(world, run.key)
    if run.is_terminal:
        end_subrun(world, run, job)
    if run.state is RunState.FAILED and _failed_in_a_row(world, job, run):
        with suppress(NotFound):  # deleted since
            pause(world, run.key.job, actor="sweephand", note=f"{job.pause_after_failures} failures in a row")


def end_subrun(world: World, run: Run, job: Job) -> None:
    """A task ended before the run that it started: that one is cancelled, unless nobody was to wait for it."""
    task = task_of(job)
    key = None if job.is_dag or task.spec.get("async") else subrun_key(run, task)
    if key is None or run.state is RunState.SUCCEEDED:
        return
    reason = Reason(ReasonCode.CANCELLED, f"task {run.key} {run.state}"[:200])
    while (started := world.runs.get(key)) is not None and not started.is_terminal:
        after = started.cancelled(reason, now=world.clock.now(), nonce=world.dice.nonce())
        end_soon(world, started)
        if move(world, started, after):
            follow_up(world, after)


def set_timer(world: World, run: Run, job: Job | None, *, at: datetime, now: datetime) -> None:
    """Have somebody look at the run at a moment: by a delayed message, or beyond its reach by a due entry.

    Set before the state that relies on it is written, so that a waiting run always has its timer.
    """
    if at - now <= MESSAGE_DELAY_MAX:
        world.queue.send([timer_for(run, job, at, now=now)])
        return
    world.due.arm([run_entry(world, run.key, at=at, now=now)])


def retry_of(job: Job) -> Retry:
    """How often the run's task is tried; at most once means never again, and a run of several leaves it to them."""
    policy = task_of(job).retry or job.retry
    return Retry(attempts=1) if job.is_dag or job.guarantee is Guarantee.AT_MOST_ONCE else policy


def _read(world: World, key: RunKey) -> Run:
    run = world.runs.get(key)
    if run is None:
        raise NotFound(f"There is no run {key}.")
    return run


def _job(world: World, run: Run) -> Job | None:
    return definition_of(world, run)


def _after(world: World, run: Run, outcome: Outcome) -> Run:
    now, nonce = world.clock.now(), world.dice.nonce()
    if isinstance(outcome, Succeeded) and run.key.task:
        outcome = _chosen(world, run, outcome)
    if isinstance(outcome, Succeeded) and (outcome.taken_from or not _is_anothers(run, outcome.output)):
        return run.succeeded(now=now, nonce=nonce, output=outcome.output, reason=_remark(outcome))
    if isinstance(outcome, Succeeded):
        outcome = Failure("InvalidOutput", "The output names what is no task's to name.", FailureClass.PERMANENT)
    if isinstance(outcome, Skipped):
        return run.skipped(Reason(ReasonCode.TASK, outcome.reason[:200]), now=now, nonce=nonce)
    if isinstance(outcome, Unstarted):
        wait = ROOM_AGAIN_WITHIN * (1 + world.dice.chance()) / 2  # what was refused together does not return together
        return run.postponed(Reason(ReasonCode.ROOM, outcome.reason[:200]), now=now, nonce=nonce, wake_at=now + wait)
    if isinstance(outcome, Again):
        wait = max(outcome.after, LOOK_AGAIN_AFTER)
        return run.looked(Reason(_awaited(world, run), outcome.reason[:200]), now=now, nonce=nonce, wake_at=now + wait)
    job = _job(world, run)
    if job is not None and run.started_at is not None:
        delay = retry_of(job).next_delay(outcome, run.failures, chance=world.dice.chance())
        in_time = job.run_timeout is None or now + (delay or timedelta(0)) < run.started_at + job.run_timeout
        if delay is not None and in_time:
            wake_at, code = _affordable(world, run, job, at=now + delay, now=now)
            reason = Reason(code, f"attempt {run.attempt} failed: {outcome.message}"[:200])
            return run.retried(outcome, reason, now=now, nonce=nonce, wake_at=wake_at)
    return run.failed(outcome, _final_reason(outcome), now=now, nonce=nonce)


def _remark(outcome: Succeeded) -> Reason | None:
    """What is to be said of a success that is not plain."""
    if outcome.taken_from:
        return Reason(ReasonCode.CACHED, f"cached from run {outcome.taken_from}")
    return Reason(ReasonCode.PARTIAL, outcome.in_part[:200]) if outcome.in_part else None


def _is_anothers(run: Run, output: Any) -> bool:
    """Whether an output would stand for what another attempt has kept."""
    if isinstance(output, Kept):
        return (output.run_id, output.attempt) != (run.key.run_id, run.attempt) or run.key.task not in ("", output.task)
    return is_reserved(output)


def _awaited(world: World, run: Run) -> ReasonCode:
    job = _job(world, run)
    is_approval = job is not None and task_of(job).kind == APPROVAL
    return ReasonCode.APPROVAL if is_approval else ReasonCode.WAITING


def _chosen(world: World, run: Run, outcome: Succeeded) -> Succeeded | Failure:
    """A branch fails whose output names no task that it could choose."""
    version = run.version or 0
    job = version_of(world, run.key.job, version).job
    if job is None:
        return outcome
    graph = graph_of(world, run.key.job, version, job)
    place = graph.places.get(run.key.task)
    if place is None or not graph.tasks[place].branch:
        return outcome
    try:
        chosen(graph, place, outcome.output)
    except InvalidInput as refused:
        return Failure("InvalidOutput", refused.message, FailureClass.PERMANENT)
    return outcome


def _affordable(world: World, run: Run, job: Job, *, at: datetime, now: datetime) -> tuple[datetime, ReasonCode]:
    """When the next attempt begins, and what it waits for: a namespace that retries too much waits longer.

    The budget delays, and never fails a run: one whose time would be up by then does not wait for it.
    """
    later = at + draw(world, run.key.job.namespace, now=now)
    ends_at = run.started_at + job.run_timeout if run.started_at and job.run_timeout else None
    if later == at or (ends_at is not None and later >= ends_at):
        return at, ReasonCode.RETRY
    return later, ReasonCode.RETRY_BUDGET


def _final_reason(failure: Failure) -> Reason:
    code = ReasonCode.TIMEOUT if failure.error == TIMEOUT else ReasonCode.ERROR
    return Reason(code, failure.message[:200])


def _failed_in_a_row(world: World, job: Job, run: Run) -> bool:
    """Whether the newest ended runs, as many as the job says, all failed: read from history, so nothing miscounts."""
    if job.pause_after_failures is None:
        return False
    until = run_id_of_fire(world.clock.now() + timedelta(seconds=1))  # those to come have no say
    recent = world.runs.of_job(run.key.job, until=until, limit=job.pause_after_failures * 2 + 20)
    ended = [one for one in recent if one.state in (RunState.SUCCEEDED, RunState.FAILED)]
    newest = ended[: job.pause_after_failures]
    return len(newest) == job.pause_after_failures and all(one.state is RunState.FAILED for one in newest)
