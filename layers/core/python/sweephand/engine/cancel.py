"""End a run because somebody says so."""

from __future__ import annotations

from contextlib import suppress

from sweephand.domain.ids import RunKey
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.complete import follow_up
from sweephand.engine.insist import move
from sweephand.engine.lookup import definition_of
from sweephand.engine.planning import letter_for
from sweephand.engine.wake import end_soon
from sweephand.engine.whereabouts import is_launched
from sweephand.errors import Conflict, NotFound, Unavailable
from sweephand.ports import World


def cancel(world: World, key: RunKey, *, actor: str, note: str = "") -> Run:
    """Cancel the run: what has not started never does, and a running attempt is fenced and learns it at its next word.

    Cancelling a cancelled run answers the same; one that ended otherwise is refused.
    """
    while True:
        run = world.runs.get(key)
        if run is None:
            raise NotFound(f"There is no run {key}.")
        if run.is_terminal and run.state is not RunState.CANCELLED:
            raise Conflict(f"Run {key} has already ended: it {run.state}.")
        if run.state is RunState.CANCELLED:
            return run
        reason = Reason(ReasonCode.CANCELLED, f"by {actor}{': ' + note if note else ''}"[:200])
        after = run.cancelled(reason, now=world.clock.now(), nonce=world.dice.nonce())
        end_soon(world, run)
        if move(world, run, after):
            follow_up(world, after)
            _have_it_stopped(world, after)
            return after


def _have_it_stopped(world: World, run: Run) -> None:
    """What was launched for the run hears of it with its next word; one that never came to a word is stopped by whoever
    launched it, who is told now. Where that fails, the lease's timer tells."""
    job = definition_of(world, run) if run.started_at else None
    if job is not None and is_launched(world.pace, job):
        with suppress(Unavailable):
            world.queue.send([letter_for(run, job, now=world.clock.now())])
