"""A backfill: the fires of a window that are made up for, a few at a time, beside the schedule.

It is an object of its own, with a state that people move. What it has under way is written down in it before it is
done: so it never has more under way than it may, and whoever goes on with it knows what another left half done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.lifecycle import Lifecycle
from sweephand.domain.run import Run, RunState
from sweephand.errors import InvalidInput

FIRES_MAX: Final = 20_000
"""Fires that one backfill looks at: two weeks of minutes, or two years of hours."""
ACTIVE_MAX: Final = 100
"""Runs that one backfill may have under way: its document names them."""
ACTIVE_USUAL: Final = 4
_TICK: Final = timedelta(microseconds=1)


class Only(StrEnum):
    """Which fires are made up for."""

    MISSING = "missing"
    """Those that became no run, for no reason of the calendar's."""
    FAILED = "failed"
    """Those whose runs failed, and that no run has succeeded for since."""
    ALL = "all"
    """All that the calendar allows, also those that succeeded; not what is under way."""


class Order(StrEnum):
    """Which fire comes first."""

    OLDEST = "oldest"
    NEWEST = "newest"


class BackfillState(StrEnum):
    """Stored values: never renamed."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"


class BackfillEvent(StrEnum):
    """What can happen to a backfill."""

    PAUSED = "paused"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    FINISHED = "finished"


_S, _E = BackfillState, BackfillEvent

BACKFILL_LIFECYCLE: Final = Lifecycle(
    name="Backfill",
    states=BackfillState,
    events=BackfillEvent,
    arrows={
        (_S.RUNNING, _E.PAUSED): _S.PAUSED,
        (_S.RUNNING, _E.CANCELLED): _S.CANCELLED,
        (_S.RUNNING, _E.FINISHED): _S.DONE,
        (_S.PAUSED, _E.RESUMED): _S.RUNNING,
        (_S.PAUSED, _E.CANCELLED): _S.CANCELLED,
        (_S.PAUSED, _E.FINISHED): _S.DONE,
    },
    stuck={
        _S.RUNNING: "its runs go on; where none says that it ended, its machine, the auditor or housekeeping looks",
        _S.PAUSED: "a person resumes or cancels it; what it had under way ends by itself",
    },
)


class BackfillKey(Struct, frozen=True, order=True):
    """A backfill's identity: its id within its job."""

    job: JobKey
    id: str

    def __str__(self) -> str:
        return f"{self.job}/{self.id}"

    @property
    def name(self) -> str:
        """The name of its document in the namespace: those of a job lie together, in the order of their ids."""
        return f"{self.job.name}/{self.id}"

    @classmethod
    def of(cls, text: str) -> BackfillKey:
        namespace, name, id_ = text.split("/")
        return cls(JobKey(Namespace(namespace), JobName(name)), id_)


class Wanted(Struct, frozen=True):
    """What somebody asks for: the fires with since <= F < until, these of them, in this order, so many at once."""

    since: datetime
    until: datetime
    only: Only = Only.MISSING
    order: Order = Order.OLDEST
    max_active: int = ACTIVE_USUAL
    collapse: bool = False
    """One run that stands for all of them."""

    def __post_init__(self) -> None:
        if self.since >= self.until:
            raise InvalidInput("The window ends after it begins: 'to' must be later than 'from'.", "to")
        if not 1 <= self.max_active <= ACTIVE_MAX:
            raise InvalidInput(f"maxActive is 1 to {ACTIVE_MAX}.", "maxActive")


class Backfill(Struct, frozen=True):
    """What is stored. `since` and `until` are what is left of the window; `active` is what is under way."""

    key: BackfillKey
    wanted: Wanted
    since: datetime
    until: datetime
    created_at: datetime
    created_by: str
    changed_at: datetime
    count: int
    """Fires that were to be made up for when it was asked for."""
    first: datetime | None = None
    """The first of them."""
    last: datetime | None = None
    state: BackfillState = BackfillState.RUNNING
    reason: str = ""
    note: str = ""
    active: tuple[RunId, ...] = ()
    made: int = 0
    """Runs so far, those under way among them."""
    ended: Mapping[str, int] = field(default_factory=dict)
    """How many of them ended in which state."""
    generation: int = 0
    """Counts the executions that kept it going, where executions do."""

    @property
    def is_open(self) -> bool:
        return self.state not in BACKFILL_LIFECYCLE.terminal

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left to see to."""
        return not self.is_open and not self.active

    @property
    def is_exhausted(self) -> bool:
        """Whether every fire of its window has had its turn."""
        return self.since >= self.until

    @property
    def room(self) -> int:
        """How many more runs it may put now."""
        return self.wanted.max_active - len(self.active) if self.state is BackfillState.RUNNING else 0

    @property
    def percent(self) -> int:
        if self.state is BackfillState.DONE:
            return 100
        return min(99, 100 * sum(self.ended.values()) // max(self.count, self.made, 1))

    def run_keys(self) -> list[RunKey]:
        return [RunKey(self.key.job, run_id) for run_id in self.active]

    def after(self, event: BackfillEvent, *, now: datetime, reason: str = "") -> Backfill:
        """Moved by an event, or a refusal."""
        target = BACKFILL_LIFECYCLE.after(self.state, event, what=f"Backfill {self.key}")
        return replace(self, state=target, changed_at=now, reason=reason)

    def put(self, fire_at: datetime, run_id: RunId) -> Backfill:
        """With a run under way for a fire, whose turn is over."""
        return replace(self.passed(fire_at), active=(*self.active, run_id), made=self.made + 1)

    def passed(self, fire_at: datetime) -> Backfill:
        """With everything up to this fire, which had its turn, no longer to be looked at."""
        if self.wanted.collapse:
            return replace(self, since=self.until)
        if self.wanted.order is Order.OLDEST:
            return replace(self, since=max(self.since, fire_at + _TICK))
        return replace(self, until=min(self.until, fire_at))

    def exhausted(self) -> Backfill:
        """With nothing left of its window."""
        return replace(self, since=self.until)

    def renamed(self, before: RunId, after: RunId) -> Backfill:
        """With another id for a run that is not there yet: somebody else took that one."""
        return replace(self, active=tuple(after if one == before else one for one in self.active))

    def met(self, runs: Iterable[Run]) -> Backfill:
        """With those of its runs that have ended counted, and no longer under way."""
        over = {run.key.run_id: run.state for run in runs if run.is_terminal}
        ended = dict(self.ended)
        for run_id in self.active:
            if run_id in over:
                ended[str(over[run_id])] = ended.get(str(over[run_id]), 0) + 1
        return replace(self, active=tuple(one for one in self.active if one not in over), ended=ended)

    def came_to(self, state: RunState) -> int:
        """How many of its runs ended in a state."""
        return self.ended.get(str(state), 0)

    def encode(self) -> dict[str, Any]:
        """As its document has it."""
        wanted = self.wanted
        return {
            "from": wanted.since.isoformat(),
            "to": wanted.until.isoformat(),
            "only": str(wanted.only),
            "order": str(wanted.order),
            "maxActive": wanted.max_active,
            "collapse": wanted.collapse,
            "left": [self.since.isoformat(), self.until.isoformat()],
            "createdAt": self.created_at.isoformat(),
            "createdBy": self.created_by,
            "changedAt": self.changed_at.isoformat(),
            "count": self.count,
            "span": [self.first.isoformat(), self.last.isoformat()] if self.first and self.last else None,
            "state": str(self.state),
            "reason": self.reason,
            "note": self.note,
            "active": list(self.active),
            "made": self.made,
            "ended": dict(self.ended),
            "generation": self.generation,
        }

    @classmethod
    def decode(cls, key: BackfillKey, stored: Mapping[str, Any]) -> Self:
        since, until, left_since, left_until, created_at, changed_at = map(
            datetime.fromisoformat,
            (stored["from"], stored["to"], *stored["left"], stored["createdAt"], stored["changedAt"]),
        )
        only, order = Only(stored["only"]), Order(stored["order"])
        first, last = map(datetime.fromisoformat, stored["span"]) if stored["span"] else (None, None)
        return cls(
            key,
            Wanted(since, until, only, order, stored["maxActive"], stored["collapse"]),
            left_since,
            left_until,
            created_at,
            stored["createdBy"],
            changed_at,
            stored["count"],
            first,
            last,
            BackfillState(stored["state"]),
            stored["reason"],
            stored["note"],
            tuple(RunId(one) for one in stored["active"]),
            stored["made"],
            stored["ended"],
            stored["generation"],
        )
