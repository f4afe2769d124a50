"""What the guard looks at, read from the stores: for those who decide, and for those who explain."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.guard import Scene
from sweephand.domain.job import Head, Job
from sweephand.domain.limits import OVERDUE_GRACE
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run
from sweephand.engine.lookup import calendar_of, segment_at
from sweephand.engine.needs import unmet
from sweephand.ports import World


def scene_of(world: World, run: Run, head: Head, job: Job | None, *, now: datetime) -> Scene:
    """Everything that has a say in whether an unstarted run may start. Reads only."""
    if not run.is_scheduled or now < run.start_at:
        return Scene(run, head, job)
    at_fire = segment_at(world, head, job, run.fire_at)
    calendar = calendar_of(world, head, job) if job else None
    return Scene(run, head, job, at_fire, calendar, _dropped(world, run, now), unmet(world, run, job))


def _dropped(world: World, run: Run, now: datetime) -> Reason | None:
    """Why this fire was given up, if it was: a sweeper that slept through that decision may have put the run after it.

    Only what is late can have been given up, so a punctual run costs no read.
    """
    if now - run.start_at <= OVERDUE_GRACE:
        return None
    stretches = world.runs.dropped(run.key.job, since=run.fire_at, until=run.fire_at + timedelta(seconds=1))
    given_up = [one for one in stretches if one.reason.code is not ReasonCode.COLLAPSED]
    return next((one.reason for one in given_up if one.first <= run.fire_at <= one.last), None)
