"""What must hold in the end, whatever went wrong: held against the tables' own history and the target's own ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sweephand.domain.ids import DEFAULT, RunKey
from sweephand.domain.job import Head, JobStatus
from sweephand.domain.ledger import SETTLING, FireStatus
from sweephand.domain.run import ACTIVE, RUN_LIFECYCLE, UNSTARTED, Run, RunState
from tests.faults.place import Place

_ARROWS = {(state, target) for (state, _), target in RUN_LIFECYCLE.arrows.items()}
_BAD = frozenset({FireStatus.MISSING, FireStatus.EXTRA, FireStatus.PENDING})


def assert_sound(place: Place, *, dead: int = 0) -> None:
    """Fails with everything that does not hold; `dead` letters are expected to be there to be seen."""
    found = list(violations(place))
    if (letters := len(place.dead())) != dead:
        found.append(f"I10 {letters} dead letters, where {dead} were to be seen")
    assert not found, f"seed {place.seed}:\n" + "\n".join(found)


def violations(place: Place) -> Iterator[str]:
    """What does not hold, in words."""
    heads = place.world.jobs.heads(DEFAULT, limit=100)
    for head in heads:
        yield from _fires(place, head)
        yield from _room(place, head)
    history = place.history()
    for key, revisions in history.items():
        yield from _life(key, revisions)
        yield from _effects(place, key, revisions[-1])
    strangers = {effect.run for effect in place.target.effects} - history.keys()
    yield from (f"I6 {key} was executed, and there is no such run" for key in strangers)


def _fires(place: Place, head: Head) -> Iterator[str]:
    """I1, I7, I12: every fire that was owed has one fate, with its reason, before long."""
    is_paused = head.status is JobStatus.PAUSED
    for row in place.ledger(head.key.name, until=place.now - SETTLING):
        if row.status in _BAD and not (is_paused and row.status is FireStatus.PENDING):
            yield f"I1 the ledger calls {head.key} at {row.fire_at.isoformat()} {row.status} ({row.reason})"
        if row.status is FireStatus.SKIPPED and not row.reason:
            yield f"I12 {head.key} at {row.fire_at.isoformat()} was skipped without a reason"
    for run in place.runs(head.key.name):
        is_held = is_paused and run.state in UNSTARTED
        if run.start_at <= place.now - SETTLING and not run.is_terminal and not is_held:
            yield f"I7 {run.key} is still {run.state} ({run.reason}), leased until {run.lease_until}"
        if run.state in (RunState.FAILED, RunState.SKIPPED, RunState.VOID) and run.reason is None:
            yield f"I12 {run.key} is {run.state} without a reason"


def _life(key: RunKey, revisions: Sequence[Run]) -> Iterator[str]:
    """I3, I4, I5: one owner at a time, one completion, nothing after the end."""
    if revisions[0].rev != 0:
        yield f"I1 {key} begins with revision {revisions[0].rev}"
    for old, new in pairwise(revisions):
        if new.rev != old.rev + 1:
            yield f"I4 {key} went from revision {old.rev} to {new.rev}: a write was overwritten"
        if (old.state, new.state) not in _ARROWS:
            yield f"I5 {key} went from {old.state} to {new.state}"
        is_claim = new.state is RunState.RUNNING and new.attempt > old.attempt
        if new.epoch != old.epoch + is_claim:
            yield f"I4 {key} went from epoch {old.epoch} to {new.epoch}"
        if is_claim and old.state is RunState.RUNNING and old.lease_until and new.changed_at < old.lease_until:
            yield f"I4 {key} was claimed at {new.changed_at.isoformat()}, and leased until {old.lease_until}"


def _effects(place: Place, key: RunKey, run: Run) -> Iterator[str]:
    """I6: at most one call per attempt, all under one key, and none without an attempt."""
    mine = [effect for effect in place.target.effects if effect.run == key]
    for epoch, times in Counter(effect.epoch for effect in mine).items():
        if times > 1:
            yield f"I6 {key} was executed {times} times under epoch {epoch}"
    if len({effect.key for effect in mine}) > 1:
        yield f"I6 {key} was executed under several idempotency keys"
    if len(mine) > run.attempt:
        yield f"I6 {key} was executed {len(mine)} times in {run.attempt} attempts"
    if run.state is RunState.SUCCEEDED and not mine:
        yield f"I6 {key} succeeded and was never executed"
    if run.started_at is None and mine:
        yield f"I6 {key} was executed and never started"


def _room(place: Place, head: Head) -> Iterator[str]:
    """Never more active runs at once than the job allows."""
    version = place.world.jobs.version(head.key, 1)
    limit = version.job.active_max if version and version.job else None
    if limit is None:
        return
    moments = []
    for key, revisions in place.history().items():
        if key.job == head.key:
            for old, new in pairwise(revisions):
                moments.append((new.changed_at, (new.state in ACTIVE) - (old.state in ACTIVE)))
    active = 0
    for at, step in sorted(moments):
        active += step
        if active > limit:
            yield f"slots: {head.key} had {active} active runs at {at.isoformat()}, {limit} allowed"
