"""What the AWS adapter's items cost: they are paid for by size, by the write, and for as long as they are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bench.meter import Meter, size_of
from sweephand.aws import KEEP_RUNS, clients
from sweephand.aws.items import head_item, item_of, run_item
from sweephand.aws.table import Table
from sweephand.domain.ids import RunKey, run_id_of_fire
from sweephand.domain.job import CatchupPolicy
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.ports import DueEntry, DueKind, Offer, Reply
from sweephand.topology import JOBS
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    JOB,
    MINUTE,
    NOW,
    SECOND,
    Window,
    change_of,
    claimed,
    deed_at,
    head_of,
    key_of,
    run_at,
    status_row,
    version_of,
)
from tests.contract.world import VirtualClock
from tests.moto_world import NAMES, moto_world

TYPICAL: Final = key_of("n" * 20, "t" * 20)
HOT_ITEM_BYTES_MAX: Final = 600
RUN: Final = run_at()
HEAD: Final = head_of()
ENTRY: Final = DueEntry(NOW + HOUR, DueKind.JOB, str(JOB), 0)


def _life_of(run: Run) -> Iterator[Run]:
    """A run in every state, with owners and reasons as long as they get."""
    owner = "sweephand-attempt/2026/11/15/[$LATEST]0123456789abcdef0123456789abcdef"
    nonce, reason = "0123456789abcdef", Reason(ReasonCode.TIMEOUT, "took longer than its 3600 seconds")
    yield run
    yield run.parked(reason, now=NOW, nonce=nonce, wake_at=NOW)
    yield (running := run.claimed(now=NOW, nonce=nonce, owner=owner, lease=HOUR, version=12))
    yield running.beaten(now=NOW, nonce=nonce, lease=HOUR, progress=50)
    yield running.succeeded(now=NOW, nonce=nonce, output=None)
    yield running.retried(
        Failure("TimeoutError", "took longer than its 3600 seconds"), reason, now=NOW, nonce=nonce, wake_at=NOW
    )
    yield running.failed(Failure("TimeoutError", "took longer than its 3600 seconds"), reason, now=NOW, nonce=nonce)
    yield run.skipped(reason, now=NOW, nonce=nonce)


def test_a_run_stays_far_below_the_kilobyte_that_a_write_unit_buys() -> None:
    odd = NOW.replace(microsecond=123_457)
    planned = run_at(job=TYPICAL, nonce="0123456789abcdef", created_at=odd, changed_at=odd)
    sizes = {run.state: size_of(run_item(run, keep=KEEP_RUNS)) for run in _life_of(planned)}
    assert max(sizes.values()) <= HOT_ITEM_BYTES_MAX, sizes
    assert sizes[planned.state] <= 200, sizes


def test_a_head_stays_far_below_the_kilobyte_that_a_write_unit_buys() -> None:
    odd = NOW.replace(microsecond=123_457)
    head = head_of(
        TYPICAL,
        version=12,
        created_at=odd,
        in_force_since=odd,
        changed_at=odd,
        planned_upto=odd,
        plan_at=odd,
        paused_since=odd,
        catchup=CatchupPolicy.LATEST,
        catchup_upto=odd,
        rev=100_000,
        nonce="0123456789abcdef",
    )
    assert size_of(head_item(head)) <= HOT_ITEM_BYTES_MAX


def test_a_run_of_an_hourly_job_costs_five_write_units(clock: VirtualClock) -> None:
    meter = Meter()
    with moto_world(clock, meter=meter) as stores:
        assert stores.jobs.change(None, HEAD, change_of(HEAD), version_of(), ENTRY)
        meter.clear()
        assert stores.runs.create([RUN]) == [True]
        stores.due.arm([ENTRY])
        advanced = HEAD.advanced(planned_upto=NOW + HOUR, plan_at=NOW + 2 * HOUR, nonce="next")
        assert stores.jobs.advance([(HEAD, advanced)]) == [True]
        assert stores.runs.move(RUN, claimed(RUN))
        assert stores.runs.move(claimed(RUN), claimed(RUN).succeeded(now=NOW, nonce="done", output={"rows": 3}))
        assert meter.write_units == 5, meter.writes
        assert meter.read_units == 0


def test_the_meter_counts_by_the_rules_of_dynamodb(clock: VirtualClock) -> None:
    meter = Meter()
    with moto_world(clock, meter=meter) as stores:
        assert stores.runs.create([RUN, RUN]) == [True, True]  # the second lost against itself, and is paid for
        assert meter.writes == {"test-runs": 2}
        assert stores.runs.create([run_at(NOW + HOUR, params={"text": "x" * 3_000})]) == [True]
        assert meter.writes == {"test-runs": 2 + 4}  # 3.1 KB or so
        stores.runs.of_job(JOB, limit=10)
        stores.runs.get(RunKey(JOB, run_at(NOW - HOUR).key.run_id))
        assert meter.reads == {"test-runs": 1 + 1}  # together below 4 KB, and an absent item is not free either
        meter.clear()
        assert stores.jobs.change(None, HEAD, change_of(HEAD), None, ENTRY)
        # Head, name, timeline and audit row, twice each in the transaction; two registers; the hint.
        assert meter.writes == {"test-jobs": 2 * 4 + 2, "test-due": 2}


def test_a_change_that_is_not_audited_costs_one_unit_and_an_audited_one_four(clock: VirtualClock) -> None:
    meter = Meter()
    with moto_world(clock, meter=meter) as stores:
        stores.trail.append(deed_at())
        assert meter.writes == {"test-jobs": 2}  # the month, once, and the deed
        meter.clear()
        assert stores.shared.put(DEFAULT, "position", "views", {"after": 1}, expected=0)
        assert meter.writes == {"test-control": 1}
        meter.clear()
        assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0, deed=deed_at(NOW + HOUR))
        assert stores.shared.delete(DEFAULT, "pool", "db", expected=1, deed=deed_at(NOW + 2 * HOUR))
        assert meter.writes == {"test-control": 2 * 2, "test-jobs": 2 * 2}
        assert meter.read_units == 0


# What expires.


class Puts:
    """The items that were put, as DynamoDB got them."""

    def __init__(self) -> None:
        self.items: list[Mapping[str, Any]] = []

    def __call__(self, _service: str, operation: str, params: Mapping[str, Any]) -> None:
        if operation == "PutItem":
            self.items.append(params["Item"])

    @property
    def last_end(self) -> datetime:
        """When the last item may be deleted."""
        return datetime.fromtimestamp(int(self.items[-1]["x"]["N"]), UTC)


def test_a_reply_is_given_its_end(clock: VirtualClock) -> None:
    puts, reply = Puts(), Reply("asked", "me", NOW + MINUTE)
    with moto_world(clock, faults=puts) as stores:
        stores.replies.reserve(DEFAULT, "k", reply, now=NOW, until=NOW + HOUR)
        assert puts.last_end == NOW + HOUR + SECOND
        stores.replies.settle(DEFAULT, "k", reply, until=NOW + 24 * HOUR)
        assert puts.last_end == NOW + 24 * HOUR + SECOND


def test_an_offer_lasts_two_weeks_from_when_it_was_last_made(clock: VirtualClock) -> None:
    puts, offer = Puts(), Offer(NOW - 1_000 * HOUR, RUN.key)
    with moto_world(clock, faults=puts) as stores:
        for _ in range(2):
            stores.offers.offer("gpu", offer)
            assert puts.last_end == clock.now() + timedelta(days=14, seconds=1)
            clock.advance(HOUR)


def test_a_page_of_the_view_reads_no_day_that_it_does_not_need(clock: VirtualClock) -> None:
    meter = Meter()
    with moto_world(clock, meter=meter) as stores:
        for n in range(20):
            stores.views.append(DEFAULT, "b", [status_row(run_at(NOW - n * 24 * HOUR))])
        ever = Window(since=NOW - 1000 * HOUR, until=NOW + HOUR)
        meter.clear()
        assert len(stores.views.rows(DEFAULT, **ever, limit=3)) == 3
        assert meter.read_units == 1 + 3  # the register, and three days
        meter.clear()
        assert len(stores.views.rows(DEFAULT, **ever, before=run_at(NOW - 240 * HOUR).key, limit=3)) == 3
        assert meter.read_units == 1 + 4  # the first of them holds only what is not below


def test_standings_are_summed_up_from_so_many_rows_and_say_from_when(clock: VirtualClock) -> None:
    meter = Meter()
    with moto_world(clock, meter=meter) as stores:
        for n in range(6):
            rows = [status_row(run_at(NOW + (n * 60 + m) * MINUTE)) for m in range(10)]
            stores.views.append(DEFAULT, f"b{n}", rows)
            stores.views.append(DEFAULT, f"c{n}", rows)
        window = Window(since=NOW, until=NOW + 6 * HOUR)
        meter.clear()
        whole = stores.views.standing(DEFAULT, **window, late_before=NOW + 5 * HOUR)
        assert (whole.since, len(whole.hours), whole.late) == (NOW, 6, 50)
        assert meter.read_units <= 1 + 4  # the register, and a day
        for rows_max, hours in ((60, 3), (61, 4), (1, 1), (120, 6), (119, 6)):
            found = stores.views.standing(DEFAULT, **window, late_before=NOW + 5 * HOUR, rows_max=rows_max)
            assert (found.since, len(found.hours)) == (NOW + (6 - hours) * HOUR, hours), rows_max
            assert found.late == (hours - 1) * 10


def test_active_runs_are_found_among_the_newest_hundred(clock: VirtualClock) -> None:
    with moto_world(clock) as stores:
        stores.runs.create([run_at(NOW + n * SECOND, state=RunState.RUNNING) for n in range(2)])
        stores.runs.create([run_at(NOW + n * SECOND, state=RunState.SKIPPED) for n in range(2, 101)])
        (found,) = stores.runs.active(JOB, until=run_id_of_fire(NOW + HOUR))
        assert found.key.run_id == run_id_of_fire(NOW + SECOND)


def test_jobs_are_counted_over_all_of_dynamodbs_pages(clock: VirtualClock) -> None:
    with moto_world(clock) as stores:
        dynamodb, _ = clients()
        padding = {"S": "x" * 300_000}
        for n in range(9):
            deleted = {"g": {"BOOL": True}} if n % 4 == 0 else {}
            item = item_of("names#default", f"job-{n}", {"pad": padding, **deleted})
            Table(dynamodb, NAMES.table(JOBS)).put(item)
        assert stores.jobs.count(DEFAULT) == 6


def test_an_ended_run_is_given_its_end_and_an_open_one_is_not() -> None:
    assert "x" not in run_item(claimed(RUN), keep=KEEP_RUNS)
    ended = claimed(RUN).succeeded(now=NOW, nonce="done", output=None)
    assert int(run_item(ended, keep=KEEP_RUNS)["x"]["N"]) == int((NOW + KEEP_RUNS).timestamp()) + 1
