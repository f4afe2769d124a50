"""Repeating a call whose answer was lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from sweephand.domain.run import Run
from sweephand.errors import Unavailable
from sweephand.ports import World

T = TypeVar("T")
_TRIES: Final = 3


def insist(call: Callable[[], T]) -> T:
    """The call's answer, asking again where there was none.

    Only for calls that recognise their own repetition: every compare-and-set does, by its nonce. Without this, a
    claim that took effect although its answer was lost would sit out a whole lease that nobody holds.
    """
    for _ in range(_TRIES - 1):
        try:
            return call()
        except Unavailable:
            continue
    return call()


def move(world: World, before: Run, after: Run) -> bool:
    """Move a run; False where somebody else moved it first."""
    return insist(lambda: world.runs.move(before, after))
