"""The real engine on a memory of its own, where a test says what time it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

from msgspec.structs import replace

from sweephand.domain.duration import parse_duration
from sweephand.domain.fields import instant
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import CatchupPolicy, Head, JobStatus
from sweephand.domain.ledger import FireStatus, LedgerRow
from sweephand.domain.run import Run, RunState
from sweephand.domain.status import listed
from sweephand.dsl import Job
from sweephand.embedded import PACE, open_stores
from sweephand.engine import share
from sweephand.engine.attempt import Attempted, Fate, begin, execute, finish
from sweephand.engine.cancel import cancel
from sweephand.engine.delete import delete
from sweephand.engine.ledger import ledger, runs_between
from sweephand.engine.look import Looking
from sweephand.engine.lookup import present_head
from sweephand.engine.overview import overview_of
from sweephand.engine.pause import pause
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.resume import Resumed, resume
from sweephand.engine.sweep import sweep
from sweephand.engine.trigger import trigger
from sweephand.errors import Defect, InvalidInput
from sweephand.messages import AttemptRun, decode
from sweephand.ports import Delivery, Lane, World
from sweephand.testing.tasks import Function, Pending, Tasks, called
from sweephand.testing.virtual import SeededDice, VirtualClock

_ACTOR: Final = "test"
_RESOLUTION: Final = timedelta(microseconds=1)
_BATCH: Final = 10
_END_OF_TIME: Final = datetime(9999, 1, 1, tzinfo=UTC)
_HOLD: Final = timedelta(seconds=30)


class VirtualScheduler:
    """A scheduler in virtual time. Apply jobs, say what their tasks do, let time pass, look at what happened.

    It is the engine itself, not an imitation: schedules, clock changes, catch-up, retries, overlap and the ledger are
    those of production. Time stands still but in `advance`, `advance_to` and `outage`, and jumps from each moment at
    which something can happen to the next. The same seed and the same calls give the same history.
    """

    def __init__(
        self, start: str | datetime = "2026-01-01T00:00:00Z", *, seed: int = 0, namespace: str = "default"
    ) -> None:
        self._clock = VirtualClock(_instant(start, "start"))
        self._start = self._clock.now()
        self._namespace = Namespace(namespace)
        self._tasks = Tasks()
        self._pending: list[Pending] = []
        self._stores = stores = open_stores(None, clock=self._clock)
        world = World.over(
            stores, clock=self._clock, dice=SeededDice(seed), target=self._tasks, pace=PACE, owner="virtual"
        )
        self._world = replace(world, target=Looking(self._tasks, world))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stores.close()

    # What people do.

    def apply(self, definition: Mapping[str, Any] | Job) -> Head:
        """Create the job that the definition names, or give it a new version.

        Of a job that is written in Python, the tasks are its functions, until `on` says something else.
        """
        if isinstance(definition, Job):
            self._tasks.set(JobName(definition.name), called, timedelta(0))
            definition = definition.document()
        name = definition.get("name")
        head = self._world.jobs.head(self._key(name)) if isinstance(name, str) else None
        expected = head.version if head is not None and head.status is not JobStatus.DELETED else None
        return put(self._world, self._namespace, definition, actor=_ACTOR, expected=expected)

    def pause(self, job: str) -> Head:
        """Stop the job's schedule."""
        return pause(self._world, self._key(job), actor=_ACTOR)

    def resume(self, job: str, *, catchup: str = "none") -> Resumed:
        """Let the schedule go on; `catchup` (none, latest, all) decides about the fires that the pause held."""
        if catchup not in list(CatchupPolicy):
            raise InvalidInput(f"'{catchup}' is unknown: use {', '.join(CatchupPolicy)}.", "catchup")
        return resume(self._world, self._key(job), catchup=CatchupPolicy(catchup), actor=_ACTOR)

    def delete(self, job: str) -> Head:
        """Delete the job; its history stays."""
        return delete(self._world, self._key(job), actor=_ACTOR)

    def trigger(self, job: str, params: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None) -> Run:
        """Have the job run now: it starts when time goes on, be it by nothing (`advance()`)."""
        return trigger(self._world, self._key(job), params=params, idempotency_key=idempotency_key)

    def cancel(self, run: Run) -> Run:
        """End a run."""
        return cancel(self._world, run.key, actor=_ACTOR)

    def rerun(self, run: Run) -> Run:
        """Run an ended run again."""
        return rerun(self._world, run.key)

    def pool(self, name: str, slots: int) -> None:
        """Create a pool, or change its size."""
        share.put_pool(self._world, self._namespace, name, slots, expected=self._revision("pool", name))

    def calendar(self, name: str, definition: Mapping[str, Any]) -> None:
        """Create a calendar, or give it a new version."""
        expected = self._revision("calendar", name)
        share.put_calendar(self._world, self._namespace, name, definition, expected=expected)

    def secret(self, name: str, value: str) -> None:
        """Store a secret: the call of a task that declares it has its value in `call.secrets.by_name`."""
        expected = self._revision("secret", name)
        share.put_secret(self._world, self._namespace, name, value, expected=expected, now=self.now)

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
        until = _instant(moment, "moment")
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
        low = self._start if since is None else _instant(since, "since")
        high = self.now + _RESOLUTION if until is None else _instant(until, "until")
        return ledger(self._world, self._key(job), since=low, until=high)

    def assert_complete(self, job: str) -> None:
        """Fail unless every fire up to now became exactly one run, or has a reason why not."""
        wrong = [row for row in self.ledger(job) if _is_hole(row)]
        if wrong:
            lines = "\n".join(f"  {row.fire_at.isoformat()}: {row.status}" for row in wrong[:20])
            raise AssertionError(f"The ledger of {job} has {len(wrong)} holes or extras:\n{lines}")

    # The machinery.

    def _key(self, job: str) -> JobKey:
        return JobKey(self._namespace, JobName(job))

    def _revision(self, kind: str, name: str) -> int:
        stored = self._world.shared.get(self._namespace, kind, name)
        return stored[0] if stored else 0

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
            if not (self._finish_what_ends() or self._attempt_what_came() or swept):
                return

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


def _instant(value: str | datetime, path: str) -> datetime:
    if isinstance(value, str):
        return instant(value, path)
    if value.tzinfo is None:
        raise InvalidInput("The time has no zone: give it one, such as UTC.", path)
    return value.astimezone(UTC)
