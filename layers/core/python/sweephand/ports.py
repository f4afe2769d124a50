"""What the engine needs from the world. Two adapters provide it: `embedded` (SQLite) and `aws`.

Verbs are the domain's. Losing a race is an answer (`False`), not an exception. Any call may raise `Unavailable`, and
may have taken effect all the same: every compare-and-set carries a nonce, so that repeating it is recognised as one's
own and answers `True`. All reads of jobs, runs, slots and shards are strongly consistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from sweephand.artifacts import Artifacts
from sweephand.calls import Target
from sweephand.dags import Dags, Fillers, Machines
from sweephand.documents import Shared
from sweephand.domain.budget import Lately
from sweephand.domain.dag import Graph
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.job import Change, Head, JobVersion
from sweephand.domain.ledger import Dropped, LedgerPage
from sweephand.domain.run import Run
from sweephand.domain.slots import Slot
from sweephand.domain.trail import Deed
from sweephand.logs import Logs
from sweephand.messages import Message
from sweephand.packs import Packs
from sweephand.secrets import Secrets
from sweephand.views import Views


class Lane(StrEnum):
    """A queue of its own: one per priority, so that a full low lane delays nobody else, and one for sweeps."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    SWEEP = "sweep"


class DueKind(StrEnum):
    """What a due entry points at."""

    JOB = "job"
    """A cursor to plan."""
    RUN = "run"
    """A run to look at: a wait too long for the queue's delay."""


class DueEntry(Struct, frozen=True, order=True):
    """A hint to look at something at a moment; the truth is in the job or run, so a stale hint is harmless."""

    at: datetime
    kind: DueKind
    key: str
    shard: int


class ShardLease(Struct, frozen=True):
    """The right to sweep one shard for a while, and how far it was swept. It avoids waste; nothing relies on it."""

    shard: int
    owner: str
    until: datetime
    watermark: datetime | None
    rev: int


class Letter(Struct, frozen=True):
    """A message to be sent: delayed, in a lane, with its namespace as the fairness group."""

    message: Message
    delay: timedelta = timedelta(0)
    lane: Lane = Lane.NORMAL
    group: str = "default"


class Delivery(Struct, frozen=True):
    """A message in hand; `receipt` names this delivery of it, and `hold` is how long it was hidden from others then."""

    body: str
    receipt: str
    lane: Lane
    receives: int
    hold: timedelta = timedelta(0)


class DeadLetter(Struct, frozen=True):
    """A message that was delivered too often without being dealt with."""

    id: str
    body: str
    lane: Lane
    dead_at: datetime


class Pace(Struct, frozen=True):
    """How far a world plans ahead, which depends on its queue's delays and on its clocks."""

    lookahead: timedelta
    """Fires this near are planned."""
    step: timedelta
    """A cursor rests at least this long."""
    spread: timedelta
    """Cursors are spread by hash over this much, so that those of one minute are not planned in one."""
    margin: timedelta
    """No due entry is armed nearer than this, so that a sweeper whose clock is ahead has not passed it yet."""
    lease_grace: timedelta = timedelta(seconds=30)
    """How long a claim lasts beyond the attempt's time-out."""
    lease: timedelta | None = None
    """How long a claim lasts where its owner renews it; None: as long as the attempt may take."""
    attempt_max: timedelta = timedelta.max
    """The longest that an attempt can take here; external workers have places of their own."""
    launches: bool = False
    """Whether agents are launched for containers, and for what takes longer than that."""
    slot_poll: timedelta = timedelta(minutes=1)
    """How often a waiting run looks for room by itself."""
    looked_after: timedelta = timedelta(minutes=10)
    """How often somebody sees to a run of several tasks, whatever its tasks say."""
    sweep_lease: timedelta = timedelta(seconds=55)
    """How long a sweeper has a shard to itself."""


class Clock(Protocol):
    def now(self) -> datetime:
        """The present, aware and in UTC."""


class Dice(Protocol):
    def nonce(self) -> str:
        """A text that nobody else will ever write."""

    def chance(self) -> float:
        """A number in [0, 1)."""

    def secret(self) -> str:
        """43 characters, of A-Z, a-z, 0-9, '-' and '_', that nobody can guess: 256 bits."""


SOUGHT_MAX = 10_000
"""Jobs that one search looks at."""


class Sought(Struct, frozen=True):
    """What a search has found so far."""

    heads: list[Head]
    reached: JobName | None
    """The last job that was looked at, where there are more behind it."""


class Soonest(Struct, frozen=True):
    """The jobs that may fire first."""

    heads: list[Head]
    is_whole: bool
    """Whether all jobs were looked at."""


class Recent(Struct, frozen=True):
    """Runs of a job, newest first."""

    listed: list[Run]
    """Its newest ones that lists show."""
    active: list[Run]


class Jobs(Protocol):
    def head(self, key: JobKey) -> Head | None: ...

    def heads_of(self, keys: Sequence[JobKey]) -> list[Head]:
        """The heads of many jobs at once, strongly consistent, in any order; absent ones are left out."""

    def namespaces(self) -> list[Namespace]:
        """Every namespace that ever had a job, in order."""

    def heads(self, namespace: Namespace, *, after: JobName | None = None, limit: int) -> list[Head]:
        """Heads in the order of their names, deleted ones too, beginning after a name."""

    def sought(
        self,
        namespace: Namespace,
        words: str,
        *,
        after: JobName | None = None,
        limit: int,
        looked_at_max: int = SOUGHT_MAX,
    ) -> Sought:
        """Heads of jobs whose words contain these, folded, in the order of their names, beginning after a name; among
        so many jobs at the most, so that there may be more behind where few were found, or none."""

    def soonest(self, namespace: Namespace, *, now: datetime, upto: datetime, limit: int) -> Soonest:
        """Heads that may fire in (now, upto], by `may_fire_from` and name, up to `limit`. On SQLite 20,000 of them are
        looked at; on AWS, which has no index of cursors, the first thousand jobs by name, in a dozen reads."""

    def version(self, key: JobKey, number: int) -> JobVersion | None: ...

    def each_version(self, wanted: Sequence[tuple[JobKey, int]]) -> list[JobVersion]:
        """Those of these that are there, in any order, read together."""

    def versions(self, key: JobKey, *, before: int | None = None, limit: int) -> list[JobVersion]:
        """Newest first."""

    def change(
        self, before: Head | None, after: Head, change: Change, version: JobVersion | None, entry: DueEntry | None
    ) -> bool:
        """Head, timeline row, audit row (`deed_of`), version and due entry in one transaction; False where the head
        moved since."""

    def advance(self, moves: Sequence[tuple[Head, Head]]) -> list[bool]:
        """Each cursor for itself: False where the head moved since."""

    def timeline(self, key: JobKey, *, since: datetime | None = None) -> list[Change]:
        """Oldest first; with `since`, from the last change at or before it, which was in force then."""

    def count(self, namespace: Namespace) -> int:
        """How many jobs the namespace has, deleted ones not among them."""


class Runs(Protocol):
    def create(self, runs: Sequence[Run]) -> list[bool]:
        """Each for itself: False where the run exists already, since two sweeps may plan the same fire."""

    def get(self, key: RunKey) -> Run | None: ...

    def several(self, keys: Sequence[RunKey]) -> list[Run]:
        """Those of these that are there, in any order."""

    def move(self, before: Run, after: Run) -> bool:
        """False where the run moved since; identity fields are not written."""

    def of_job(
        self,
        job: JobKey,
        *,
        since: RunId | None = None,
        until: RunId | None = None,
        newest_first: bool = True,
        limit: int,
    ) -> list[Run]:
        """Runs with since <= id < until, in the order of their ids."""

    def active(self, job: JobKey, *, until: RunId) -> list[Run]:
        """Runs with id < `until` that are running or retrying, newest first, at most a hundred: `until` leaves out what
        is planned ahead. On AWS, which has no index of states, only the newest hundred ids below it are looked at."""

    def recent(self, jobs: Sequence[JobKey], *, until: RunId, limit: int) -> list[Recent]:
        """Of each job, in their order, its newest runs with id < `until` that lists show, up to `limit`, and those that
        are active; all jobs are read together. On AWS both are found among the newest hundred, as `active` says."""

    def tasks(self, run: RunKey, *, after: str = "", limit: int) -> list[Run]:
        """The tasks of a run that were released or decided about, in the order of their ids, beginning after one."""

    def drop(self, job: JobKey, dropped: Dropped) -> None:
        """Record a stretch of fires that became no runs; the same beginning again replaces it, and never shortens it.

        Whoever is late may say what was missed as it was a while ago.
        """

    def dropped(self, job: JobKey, *, since: datetime, until: datetime) -> list[Dropped]:
        """Stretches that touch since <= F < until."""

    def write_page(self, page: LedgerPage) -> None:
        """The auditor's verdict on one job and day, which outlives the runs."""

    def pages(self, job: JobKey, *, since: datetime, until: datetime) -> list[LedgerPage]: ...

    def remember(self, namespace: Namespace, key: str, value: str, *, until: datetime) -> str:
        """The value first remembered under this key: this one, or an earlier caller's; forgotten after `until`."""

    def note(self, namespace: Namespace, key: str, value: str, *, until: datetime) -> None:
        """Remember a value under this key, whatever was remembered before; forgotten after `until`."""

    def noted(self, namespace: Namespace, key: str) -> str | None:
        """What is remembered under this key; None where nothing is, or where its time is over."""


class Due(Protocol):
    def arm(self, entries: Sequence[DueEntry]) -> None: ...

    def read(
        self, shard: int, *, after: datetime | None, upto: datetime, limit: int, beyond: DueEntry | None = None
    ) -> list[DueEntry]:
        """Entries with after < at <= upto in their order (at, kind, key), the next page beginning beyond an entry."""

    def done(self, entries: Sequence[DueEntry]) -> None:
        """These were dealt with; a store that expires entries by itself does nothing."""


class Shards(Protocol):
    def count(self) -> int: ...

    def grow(self, count: int) -> None:
        """More shards from now on; never fewer, since entries armed under the old count stay where they are."""

    def take(self, shard: int, *, owner: str, now: datetime, until: datetime) -> ShardLease | None:
        """None where another owner's lease is live."""

    def release(self, lease: ShardLease, *, watermark: datetime) -> bool:
        """False where the lease was taken over meanwhile."""


class Slots(Protocol):
    def get(self, name: str) -> Slot:
        """The slot as it is; an empty one where nobody ever held it."""

    def swap(self, before: Slot, after: Slot) -> bool: ...


class Trail(Protocol):
    """The audit log: it is appended to, and nothing else."""

    def append(self, deed: Deed) -> None:
        """The same deed again changes nothing."""

    def deeds(self, namespace: Namespace, *, before: Deed | None = None, limit: int) -> list[Deed]:
        """Newest first, by (time, id), beginning before a deed."""


class Reply(Struct, frozen=True):
    """What became of a call with an idempotency key: `answer` is None while its holder is at it."""

    fingerprint: str
    """A hash of what was asked: the same key with another fingerprint is a mistake of the caller."""
    holder: str
    held_until: datetime
    answer: str | None = None


class Replies(Protocol):
    """Answers kept for callers who repeat themselves."""

    def reserve(self, namespace: Namespace, key: str, reply: Reply, *, now: datetime, until: datetime) -> Reply:
        """The reply in place under the key: this one, where there was none, or only one that was forgotten (its
        `until` has passed) or whose holder gave no answer in time and asked the same; else the other's."""

    def settle(self, namespace: Namespace, key: str, reply: Reply, *, until: datetime) -> bool:
        """Store the answer; False where another holder has taken over."""

    def release(self, namespace: Namespace, key: str, reply: Reply) -> None:
        """Give the key up without an answer, if it is still this holder's."""


class Offer(Struct, frozen=True, order=True):
    """A run that waits for an external worker to come for it; a hint, as due entries are."""

    at: datetime
    run: RunKey
    nonce: str = ""
    """Which offering of it this is."""
    first: str = ""
    """The worker that nobody else comes before, until `first_until`; for all where there is none."""
    first_until: datetime | None = None

    def is_for(self, worker: str, *, now: datetime) -> bool:
        """Whether this worker may take it now."""
        return self.first_until is None or worker == self.first or now >= self.first_until


class Offers(Protocol):
    """What external workers can pull, by queue."""

    def offer(self, queue: str, offer: Offer) -> None:
        """The same again only replaces the nonce."""

    def open(self, namespace: Namespace, queue: str, *, limit: int) -> list[Offer]:
        """Oldest first."""

    def withdraw(self, queue: str, offers: Sequence[Offer]) -> None:
        """These, as they were read, are taken or moot; one that was offered again since, under another nonce, stays."""


class Queue(Protocol):
    def send(self, letters: Sequence[Letter]) -> None:
        """All accepted, or `Unavailable`; what was accepted may then arrive all the same."""


class Inbox(Protocol):
    """The consumer's side of the queue. A delivery that is neither deleted nor kept comes back by itself."""

    def receive(self, lane: Lane, *, most: int, hold: timedelta) -> list[Delivery]: ...

    def keep(self, delivery: Delivery, hold: timedelta) -> None:
        """Nobody else gets it for this long from now."""

    def delete(self, deliveries: Sequence[Delivery]) -> None: ...

    def dead(self, *, most: int) -> list[DeadLetter]: ...

    def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Forget dead letters that were dealt with."""


class Stores(Struct, frozen=True):
    """What an adapter provides: everything that outlives a process."""

    jobs: Jobs
    runs: Runs
    dags: Dags
    due: Due
    shards: Shards
    slots: Slots
    shared: Shared
    trail: Trail
    replies: Replies
    offers: Offers
    queue: Queue
    inbox: Inbox
    views: Views
    logs: Logs
    artifacts: Artifacts
    packs: Packs
    secrets: Secrets


class World(Stores, frozen=True):
    """Everything that the engine may touch."""

    clock: Clock
    dice: Dice
    target: Target
    pace: Pace
    owner: str
    versions: dict[tuple[JobKey, int], JobVersion] = field(default_factory=dict)
    """Job versions already read: they are immutable, so they are never stale."""
    graphs: dict[tuple[JobKey, int], Graph] = field(default_factory=dict)
    """The graphs of their tasks, where there are several."""
    lately: Lately = field(default_factory=Lately)
    """What this process began and retried, for the retry budget."""
    pulled: set[RunKey] = field(default_factory=set)
    """Runs that external workers are being given by this process right now: others need not try for them."""
    machines: Machines | None = None
    """Where there is none, whoever has a run's message advances it."""
    fillers: Fillers | None = None
    """Where there is none, housekeeping goes on with backfills."""

    @classmethod
    def over(cls, stores: Stores, *, clock: Clock, dice: Dice, target: Target, pace: Pace, owner: str) -> World:
        """A world on these stores."""
        ports = {port: getattr(stores, port) for port in Stores.__struct_fields__}
        return cls(**ports, clock=clock, dice=dice, target=target, pace=pace, owner=owner)
