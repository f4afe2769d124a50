"""A run was delivered: decide whether it may start, claim it, run it, report.

Only the message of an ended or absent run is deleted, or one whose timer is known to be on its way. Whoever meets a
live lease returns the message until the lease's end, so that the death of the lease's owner is always noticed.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from sweephand.calls import Abandoning, Call, Outcome, Target
from sweephand.domain.duration import format_duration
from sweephand.domain.guard import Skip, Start, Void, Wait, guard
from sweephand.domain.ids import RunKey
from sweephand.domain.job import Guarantee, Job
from sweephand.domain.limits import LOST_MAX, SIDES_BLUR
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.domain.templates import run_facts
from sweephand.engine.claim import LOOKS, claim, lease_of, timeout_of
from sweephand.engine.complete import LOST, TIMEOUT, complete, end_subrun, follow_up, set_timer
from sweephand.engine.holding import take
from sweephand.engine.insist import move
from sweephand.engine.lookup import definition_of, job_of
from sweephand.engine.offer import AGENT, LAUNCHED_WITHIN, LEASE, Puller, lease_id, offer, queue_of
from sweephand.engine.outputs import Upstream, upstream_of
from sweephand.engine.planning import letter_for
from sweephand.engine.recall import recall
from sweephand.engine.reveal import redacted_of, reveal
from sweephand.engine.scene import scene_of
from sweephand.engine.tend import end_tasks, look_after, start
from sweephand.engine.wake import note
from sweephand.engine.whereabouts import is_external, is_launched, renews_by_itself, task_of
from sweephand.errors import Defect, StaleEpoch, Unavailable
from sweephand.messages import AttemptRun, Elsewhere
from sweephand.ports import Delivery, Stores, World

_KEEP_MAX: Final = timedelta(hours=11)
_KEEP_MIN: Final = timedelta(seconds=1)
_RETURNED: Final = frozenset({ReasonCode.NOT_YET, ReasonCode.RESUMING})


class Fate(StrEnum):
    """What becomes of the message."""

    DELETE = "delete"
    KEEP = "keep"
    """It comes back after `hold`."""
    LEAVE = "leave"
    """It is no longer ours."""


class Attempted(Struct, frozen=True):
    """What a delivery came to: the message's fate, and what happened in a word."""

    fate: Fate
    event: str
    hold: timedelta = timedelta(0)


class _Case(Struct, frozen=True):
    """A delivery in hand: the run as it was read, and the moment of looking."""

    world: World
    run: Run
    message: AttemptRun
    delivery: Delivery
    now: datetime
    pulled: str | None = None
    """The queue that an external worker came to for the run, if one did."""

    @property
    def is_the_timer(self) -> bool:
        """Whether this message carries the run's present wait; an earlier one may go, since that one is on its way.

        A later one was sent by whoever is about to say so in the run, and may be all that is left of it.
        """
        if self.run.wake_at is None:
            return True
        return self.message.timer is not None and self.message.timer >= self.run.wake_at


def attempt(world: World, message: AttemptRun, delivery: Delivery) -> Attempted:
    """Deal with one delivery of a run. Any number of deliveries at any time come to one owner per attempt."""
    begun = begin(world, message, delivery)
    return begun if isinstance(begun, Attempted) else finish(world, begun, execute(world, world.target, begun))


def execute(stores: Stores, target: Target, call: Call) -> Outcome | Elsewhere:
    """Run a claimed call, with its secrets; what comes back is without them."""
    revealed = reveal(stores, call)
    return revealed if isinstance(revealed, Failure) else redacted_of(revealed, target.execute(revealed))


def begin(world: World, message: AttemptRun, delivery: Delivery, *, pulled: str | None = None) -> Call | Attempted:
    """The first half: claim the run for one attempt if it may start; the call, or what came of the delivery instead.

    From the claim on, the message is the lease's timer. A run for external workers is offered to them, and claimed
    when one comes for it to its queue (`pulled`). Repeating it meets the lease.
    """
    run = world.runs.get(message.run)
    if run is None:
        return Attempted(Fate.DELETE, "absent")
    if run.is_terminal:
        return _meet_ended(world, run)
    case = _Case(world, run, message, delivery, world.clock.now(), pulled)
    match run.state:
        case RunState.RUNNING:
            return _meet_lease(case)
        case RunState.RETRYING:
            return _try_again(case)
        case _:
            return _consider(case)


def finish(world: World, call: Call, outcome: Outcome | Elsewhere) -> Attempted:
    """The second half: report the call's outcome. Repeating it changes nothing."""
    if isinstance(outcome, Elsewhere):
        return Attempted(Fate.LEAVE, "elsewhere")  # the message stays the lease's timer
    return report(world, call.run.key, epoch=call.run.epoch, outcome=outcome, claimed=call.run)


def report(world: World, key: RunKey, *, epoch: int, outcome: Outcome, claimed: Run | None = None) -> Attempted:
    """An attempt's outcome, from wherever it went on; one that is no longer the run's own is left without effect."""
    try:
        ended = complete(world, key, epoch=epoch, outcome=outcome, claimed=claimed)
    except StaleEpoch:
        return Attempted(Fate.LEAVE, "fenced")  # its new owner holds the message's later delivery
    return Attempted(Fate.DELETE, str(ended.state))


def _meet_ended(world: World, run: Run) -> Attempted:
    """What follows from an end may not have been done by whoever died before doing it."""
    if run.key.task:
        note(world, run.key, again=True)
    elif (job := definition_of(world, run)) is not None and job.is_dag:
        end_tasks(world, run)
    if run.state is RunState.CANCELLED or (run.reason is not None and run.reason.code is ReasonCode.MARKED):
        _abandon(world, run)
    return Attempted(Fate.DELETE, "ended")


def _meet_lease(case: _Case) -> Call | Attempted:
    """Somebody owns the run, or did: a live lease is left alone, a dead one is taken over or ends the run."""
    job, version = _started_with(case)
    if job.is_dag:
        return _look_after(case, job)
    leased_until = ends_at = case.run.lease_until or case.now
    if job.guarantee is Guarantee.EFFECTIVELY_ONCE:
        ends_at += SIDES_BLUR  # the owner's clock may be behind ours: no second attempt while it may still act
    puller = Puller.of(case.run) if renews_by_itself(case.world.pace, job) else None
    if case.now < ends_at:
        return _watch_over(case, job, puller, ends_at) if puller else _keep(case, ends_at, "owned")
    if (
        puller
        and puller.claimed_at + (timeout := timeout_of(case.world.pace, job, case.run, now=puller.claimed_at))
        <= leased_until
    ):
        return _end_late(case, timeout)
    if job.guarantee is Guarantee.AT_MOST_ONCE or case.run.lost >= LOST_MAX:
        _abandon(case.world, case.run)
        failure = Failure(LOST, f"The worker of attempt {case.run.attempt} was lost.")
        reason = Reason(ReasonCode.LOST, failure.message)
        return _end(case, case.run.failed(failure, reason, now=case.now, nonce=case.world.dice.nonce()))
    if _is_for_others(case, job):
        return _offer(case, job)
    if is_launched(case.world.pace, job):
        _abandon(case.world, case.run)  # fenced by the claim, and of no use to anybody
    return _claim(case, job, version)


def _watch_over(case: _Case, job: Job, puller: Puller, ends_at: datetime) -> Attempted:
    """A pulled run's lease is renewed for hours: its timer goes on as a new message, since returns are counted.

    Only the timer that was sent for this claim, or went on from it, does; any other may go.
    """
    if case.pulled is not None:
        return _keep(case, ends_at, "owned")
    if case.message.timer is None or case.message.timer < puller.claimed_at + LEASE:
        return Attempted(Fate.DELETE, "timer is set")
    set_timer(case.world, case.run, job, at=ends_at, now=case.now)
    return Attempted(Fate.DELETE, "owned")


def overdue(timeout: timedelta) -> Failure:
    """How an attempt fails that an external worker did not end in time."""
    return Failure(TIMEOUT, f"The attempt took longer than {format_duration(timeout)}.")


def _end_late(case: _Case, timeout: timedelta) -> Attempted:
    """The lease was renewed for as long as the attempt may take: its worker is not lost, but too slow."""
    try:
        ended = complete(case.world, case.run.key, epoch=case.run.epoch, outcome=overdue(timeout), claimed=case.run)
    except StaleEpoch:
        return _lost_race()
    _abandon(case.world, case.run)
    return Attempted(Fate.DELETE, str(ended.state))


def _try_again(case: _Case) -> Call | Attempted:
    if case.run.wake_at is not None and case.now < case.run.wake_at:
        if case.is_the_timer:
            return _keep(case, case.run.wake_at, "backing off")
        return Attempted(Fate.DELETE, "timer is set")
    return _hold_and_claim(case, *_started_with(case))


def _look_after(case: _Case, job: Job) -> Attempted:
    """A run of several tasks is owned by whoever advances it, and looked after by its timer."""
    wait = look_after(case.world, case.run, job, timer=case.message.timer, now=case.now)
    return Attempted(Fate.DELETE, "looked after") if wait is None else _keep(case, wait, "owned")


def _consider_task(case: _Case) -> Call | Attempted:
    """A task that has not started only needs its run to go on."""
    whole = case.world.runs.get(case.run.key.whole)
    if whole is None or whole.state is not RunState.RUNNING:
        reason = Reason(ReasonCode.CANCELLED, f"the run {whole.state}" if whole else "the run is gone")
        return _end(case, case.run.cancelled(reason, now=case.now, nonce=case.world.dice.nonce()))
    return _hold_and_claim(case, *_started_with(case))


def _consider(case: _Case) -> Call | Attempted:
    """A run that has not started meets the guard."""
    if case.run.key.task:
        return _consider_task(case)
    head = case.world.jobs.head(case.run.key.job)
    if head is None:
        raise Defect(f"Run {case.run.key} has no job.")
    job = job_of(case.world, head)
    decision = guard(scene_of(case.world, case.run, head, job, now=case.now), now=case.now)
    nonce = case.world.dice.nonce()
    match decision:
        case Start():
            if job is None:
                raise Defect(f"Run {case.run.key} may start although its job is deleted.")
            return _hold_and_claim(case, job, head.version)
        case Wait():
            return _wait(case, job, decision)
        case Skip(reason):
            return _end(case, case.run.skipped(reason, now=case.now, nonce=nonce))
        case Void(reason):
            return _end(case, case.run.voided(reason, now=case.now, nonce=nonce))
        case _:
            assert_never(decision)


def _is_for_others(case: _Case, job: Job) -> bool:
    """Whether somebody else does such runs than whoever has come; an edit may have changed that since the offer."""
    return (queue_of(job) if is_external(job) else None) != case.pulled


def _offer(case: _Case, job: Job) -> Attempted:
    """Let those know who do such runs; one of them will come for it."""
    run, now = case.run, case.now
    if not is_external(job):
        case.world.queue.send([letter_for(run, job, now=now)])
        return Attempted(Fate.DELETE, "sent on")
    if not timeout_of(case.world.pace, job, run, now=now):
        return _end_out_of_time(case)
    if not offer(case.world, run, job, now=now):
        return _lost_race()
    waits = run.reason is not None and run.reason.code is ReasonCode.WORKER
    if waits and case.pulled is None and run.wake_at is not None and case.message.timer == run.wake_at >= now:
        return _keep(case, run.wake_at, "offered")  # the start deadline's timer is early: it is the only one
    return Attempted(Fate.DELETE, "offered")


def _hold_and_claim(case: _Case, job: Job, version: int) -> Call | Attempted:
    if _is_for_others(case, job):
        return _offer(case, job)
    answer = take(case.world, case.run, job, now=case.now)
    match answer:
        case Start():
            return _claim(case, job, version)
        case Wait():
            return _wait(case, job, answer)
        case Skip(reason):
            return _end(case, case.run.skipped(reason, now=case.now, nonce=case.world.dice.nonce()))
        case _:
            assert_never(answer)


def _wait(case: _Case, job: Job | None, decision: Wait) -> Attempted:
    """Return the message for a short wait; park the run for any other, so that waiting burns no deliveries."""
    if decision.reason.code in _RETURNED and decision.until is not None:
        return _keep(case, decision.until, str(decision.reason.code))
    if not case.is_the_timer:
        return Attempted(Fate.DELETE, "timer is set")
    world, run, now = case.world, case.run, case.now
    if decision.until is not None:
        set_timer(world, run, job, at=decision.until, now=now)
    parked = run.parked(decision.reason, now=now, nonce=world.dice.nonce(), wake_at=decision.until)
    return Attempted(Fate.DELETE, "parked") if move(world, run, parked) else _lost_race()


def _end(case: _Case, after: Run) -> Attempted:
    if not move(case.world, case.run, after):
        return _lost_race()
    follow_up(case.world, after)
    return Attempted(Fate.DELETE, str(after.state))


def _claim(case: _Case, job: Job, version: int) -> Call | Attempted:
    world = case.world
    if job.is_dag:
        # Whoever claimed it instead may have died before anybody was sent to advance it: that is seen to at once.
        begun = start(world, case.run, job, version, now=case.now)
        return Attempted(Fate.DELETE, "begun") if begun else _lost_race()
    upstream = upstream_of(world, case.run)
    timeout = timeout_of(world.pace, job, case.run, now=case.now)
    if not timeout:
        return _end_out_of_time(case)
    secret = world.dice.secret() if is_launched(world.pace, job) else None
    if secret is not None:
        owner = str(Puller(AGENT, secret, case.now))
        world = replace(world, owner=owner, pace=replace(world.pace, lease=LAUNCHED_WITHIN))
    if case.pulled is not None or secret is not None:
        # No message carries it, so the lease's timer is sent first: a worker that dies is always noticed.
        set_timer(world, case.run, job, at=case.now + (world.pace.lease or LEASE), now=case.now)
    claimed = claim(world, case.run, job, version=version, now=case.now)
    if claimed is None:
        return _lose(case)
    # From here the message is the lease's timer: it comes back when the lease ends.
    lease = min(lease_of(world, job, case.run, now=case.now), _KEEP_MAX)
    if case.delivery.hold < lease:
        with suppress(Unavailable):  # safe: where it comes back sooner, it meets the lease
            world.inbox.keep(case.delivery, lease)
    if world.clock.now() - case.now > (world.pace.lease or world.pace.lease_grace):
        return Attempted(Fate.LEAVE, "overslept")  # it would outlive its lease, beside the next attempt
    call = call_of(claimed, job, timeout, upstream, lease=lease_id(claimed.key, secret) if secret else None)
    recalled = recall(world, call, job)
    return call if recalled is None else finish(world, call, recalled)


def _end_out_of_time(case: _Case) -> Attempted:
    failure = Failure(TIMEOUT, f"The run's time was up after {case.run.attempt} attempts.")
    reason = Reason(ReasonCode.TIMEOUT, failure.message)
    _abandon(case.world, case.run)
    return _end(case, case.run.failed(failure, reason, now=case.now, nonce=case.world.dice.nonce()))


def _abandon(world: World, run: Run) -> None:
    """Have stopped what was launched for the run, started or looked at by it; mostly there is nothing to stop."""
    if run.version is None or run.started_at is None:
        return
    job = definition_of(world, run)
    if job is None or job.is_dag:
        return
    if run.is_terminal:
        end_subrun(world, run, job)
    if not isinstance(world.target, Abandoning):
        return
    timeout = task_of(job).timeout or job.timeout
    if is_launched(world.pace, job):
        world.target.abandon(call_of(run, job, timeout, upstream_of(world, run)))
    elif task_of(job).kind in LOOKS:
        upstream = upstream_of(world, run)
        for attempt in range(max(run.attempt, 1), run.attempt + 2):  # between two looks the attempt is not counted
            world.target.abandon(call_of(replace(run, attempt=attempt), job, timeout, upstream))


def _lose(case: _Case) -> Attempted:
    """Another delivery claimed it: come back when that lease ends, in case its owner dies."""
    current = case.world.runs.get(case.run.key)
    if current is None or current.is_terminal:
        return Attempted(Fate.DELETE, "ended")
    return _keep(case, current.lease_until or case.now, "lost race")


def _lost_race() -> Attempted:
    return Attempted(Fate.KEEP, "lost race", _KEEP_MIN)


def _keep(case: _Case, until: datetime, event: str) -> Attempted:
    return Attempted(Fate.KEEP, event, min(max(until - case.now, _KEEP_MIN), _KEEP_MAX))


def call_of(run: Run, job: Job, timeout: timedelta, upstream: Upstream, *, lease: str | None = None) -> Call:
    """What has to be known to do the attempt that the run was claimed for."""
    task = task_of(job)
    params = {**job.params, **upstream.params}
    facts = run_facts(run, job, task)
    return Call(run, task, params, run.idempotency_key(task.id), timeout, facts, upstream.known, lease)


def _started_with(case: _Case) -> tuple[Job, int]:
    """The definition that the run started with, and its version."""
    version = case.run.version or 0
    job = definition_of(case.world, case.run)
    if job is None:
        raise Defect(f"Run {case.run.key} was started with a deleted version.")
    return job, version
