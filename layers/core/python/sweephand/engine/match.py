"""Find out whose turn it is, of the workers that wait for work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Final

from msgspec import Struct

from sweephand.domain.ids import Namespace, RunKey
from sweephand.ports import World

_LOOKED_AT: Final = 100
"""Offers of a queue that one look deals out: the next look is a moment later."""


class Wanted(Struct, frozen=True):
    """What a worker waits for: at least so many runs of these queues, and no more than it takes."""

    namespace: Namespace
    worker: str
    queues: tuple[str, ...]
    most: int = 1
    least: int = 1


class Matched(Struct, frozen=True):
    """Somebody in the line, by the place there, and the runs that are on offer for them."""

    place: int
    runs: frozenset[RunKey]


def match(world: World, line: Sequence[Wanted], *, taken: Set[RunKey]) -> list[Matched]:
    """Deal what is on offer out to those who wait, in their order; what is `taken` is somebody's already.

    Each queue is read once, however many wait for it. Nothing is claimed, so that repeating it is safe: who is matched
    comes for work as anybody does, and may find none.
    """
    counts = Counter((one.namespace, queue) for one in line for queue in one.queues)
    limit = _LOOKED_AT + len(taken)
    offers = {
        queue: [one for one in world.offers.open(*queue, limit=limit) if one.run not in taken] for queue in counts
    }
    now = world.clock.now()
    matched: list[Matched] = []
    for place, wanted in enumerate(line):
        runs: set[RunKey] = set()
        for queue in wanted.queues:
            for offer in offers[wanted.namespace, queue]:
                if len(runs) == wanted.most:
                    break
                if offer.is_for(wanted.worker, now=now):
                    runs.add(offer.run)
        if runs and len(runs) >= wanted.least:
            matched.append(Matched(place, frozenset(runs)))
            for queue in wanted.queues:
                left = [offer for offer in offers[wanted.namespace, queue] if offer.run not in runs]
                offers[wanted.namespace, queue] = left
    return matched
