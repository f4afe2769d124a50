"""What a run costs: the real engine on moto, on a virtual clock, every call metered by AWS's own rules.

Each world is driven as AWS would drive it: a tick and a sweep each minute, batches of ten messages to `attempt`, the
stream of changed runs to `project` in windows of 60 s, an audit an hour. What a run adds is told apart from what the
sweeps cost anyway: shards and minutes in which nothing is due are passed over, and sweeps over nothing are measured by
themselves, all eight shards of them, and charged for every minute of a month.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from bench import prices
from bench.meter import size_of
from bench.rig import A_MINUTE, AN_HOUR, EVE, FIXED, NAMESPACE, PLANNING, TICK_AT, Bill, For, Rig, Target
from sweephand import aws
from sweephand.aws.items import run_item
from sweephand.domain.ids import JobKey, RunKey, run_id_of_fire
from sweephand.domain.run import Run
from sweephand.engine.audit import RECENT, audit_job
from sweephand.engine.put import put
from sweephand.ports import World
from sweephand.testing.virtual import VirtualClock
from sweephand.topology import LANES, RUNS, VIEWS
from tests.moto_world import NAMES, REGION, moto_world

MONTH_MINUTES: Final = 43_200  # 30 days

# What a bill needs and no meter can see.
LAMBDA_GB: Final = 0.25
ATTEMPT_S: Final = 0.100
EARLY_S: Final = 0.010
PROJECT_S: Final = 0.100
SWEEP_S: Final = 0.500
LOG_BYTES: Final = 500
ITEM_OVERHEAD: Final = 100  # bytes that DynamoDB adds to what it stores
POLLERS: Final = 5  # of an idle event source mapping, each asking every 20 s
LONG_POLLS_A_MINUTE: Final = 3

BARS: Final = {"hourly": 6.0, "per minute": 4.0}
"""Write units of a run, with everything that grows with runs."""
PUBLISHED: Final = {"a slot": 2, "a retry": 2, "a long timer": 3}


@dataclass(frozen=True)
class Figures:
    """What was measured. A window ends amid a planning pass: what planning costs is shared by the runs put in it, and
    all else by the runs ended in it."""

    runs: int
    planned: int
    units: Mapping[For, int]
    reads: Mapping[str, float]
    requests: Mapping[tuple[bool, str], int]
    deliveries: int
    attempts: int
    batches: int
    stored_bytes: float
    """What a run leaves behind for as long as runs are kept: itself, and its rows of the view."""

    def per_run(self, purposes: Iterable[For]) -> float:
        return sum(self.units.get(one, 0) / (self.planned if one in PLANNING else self.runs) for one in purposes)

    @property
    def writes(self) -> float:
        return self.per_run(set(For) - FIXED)

    @property
    def read_units(self) -> float:
        return sum(map(self.reads_of, ("sweep", "attempt", "project", "audit")))

    def reads_of(self, actor: str) -> float:
        return self.reads.get(actor, 0) / (self.planned if actor == "sweep" else self.runs)

    @property
    def sqs(self) -> float:
        return sum(map(self.requests_of, {operation for _, operation in self.requests}))

    def requests_of(self, operation: str) -> float:
        sends = operation == "SendMessageBatch"
        return self.requests.get((False, operation), 0) / (self.planned if sends else self.runs)

    def dollars(self) -> dict[str, float]:
        """Dollars for a million runs, by line of the bill."""
        kept_months = aws.KEEP_RUNS / timedelta(days=30)
        seconds = self.attempts * ATTEMPT_S + (self.deliveries - self.attempts) * EARLY_S + self.batches * PROJECT_S
        one_run = {
            "DynamoDB writes": self.writes * prices.DYNAMODB_WRITE_UNIT,
            "DynamoDB reads": self.read_units * prices.DYNAMODB_READ_UNIT,
            "SQS (fair)": self.sqs * prices.SQS_FAIR_REQUEST,
            "Lambda": (
                (self.deliveries + self.batches) * prices.LAMBDA_REQUEST + seconds * LAMBDA_GB * prices.LAMBDA_GB_SECOND
            )
            / self.runs,
            "logs": LOG_BYTES / 1e9 * prices.CLOUDWATCH_LOGS_GB,
            "storage": self.stored_bytes / 1e9 * kept_months * prices.DYNAMODB_GB_MONTH,
        }
        return {line: dollars * prices.MILLION for line, dollars in one_run.items()}


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
            put(rig.world, NAMESPACE, document | definition, actor="bench", expected=None)
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
        deliveries=rig.deliveries,
        attempts=rig.attempts,
        batches=rig.batches,
        stored_bytes=sum(sizes) / len(sizes) + sum(pages) / max(1, ended),
    )


def _items(table: str) -> Iterator[Any]:
    for partition in _backend().get_table(table).items.values():
        yield from (item.to_json() for item in partition.values())


def _backend() -> Any:
    return dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION]


def idle_month() -> tuple[int, float, int]:
    """Write units, read units and SQS requests of a month of sweeps over nothing, from two buckets' time of them."""
    start = datetime(2026, 3, 2, 12, tzinfo=UTC)
    minutes = 20
    clock, bill = VirtualClock(start), Bill()
    with moto_world(clock, meter=bill) as stores:
        rig = Rig(stores, clock, bill, Target())
        rig.pass_time(start + A_MINUTE, idle_too=True)
        rig.start_counting()
        rig.pass_time(start + A_MINUTE * (1 + minutes), idle_too=True)
        times = MONTH_MINUTES // minutes
        return bill.write_units * times, bill.read_units * times, bill.asked.total() * times


def audit_reads(per_hour: int) -> float:
    """Read units of an hourly audit per run, where a job has all the history that an audit looks at."""
    start = datetime(2026, 3, 2, 12, tzinfo=UTC)
    clock, bill = VirtualClock(start), Bill()
    with moto_world(clock, meter=bill) as stores:
        rig = Rig(stores, clock, bill, Target())
        document = {"name": "report-000", "schedule": {"cron": "@hourly"}, "run": {"command": ["true"]}}
        head = put(rig.world, NAMESPACE, document, actor="bench", expected=None)
        for n in range(per_hour * (RECENT // AN_HOUR)):  # past botocore, which would take ten times as long
            run = _ended(rig.world, head.key, start - n * AN_HOUR / per_hour)
            _backend().put_item(NAMES.table(RUNS), run_item(run, keep=aws.KEEP_RUNS))
        bill.clear()
        with bill.at_work("audit"):
            audit_job(rig.world, head)
        return bill.read_by["audit"] / per_hour


def _ended(world: World, job: JobKey, at: datetime) -> Run:
    dice = world.dice
    run = Run(RunKey(job, run_id_of_fire(at)), at, at, created_at=at, changed_at=at, nonce=dice.nonce())
    lease = timedelta(minutes=5)
    claimed = run.claimed(now=at, nonce=dice.nonce(), owner=world.owner, lease=lease, version=1)
    return claimed.succeeded(now=at, nonce=dice.nonce(), output=None)


def hourly(jobs: int, hours: int = 24, *, cron: str = "0 * * * *", **options: Any) -> Figures:
    """Hourly jobs, from midnight on, so that each job's day is judged once."""
    return measure(cron, jobs=jobs, start=EVE, warm_up=AN_HOUR, measured=hours * AN_HOUR, **options)


def per_minute(jobs: int, minutes: int, *, full_history: bool = False) -> Figures:
    """Jobs that fire every minute, from midnight on, so that these few runs of a day pay for the page of one.

    With `full_history`, the audit is charged as if it found its whole day of runs, which these jobs do not have yet.
    """
    warm_up = 15 * A_MINUTE  # longer than the look-ahead: what the put itself planned is over
    start = EVE + AN_HOUR - warm_up
    figures = measure("* * * * *", jobs=jobs, start=start, warm_up=warm_up, measured=minutes * A_MINUTE)
    if not full_history:
        return figures
    return replace(figures, reads={**figures.reads, "audit": audit_reads(60) * figures.runs})


def surcharges(hours: int = 2) -> dict[str, tuple[float, float]]:
    """What a run costs more than a plain one, in write units: in the truths, and in views."""
    blackouts = [
        {
            "from": (EVE + n * AN_HOUR).isoformat(),
            "to": (EVE + n * AN_HOUR + AN_HOUR / 2).isoformat(),
            "policy": "hold",
        }
        for n in range(1, hours + 2)
    ]
    hiccup = Target(failing=1)
    plain = hourly(1, hours)
    special = {
        "a slot": hourly(1, hours, concurrency={"runs": 1}),
        "a retry": hourly(1, hours, target=hiccup, retry={"attempts": 2, "delays": ["10s"]}),
        "a retry after 20 minutes": hourly(1, hours, target=hiccup, retry={"attempts": 2, "delays": ["20m"]}),
        "a long timer": hourly(1, hours, schedule={"cron": "0 * * * *", "blackouts": blackouts}),
    }
    truths = set(For) - FIXED - {For.VIEWS}
    return {
        name: (
            one.per_run(truths) - plain.per_run(truths),
            one.per_run({For.VIEWS}) - plain.per_run({For.VIEWS}),
        )
        for name, one in special.items()
    }


# The report.


def _line(title: str, values: Iterable[float], places: int = 2) -> None:
    print(f"{title:26}" + "".join(f"{value:>18.{places}f}" for value in values))


def _print_table(columns: Mapping[str, Figures]) -> None:
    figures = list(columns.values())
    print(f"{'':26}" + "".join(f"{title:>18}" for title in columns))
    print("write units per run")
    purposes = [one for one in For if one not in FIXED and any(one in column.units for column in figures)]
    for one in purposes:
        _line(f"  {one}", (column.per_run([one]) for column in figures), 3)
    _line("  total", (column.writes for column in figures))
    bars = [BARS[title.split(",")[0]] for title in columns]
    verdicts = ["OK" if column.writes <= bar else "OVER" for column, bar in zip(figures, bars, strict=True)]
    print(f"{'  the bar':26}" + "".join(f"{f'{bar:g}: {said}':>18}" for bar, said in zip(bars, verdicts, strict=True)))
    print("read units per run")
    for actor in ("sweep", "attempt", "project", "audit"):
        _line(f"  {actor}", (column.reads_of(actor) for column in figures))
    _line("  total", (column.read_units for column in figures))
    print("SQS requests per run")
    for operation in sorted({one for column in figures for sweeping, one in column.requests if not sweeping}):
        _line(f"  {operation}", (column.requests_of(operation) for column in figures))
    _line("  total", (column.sqs for column in figures))
    print("dollars per million runs")
    dollars = [column.dollars() for column in figures]
    for name in dollars[0]:
        _line(f"  {name}", (one[name] for one in dollars))
    _line("  total", (sum(one.values()) for one in dollars))
    print(f"{'measured runs':26}" + "".join(f"{column.runs:>18}" for column in figures))


def _print_surcharges() -> None:
    print("\nwrite units that a run pays more  measured   published   and in views, where nothing shares its batch")
    for name, (units, in_views) in surcharges().items():
        bar = PUBLISHED.get(name)
        said = "" if bar is None else f"{bar:+d} {'OK' if units <= bar else 'OVER'}"
        print(f"  {name:32}{units:>+8.2f}{said:>12}{in_views:>+8.2f}")


def _print_idle() -> None:
    writes, reads, requests = idle_month()
    polls = len(LANES) * POLLERS * LONG_POLLS_A_MINUTE * MONTH_MINUTES
    lines = {
        f"leases and watermarks, {writes:,} write units": writes * prices.DYNAMODB_WRITE_UNIT,
        f"leases and due buckets, {reads:,.0f} read units": reads * prices.DYNAMODB_READ_UNIT,
        f"messages of sweeps, {requests:,} requests": requests * prices.SQS_FAIR_REQUEST,
        f"Lambda's pollers of {len(LANES)} queues, {polls:,} requests": polls * prices.SQS_REQUEST,
        f"Lambda, a sweep of {SWEEP_S * 1000:.0f} ms a minute": MONTH_MINUTES
        * (prices.LAMBDA_REQUEST + SWEEP_S * LAMBDA_GB * prices.LAMBDA_GB_SECOND),
    }
    print("\nan idle month, dollars")
    for name, dollars in lines.items():
        print(f"  {name:56}{dollars:>8.2f}")
    print(f"  {'total':56}{sum(lines.values()):>8.2f}")


def main() -> None:
    """Print what a run costs, what makes it dearer, and what a month without runs costs."""
    begun = time.perf_counter()
    _print_table(
        {
            "hourly": hourly(10),
            "per minute": per_minute(6, 42, full_history=True),
            "hourly, spread": hourly(3, cron="H * * * *"),
            "hourly, alone": hourly(1),
            "per minute, alone": per_minute(1, 42, full_history=True),
        }
    )
    _print_surcharges()
    _print_idle()
    print(f"\nmeasured in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
