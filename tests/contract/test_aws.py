"""What only the AWS adapter has: lost answers, throttling, half-taken batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from msgspec.structs import replace

from sweephand.domain.job import Head, JobEvent, JobVersion
from sweephand.domain.ledger import Dropped
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.slots import Slot
from sweephand.domain.trail import Deed
from sweephand.errors import Defect, Unavailable
from sweephand.messages import AttemptRun
from sweephand.ports import DueEntry, DueKind, Lane, Letter, Offer, Reply
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    JOB,
    MINUTE,
    NOW,
    SECOND,
    change_of,
    claimed,
    deed_at,
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
REPLY: Final = Reply("asked", "me", NOW + MINUTE)
OFFER: Final = Offer(NOW, RUN.key)


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


def test_a_put_whose_answer_was_lost_is_found_as_it_was_written_with_its_deed(stores: Stores, weather: Weather) -> None:
    def put() -> bool:
        return stores.shared.put(DEFAULT, "pool", "p", {"slots": 1}, expected=0, deed=deed_at())

    weather.only, weather.coming = "TransactWriteItems", [timed_out()]
    with pytest.raises(Unavailable):
        put()
    assert put() is False
    assert stores.shared.get(DEFAULT, "pool", "p") == (1, {"slots": 1})
    assert stores.trail.deeds(DEFAULT, limit=5) == [deed_at()]


@pytest.mark.parametrize(("deed", "operation"), [(None, "DeleteItem"), (deed_at(), "TransactWriteItems")])
def test_a_delete_whose_answer_was_lost_is_done(
    stores: Stores, weather: Weather, deed: Deed | None, operation: str
) -> None:
    assert stores.shared.put(DEFAULT, "pool", "p", {}, expected=0)
    weather.only, weather.coming = operation, [timed_out()]
    with pytest.raises(Unavailable):
        stores.shared.delete(DEFAULT, "pool", "p", expected=1, deed=deed)
    assert stores.shared.delete(DEFAULT, "pool", "p", expected=1, deed=deed) is True
    assert stores.trail.deeds(DEFAULT, limit=5) == ([] if deed is None else [deed])


@pytest.mark.parametrize("codes", [["TransactionConflict", "None"], ["None", "TransactionConflict"]])
def test_a_document_whose_transaction_met_another_is_not_written(
    stores: Stores, weather: Weather, codes: list[str]
) -> None:
    weather.only, weather.coming = "TransactWriteItems", [cancelled(*codes)]
    with pytest.raises(Unavailable):
        stores.shared.put(DEFAULT, "pool", "p", {}, expected=0, deed=deed_at())
    assert stores.shared.get(DEFAULT, "pool", "p") is None
    assert stores.shared.put(DEFAULT, "pool", "p", {}, expected=0, deed=deed_at())


def test_a_deed_whose_month_could_not_be_registered_is_registered_with_the_next(
    stores: Stores, weather: Weather
) -> None:
    weather.only, weather.coming = "PutItem", [throttled("PutItem")]
    with pytest.raises(Unavailable):
        stores.trail.append(deed_at())
    stores.trail.append(deed_at())
    assert stores.trail.deeds(DEFAULT, limit=5) == [deed_at()]


def test_a_reservation_whose_answer_was_lost_is_still_its_holders(stores: Stores, weather: Weather) -> None:
    rival = replace(REPLY, holder="you")
    weather.coming = [timed_out()]
    with pytest.raises(Unavailable):
        stores.replies.reserve(DEFAULT, "k", REPLY, now=NOW, until=NOW + HOUR)
    assert stores.replies.reserve(DEFAULT, "k", rival, now=NOW, until=NOW + HOUR) == REPLY
    assert stores.replies.reserve(DEFAULT, "k", REPLY, now=NOW, until=NOW + HOUR) == REPLY
    weather.coming = [timed_out()]
    with pytest.raises(Unavailable):
        stores.replies.settle(DEFAULT, "k", replace(REPLY, answer="done"), until=NOW + HOUR)
    stores.replies.release(DEFAULT, "k", REPLY)
    assert stores.replies.reserve(DEFAULT, "k", rival, now=NOW, until=NOW + HOUR).answer == "done"


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
    "sought": lambda stores: stores.jobs.sought(DEFAULT, "r", limit=5),
    "soonest": lambda stores: stores.jobs.soonest(DEFAULT, now=NOW, upto=NOW + HOUR, limit=5),
    "each_version": lambda stores: stores.jobs.each_version([(JOB, 1)]),
    "timeline": lambda stores: stores.jobs.timeline(JOB, since=NOW),
    "count of jobs": lambda stores: stores.jobs.count(DEFAULT),
    "get": lambda stores: stores.runs.get(RUN.key),
    "of_job": lambda stores: stores.runs.of_job(JOB, limit=5),
    "active": lambda stores: stores.runs.active(JOB, until=RUN.key.run_id),
    "recent": lambda stores: stores.runs.recent([JOB], until=RUN.key.run_id, limit=5),
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
    "listed": lambda stores: stores.shared.listed(DEFAULT, "pool", limit=5),
    "in_each": lambda stores: stores.shared.in_each([DEFAULT], "pool", "p"),
    "share": lambda stores: stores.shared.put(DEFAULT, "pool", "p", {"slots": 1}, expected=0),
    "share with a deed": lambda stores: stores.shared.put(DEFAULT, "pool", "q", {}, expected=0, deed=deed_at()),
    "delete": lambda stores: stores.shared.delete(DEFAULT, "pool", "p", expected=1),
    "delete with a deed": lambda stores: stores.shared.delete(DEFAULT, "pool", "p", expected=1, deed=deed_at()),
    "append to the trail": lambda stores: stores.trail.append(deed_at()),
    "deeds": lambda stores: stores.trail.deeds(DEFAULT, limit=5),
    "reserve": lambda stores: stores.replies.reserve(DEFAULT, "k", REPLY, now=NOW, until=NOW + HOUR),
    "settle": lambda stores: stores.replies.settle(DEFAULT, "k", REPLY, until=NOW + HOUR),
    "give up": lambda stores: stores.replies.release(DEFAULT, "k", REPLY),
    "offer": lambda stores: stores.offers.offer("gpu", OFFER),
    "open": lambda stores: stores.offers.open(DEFAULT, "gpu", limit=5),
    "withdraw": lambda stores: stores.offers.withdraw("gpu", [OFFER]),
    "send": lambda stores: stores.queue.send([Letter(AttemptRun(RUN.key))]),
    "receive": lambda stores: stores.inbox.receive(Lane.NORMAL, most=1, hold=MINUTE),
    "dead": lambda stores: stores.inbox.dead(most=1),
    "append": lambda stores: stores.views.append(DEFAULT, "b", [status_row(RUN)]),
    "rows": lambda stores: stores.views.rows(DEFAULT, since=NOW, until=NOW + HOUR),
    "standing": lambda stores: stores.views.standing(DEFAULT, since=NOW, until=NOW + HOUR, late_before=NOW),
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
        stores.runs.create([replace(RUN, owner=7)])  # botocore looks at types itself


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
    assert [deed.action for deed in stores.trail.deeds(DEFAULT, limit=9)] == ["job.put"]


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
