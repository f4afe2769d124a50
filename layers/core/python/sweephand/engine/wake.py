"""A task ended: whoever advances its run must hear of it, and is woken if it sleeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sweephand.domain.ids import RunKey
from sweephand.domain.progress import Progress
from sweephand.domain.run import Run
from sweephand.engine.lookup import definition_of, lane_of, lane_of_run
from sweephand.messages import AttemptRun
from sweephand.ports import Letter, World

WAKING_FOR: Final = timedelta(seconds=3)
"""How long others rely on the one who wakes a sleeper. Shorter than the stream takes to bring the end of a task again,
so that one who died at it is made up for by whoever hears of it there."""

SEEN_TO_AFTER: Final = timedelta(minutes=1)


def note(world: World, key: RunKey, *, again: bool = False) -> None:
    """Have the end of a task looked at, or the end of a whole run whose tasks go on.

    To be called after the end is stored, and `again` by whoever meets an end that may not have been noted: who relied
    on another to wake the sleeper has a message left, or a timer, that leads here. Repeating it wakes once more, and
    an advance that finds nothing sleeps again.
    """
    progress = world.dags.note(key.whole, (key.task,) if key.task else ())
    if progress is not None:
        rouse(world, progress, again=again)


def end_soon(world: World, run: Run, *, within: timedelta = SEEN_TO_AFTER) -> None:
    """Have somebody see to the tasks of a run that is about to be ended from outside.

    To be called before the end is stored: whoever dies then would leave tasks behind that go on.
    """
    if (job := definition_of(world, run)) is not None and job.is_dag:
        letter = Letter(AttemptRun(run.key), within, lane_of(run, job), run.key.job.namespace)
        world.queue.send([letter])


def rouse(world: World, progress: Progress, *, again: bool = False) -> None:
    """Wake the one who sleeps over a run: of many who come at once, one does.

    The token goes only after the call was answered, so that nobody dies with the last one in hand.
    """
    now = world.clock.now()
    if progress.token is None or (progress.is_being_woken(now) and not again):
        return
    if not world.dags.waking(progress, until=now + WAKING_FOR):
        return
    if world.machines is not None:
        world.machines.wake(progress.token)
    else:
        send_on(world, progress.run)
    world.dags.woken(progress)
    return


def send_on(world: World, key: RunKey) -> None:
    """Have a run advanced by whoever gets its message."""
    world.queue.send([Letter(AttemptRun(key), lane=lane_of_run(world, key), group=key.job.namespace)])
