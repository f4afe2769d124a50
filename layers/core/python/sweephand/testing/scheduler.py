"""The real engine on a memory of its own, where a test says what time it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

from msgspec.structs import replace

from sweephand.domain.duration import parse_duration
from sweephand.domain.ids import JobName, Namespace
from sweephand.domain.job import Head
from sweephand.domain.ledger import FireStatus, LedgerRow
from sweephand.domain.run import Run, RunState
from sweephand.domain.status import listed
from sweephand.embedded import PACE, open_stores
from sweephand.engine.attempt import Attempted, Fate, begin, execute, finish
from sweephand.engine.follow import follow
from sweephand.engine.ledger import ledger, runs_between
from sweephand.engine.look import Looking
from sweephand.engine.lookup import present_head
from sweephand.engine.overview import overview_of
from sweephand.engine.sweep import sweep
from sweephand.errors import Defect
from sweephand.messages import AttemptRun, decode
from sweephand.ports import Delivery, Lane, World
from sweephand.testing.people import People, as_instant
from sweephand.testing.tasks import Function, Pending, Tasks
from sweephand.testing.virtual import SeededDice, VirtualClock

_RESOLUTION: Final = timedelta(microseconds=1)
_BATCH: Final = 10
_FOLLOWED_AT_ONCE: Final = 500
_END_OF_TIME: Final = datetime(9999, 1, 1, tzinfo=UTC)
_HOLD: Final = timedelta(seconds=30)


class VirtualScheduler(People):
    """A scheduler in virtual time. Apply jobs, say what their tasks do, let time pass, look at what happened.

    It is the engine itself, not an imitation: schedules, clock changes, catch-up, retries, overlap and the ledger are
    those of production. Time stands still but in `advance`, `advance_to` and `outage`, and jumps from each moment at
    which something can happen to the next. The same seed and the same calls give the same history.
    """

    def __init__(
        self, start: str | datetime = "2026-01-01T00:00:00Z", *, seed: int = 0, namespace: str = "default"
    ) -> None:
        self._clock = VirtualClock(as_instant(start, "start"))
        self._start = self._clock.now()
        tasks = Tasks()
        self._pending: list[Pending] = []
        self._followed = 0
        self._stores = stores = open_stores(None, clock=self._clock)
        world = World.over(stores, clock=self._clock, dice=SeededDice(seed), target=tasks, pace=PACE, owner="virtual")
        super().__init__(replace(world, target=Looking(tasks, world)), Namespace(namespace), tasks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stores.close()

    # What tasks do.

    def on(self, job: str, function: Function | None = None, *, takes: timedelta | str | float = 0) -> None:
        """What the job's task does: return its output, or raise, which is a failure that may be retried.

        Raise `Permanent` for one that may not. With `takes`, the attempt ends that much later; longer than the job's
        timeout, it times out. The function gets the call: `call.run`, `call.params`, `call.idempotency_key`.
        """
        length = takes if isinstance(takes, timedelta) else parse_duration(takes, path="takes")
        self._tasks.set(JobName(job), function, length)

    # How time passes.

    @property
    def now(self) -> datetime:
        """The present of this world."""
        return self._clock.now()

    def advance(self, length: timedelta = timedelta(0), **parts: float) -> None:
        """Let time pass: `advance(days=365)`, `advance(timedelta(hours=1))`."""
        self.advance_to(self.now + length + timedelta(**parts))

    def advance_to(self, moment: str | datetime) -> None:
        """Let time pass up to a moment, with everything that is due at it."""
        until = as_instant(moment, "moment")
        while True:
            self._do_what_is_due()
            following = self._next_moment()
            if following is None or following > until:
                break
            if following <= self.now:
                raise Defect(f"What was due at {following.isoformat()} is not dealt with.")
            self._clock.move(following)
        self._clock.move(until)

    def outage(self, length: timedelta = timedelta(0), **parts: float) -> None:
        """Let time pass while nothing works: what was running is lost, what was due is missed. Then all goes on."""
        self._pending.clear()
        self._clock.move(self.now + length + timedelta(**parts))
        self._do_what_is_due()

    # What happened.

    def job(self, job: str) -> Head:
        """The job's present state."""
        return present_head(self._world, self._key(job))

    def run(self, run: Run) -> Run:
        """The run as it is now."""
        found = self._world.runs.get(run.key)
        if found is None:
            raise Defect(f"Run {run.key} is gone.")
        return found

    def runs(self, job: str, *, state: str | None = None) -> list[Run]:
        """The job's runs, oldest first, all or those in a state; planned ones are not shown."""
        wanted = RunState(state) if state is not None else None
        found = runs_between(self._world, self._key(job), self._start - timedelta(days=366), _END_OF_TIME)
        return [run for run in found if listed(run) is not None and wanted in (None, run.state)]

    def tasks(self, run: Run) -> dict[str, Run]:
        """What became of each task of a run of several that has begun or was decided, by its name; `load[0]` too."""
        seen = overview_of(self._world, self.run(run))
        return {one.name: one.run for one in seen.seen(list(seen.names())) if one.run is not None}

    def ledger(
        self, job: str, *, since: str | datetime | None = None, until: str | datetime | None = None
    ) -> list[LedgerRow]:
        """Every fire with since <= F < until and what became of it; by default from the beginning up to now."""
        low = self._start if since is None else as_instant(since, "since")
        high = self.now + _RESOLUTION if until is None else as_instant(until, "until")
        return ledger(self._world, self._key(job), since=low, until=high)

    def assert_complete(self, job: str) -> None:
        """Fail unless every fire up to now became exactly one run, or has a reason why not."""
        wrong = [row for row in self.ledger(job) if _is_hole(row)]
        if wrong:
            lines = "\n".join(f"  {row.fire_at.isoformat()}: {row.status}" for row in wrong[:20])
            raise AssertionError(f"The ledger of {job} has {len(wrong)} holes or extras:\n{lines}")

    # The machinery.

    def _next_moment(self) -> datetime | None:
        """When something can happen next."""
        moments = [pending.ends_at for pending in self._pending]
        moments += [at for _, at in self._firsts(_END_OF_TIME)]
        visible_at = self._stores.bell.next_visible_at()
        return min([*moments, visible_at] if visible_at is not None else moments, default=None)

    def _firsts(self, upto: datetime) -> list[tuple[int, datetime]]:
        """Each shard's first due entry."""
        shards = range(self._world.shards.count())
        return [
            (shard, entry.at)
            for shard in shards
            for entry in self._world.due.read(shard, after=None, upto=upto, limit=1)
        ]

    def _do_what_is_due(self) -> None:
        """Everything that can happen at this instant, in a fixed order, until nothing is left of it."""
        while True:
            shards = [shard for shard, _ in self._firsts(self.now)]
            swept = sum(sweep(self._world, [shard]).entries for shard in shards)  # alone, none is handed on
            if not swept and shards:
                raise Defect(f"Something in shards {shards} is due and is not dealt with.")
            if not (self._finish_what_ends() or self._attempt_what_came() or swept or self._follow()):
                return

    def _follow(self) -> bool:
        """Let everything follow from what changed: jobs after jobs, datasets, backfills."""
        changed = self._stores.feed.read(self._followed, _FOLLOWED_AT_ONCE)
        if changed:
            follow(self._world, f"batch-{self._followed:016d}", [run for _, run in changed])
            self._followed = changed[-1][0]
        return bool(changed)

    def _finish_what_ends(self) -> bool:
        ends = [pending for pending in self._pending if pending.ends_at <= self.now]
        for pending in sorted(ends, key=lambda one: (one.ends_at, one.call.run.key)):
            self._pending.remove(pending)
            finish(self._world, pending.call, pending.outcome)
            self._stores.inbox.delete([pending.delivery])
        return bool(ends)

    def _attempt_what_came(self) -> bool:
        for lane in (Lane.HIGH, Lane.NORMAL, Lane.LOW):
            deliveries = self._stores.inbox.receive(lane, most=_BATCH, hold=_HOLD)
            for delivery in deliveries:
                self._attempt(delivery)
            if deliveries:
                return True
        return False

    def _attempt(self, delivery: Delivery) -> None:
        message = decode(delivery.body)
        if not isinstance(message, AttemptRun):
            raise Defect(f"There is no run in the message {delivery.body}.")
        begun = begin(self._world, message, delivery)
        if not isinstance(begun, Attempted):
            # In the end by the same way, be it at once.
            ends_at = self.now + self._tasks.length(begun)
            outcome = execute(self._world, self._world.target, begun)
            self._pending.append(Pending(begun, delivery, outcome, ends_at))
        elif begun.fate is Fate.DELETE:
            self._stores.inbox.delete([delivery])
        elif begun.fate is Fate.KEEP:
            self._stores.inbox.keep(delivery, begun.hold)


def _is_hole(row: LedgerRow) -> bool:
    """Here nothing is ever late, so that a fire without a trace is a hole at once."""
    if row.status is FireStatus.PENDING:
        return row.run_id is None and row.reason is None
    return row.status in (FireStatus.MISSING, FireStatus.EXTRA)
