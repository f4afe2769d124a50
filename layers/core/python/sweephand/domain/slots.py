"""Slots: one item names who holds a bounded resource, so that taking and giving back are single compare-and-sets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.ids import JobKey, Namespace, RunKey
from sweephand.domain.limits import WAITERS_MAX
from sweephand.domain.run import ACTIVE, Run, RunState

UNCLAIMED_GRACE: Final = timedelta(minutes=4)
"""A holder that has not claimed its run after this long died between the two: longer than two clocks are apart."""


class Holder(Struct, frozen=True):
    """A run that holds `weight` of a slot since `taken_at`, for the attempt with this epoch."""

    run: RunKey
    epoch: int
    taken_at: datetime
    fire_at: datetime
    weight: int = 1


class Slot(Struct, frozen=True):
    """The holders and the first few waiters of one resource."""

    name: str
    holders: tuple[Holder, ...] = ()
    waiters: tuple[RunKey, ...] = ()
    rev: int = 0
    nonce: str = ""

    @property
    def used(self) -> int:
        return sum(holder.weight for holder in self.holders)

    def holds(self, run: RunKey) -> bool:
        return any(holder.run == run for holder in self.holders)

    def has_room(self, limit: int, weight: int) -> bool:
        """Room for one more; what is heavier than the whole resource may have it alone."""
        return self.used + weight <= limit or not self.holders

    def taken(self, run: Run, *, weight: int, now: datetime, nonce: str) -> Slot:
        """With this run as a holder for its next attempt; taking again what it holds makes the place fresh."""
        waiters = tuple(waiter for waiter in self.waiters if waiter != run.key)
        others = tuple(holder for holder in self.holders if holder.run != run.key)
        holder = Holder(run.key, run.epoch + 1, now, run.fire_at, weight)
        return self._next(nonce, holders=(*others, holder), waiters=waiters)

    def given_back(self, run: RunKey, *, nonce: str) -> Slot:
        return self._next(nonce, holders=tuple(holder for holder in self.holders if holder.run != run))

    def left(self, run: RunKey, epoch: int, woken: RunKey | None, *, nonce: str) -> Slot:
        """Without this holder, unless a later attempt holds the place, and without the waiter about to be woken."""
        waiters = tuple(waiter for waiter in self.waiters if waiter != woken)
        holders = tuple(holder for holder in self.holders if holder.run != run or holder.epoch > epoch)
        return self._next(nonce, holders=holders, waiters=waiters)

    def awaited(self, run: RunKey, *, nonce: str) -> Slot | None:
        """With this run among the waiters; None where it is already, or the list is full."""
        if run in self.waiters or len(self.waiters) >= WAITERS_MAX:
            return None
        return self._next(nonce, waiters=(*self.waiters, run))

    def _next(self, nonce: str, **changes: Any) -> Slot:
        return replace(self, rev=self.rev + 1, nonce=nonce, **changes)


class Need(Struct, frozen=True):
    """What a run must hold to start: `limit` of the resource, `weight` for this run."""

    name: str
    limit: int
    weight: int
    keeps: frozenset[RunState]
    is_of_job: bool = False


def job_slot(job: JobKey, limit: int) -> Need:
    """One of the runs that a job may have active; kept between attempts, since a retrying run is active too."""
    return Need(f"job/{job}", limit, 1, ACTIVE, is_of_job=True)


def pool_slot(namespace: Namespace, pool: str, limit: int, weight: int) -> Need:
    """A share of a pool; kept only while an attempt runs."""
    return Need(f"pool/{namespace}/{pool}", limit, weight, frozenset({RunState.RUNNING}))


def is_evictable(holder: Holder, run: Run | None, keeps: frozenset[RunState], now: datetime) -> bool:
    """Whether the holder can no longer need its place.

    One that is unclaimed although taken long ago must first be fenced (`Run.fenced`): its slow taker may still be
    about to claim, and the claim must lose.
    """
    if run is None or run.is_terminal:
        return True
    return run.state not in keeps and now - holder.taken_at > UNCLAIMED_GRACE


def encode_slot(slot: Slot) -> dict[str, Any]:
    """JSON-able, for the stores."""
    return {
        "holders": [
            [str(one.run), one.epoch, one.taken_at.isoformat(), one.fire_at.isoformat(), one.weight]
            for one in slot.holders
        ],
        "waiters": [str(waiter) for waiter in slot.waiters],
    }


def decode_slot(name: str, stored: Mapping[str, Any], *, rev: int, nonce: str) -> Slot:
    """The slot that `encode_slot` stored."""
    holders = tuple(
        Holder(RunKey.of(run), int(epoch), datetime.fromisoformat(taken), datetime.fromisoformat(fire), int(weight))
        for run, epoch, taken, fire, weight in stored["holders"]
    )
    return Slot(name, holders, tuple(RunKey.of(text) for text in stored["waiters"]), rev, nonce)
