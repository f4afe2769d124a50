"""Go on with a backfill: count what has ended, put what comes next, up to as many at once as it may have.

Its document says what is under way before any of it is put: so nobody puts more than that, whoever comes at the same
time, and what one who died left unput, the next one puts. It is gone on with whenever a run of its ends, and every few
minutes by its machine on AWS, by the auditor there, and by housekeeping on one machine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.backfill import Backfill, BackfillEvent, BackfillKey, BackfillState
from sweephand.domain.fates import CHOSEN
from sweephand.domain.ids import RunId, RunKey, instant_of, run_id_of_fire, run_id_of_rerun
from sweephand.domain.job import Head, Job
from sweephand.domain.ledger import collapse
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState, Trigger
from sweephand.engine.edit import Document, edit
from sweephand.engine.fates import PAGE, fates, window_of
from sweephand.engine.insist import insist, move
from sweephand.engine.issue import OWN
from sweephand.engine.lookup import job_of
from sweephand.engine.planning import letter_for, run_entry
from sweephand.engine.trigger import REMEMBERED_FOR, UNSENT_FOR
from sweephand.errors import Defect, Unavailable
from sweephand.ports import World

logger: Final = logging.getLogger("sweephand.engine")

BACKFILL: Final = "backfill"
OPEN: Final = "backfilling"
"""The documents that name the backfills with something left to see to: one for each namespace, among our own."""
UNWRITTEN_FOR: Final = timedelta(minutes=10)
"""How long one is looked for that was noted down, and whose document never came."""
LOOK_EVERY: Final = timedelta(minutes=5)
"""How often its machine looks, whatever its runs say."""
LOOKS_MAX: Final = 2_000
"""How often one execution looks: beyond some 25,000 events, AWS ends it."""
_TRIES: Final = 8
_PAGE: Final = 100


class Step(StrEnum):
    """What its machine does next."""

    WAIT = "wait"
    STOP = "stop"


class Backfilled(Struct, frozen=True):
    """What came of going on."""

    state: BackfillState | None = None
    """None where there is no such backfill."""
    created: int = 0
    active: int = 0


class Looked(Struct, frozen=True):
    """What an execution of its machine does next, after how long, and how often it has looked."""

    step: Step
    seconds: int
    looks: int


def backfill(world: World, key: BackfillKey) -> Backfilled:
    """Count what has ended and put what comes next; of a cancelled one, end what has not started.

    Repeating it at any point puts nothing twice: what is put was written down first, under an id that no other has.
    """
    for _ in range(_TRIES):
        stored = read(world, key)
        if stored is None:
            return Backfilled()
        rev, before = stored
        head = world.jobs.head(key.job)
        job = job_of(world, head) if head is not None else None
        runs = {run.key.run_id: run for run in world.runs.several(before.run_keys())} if before.active else {}
        after = _after(world, before, head if job is not None else None, runs)
        if after != before and not write(world, after, expected=rev):
            continue
        created = _end_unstarted(world, after, runs) if not after.is_open else _put(world, after, job, runs)
        if not after.is_open and after.active and created:
            continue  # what was ended just now is counted
        if after.is_over:
            _forget(world, key)
        return Backfilled(after.state, created, len(after.active))
    raise Unavailable(f"Backfill {key} keeps changing: try again.")


def look(world: World, key: BackfillKey, *, generation: int, looks: int) -> Looked:
    """Go on for an execution of its machine, and say what that does next.

    One that has looked often hands on to the next generation, and one of an older generation stops. Repeating it
    starts no other twice: executions are named by their generation.
    """
    came = backfill(world, key)
    stored = read(world, key)
    stop = Looked(Step.STOP, 0, looks)
    if stored is None or came.state is not BackfillState.RUNNING or stored[1].generation > generation:
        return stop
    if looks < LOOKS_MAX:
        return Looked(Step.WAIT, int(LOOK_EVERY.total_seconds()), looks + 1)
    following = replace(stored[1], generation=generation + 1)
    if world.fillers is not None and write(world, following, expected=stored[0]):
        world.fillers.start(key, generation=following.generation)
        return stop
    return Looked(Step.WAIT, 1, looks)


def see_to_backfills(world: World) -> int:
    """Go on with every backfill that has something left, in case nobody did; how many there are.

    The trouble of one is its own. Repeating it changes nothing.
    """
    seen = 0
    for key, noted_at in open_backfills(world):
        try:
            came = backfill(world, key)
            if came.state is None and world.clock.now() - noted_at > UNWRITTEN_FOR:
                _forget(world, key)
            seen += 1
        except (Unavailable, Defect) as error:
            logger.warning("Backfill %s could not be gone on with: %s", key, error)
    return seen


def follow_backfills(world: World, runs: list[Run]) -> None:
    """Runs have changed: backfills that had some of them under way go on where those have ended. Safe to repeat."""
    ended = {BackfillKey(run.key.job, run.backfill) for run in runs if run.backfill is not None and run.is_terminal}
    for key in sorted(ended):
        backfill(world, key)


def read(world: World, key: BackfillKey) -> tuple[int, Backfill] | None:
    """A backfill and its revision."""
    stored = world.shared.get(key.job.namespace, BACKFILL, key.name)
    return (stored[0], Backfill.decode(key, stored[1])) if stored else None


def write(world: World, after: Backfill, *, expected: int) -> bool:
    """Move a backfill; False where somebody else did first."""
    return world.shared.put(after.key.job.namespace, BACKFILL, after.key.name, after.encode(), expected=expected)


def open_backfills(world: World) -> Iterator[tuple[BackfillKey, datetime]]:
    """Those with something left to see to, and since when they are noted down."""
    after: str | None = None
    while page := world.shared.listed(OWN, OPEN, after=after, limit=_PAGE):
        for one in page:
            for name, noted_at in one.document["open"].items():
                yield BackfillKey.of(f"{one.name}/{name}"), datetime.fromisoformat(noted_at)
        after = page[-1].name


def _forget(world: World, key: BackfillKey) -> None:
    def without(document: Document | None) -> Document | None:
        noted = document["open"] if document else {}
        if key.name not in noted:
            return None
        return {"open": {name: at for name, at in noted.items() if name != key.name}}

    edit(world, OWN, OPEN, key.job.namespace, without)


# What comes next.


def _after(world: World, before: Backfill, head: Head | None, runs: Mapping[RunId, Run]) -> Backfill:
    """The backfill with what has ended counted, and with what comes next under way."""
    now = world.clock.now()
    after = before.met(run for run in runs.values() if run.backfill == before.key.id)
    if head is None and after.is_open:
        after = after.after(BackfillEvent.CANCELLED, now=now, reason="its job was deleted")
    for run_id, run in runs.items():
        if run.backfill != before.key.id:  # somebody ran this fire again, and was first
            after = after.renamed(run_id, _own_id(world, before.key, run.fire_at, _generation(run_id) + 1))
    if head is not None and after.room and not after.is_exhausted:
        after = _with_more(world, after, head)
    if after.is_open and after.is_exhausted and not after.active:
        after = after.after(BackfillEvent.FINISHED, now=now)
    return after


def _with_more(world: World, before: Backfill, head: Head) -> Backfill:
    """With the next fires under way that are to be made up for, judged by what is known of them now."""
    if before.wanted.collapse:
        return _with_all_in_one(world, before)
    after = before
    chosen = CHOSEN[before.wanted.only]
    window = window_of(world, head, since=before.since, until=before.until)
    while not after.is_exhausted:
        page = fates(world, replace(window, since=after.since, until=after.until), order=before.wanted.order)
        for one in page:
            if one.fate not in chosen:
                after = after.passed(one.fire_at)
                continue
            if not after.room:
                return after
            after = after.put(one.fire_at, _own_id(world, before.key, one.fire_at, one.generation))
        if len(page) < PAGE:
            after = after.exhausted()
    return after


def _with_all_in_one(world: World, before: Backfill) -> Backfill:
    """With the one run that stands for all; it is of the last fire."""
    if before.last is None:
        return before.exhausted()
    return before.put(before.last, _own_id(world, before.key, before.last, 1))


def _own_id(world: World, key: BackfillKey, fire_at: datetime, generation: int) -> RunId:
    """The id of a generation that is not there yet, and that nobody else is about to put.

    Else a rerun could choose the same, and take the other's run for its own.
    """
    mine, until = f"backfill/{key.id}", world.clock.now() + REMEMBERED_FOR
    for n in count(generation):
        run_id = run_id_of_rerun(run_id_of_fire(fire_at), n)
        if world.runs.get(RunKey(key.job, run_id)) is not None:
            continue
        if world.runs.remember(key.job.namespace, f"generation/{key.job.name}/{run_id}", mine, until=until) == mine:
            return run_id
    raise Defect("There are only so many numbers.")


def _generation(run_id: RunId) -> int:
    return int(run_id.partition(".")[2])


# Doing what is written down.


def _put(world: World, after: Backfill, job: Job | None, runs: Mapping[RunId, Run]) -> int:
    """Put and send what is under way and not there yet: what was just written down, and what somebody left unput.

    A hint to look at each comes first: dying between the put and the message costs minutes.
    """
    now = world.clock.now()
    fresh = [_run(world, after, run_id, now) for run_id in after.active if run_id not in runs]
    if not fresh:
        return 0
    if after.wanted.collapse and after.first is not None and after.last is not None:
        world.runs.drop(after.key.job, collapse(after.first, after.last, after.count, fresh[0].key.run_id))
    world.due.arm([run_entry(world, run.key, at=now + UNSENT_FOR, now=now) for run in fresh])
    created = insist(lambda: world.runs.create(fresh))
    unsent = [run for run, is_new in zip(fresh, created, strict=True) if is_new or _is_unstarted(world, run)]
    world.queue.send([letter_for(run, job, now=now) for run in unsent])
    return created.count(True)


def _run(world: World, after: Backfill, run_id: RunId, now: datetime) -> Run:
    fire_at = instant_of(run_id)
    return Run(
        RunKey(after.key.job, run_id),
        fire_at,
        fire_at,
        trigger=Trigger.BACKFILL,
        created_at=now,
        backfill=after.key.id,
        interval_start=_interval_start(world, after) if after.wanted.collapse else None,
        note=after.note or None,
        state=RunState.QUEUED,
        changed_at=now,
        nonce=world.dice.nonce(),
    )


def _interval_start(world: World, after: Backfill) -> datetime | None:
    """Where the first fire's own interval begins."""
    head = world.jobs.head(after.key.job)
    if head is None or after.first is None:
        return after.first
    window = window_of(world, head, since=after.first, until=after.until)
    schedule = window.schedule_at(after.first)
    return (schedule.previous_before(after.first) if schedule else None) or after.first


def _is_unstarted(world: World, run: Run) -> bool:
    stored = world.runs.get(run.key)
    return stored is not None and stored.state in UNSTARTED and stored.backfill == run.backfill


def _end_unstarted(world: World, after: Backfill, runs: Mapping[RunId, Run]) -> int:
    """End what a cancelled backfill has not started; how many that were.

    What was written down and is not there yet is put as ended: somebody may be about to put it, and finds it taken.
    """
    now = world.clock.now()
    reason = Reason(ReasonCode.CANCELLED, f"its backfill was cancelled: {after.reason}"[:200])
    never = [_run(world, after, run_id, now) for run_id in after.active if run_id not in runs]
    created = insist(
        lambda: world.runs.create([run.cancelled(reason, now=now, nonce=world.dice.nonce()) for run in never])
    )
    ended = created.count(True)
    for run in [*runs.values(), *(one for one, is_new in zip(never, created, strict=True) if not is_new)]:
        ended += _end_one(world, after.key, run.key, reason)
    return ended


def _end_one(world: World, key: BackfillKey, run: RunKey, reason: Reason) -> bool:
    while (current := world.runs.get(run)) is not None and current.state in UNSTARTED and current.backfill == key.id:
        if move(world, current, current.cancelled(reason, now=world.clock.now(), nonce=world.dice.nonce())):
            return True
    return False
