"""What runs and idle months cost in dollars, and what others charge for the same: the tables of docs/costs.md.

Everything that a meter sees is measured (`bench.writes`). What none sees is stated here, each with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from bench import prices, writes
from bench.meter import watchers
from bench.rig import TASK, Work
from bench.writes import BARS, OPERATIONS, PUBLISHED, PURPOSES, READERS, Figures, Idle
from sweephand import aws
from sweephand.topology import EXECUTE, FUNCTIONS, LANES

PAGE: Final = Path(__file__).parents[1] / "docs" / "costs.md"
BEGIN: Final = "<!-- costs: written by `make bench`, not by hand -->"
END: Final = "<!-- costs: end -->"

MONTH: Final = timedelta(days=30)
IDLE_MAX: Final = 8.00
"""Dollars that an idle month may cost with the default options, by list prices."""
GB: Final = 1e9

# Lambda. None of these was measured on Lambda.
CALL_WAIT_S: Final = 0.005
"""DynamoDB and SQS answer within single-digit milliseconds."""
CALL_CPU_S: Final = 0.002
"""Of a whole vCPU: botocore alone takes a third of it on a server, and there are TLS and a slower processor."""
VCPU_MB: Final = 1_769
"""The memory with which Lambda gives a whole vCPU; with less, as much less."""
START_S: Final = 0.002
"""What any invocation takes before and after our code."""
COLD_START_S: Final = 1.0
"""Billed since 2025-08. Importing a handler takes 0.3 s of a whole vCPU (`bench cold_start`)."""
TASK_MB: Final = 256
"""The memory of the task in the comparison. `execute` has more, which is charged to Sweephand."""

# Logs, in JSON: the bytes of a line of each kind, and 26 that CloudWatch adds to it.
PLATFORM_LOG_BYTES: Final = 450
"""Lambda's own two lines about an invocation, platform.start and platform.report."""
LINE_LOG_BYTES: Final = 270
"""One of ours, such as `attempted` with its run."""
METRIC_LOG_BYTES: Final = 240
"""A line with a metric in it, which each sweep prints."""

# Month by month.
POLLERS: Final = 5
"""Connections that Lambda keeps open to an idle queue, each asking anew every 20 s."""
LONG_POLL: Final = timedelta(seconds=20)
ARCHIVED_MONTHS: Final = 12
"""How long the archive is paid for here; it has no end."""
FILE_EVERY: Final = timedelta(minutes=15)
"""How often Firehose writes a file, if there is anything."""
KEY_CACHED: Final = timedelta(minutes=5)
"""DynamoDB asks for a table's key anew for each role that was away for five minutes: at most as often as this."""
DATA_KEY_REUSED: Final = timedelta(hours=1)
"""SQS, as its queues are set; assumed of CloudWatch Logs, which says nothing about it."""
ENVIRONMENT_LASTS: Final = timedelta(hours=2)
"""After about so long Lambda makes a busy function's environment anew, and its variables are decrypted again."""
ALARM_METRICS: Final = 16
DASHBOARD_METRICS: Final = 50
"""Both as the stacks of `infra/` have them: this benchmark fails where they differ."""
DEPLOYED_GB: Final = 0.2
"""The agent's image; next to it, the functions' code and the console are nothing."""

# The comparison.
RUNS_A_MONTH: Final = 30 * prices.MILLION
"""A million a day: those whose price depends on the volume are asked for this one."""
MACHINE_TRANSITIONS: Final = 3
"""Of an execution with two states, as ours: counted as for the others, where a lone task makes two."""
EXPRESS_GB_S: Final = 64 / 1024 * 0.2
"""An Express execution that waits for the task: 64 MB for two steps of 100 ms."""
MWAA_SLOT_S: Final = 5.0
"""How long a task occupies a worker's slot, most of it Airflow's own start; a guess that is kind to Airflow."""
MWAA_BUSY: Final = 0.75
"""How much of the time slots are occupied, where tasks come as they come."""

_MEMORY: Final = {function.name: function.memory_mb for function in FUNCTIONS}
_TASK_S: Final = TASK.total_seconds()


@dataclass(frozen=True)
class Line:
    """Something that is paid for each month: how much of it, by list prices, and after what is free for ever."""

    name: str
    quantity: str
    dollars: float
    after_free: float


@dataclass(frozen=True)
class Peer:
    """A way to run tasks at fixed times: what a million runs cost without their tasks, the tasks, and an idle month."""

    name: str
    service: float
    task: float
    idle: float
    idle_comes_on_top: bool = True

    @property
    def total(self) -> float:
        return self.service + self.task

    @property
    def month(self) -> float:
        """A month with a million runs a day."""
        return self.total * RUNS_A_MONTH / prices.MILLION + self.idle * self.idle_comes_on_top


@dataclass(frozen=True)
class Report:
    """Everything that was measured."""

    columns: Mapping[str, Figures]
    plain: Figures
    dearer: Mapping[str, Figures]
    idle: Idle


# Per run.


def lambda_dollars(function: str, work: Work) -> float:
    """What a function's work costs: calls are waited for, and take processor time that nothing shortens."""
    memory = _MEMORY[function]
    seconds = (
        work.invocations * START_S
        + work.tasks * _TASK_S
        + work.waits * CALL_WAIT_S
        + work.calls * CALL_CPU_S * VCPU_MB / memory
    )
    return work.invocations * prices.LAMBDA_REQUEST + lambda_time(memory, seconds)


def lambda_time(memory_mb: float, seconds: float) -> float:
    return memory_mb / 1024 * seconds * prices.LAMBDA_GB_SECOND


def logged(size: float) -> float:
    """What bytes in a log cost, taken in and kept for a month."""
    return size / GB * (prices.CLOUDWATCH_LOGS_GB + prices.CLOUDWATCH_LOGS_GB_MONTH)


def task_dollars() -> float:
    """A run's task on Lambda, which everybody pays: a request, its time, and Lambda's two lines in the log."""
    return prices.LAMBDA_REQUEST + lambda_time(TASK_MB, _TASK_S) + logged(PLATFORM_LOG_BYTES)


def dollars(figures: Figures) -> dict[str, float]:
    """Dollars for a million runs, by line of the bill, without the tasks themselves."""
    runs, kept_months = figures.runs, aws.KEEP_RUNS / MONTH
    work = {name: figures.work.get(name, Work()) for name in ("attempt", "project", "live", "sweep", "audit")}
    tasks = figures.executions / runs
    invocations = sum(one.invocations for one in work.values())
    log_bytes = invocations * (PLATFORM_LOG_BYTES + LINE_LOG_BYTES) + figures.deliveries * LINE_LOG_BYTES
    one_run = {
        "DynamoDB writes": figures.writes * prices.DYNAMODB_WRITE_UNIT,
        "DynamoDB reads": figures.read_units * prices.DYNAMODB_READ_UNIT,
        "SQS": figures.sqs * prices.SQS_FAIR_REQUEST,
        **{f"Lambda `{name}`": lambda_dollars(name, one) / figures.sharers(name) for name, one in work.items()},
        "Lambda `execute`, beyond the task itself": tasks * lambda_time(EXECUTE.memory_mb - TASK_MB, _TASK_S)
        + (tasks - 1) * task_dollars(),
        "Step Functions": figures.machines / runs * MACHINE_TRANSITIONS * prices.STEP_FUNCTIONS_TRANSITION,
        "logs": logged(log_bytes / runs),
        "items, kept for 35 days": figures.stored_bytes / GB * kept_months * prices.DYNAMODB_GB_MONTH,
        "their recovery to any second": figures.stored_bytes / GB * kept_months * prices.DYNAMODB_RECOVERY_GB_MONTH,
        "Firehose": figures.ingested_bytes / GB * prices.FIREHOSE_GB,
        "the archive in S3, for a year": figures.archived_bytes / GB * ARCHIVED_MONTHS * prices.S3_GB_MONTH,
    }
    return {line: amount * prices.MILLION for line, amount in one_run.items()}


def cold_dollars() -> float:
    """For a million runs, where each finds none of our functions warm; the task's own would be cold for everybody."""
    memory = sum(_MEMORY[name] for name in ("attempt", "project", "live"))
    return lambda_time(memory, COLD_START_S) * prices.MILLION


# Per month.


def idle_lines(idle: Idle) -> list[Line]:
    """Everything that a deployment with the default options costs without a single job."""
    polls = len(LANES) * POLLERS * (MONTH // LONG_POLL)
    scheduled = sum(idle.work[name].invocations for name in ("tick", "audit", "watch"))
    calls = sum(one.invocations for one in idle.work.values())
    log_bytes = calls * (PLATFORM_LOG_BYTES + LINE_LOG_BYTES) + idle.work["sweep"].invocations * METRIC_LOG_BYTES
    dashboard_is_free = DASHBOARD_METRICS <= prices.FREE_DASHBOARD_METRICS
    return [
        _line("DynamoDB writes: leases, watermarks", idle.write_units, "units", prices.DYNAMODB_WRITE_UNIT),
        _line("DynamoDB reads: leases, due entries", idle.read_units, "units", prices.DYNAMODB_READ_UNIT),
        _line("SQS: messages to `sweep`", idle.sweep_requests, "requests", prices.SQS_FAIR_REQUEST),
        _line("SQS: looks for dead letters", idle.peeks, "requests", prices.SQS_REQUEST),
        _line("SQS: Lambda's polling of its queues", polls, "requests", prices.SQS_REQUEST, prices.FREE_SQS_REQUESTS),
        *(
            Line(f"Lambda `{name}`", f"{one.invocations:,} calls", lambda_dollars(name, one), 0)
            for name, one in idle.work.items()
        ),
        _line(
            "EventBridge Scheduler, 14 M calls free",
            scheduled,
            "calls",
            prices.EVENTBRIDGE_SCHEDULER_INVOCATION,
            prices.FREE_SCHEDULER_INVOCATIONS,
        ),
        _line("the key", 1, "key", prices.KMS_KEY_MONTH),
        _line("KMS", _key_requests(idle), "requests", prices.KMS_REQUEST, prices.FREE_KMS_REQUESTS),
        _line("the dashboard", 1, "dashboard", prices.CLOUDWATCH_DASHBOARD_MONTH, int(dashboard_is_free)),
        _line("alarms", ALARM_METRICS, "metrics", prices.CLOUDWATCH_ALARM_METRIC_MONTH, prices.FREE_ALARM_METRICS),
        _line("SweepLag", 1, "metric", prices.CLOUDWATCH_METRIC_MONTH, prices.FREE_CUSTOM_METRICS),
        Line("logs, kept for 30 days", f"{log_bytes / 1e6:,.0f} MB", logged(log_bytes), 0),
        Line(
            "the agent's image in ECR",
            f"{DEPLOYED_GB * 1000:.0f} MB",
            DEPLOYED_GB * prices.ECR_GB_MONTH,
            DEPLOYED_GB * prices.ECR_GB_MONTH,
        ),
        *(
            Line(name, "none", 0, 0)
            for name in ("API Gateway", "CloudFront", "Cognito", "Step Functions", "Firehose, S3, Glue", "VPC, Fargate")
        ),
    ]


def _line(name: str, quantity: float, unit: str, price: float, free: float = 0) -> Line:
    return Line(name, f"{quantity:,.0f} {unit}", quantity * price, max(0, quantity - free) * price)


def _key_requests(idle: Idle) -> int:
    """Of DynamoDB for functions and their tables; of the queue of sweeps (AWS: 2 for who sends, 1 for who receives);
    of log groups; of functions that are made anew."""
    functions = len(idle.work)
    hourly = (MONTH // DATA_KEY_REUSED) * (3 + functions)
    return idle.opened * (MONTH // KEY_CACHED) + hourly + functions * (MONTH // ENVIRONMENT_LASTS)


def busy_lines(report: Report) -> list[Line]:
    """What a month costs more in which runs come all the time, however many: at most."""
    figures = [*report.columns.values(), *report.dearer.values()]
    opened = max(one.opened for one in figures) - report.idle.opened
    senders, lanes, functions = 5, len(LANES) - 1, 4
    hourly = (MONTH // DATA_KEY_REUSED) * (lanes * (2 * senders + 1) + functions + 1)
    requests = opened * (MONTH // KEY_CACHED) + hourly + functions * (MONTH // ENVIRONMENT_LASTS)
    return [
        _line("KMS, more roles, queues and logs", requests, "requests", prices.KMS_REQUEST),
        _line("the archive's files", MONTH // FILE_EVERY, "files", prices.S3_PUT),
    ]


# Others.


def peers(report: Report) -> list[Peer]:
    """Everybody's prices for the same task."""
    task, scheduler = task_dollars() * prices.MILLION, prices.EVENTBRIDGE_SCHEDULER_INVOCATION * prices.MILLION
    idle = sum(line.dollars for line in idle_lines(report.idle))
    ours = {name: sum(dollars(report.columns[name]).values()) for name in ("hourly", "per minute")}
    slow = sum(dollars(report.dearer[writes.SLOW]).values()) - sum(dollars(report.plain).values())
    express = prices.STEP_FUNCTIONS_EXPRESS_REQUEST + EXPRESS_GB_S * prices.STEP_FUNCTIONS_EXPRESS_GB_SECOND
    standard = prices.STEP_FUNCTIONS_TRANSITION * prices.MILLION
    return [
        *(Peer(f"Sweephand, {name}", amount, task, idle) for name, amount in ours.items()),
        Peer(f"Sweephand, hourly, with {writes.SLOW}", ours["hourly"] + slow, task, idle),
        Peer("EventBridge Scheduler and Lambda", scheduler, task, 0),
        Peer("Scheduler and Step Functions Express", scheduler + express * prices.MILLION, task, 0),
        *(
            Peer(f"Scheduler and Step Functions Standard, {n} transitions", scheduler + n * standard, task, 0)
            for n in (2, 4)
        ),
        *(Peer(f"MWAA {size}", _mwaa(size), 0, prices.mwaa_month(size), False) for size in ("small", "large")),
        *(Peer(f"Temporal Cloud, {n} actions", _temporal(n), task, prices.temporal_month(0), False) for n in (3, 4)),
    ]


def _mwaa(size: str) -> float:
    """A million of a month's runs, with as many workers as these need."""
    tasks = RUNS_A_MONTH / MONTH.total_seconds() * MWAA_SLOT_S / MWAA_BUSY
    return prices.mwaa_month(size, tasks=tasks) * prices.MILLION / RUNS_A_MONTH


def _temporal(actions: int) -> float:
    """A million of a month's runs."""
    return prices.temporal_month(actions * RUNS_A_MONTH / prices.MILLION) * prices.MILLION / RUNS_A_MONTH


# The page.


def rendered(report: Report) -> str:
    """The tables, without anything that differs from one measurement to the next."""
    return "\n".join([*_runs(report), *_surcharges(report), *_months(report), *_comparison(report)])


def _runs(report: Report) -> Iterator[str]:
    figures = list(report.columns.values())
    bars = [BARS[title.split(",")[0]] for title in report.columns]
    verdicts = [f"{bar:g}: {'OK' if one.writes <= bar else 'over'}" for one, bar in zip(figures, bars, strict=True)]
    bills = [dollars(one) for one in figures]
    yield from _table("### A run\n", "", report.columns)
    yield _row("**write units**")
    for purpose in PURPOSES:
        yield _row(purpose, (f"{one.per_run([purpose]):.3f}" for one in figures))
    yield _row("all writes", (f"{one.writes:.2f}" for one in figures))
    yield _row("the bar", verdicts)
    yield _row("**read units**")
    for reader in READERS:
        yield _row(f"`{reader}`", (f"{one.reads_of(reader):.2f}" for one in figures))
    yield _row("all reads", (f"{one.read_units:.2f}" for one in figures))
    yield _row("**SQS requests**")
    for operation in OPERATIONS:
        yield _row(operation, (f"{one.requests_of(operation):.2f}" for one in figures))
    yield _row("all requests", (f"{one.sqs:.2f}" for one in figures))
    yield _row("**dollars per million runs**")
    for name in bills[0]:
        yield _row(name, (_dollars(bill[name]) for bill in bills))
    yield _row("Sweephand", (f"**{_dollars(sum(bill.values()))}**" for bill in bills))
    task = task_dollars() * prices.MILLION
    yield _row("the task itself", (_dollars(task) for _ in bills))
    yield _row("together", (f"**{_dollars(sum(bill.values()) + task)}**" for bill in bills))
    yield _row("runs measured", (str(one.runs) for one in figures))


def _surcharges(report: Report) -> Iterator[str]:
    columns = ("write units", "published", "in views", "dollars per million")
    yield from _table("\n### What makes a run dearer\n", "a lone job with", columns)
    plain = sum(dollars(report.plain).values())
    for name, figures in report.dearer.items():
        units, in_views = writes.surcharge(figures, report.plain)
        bar = PUBLISHED.get(name)
        said = "" if bar is None else f"{bar:+d} {'OK' if units <= bar else 'over'}"
        more = sum(dollars(figures).values()) - plain
        yield _row(name, (f"{units:+.2f}", said, f"{in_views:+.2f}", f"{more:+.2f}"))
    yield _row("none of its functions warm", ("", "", "", f"{cold_dollars():+.2f}"))


def _months(report: Report) -> Iterator[str]:
    columns = ("how much", "list price", "after what is always free")
    yield from _table("\n### An idle month\n", "dollars", columns)
    yield from _priced(idle_lines(report.idle))
    yield from _table(
        "\nIn a month in which runs come all the time, at most this comes on top, however many:\n", "", columns
    )
    yield from _priced(busy_lines(report))


def _priced(lines: Iterable[Line]) -> Iterator[str]:
    listed, after_free = 0.0, 0.0
    for line in lines:
        listed, after_free = listed + line.dollars, after_free + line.after_free
        yield _row(line.name, (line.quantity, _dollars(line.dollars), _dollars(line.after_free)))
    yield _row("together", ("", f"**{_dollars(listed)}**", f"**{_dollars(after_free)}**"))


def _comparison(report: Report) -> Iterator[str]:
    columns = ("the service", "the task", "together", "an idle month", "a month of a million runs a day")
    yield from _table("\n### Beside others\n", "dollars per million runs", columns)
    for one in peers(report):
        month = (f"{one.idle:,.2f}", f"{one.month:,.0f}")
        yield _row(one.name, (_dollars(one.service), _dollars(one.task), f"**{_dollars(one.total)}**", *month))


def _table(title: str, corner: str, columns: Iterable[str]) -> Iterator[str]:
    yield title
    named = list(columns)
    yield _row(corner, named)
    yield "|---|" + "---:|" * len(named)


def _row(name: str, cells: Iterable[str] = ()) -> str:
    return "".join(f"| {cell} " for cell in (name, *cells)) + "|"


def _dollars(amount: float) -> str:
    return f"{amount:.2f}"


def measured() -> Report:
    """Every world, one after the other: some minutes."""
    columns = {
        "hourly": writes.hourly(10),
        "per minute": writes.per_minute(6, 42, full_history=True),
        "hourly, spread": writes.hourly(3, cron="H * * * *"),
        "hourly, alone": writes.hourly(1),
        "per minute, alone": writes.per_minute(1, 42, full_history=True),
    }
    return Report(columns, *writes.dearer(), writes.idle(MONTH))


def written_into(page: str, tables: str) -> str:
    """The page with these tables in place of those that it had."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"The page has no place for the tables: {BEGIN} … {END}"
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def main() -> None:
    """Measure, print, and write the tables into docs/costs.md."""
    counted = watchers()
    assert counted == (ALARM_METRICS, DASHBOARD_METRICS), f"Metrics in alarms and on the dashboard: {counted}"
    report = measured()
    tables = rendered(report)
    print(tables)
    PAGE.write_text(written_into(PAGE.read_text(), tables))
    total = sum(line.dollars for line in idle_lines(report.idle))
    assert total <= IDLE_MAX, f"An idle month costs ${total:.2f}."


if __name__ == "__main__":
    main()
