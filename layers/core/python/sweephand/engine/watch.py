"""A message was delivered too often: see whether its run still needs it."""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from sweephand.domain.ids import RunKey
from sweephand.domain.limits import REDRIVES_MAX
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.engine.complete import follow_up
from sweephand.engine.insist import move
from sweephand.engine.lookup import job_of
from sweephand.engine.planning import letter_for
from sweephand.errors import InvalidInput
from sweephand.messages import AttemptRun, decode
from sweephand.ports import DeadLetter, World


class Watched(StrEnum):
    """What became of a dead letter."""

    SENT_AGAIN = "sent_again"
    NOT_NEEDED = "not_needed"
    FAILED = "failed"
    UNREADABLE = "unreadable"


def watch(world: World, letter: DeadLetter) -> Watched:
    """Send a dead message of an open run again, a few times; then its run fails as poison, visible to people.

    An unreadable one stays among the dead letters. Repeating it is safe: a message too many is harmless.
    """
    try:
        message = decode(letter.body)
    except InvalidInput:
        return Watched.UNREADABLE
    if isinstance(message, AttemptRun):
        watched = _redrive(world, message.run, message.redriven)
    else:
        watched = Watched.NOT_NEEDED  # a sweep: the next tick begins at the same watermark
    world.inbox.bury([letter])
    return watched


def _redrive(world: World, key: RunKey, redriven: int) -> Watched:
    run = world.runs.get(key)
    if run is None or run.is_terminal:
        return Watched.NOT_NEEDED
    if redriven >= REDRIVES_MAX and run.state is not RunState.RUNNING:
        return _give_up(world, run)
    head = world.jobs.head(key.job)
    job = job_of(world, head) if head else None
    letter = letter_for(run, job, now=world.clock.now())
    world.queue.send([replace(letter, message=AttemptRun(key, run.wake_at, redriven + 1))])
    return Watched.SENT_AGAIN


def _give_up(world: World, run: Run) -> Watched:
    failure = Failure("Poison", "Its message was delivered again and again and could never be dealt with.")
    reason = Reason(ReasonCode.POISON, failure.message)
    after = run.failed(failure, reason, now=world.clock.now(), nonce=world.dice.nonce())
    if not move(world, run, after):
        return Watched.NOT_NEEDED  # somebody is dealing with it after all
    follow_up(world, after)
    return Watched.FAILED
