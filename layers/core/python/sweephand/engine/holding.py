"""Taking and giving back slots. One item names the holders, and every step is a compare-and-set on it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sweephand.domain.guard import Replace, Skip, Start, Wait, admit
from sweephand.domain.ids import RunKey
from sweephand.domain.job import Job
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.domain.slots import Need, Slot, is_evictable, job_slot, pool_slot
from sweephand.engine.insist import insist, move
from sweephand.engine.lookup import definition_of, lane_of
from sweephand.engine.wake import end_soon, note
from sweephand.messages import AttemptRun
from sweephand.ports import Letter, World

_TRIES: Final = 12
_CHECKED_HOLDERS: Final = 20


def needs_of(world: World, job: Job, run: Run) -> list[Need]:
    """What a run of this job must hold, always in the same order, so that no two runs wait for each other."""
    needs, namespace = [], run.key.job.namespace
    if job.active_max is not None:
        needs.append(job_slot(run.key.job, job.active_max))
    if job.concurrency.pool is not None:
        stored = world.shared.get(namespace, "pool", job.concurrency.pool)
        limit = int(stored[1]["slots"]) if stored else 0
        needs.append(pool_slot(namespace, job.concurrency.pool, limit, job.concurrency.slots))
    return needs


def take(world: World, run: Run, job: Job, *, now: datetime) -> Start | Wait | Skip:
    """Hold everything that the run needs, or say what it waits for; then it is among the waiters.

    Repeating it is safe: a run that is among the holders already has its place.
    """
    taken: list[Need] = []
    for need in needs_of(world, job, run):
        answer = _take_one(world, run, job, need, now)
        if not isinstance(answer, Start):
            give_back(world, run.key, job, released_by(run.state, taken), epoch=run.epoch + 1)
            return answer
        taken.append(need)
    return Start()


def give_back(world: World, key: RunKey, job: Job, needs: list[Need], *, epoch: int) -> None:
    """Let go of the places held up to this epoch and wake the first waiter of each.

    A crash in between leaves a place to an ended run, which the next taker evicts, and a lost wake costs a waiter its
    own timer's minute.
    """
    for need in needs:
        while True:
            slot = world.slots.get(need.name)
            if not slot.holds(key) and not slot.waiters:
                break
            woken = slot.waiters[0] if slot.waiters else None
            if _swap(world, slot, slot.left(key, epoch, woken, nonce=world.dice.nonce())):
                if woken is not None:
                    lane = lane_of(world.runs.get(woken), job)
                    world.queue.send([Letter(AttemptRun(woken), lane=lane, group=woken.job.namespace)])
                break


def _take_one(world: World, run: Run, job: Job, need: Need, now: datetime) -> Start | Wait | Skip:
    for _ in range(_TRIES):
        slot = world.slots.get(need.name)
        answer = admit(run, job, need, slot, now=now, poll=world.pace.slot_poll)
        if not isinstance(answer, Start) and _evict(world, slot, need, now):
            continue
        match answer:
            case Start():
                held = slot.taken(run, weight=need.weight, now=now, nonce=world.dice.nonce())
                if _swap(world, slot, held):  # also where it holds a place: somebody may be about to evict it
                    return answer
            case Replace(older, reason):
                for key in older:
                    _cancel(world, key, reason, now)
            case Wait():
                waiting = slot.awaited(run.key, nonce=world.dice.nonce())
                if waiting is None or _swap(world, slot, waiting):
                    return answer
            case Skip():
                return answer
    return Wait(Reason(ReasonCode.CONCURRENCY, f"{need.name} is contended"), now + world.pace.slot_poll)


def _swap(world: World, before: Slot, after: Slot) -> bool:
    return insist(lambda: world.slots.swap(before, after))


def _evict(world: World, slot: Slot, need: Need, now: datetime) -> bool:
    """Free the place of a holder that no longer needs it; whether the slot may have changed.

    Of many holders only some are looked at, beginning anywhere, so that every one is looked at before long.
    """
    begin = 0 if len(slot.holders) <= _CHECKED_HOLDERS else int(world.dice.chance() * len(slot.holders))
    for holder in (slot.holders[begin:] + slot.holders[:begin])[:_CHECKED_HOLDERS]:
        run = world.runs.get(holder.run)
        if is_evictable(holder, run, need.keeps, now) and _fenced(world, run, now):
            _swap(world, slot, slot.given_back(holder.run, nonce=world.dice.nonce()))
            return True
    return False


def _fenced(world: World, run: Run | None, now: datetime) -> bool:
    """An open run is moved to a new revision first: a taker that sleeps before its claim then loses that claim."""
    if run is None or run.is_terminal:
        return True
    return move(world, run, run.fenced(now=now, nonce=world.dice.nonce()))


def _cancel(world: World, key: RunKey, reason: Reason, now: datetime) -> None:
    run = world.runs.get(key)
    while run is not None and not run.is_terminal:
        end_soon(world, run)
        if move(world, run, run.cancelled(reason, now=now, nonce=world.dice.nonce())):
            if (job := definition_of(world, run)) is not None and job.is_dag:
                note(world, key)
            return
        run = world.runs.get(key)


def released_by(state: RunState, needs: list[Need]) -> list[Need]:
    """The needs that a run in this state no longer keeps."""
    return [need for need in needs if state not in need.keeps]
