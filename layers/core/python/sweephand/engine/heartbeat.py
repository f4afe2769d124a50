"""Keep an attempt's lease alive."""

from __future__ import annotations

from datetime import timedelta

from sweephand.domain.ids import RunKey
from sweephand.domain.run import Run, RunState
from sweephand.engine.insist import move
from sweephand.errors import NotFound, StaleEpoch
from sweephand.ports import World


def heartbeat(world: World, key: RunKey, *, epoch: int, lease: timedelta, progress: int | None = None) -> Run:
    """Extend the lease under the attempt's epoch; an attempt that was cancelled or taken over learns it here.

    Timers are not moved: one that comes due looks at the lease and comes back. Repeating it only extends again.
    """
    while True:
        run = world.runs.get(key)
        if run is None:
            raise NotFound(f"There is no run {key}.")
        if run.epoch != epoch or run.state is not RunState.RUNNING:
            raise StaleEpoch(str(key), epoch, run.epoch)
        beaten = run.beaten(now=world.clock.now(), nonce=world.dice.nonce(), lease=lease, progress=progress)
        if move(world, run, beaten):
            return beaten
