"""Have a run that waits looked at now: somebody says so, or what it waits for has come."""

from __future__ import annotations

from sweephand.domain.ids import RunKey
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.insist import move
from sweephand.engine.lookup import definition_of
from sweephand.engine.planning import letter_for
from sweephand.errors import Conflict, NotFound
from sweephand.ports import World


def hasten(world: World, key: RunKey) -> Run | None:
    """The run, which waits no longer; None where it does not wait between two attempts or looks.

    It is moved first and sent then: a stop in between leaves it to its old timer. Repeating it sends once more.
    """
    while True:
        run = world.runs.get(key)
        now = world.clock.now()
        if run is None or run.state is not RunState.RETRYING:
            return None
        if run.wake_at is not None and run.wake_at > now:
            reason = run.reason or Reason(ReasonCode.RETRY)
            after = run.parked(reason, now=now, nonce=world.dice.nonce(), wake_at=now)
            if not move(world, run, after):
                continue
            run = after
        world.queue.send([letter_for(run, definition_of(world, run), now=now)])
        return run


def retry_now(world: World, key: RunKey) -> Run:
    """Begin the next attempt at once, or the next look; a run that does not wait for one is refused."""
    hastened = hasten(world, key)
    if hastened is not None:
        return hastened
    run = world.runs.get(key)
    if run is None:
        raise NotFound(f"There is no run {key}.")
    if run.is_terminal:
        again = f"rerun it from task '{key.task}'" if key.task else "rerun it"
        raise Conflict(f"Run {key} has ended: it {run.state}. To do it again, {again}.")
    raise Conflict(f"Run {key} is {run.state}: only what waits for its next attempt can be hastened.")
