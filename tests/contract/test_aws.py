"""What only the AWS adapter has: lost answers, throttling, half-taken batches, and items that are paid for by size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, Final

import pytest

from bench.meter import Meter, size_of
from sweephand.aws import KEEP_RUNS
from sweephand.aws.items import head_item, run_item
from sweephand.domain.ids import RunKey
from sweephand.domain.job import CatchupPolicy, Head, JobEvent, JobVersion
from sweephand.domain.ledger import Dropped
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run
from sweephand.domain.slots import Slot
from sweephand.errors import Defect, Unavailable
from sweephand.messages import AttemptRun
from sweephand.ports import DueEntry, DueKind, Lane, Letter
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    JOB,
    MINUTE,
    NOW,
    SECOND,
    change_of,
    claimed,
    head_of,
    key_of,
    run_at,
    status_row,
    version_of,
)
from tests.contract.world import Stores, VirtualClock
from tests.moto_world import Fault, Partial, broken, cancelled, moto_world, refused, throttled, timed_out, unreachable

TYPICAL: Final = key_of("n" * 20, "t" * 20)
HOT_ITEM_BYTES_MAX: Final = 600
RUN: Final = run_at()
HEAD: Final = head_of()
ENTRY: Final = DueEntry(NOW + HOUR, DueKind.JOB, str(JOB), 0)
SLOT: Final = Slot("job/default/report")


@dataclass
class Weather:
    """The faults of the next calls that are of these operations; every call is noted."""

    coming: list[Fault | Partial] = field(default_factory=list)
    only: str | None = None
    seen: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def __call__(self, service: str, operation: str, params: Mapping[str, Any]) -> Fault | Partial | None:
        self.seen.append((operation, params))
        if not self.coming or (self.only and operation != self.only):
            return None
        return self.coming.pop(0)


@pytest.fixture
def weather() -> Weather:
    return Weather()


@pytest.fixture
def stores(clock: VirtualClock, weather: Weather) -> Iterator[Stores]:
    with moto_world(clock, faults=weather) as found:
        yield found


# What is paid for by size.


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
        assert stores.jobs.advance([(HEAD, _advanced(HEAD, "next"))]) == [True]
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


# Answers that are lost.


def _advanced(head: Head, nonce: str) -> Head:
    return head.advanced(planned_upto=NOW + HOUR, plan_at=NOW + 2 * HOUR, nonce=nonce)


Verb = Callable[[Stores, str], object]
"""A compare-and-set under a nonce."""


def _creates(stores: Stores, nonce: str) -> object:
    return stores.runs.create([run_at(NOW + HOUR, nonce=nonce)])[0]


def _moves(stores: Stores, nonce: str) -> object:
    return stores.runs.move(RUN, claimed(RUN, nonce))


def _changes(stores: Stores, nonce: str) -> object:
    after = HEAD.changed(JobEvent.PAUSED, at=NOW + SECOND, nonce=nonce, paused_since=NOW + SECOND)
    return stores.jobs.change(HEAD, after, change_of(after, JobEvent.PAUSED), None, None)


def _puts_first(stores: Stores, nonce: str) -> object:
    head = head_of(key_of("new"), nonce=nonce)
    return stores.jobs.change(None, head, change_of(head), version_of(head.key), ENTRY)


def _advances(stores: Stores, nonce: str) -> object:
    return stores.jobs.advance([(HEAD, _advanced(HEAD, nonce))])[0]


def _swaps_first(stores: Stores, nonce: str) -> object:
    return stores.slots.swap(SLOT, SLOT.taken(RUN, weight=1, now=NOW, nonce=nonce))


def _swaps_again(stores: Stores, nonce: str) -> object:
    taken = Slot("taken", rev=1)
    return stores.slots.swap(taken, taken.taken(RUN, weight=1, now=NOW, nonce=nonce))


CAS: Final[Mapping[str, tuple[Verb, str]]] = {
    "create": (_creates, "PutItem"),
    "move": (_moves, "UpdateItem"),
    "change": (_changes, "TransactWriteItems"),
    "change, the first": (_puts_first, "TransactWriteItems"),
    "advance": (_advances, "UpdateItem"),
    "swap, the first": (_swaps_first, "PutItem"),
    "swap": (_swaps_again, "PutItem"),
}


def _furnish(stores: Stores) -> None:
    assert stores.runs.create([RUN]) == [True]
    assert stores.jobs.change(None, HEAD, change_of(HEAD), version_of(), ENTRY)
    assert stores.slots.swap(Slot("taken"), Slot("taken", rev=1, nonce="first"))


@pytest.mark.parametrize("verb", CAS)
@pytest.mark.parametrize("applied", [True, False])
def test_a_write_whose_answer_was_lost_is_recognised_when_it_is_repeated(
    stores: Stores, weather: Weather, verb: str, applied: bool
) -> None:
    act, weather.only = CAS[verb]
    _furnish(stores)
    weather.coming = [timed_out(applied=applied)]
    with pytest.raises(Unavailable):
        act(stores, "mine")
    assert act(stores, "mine") is True
    assert act(stores, "mine") is True
    assert act(stores, "another's") is False


@pytest.mark.parametrize("verb", CAS)
def test_a_write_without_a_nonce_is_nobodys_own(stores: Stores, verb: str) -> None:
    act, _ = CAS[verb]
    _furnish(stores)
    assert act(stores, "") is True
    assert act(stores, "") is False


def test_a_run_that_moved_on_since_its_creation_was_lost_is_not_created_again(stores: Stores, weather: Weather) -> None:
    weather.coming = [timed_out()]
    with pytest.raises(Unavailable):
        stores.runs.create([RUN])
    assert stores.runs.move(RUN, claimed(RUN, RUN.nonce))
    assert stores.runs.create([RUN]) == [False]


def test_a_shard_whose_taking_was_lost_is_taken_again_by_its_owner(stores: Stores, weather: Weather) -> None:
    weather.only, weather.coming = "UpdateItem", [timed_out()]
    with pytest.raises(Unavailable):
        stores.shards.take(3, owner="me", now=NOW, until=NOW + MINUTE)
    assert stores.shards.take(3, owner="you", now=NOW, until=NOW + MINUTE) is None
    lease = stores.shards.take(3, owner="me", now=NOW, until=NOW + MINUTE)
    assert lease is not None
    weather.coming = [timed_out()]
    with pytest.raises(Unavailable):
        stores.shards.release(lease, watermark=NOW)
    assert stores.shards.release(lease, watermark=NOW)
    next_lease = stores.shards.take(3, owner="you", now=NOW, until=NOW + MINUTE)
    assert next_lease is not None
    assert next_lease.watermark == NOW
    assert not stores.shards.release(lease, watermark=NOW + SECOND)


def test_what_was_remembered_although_the_answer_was_lost_stays_the_first(stores: Stores, weather: Weather) -> None:
    weather.coming = [timed_out()]
    with pytest.raises(Unavailable):
        stores.runs.remember(DEFAULT, "key", "first", until=NOW + HOUR)
    assert stores.runs.remember(DEFAULT, "key", "second", until=NOW + HOUR) == "first"


# Every call of every port, in bad weather.


def _under_a_nonce(act: Verb, stores: Stores) -> object:
    return act(stores, "mine")


CALLS: Final[Mapping[str, Callable[[Stores], object]]] = {
    **{name: partial(_under_a_nonce, act) for name, (act, _) in CAS.items()},
    "head": lambda stores: stores.jobs.head(JOB),
    "heads": lambda stores: stores.jobs.heads(DEFAULT, limit=5),
    "heads_of": lambda stores: stores.jobs.heads_of([JOB]),
    "namespaces": lambda stores: stores.jobs.namespaces(),
    "version": lambda stores: stores.jobs.version(JOB, 1),
    "versions": lambda stores: stores.jobs.versions(JOB, limit=5),
    "timeline": lambda stores: stores.jobs.timeline(JOB, since=NOW),
    "audit": lambda stores: stores.jobs.audit(DEFAULT, limit=5),
    "get": lambda stores: stores.runs.get(RUN.key),
    "of_job": lambda stores: stores.runs.of_job(JOB, limit=5),
    "drop": lambda stores: stores.runs.drop(JOB, Dropped(NOW, NOW, 1, Reason(ReasonCode.CATCHUP))),
    "dropped": lambda stores: stores.runs.dropped(JOB, since=NOW, until=NOW + HOUR),
    "pages": lambda stores: stores.runs.pages(JOB, since=NOW, until=NOW + HOUR),
    "remember": lambda stores: stores.runs.remember(DEFAULT, "k", "v", until=NOW + HOUR),
    "arm": lambda stores: stores.due.arm([ENTRY]),
    "read": lambda stores: stores.due.read(0, after=NOW, upto=NOW + HOUR, limit=5),
    "count": lambda stores: stores.shards.count(),
    "grow": lambda stores: stores.shards.grow(64),
    "take": lambda stores: stores.shards.take(0, owner="me", now=NOW, until=NOW + MINUTE),
    "slot": lambda stores: stores.slots.get(SLOT.name),
    "shared": lambda stores: stores.shared.get(DEFAULT, "pool", "p"),
    "share": lambda stores: stores.shared.put(DEFAULT, "pool", "p", {"slots": 1}, expected=0),
    "send": lambda stores: stores.queue.send([Letter(AttemptRun(RUN.key))]),
    "receive": lambda stores: stores.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE),
    "dead": lambda stores: stores.inbox.dead(most=1),
    "append": lambda stores: stores.views.append(DEFAULT, "b", [status_row(RUN)]),
    "rows": lambda stores: stores.views.rows(DEFAULT, since=NOW, until=NOW + HOUR),
    "clear": lambda stores: stores.views.clear(DEFAULT),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_says_unavailable_in_bad_weather_and_defect_where_it_is_wrong(
    stores: Stores, weather: Weather, name: str
) -> None:
    _furnish(stores)
    for fault in (throttled("X"), broken("X"), unreachable(), timed_out(applied=False), refused("X", "AccessDenied")):
        weather.coming = [fault]
        with pytest.raises(Unavailable):
            CALLS[name](stores)
    for code in ("ValidationException", "InvalidParameterValue"):
        weather.coming = [refused("X", code)]
        with pytest.raises(Defect):
            CALLS[name](stores)
    CALLS[name](stores)


def test_a_request_that_is_wrong_in_itself_is_a_defect(stores: Stores) -> None:
    with pytest.raises(Defect):
        stores.runs.create([replace(RUN, note="x" * 420_000)])  # DynamoDB's own limit, which moto keeps
    with pytest.raises(Defect):
        stores.runs.create([replace(RUN, owner=7)])  # type: ignore[arg-type]  # botocore looks at types itself


@pytest.mark.parametrize(
    ("codes", "meaning"),
    [
        (["TransactionConflict", "None", "None"], Unavailable),
        (["None", "TransactionConflict", "None"], Unavailable),
        (["None", "ThrottlingError", "None"], Unavailable),
        (["None", "ValidationError", "None"], Defect),
        (["None", "ConditionalCheckFailed", "None"], Defect),
    ],
)
def test_a_cancelled_transaction_means_what_its_reasons_say(
    stores: Stores, weather: Weather, codes: list[str], meaning: type[Exception]
) -> None:
    _furnish(stores)
    weather.only, weather.coming = "TransactWriteItems", [cancelled(*codes)]
    with pytest.raises(meaning):
        _changes(stores, "mine")
    assert stores.jobs.head(JOB) == HEAD
    weather.coming = [refused("TransactWriteItems", "TransactionInProgressException")]
    with pytest.raises(Unavailable):
        _changes(stores, "mine")
    assert _changes(stores, "mine")


def test_a_change_that_loses_leaves_no_trace(stores: Stores) -> None:
    _furnish(stores)
    assert stores.jobs.advance([(HEAD, _advanced(HEAD, "sweep"))]) == [True]
    assert _changes(stores, "late") is False
    assert [change.event for change in stores.jobs.timeline(JOB)] == [JobEvent.PUT]
    assert [change.event for change in stores.jobs.audit(DEFAULT, limit=9)] == [JobEvent.PUT]


# Batches.


def _bodies(stores: Stores, most: int = 100) -> list[str]:
    return sorted(one.body for one in stores.inbox.receive(Lane.NORMAL, most=most, hold=MINUTE))


def _letters(count: int) -> list[Letter]:
    return [Letter(AttemptRun(run_at(NOW + n * SECOND).key)) for n in range(count)]


def test_of_a_batch_only_the_failed_messages_are_sent_again(stores: Stores, weather: Weather) -> None:
    weather.only, weather.coming = "SendMessageBatch", [Partial(7), Partial(1)]
    stores.queue.send(_letters(10))
    sent = [len(params["Entries"]) for operation, params in weather.seen if operation == "SendMessageBatch"]
    assert sent == [10, 3, 2]
    bodies = _bodies(stores)
    assert len(bodies) == len(set(bodies)) == 10


def test_messages_that_are_never_accepted_are_unavailable(stores: Stores, weather: Weather) -> None:
    weather.only, weather.coming = "SendMessageBatch", [Partial(9), Partial(0), Partial(0)]
    with pytest.raises(Unavailable):
        stores.queue.send(_letters(10))
    assert len(_bodies(stores)) == 9


def test_no_batch_is_larger_than_sqs_takes(stores: Stores, weather: Weather) -> None:
    stores.queue.send(_letters(25))
    sent = [len(params["Entries"]) for operation, params in weather.seen if operation == "SendMessageBatch"]
    assert sent == [10, 10, 5]
    entry = next(params["Entries"][0] for operation, params in weather.seen if operation == "SendMessageBatch")
    assert entry["MessageGroupId"] == DEFAULT
    assert len(_bodies(stores)) == 25


def test_entries_that_dynamodb_left_over_are_armed_in_the_next_round(stores: Stores, weather: Weather) -> None:
    entries = [DueEntry(NOW + n * SECOND, DueKind.JOB, str(JOB), 0) for n in range(30)]
    weather.only, weather.coming = "BatchWriteItem", [Partial(20), Partial(3)]
    stores.due.arm([*entries, *entries])
    assert stores.due.read(0, after=NOW - HOUR, upto=NOW + HOUR, limit=100) == entries
    weather.coming = [Partial(24), Partial(0), Partial(0)]
    with pytest.raises(Unavailable):
        stores.due.arm([replace(entry, shard=1) for entry in entries])


def test_heads_that_dynamodb_left_over_are_read_in_the_next_round(stores: Stores, weather: Weather) -> None:
    heads = [head_of(key_of(f"job-{n:03}")) for n in range(120)]
    for head in heads:
        assert stores.jobs.change(None, head, change_of(head), None, None)
    weather.only, weather.coming = "BatchGetItem", [Partial(60), Partial(39)]
    assert stores.jobs.heads(DEFAULT, limit=200) == heads
    weather.coming = [Partial(60), Partial(0), Partial(0)]
    with pytest.raises(Unavailable):
        stores.jobs.heads(DEFAULT, limit=200)


# The rest.


def test_a_version_too_large_for_one_item_is_kept_in_several(stores: Stores) -> None:
    noise = Random(7).randbytes(500_000).hex()
    version = JobVersion(JOB, 1, NOW, "ada", None, None)
    large = replace(version, created_by=noise)
    assert stores.jobs.change(None, HEAD, change_of(HEAD), large, None)
    assert stores.jobs.version(JOB, 1) == large
    assert stores.jobs.versions(JOB, limit=5) == [large]


def test_a_list_longer_than_dynamodbs_pages_is_whole(stores: Stores) -> None:
    runs = [run_at(NOW + n * MINUTE, params={"text": "x" * 300_000}) for n in range(7)]
    assert stores.runs.create(runs) == [True] * 7
    assert stores.runs.of_job(JOB, newest_first=False, limit=10) == runs
    assert stores.runs.of_job(JOB, limit=6) == runs[:0:-1]


def test_threads_that_create_the_same_runs_share_them_out(clock: VirtualClock) -> None:
    runs = [run_at(NOW + n * MINUTE) for n in range(40)]
    with moto_world(clock, abreast=8) as stores, ThreadPoolExecutor(3) as sweepers:
        answers = list(sweepers.map(lambda name: stores.runs.create([replace(run, nonce=name) for run in runs]), "abc"))
    assert [sum(of_run) for of_run in zip(*answers, strict=True)] == [1] * len(runs)


def test_an_ended_run_is_given_its_end_and_an_open_one_is_not() -> None:
    assert "x" not in run_item(claimed(RUN), keep=KEEP_RUNS)
    ended = claimed(RUN).succeeded(now=NOW, nonce="done", output=None)
    assert int(run_item(ended, keep=KEEP_RUNS)["x"]["N"]) == int((NOW + KEEP_RUNS).timestamp()) + 1
