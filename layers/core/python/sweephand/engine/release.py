"""Jobs that come after other jobs: an upstream's success makes them run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final

from sweephand.domain.ids import JobKey, JobName, RunId
from sweephand.domain.job import Head, Job, JobStatus
from sweephand.domain.occasions import AfterRule, Quantity, Window, beginning_of, local_day
from sweephand.domain.run import Run, RunState
from sweephand.engine.gate import Mark, Marks, caused_run, in_force_since, pass_gate, put_once, second_of, stamp
from sweephand.ports import World

GATE: Final = "gate"
DAYS_KNOWN_FOR: Final = timedelta(days=400)
"""How long a day is remembered after its last success: repeating last year's days makes no run a second time."""


def release(world: World, names: Iterable[str], run: Run) -> int:
    """Let the jobs of these names go on after a run that succeeded; how many new runs that made.

    A job after one other runs once for each success of it, and so does one after any of several; a job after all of
    several runs whenever all of them have succeeded since it last did, or once for each day of which all did. Repeating
    it makes nothing twice: the runs' ids follow from the upstream's, or from the day.
    """
    if run.state is not RunState.SUCCEEDED or run.ended_at is None:
        return 0
    namespace, ended_at = run.key.job.namespace, run.ended_at
    return sum(len(_release_one(world, JobKey(namespace, JobName(name)), run, ended_at)) for name in names)


def _release_one(world: World, key: JobKey, upstream: Run, ended_at: datetime) -> list[Run]:
    """A success belongs to the definition that was in force when it came, as a fire does."""
    head = world.jobs.head(key)
    if head is None or head.status is JobStatus.DELETED or ended_at < head.created_at:
        return []
    name, success = upstream.key.job.name, Mark(stamp(ended_at), upstream.key.run_id)
    jobs = in_force_since(world, head, ended_at)
    then, present = jobs[0], jobs[-1]
    if name not in then.after:
        return []  # it was edited since it was noted down
    if then.after_rule.window is Window.SAME_DAY:
        return _release_day(world, head, then, present, name, success, upstream.fire_at)
    if not _is_gated(then):
        return put_once(world, present, _dependency_run(world, key, {name: success}))
    # An upstream that was taken out meanwhile begins anew where it comes back.
    still = all(name in job.after for job in jobs)
    names = present.after if _is_gated(present) else ()
    return pass_gate(
        world, GATE, head, present, names, {name: success} if still else {}, partial(_dependency_run, world, key)
    )


def _is_gated(job: Job) -> bool:
    """Whether successes wait for each other; after one job, or after any, each makes a run by itself."""
    rule = job.after_rule
    return len(job.after) > 1 and rule.quantity is Quantity.ALL and rule.window is Window.LATEST


def _release_day(
    world: World, head: Head, then: Job, present: Job, name: str, success: Mark, fire_at: datetime
) -> list[Run]:
    """Run the job for the local day of a fire, if what it waits for has succeeded on that day.

    Of each upstream the day's first success is remembered before the others' are looked for: whichever of two
    followers is second to remember finds both. The run's id follows from the day, and is remembered once it is put, so
    that it is not made again after runs were forgotten.
    """
    key, rule = head.key, then.after_rule
    day = local_day(fire_at, rule.timezone)
    about = f"after/{key.name}/{stamp(head.created_at)}/{rule.timezone}/{day}"
    until = world.clock.now() + DAYS_KNOWN_FOR
    if world.runs.noted(key.namespace, about) is not None:
        return []
    world.runs.remember(key.namespace, f"{about}/{name}", f"{success.at} {success.id}", until=until)
    noted = {one: world.runs.noted(key.namespace, f"{about}/{one}") for one in then.after}
    found = {one: Mark(*text.split()) for one, text in noted.items() if text is not None}
    if rule.quantity is Quantity.ALL and len(found) < len(then.after):
        return []
    run = _day_run(world, head, rule, day, found)
    made = put_once(world, present, run)
    world.runs.remember(key.namespace, about, run.key.run_id, until=until)
    return made


def _day_run(world: World, head: Head, rule: AfterRule, day: date, successes: Marks) -> Run:
    """The run of a day. Its fire time is the day's beginning, so that jobs after it are of the same day."""
    fire_at = beginning_of(day, rule.timezone)
    causes = f"{stamp(head.created_at)}/{rule.timezone}/{day}"
    params = {"after": _run_ids(successes), "day": day.isoformat()}
    return caused_run(world, head.key, causes, params, fire_at=fire_at, start_at=second_of(successes))


def _dependency_run(world: World, key: JobKey, upstreams: Marks) -> Run:
    """The run that these successes make, under an id of theirs."""
    named = sorted(f"{key.namespace}/{name}/{one.id}" for name, one in upstreams.items())
    params = {"after": _run_ids(upstreams)}
    return caused_run(world, key, "&".join(named), params, fire_at=second_of(upstreams))


def _run_ids(successes: Marks) -> dict[str, RunId]:
    return {name: RunId(one.id) for name, one in sorted(successes.items())}
