"""Draw a retry from its namespace's budget."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sweephand.domain.budget import HELD_MAX, RetryBudget
from sweephand.domain.ids import Namespace
from sweephand.errors import Unavailable
from sweephand.ports import World

BUDGET: Final = "retries"
"""The kind and the name of the document that keeps a namespace's balance."""
_TRIES: Final = 3


def draw(world: World, namespace: Namespace, *, now: datetime) -> timedelta:
    """How much longer than it would the retry must wait; nothing, as long as the namespace has not used up its budget.

    Drawing twice for one retry, which a lost race can cause, costs the namespace one retry more. Where many draw at
    once, those that lose again and again wait as if all was used up.
    """
    if world.lately.retry(namespace, now=now):
        return timedelta(0)
    starts = world.lately.starts(namespace, now=now)
    try:
        for _ in range(_TRIES):
            stored = world.shared.get(namespace, BUDGET, BUDGET)
            before = RetryBudget.decode(stored[1]) if stored else RetryBudget(now)
            after = before.drawn(starts=starts, now=now)
            if world.shared.put(namespace, BUDGET, BUDGET, after.encode(), expected=stored[0] if stored else 0):
                return _spread(world, after.held)
    except Unavailable:
        return timedelta(0)  # safe: a retry that is not counted
    return _spread(world, HELD_MAX)


def _spread(world: World, held: timedelta) -> timedelta:
    """Any moment within it: those that wait the longest would come back together otherwise."""
    return held * world.dice.chance()
