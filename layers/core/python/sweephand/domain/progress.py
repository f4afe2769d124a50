"""How far the tasks of a run are. Derived from the tasks' own runs, but for who sleeps and must be woken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.domain.ids import RunKey

CHANGED_MAX: Final = 1_000
"""How many ends are named one by one: far fewer than DynamoDB has room for in an item, however long the names are."""


class Progress(Struct, frozen=True):
    """The states of a run's tasks as its last advance saw them, and what ended since.

    Three kinds of writers share it, and none waits for another: whoever advances the run moves `rev`; whoever ends a
    task adds it to `changed` and moves `noted`; whoever wakes a sleeper takes its `token` away. One who goes to sleep
    says which `noted` it has seen, so that an end which it has not seen keeps it awake.
    """

    run: RunKey
    states: bytes
    """One byte for each task, in the order of the job's tasks."""
    looked_at: datetime
    """When somebody last advanced it."""
    instances: Mapping[int, bytes] = field(default_factory=dict)
    """One byte for each instance of the mapped tasks that have begun, by the task's place."""
    generation: int = 0
    """Which execution advances it: an older one stops."""
    waves: int = 0
    """How often this execution has advanced it."""
    rev: int = 0
    nonce: str = ""
    changed: frozenset[str] = frozenset()
    """Tasks and instances that ended since."""
    noted: int = 0
    token: str | None = None
    """Of the one who sleeps until something ends."""
    waking_until: datetime | None = None
    """Somebody is waking it, and has until then."""

    @property
    def is_crowded(self) -> bool:
        """Whether so many tasks are named that others may have been left out: then everything is looked at."""
        return len(self.changed) >= CHANGED_MAX

    def is_being_woken(self, now: datetime) -> bool:
        return self.waking_until is not None and now < self.waking_until

    def moved(self, *, nonce: str, **changes: Any) -> Progress:
        """The next revision of what its advance knows; nobody sleeps now."""
        return replace(self, rev=self.rev + 1, nonce=nonce, token=None, waking_until=None, **changes)
