"""What runs use: the real engine on moto, on a virtual clock, every call metered by AWS's own rules.

Each world is driven as AWS would drive it: a tick and a sweep each minute, batches of messages to `attempt`, the
stream of changed runs to `project` and `live` in their windows, a round of the audit each quarter of an hour. What a
run adds is told apart from what the sweeps cost anyway: shards and minutes in which nothing is due are passed over,
and an idle time is measured by itself, all shards of it, and charged for every minute of a month.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from moto.dynamodb.models import dynamodb_backends
from msgspec import Struct
from msgspec.structs import replace

from bench.meter import size_of
from bench.rig import A_MINUTE, AN_HOUR, EVE, FIXED, NAMESPACE, PLANNING, TICK_AT, Bill, For, Rig, Target, Work
from sweephand import aws
from sweephand.aws.items import run_item
from sweephand.domain.ids import JobKey, RunKey, run_id_of_fire
from sweephand.domain.run import Run
from sweephand.engine.audit import RECENT
from sweephand.engine.put import put
from sweephand.engine.rounds import ROUND_EVERY, WHOLE_EVERY, go_on
from sweephand.local.cloud.account import ACCOUNT, REGION
from sweephand.ports import World
from sweephand.testing.virtual import VirtualClock
from sweephand.topology import RUNS, VIEWS
from tests.moto_world import NAMES, moto_world

ITEM_OVERHEAD: Final = 100
"""Bytes that DynamoDB adds to each item that it stores."""
SLOW: Final = "a task of more than ten seconds"
NOON: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)

BARS: Final = {"hourly": 6.0, "per minute": 4.0}
"""Write units of a run, with everything that grows with runs."""
PUBLISHED: Final = {"a slot": 2, "a retry": 2, "a long timer": 3}
"""Write units that a run may cost more."""

PURPOSES: Final = (For.PUT, For.CLAIM, For.COMPLETE, For.CURSOR, For.HINT, For.VIEWS, For.PAGE)
"""What every run writes for, or has its share in."""
READERS: Final = ("sweep", "attempt", "project", "live", "audit")
OPERATIONS: Final = ("SendMessageBatch", "ReceiveMessage", "ChangeMessageVisibility", "DeleteMessageBatch")


class Figures(Struct, frozen=True):
    """What was measured. A window ends amid a planning pass: what planning costs is shared by the runs put in it, and
    all else by the runs ended in it."""

    runs: int
    planned: int
    units: Mapping[For, int]
    reads: Mapping[str, float]
    requests: Mapping[tuple[bool, str], int]
    work: Mapping[str, Work]
    """By function; of `sweep` and `audit` only what they do because there are runs."""
    deliveries: int
    executions: int
    machines: int
    """Executions that a machine waited for."""
    opened: int
    """Pairs of a function and a table that it uses."""
    archived_bytes: float
    """A run's line in the archive."""
    ingested_bytes: float
    """What Firehose charges for it."""
    stored_bytes: float
    """What a run leaves behind for as long as runs are kept: itself, and its rows of the view."""

    def per_run(self, purposes: Iterable[For]) -> float:
        return sum(self.units.get(one, 0) / (self.planned if one in PLANNING else self.runs) for one in purposes)

    @property
    def writes(self) -> float:
        return self.per_run(set(For) - FIXED)

    @property
    def read_units(self) -> float:
        return sum(map(self.reads_of, READERS))

    def reads_of(self, function: str) -> float:
        return self.reads.get(function, 0) / self.sharers(function)

    @property
    def sqs(self) -> float:
        return sum(map(self.requests_of, OPERATIONS))

    def requests_of(self, operation: str) -> float:
        sends = operation == "SendMessageBatch"
        return self.requests.get((False, operation), 0) / (self.planned if sends else self.runs)

    def sharers(self, function: str) -> int:
        """The runs that share what a function does."""
        return self.planned if function == "sweep" else self.runs


@dataclass(frozen=True)
class Idle:
    """What a month without jobs uses, from half an hour of it."""

    write_units: int
    read_units: float
    sweep_requests: int
    peeks: int
    """At dead letters."""
    work: Mapping[str, Work]
    opened: int
    """Pairs of a function and a table that it uses."""


def measure(
    cron: str,
    *,
    jobs: int,
    start: datetime,
    warm_up: timedelta,
    measured: timedelta,
    target: Target | None = None,
    tick_at: timedelta = TICK_AT,
    **definition: Any,
) -> Figures:
    """A world of equal jobs, left alone until it is in its stride, then metered."""
    clock, bill = VirtualClock(start), Bill()
    with moto_world(clock, meter=bill) as stores:
        rig = Rig(stores, clock, bill, target or Target(), tick_at)
        for n in range(jobs):
            document = {"name": f"report-{n:03d}", "schedule": {"cron": cron}, "run": {"command": ["true"]}}
            document |= definition
            put(rig.world, NAMESPACE, document, actor="bench", expected=None)
        rig.pass_time(start + warm_up)
        rig.start_counting()
        rig.pass_time(start + warm_up + measured)
        return _figures(rig, start + warm_up)


def _figures(rig: Rig, since: datetime) -> Figures:
    low = f"r#{run_id_of_fire(since)}"
    sizes = [
        size_of(item["Attributes"]) + ITEM_OVERHEAD
        for item in _items(NAMES.table(RUNS))
        if item["Attributes"]["sk"]["S"] >= low and item["Attributes"]["st"]["S"] in {"succeeded", "failed"}
    ]
    pages = [size_of(item["Attributes"]) + ITEM_OVERHEAD for item in _items(NAMES.table(VIEWS))]
    ended = sum(item["Attributes"].get("st", {}).get("S") == "succeeded" for item in _items(NAMES.table(RUNS)))
    bill = rig.bill
    return Figures(
        runs=len(sizes),
        planned=rig.runs.created,
        units=dict(bill.units),
        reads=dict(bill.read_by),
        requests=dict(bill.asked),
        work={**rig.work, **{name: _beyond_idle(bill, name) for name in ("sweep", "audit")}},
        deliveries=rig.deliveries,
        executions=rig.executions,
        machines=rig.machines,
        opened=len(bill.opened),
        archived_bytes=sum(bill.archived) / len(bill.archived),
        ingested_bytes=bill.ingested_bytes / len(bill.archived),
        stored_bytes=sum(sizes) / len(sizes) + sum(pages) / max(1, ended),
    )


def _beyond_idle(bill: Bill, function: str) -> Work:
    """What a function does that would be called anyway."""
    calls = bill.made[function] - bill.fixed[function]
    return Work(calls=calls, waits=calls)


def _items(table: str) -> Iterator[Any]:
    for partition in _backend().get_table(table).items.values():
        yield from (item.to_json() for item in partition.values())


def _backend() -> Any:
    return dynamodb_backends[ACCOUNT][REGION]


def idle(month: timedelta) -> Idle:
    """So long without jobs: sweeps over nothing, rounds of the audit over nothing, looks at no dead letters."""
    measured = 2 * ROUND_EVERY  # the buckets of the due index are shorter, and so is every period
    clock, bill = VirtualClock(NOON), Bill()
    with moto_world(clock, meter=bill) as stores:
        rig = Rig(stores, clock, bill, Target())
        rig.pass_time(NOON + 3 * A_MINUTE, idle_too=True)
        rig.start_counting()
        rig.pass_time(NOON + 3 * A_MINUTE + measured, idle_too=True)
        times = month // measured
        work = {
            name: Work(one.invocations * times, one.calls * times, one.waits * times) for name, one in rig.work.items()
        }
        sweeping = sum(count for (is_sweep, _), count in bill.asked.items() if is_sweep)
        return Idle(
            bill.write_units * times,
            bill.read_units * times,
            sweeping * times,
            (bill.asked.total() - sweeping) * times,
            work,
            len(bill.opened),
        )


def audited(figures: Figures, per_hour: int) -> Figures:
    """The same, with the audit as it is where a job has all the history that it looks at."""
    clock, bill = VirtualClock(NOON), Bill()
    with moto_world(clock, meter=bill) as stores:
        rig = Rig(stores, clock, bill, Target())
        document = {"name": "report-000", "schedule": {"cron": "@hourly"}, "run": {"command": ["true"]}}
        head = put(rig.world, NAMESPACE, document, actor="bench", expected=None)
        rounds = WHOLE_EVERY // ROUND_EVERY
        for n in range(per_hour * ((RECENT + WHOLE_EVERY) // AN_HOUR)):  # past botocore, which would take ten times
            run = _ended(rig.world, head.key, NOON + WHOLE_EVERY - (n + 1) * AN_HOUR / per_hour)
            _backend().put_item(NAMES.table(RUNS), run_item(run, keep=aws.KEEP_RUNS))
        bill.clear()
        for n in range(rounds):
            clock.move(NOON + n * ROUND_EVERY)
            with bill.at_work("audit"):
                go_on(rig.world, until=clock.now() + AN_HOUR)
        share = figures.runs / per_hour
        calls = round((bill.made["audit"] - bill.fixed["audit"]) * share)
        return replace(
            figures,
            reads={**figures.reads, "audit": bill.read_by["audit"] * share},
            work={**figures.work, "audit": Work(calls=calls, waits=calls)},
        )


def _ended(world: World, job: JobKey, at: datetime) -> Run:
    dice = world.dice
    run = Run(RunKey(job, run_id_of_fire(at)), at, at, created_at=at, changed_at=at, nonce=dice.nonce())
    lease = timedelta(minutes=5)
    claimed = run.claimed(now=at, nonce=dice.nonce(), owner=world.owner, lease=lease, version=1)
    return claimed.succeeded(now=at, nonce=dice.nonce(), output=None)


def hourly(jobs: int, hours: int = 24, *, cron: str = "0 * * * *", **options: Any) -> Figures:
    """Hourly jobs, from midnight on, so that each job's day is judged once; each has run before."""
    return measure(cron, jobs=jobs, start=EVE - AN_HOUR, warm_up=2 * AN_HOUR, measured=hours * AN_HOUR, **options)


def per_minute(jobs: int, minutes: int, *, full_history: bool = False) -> Figures:
    """Jobs that fire every minute, from midnight on, so that these few runs of a day pay for the page of one.

    With `full_history`, the audit is charged as if it found its whole day of runs, which these jobs do not have yet.
    """
    warm_up = 15 * A_MINUTE  # longer than the look-ahead: what the put itself planned is over
    start = EVE + AN_HOUR - warm_up
    figures = measure("* * * * *", jobs=jobs, start=start, warm_up=warm_up, measured=minutes * A_MINUTE)
    return audited(figures, 60) if full_history else figures


def dearer(hours: int = 2) -> tuple[Figures, dict[str, Figures]]:
    """A plain job alone, and jobs alone that use more, by what they use."""
    blackouts = [
        {
            "from": (EVE + n * AN_HOUR).isoformat(),
            "to": (EVE + n * AN_HOUR + AN_HOUR / 2).isoformat(),
            "policy": "hold",
        }
        for n in range(1, hours + 2)
    ]
    hiccup = Target(failing=1)
    return hourly(1, hours), {
        "a slot": hourly(1, hours, concurrency={"runs": 1}),
        "a retry": hourly(1, hours, target=hiccup, retry={"attempts": 2, "delays": ["10s"]}),
        "a retry after 20 minutes": hourly(1, hours, target=hiccup, retry={"attempts": 2, "delays": ["20m"]}),
        "a long timer": hourly(1, hours, schedule={"cron": "0 * * * *", "blackouts": blackouts}),
        SLOW: hourly(1, hours, target=Target(is_slow=True)),
    }


def surcharge(figures: Figures, plain: Figures) -> tuple[float, float]:
    """Write units that a run costs more than a plain one: in the truths, and in views."""
    truths, views = set(For) - FIXED - {For.VIEWS}, {For.VIEWS}
    return figures.per_run(truths) - plain.per_run(truths), figures.per_run(views) - plain.per_run(views)
