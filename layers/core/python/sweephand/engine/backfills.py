"""What people do to backfills: ask what one would come to, ask for one, pause it, resume it, cancel it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.documents import SharedDocument
from sweephand.domain.backfill import (
    FIRES_MAX,
    Backfill,
    BackfillEvent,
    BackfillKey,
    BackfillState,
    Wanted,
)
from sweephand.domain.cost import Cost, backfill_cost
from sweephand.domain.fates import CHOSEN, Fate
from sweephand.domain.ids import JobKey, run_id_of_trigger
from sweephand.domain.run import ACTIVE
from sweephand.domain.trail import Deed
from sweephand.engine.backfill import BACKFILL, OPEN, backfill, read
from sweephand.engine.cancel import cancel
from sweephand.engine.edit import Document, edit
from sweephand.engine.fates import Window, all_fates, window_of
from sweephand.engine.insist import insist
from sweephand.engine.issue import OWN
from sweephand.engine.lookup import job_of, present_head
from sweephand.engine.quota import quota_of
from sweephand.engine.trigger import REMEMBERED_FOR
from sweephand.errors import Conflict, InvalidInput, NotFound, TooMany, Unavailable
from sweephand.ports import World

KEPT_MAX: Final = 100
"""Backfills of one job that are kept: of those that are over, the oldest go."""
_TRIES: Final = 8
_PAGE: Final = 200
_COME_AGAIN_S: Final = 60


class Estimate(Struct, frozen=True):
    """What a backfill would come to, now."""

    wanted: Wanted
    """With the window cut off at the present."""
    count: int = 0
    """Fires that it would make up for."""
    runs: int = 0
    """Runs that this takes: one, where they are collapsed."""
    fates: Mapping[Fate, int] = field(default_factory=dict)
    """What became of all the fires of the window."""
    first: datetime | None = None
    last: datetime | None = None
    cost: Cost = Cost(0, 0, 0)

    @property
    def undone(self) -> int:
        """Fires that no run has succeeded for, and that one should have."""
        return self.fates.get(Fate.MISSING, 0) + self.fates.get(Fate.FAILED, 0)


def estimate(world: World, key: JobKey, wanted: Wanted) -> Estimate:
    """What a backfill would make up for, and what that costs. Reads only."""
    head = present_head(world, key)
    now = world.clock.now()
    if wanted.since >= now:
        raise InvalidInput("The window lies in the future: 'from' must be a time that has passed.", "from")
    wanted = replace(wanted, until=min(wanted.until, now))
    window = window_of(world, head, since=wanted.since, until=wanted.until)
    _check_size(window)
    counts: Counter[Fate] = Counter()
    chosen: list[datetime] = []
    for one in all_fates(world, window):
        counts[one.fate] += 1
        if one.fate in CHOSEN[wanted.only]:
            chosen.append(one.fire_at)
    if not chosen:
        return Estimate(wanted, fates=counts)
    job = job_of(world, head)
    runs = 1 if wanted.collapse else len(chosen)
    cost = backfill_cost(runs, tasks=len(job.tasks) if job else 1)
    return Estimate(wanted, len(chosen), runs, counts, chosen[0], chosen[-1], cost)


def _check_size(window: Window) -> None:
    """Refuse what nobody can have meant, before any of it is read."""
    if not any(stretch.schedule is not None for stretch in window.stretches):
        raise Conflict(f"Job {window.head.key} has had no schedule in this window: it has no fires to make up for.")
    fires = window.count
    if fires > FIRES_MAX:
        raise InvalidInput(
            f"The window has {fires:,} fires, and one backfill looks at {FIRES_MAX:,} at the most: make it shorter.",
            "to",
        )


def start_backfill(
    world: World,
    key: JobKey,
    wanted: Wanted,
    *,
    actor: str,
    note: str = "",
    idempotency_key: str | None = None,
) -> Backfill:
    """Ask for a backfill, whose first runs are put at once; the same idempotency key within a day gives the same one.

    It is noted down among the open ones before it is written, so that nobody who stops half way leaves one behind that
    nobody goes on with. Without a key, repeating it makes another, which finds nothing left of what the first does.
    """
    found = estimate(world, key, wanted)
    now = world.clock.now()
    id_ = str(run_id_of_trigger(now, world.dice.nonce()[:8]))
    if idempotency_key is not None:
        name = f"backfill/{key.name}/{idempotency_key}"
        id_ = world.runs.remember(key.namespace, name, id_, until=now + REMEMBERED_FOR)
    own = BackfillKey(key, id_)
    fresh = Backfill(
        own,
        found.wanted,
        found.wanted.since,
        found.wanted.until,
        now,
        actor,
        now,
        found.count,
        found.first,
        found.last,
        note=note,
    )
    _note(world, own, now)
    deed = _deed(world, own, actor, "create", after=_told(fresh), note=note)
    insist(
        lambda: world.shared.put(key.namespace, BACKFILL, own.name, fresh.encode(), expected=0, deed=deed)
    )  # where it is there already, an earlier try of the same call wrote it
    _note(world, own, now)  # again: whoever slept in between may find that it was given up
    if world.fillers is not None:
        world.fillers.start(own, generation=0)
    with suppress(Unavailable):  # safe: it is noted down, and is gone on with by others
        backfill(world, own)
    _forget_old(world, key)
    return found_backfill(world, own)


def pause_backfill(world: World, key: BackfillKey, *, actor: str, note: str = "") -> Backfill:
    """Put no more runs; those under way go on. Pausing a paused one changes nothing."""
    return _moved(world, key, BackfillEvent.PAUSED, BackfillState.PAUSED, actor=actor, note=note)


def resume_backfill(world: World, key: BackfillKey, *, actor: str, note: str = "") -> Backfill:
    """Go on where it was paused. Resuming a running one changes nothing but that somebody looks at it."""
    moved = _moved(world, key, BackfillEvent.RESUMED, BackfillState.RUNNING, actor=actor, note=note)
    if world.fillers is not None:
        world.fillers.start(key, generation=moved.generation)
    with suppress(Unavailable):  # safe: it is noted down, and is gone on with by others
        backfill(world, key)
    return found_backfill(world, key)


def cancel_backfill(world: World, key: BackfillKey, *, actor: str, note: str = "", running: bool = False) -> Backfill:
    """End a backfill: what has not started never does; what has goes on, unless that is to end too (`running`).

    Cancelling a cancelled one goes on with that; one that is done is refused.
    """
    reason = f"by {actor}{': ' + note if note else ''}"
    moved = _moved(world, key, BackfillEvent.CANCELLED, BackfillState.CANCELLED, actor=actor, note=note, reason=reason)
    backfill(world, key)
    if running:
        for run in world.runs.several(moved.run_keys()):
            if run.state in ACTIVE:
                with suppress(Conflict):  # it ended by itself meanwhile
                    cancel(world, run.key, actor=actor, note=note or "its backfill was cancelled")
        backfill(world, key)
    return found_backfill(world, key)


def found_backfill(world: World, key: BackfillKey) -> Backfill:
    """A backfill that is there."""
    stored = read(world, key)
    if stored is None:
        raise NotFound(f"There is no backfill {key}.")
    return stored[1]


def backfills_of(world: World, key: JobKey) -> list[Backfill]:
    """A job's backfills, newest first."""
    return [Backfill.decode(BackfillKey(key, _id(one)), one.document) for one in _documents(world, key)][::-1]


def _moved(
    world: World,
    key: BackfillKey,
    event: BackfillEvent,
    target: BackfillState,
    *,
    actor: str,
    note: str,
    reason: str = "",
) -> Backfill:
    """Moved by somebody, with an audit row; as it is where it is there already."""
    for _ in range(_TRIES):
        stored = read(world, key)
        if stored is None:
            raise NotFound(f"There is no backfill {key}.")
        rev, before = stored
        if before.state is target:
            return before
        after = before.after(event, now=world.clock.now(), reason=reason or note)
        if event is BackfillEvent.RESUMED:
            after = replace(after, generation=before.generation + 1)
        deed = _deed(world, key, actor, _VERBS[event], note=note)
        if world.shared.put(key.job.namespace, BACKFILL, key.name, after.encode(), expected=rev, deed=deed):
            return after
    raise Unavailable(f"Backfill {key} keeps changing: try again.")


_VERBS: Final = {
    BackfillEvent.PAUSED: "pause",
    BackfillEvent.RESUMED: "resume",
    BackfillEvent.CANCELLED: "cancel",
}


def _note(world: World, key: BackfillKey, now: datetime) -> None:
    """Note it down among the open ones, if the namespace has room for one more."""

    def noted(document: Document | None) -> Document | None:
        before: Mapping[str, Any] = document["open"] if document else {}
        if key.name in before:
            return None
        most = quota_of(world, key.job.namespace).backfills
        if len(before) >= most:
            raise TooMany(
                f"Namespace {key.job.namespace} has {most} backfills under way: that is its limit. "
                "Wait for one to end, or cancel one.",
                _COME_AGAIN_S,
            )
        return {"open": {**before, key.name: now.isoformat()}}

    edit(world, OWN, OPEN, key.job.namespace, noted)


def _forget_old(world: World, key: JobKey) -> None:
    """Remove the oldest of a job's backfills that are over; its runs stay."""
    kept = list(_documents(world, key))
    for one in kept[: max(0, len(kept) - KEPT_MAX)]:
        if Backfill.decode(BackfillKey(key, _id(one)), one.document).is_over:
            world.shared.delete(key.namespace, BACKFILL, one.name, expected=one.rev)


def _documents(world: World, key: JobKey) -> Iterator[SharedDocument]:
    """Of one job, oldest first."""
    within = f"{key.name}/"
    after = within
    while page := world.shared.listed(key.namespace, BACKFILL, after=after, limit=_PAGE):
        for one in page:
            if not one.name.startswith(within):
                return
            yield one
        after = page[-1].name


def _id(one: SharedDocument) -> str:
    return one.name.rpartition("/")[2]


def _told(fresh: Backfill) -> dict[str, Any]:
    """What the audit log shows of one."""
    shown = fresh.encode()
    return {name: shown[name] for name in ("from", "to", "only", "order", "maxActive", "collapse", "count")}


def _deed(
    world: World,
    key: BackfillKey,
    actor: str,
    verb: str,
    *,
    after: Mapping[str, Any] | None = None,
    note: str = "",
) -> Deed:
    at, nonce = world.clock.now(), world.dice.nonce()
    subject = f"jobs/{key.job.name}/backfills/{key.id}"
    return Deed(key.job.namespace, at, nonce, actor, f"backfill.{verb}", subject, after=after, note=note)
