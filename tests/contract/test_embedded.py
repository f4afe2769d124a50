"""What the embedded store promises beyond the ports: order, receipts, the feed, and what a call may cost."""

from __future__ import annotations

from datetime import timedelta

from sweephand.domain.run import Run
from sweephand.embedded import PACE, Stores, open_stores
from sweephand.messages import AttemptRun, decode
from sweephand.ports import DueEntry, DueKind, Lane, Letter, Offer, Reply
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    JOB,
    MINUTE,
    NOW,
    SECOND,
    TICK,
    change_of,
    claimed,
    deed_at,
    head_of,
    run_at,
    status_row,
    version_of,
)
from tests.contract.world import VirtualClock

# The queue, where SQS promises less.


def test_messages_come_in_the_order_in_which_they_became_visible(embedded: Stores, clock: VirtualClock) -> None:
    keys = [run_at(NOW + n * SECOND).key for n in range(4)]
    for key, delay_s in zip(keys, (2, 0, 1, 0), strict=True):
        embedded.queue.send([Letter(AttemptRun(key), delay=delay_s * SECOND)])
    clock.advance(2 * SECOND)
    found = embedded.inbox.receive(Lane.NORMAL, most=3, hold=MINUTE)
    assert [decode(one.body) for one in found] == [AttemptRun(keys[n]) for n in (1, 3, 2)]


def test_a_stale_receipt_does_nothing(embedded: Stores, clock: VirtualClock) -> None:
    embedded.queue.send([Letter(AttemptRun(run_at().key))])
    (stale,) = embedded.inbox.receive(Lane.NORMAL, most=1, hold=SECOND)
    clock.advance(SECOND)
    (fresh,) = embedded.inbox.receive(Lane.NORMAL, most=1, hold=SECOND)
    embedded.inbox.keep(stale, HOUR)
    embedded.inbox.delete([stale])
    clock.advance(SECOND)
    (again,) = embedded.inbox.receive(Lane.NORMAL, most=1, hold=SECOND)
    assert again.receives == fresh.receives + 1


def test_a_receipt_never_names_a_later_message(embedded: Stores, clock: VirtualClock) -> None:
    embedded.queue.send([Letter(AttemptRun(run_at().key))])
    (old,) = embedded.inbox.receive(Lane.NORMAL, most=1, hold=SECOND)
    embedded.inbox.delete([old])
    embedded.queue.send([Letter(AttemptRun(run_at().key))])
    (new,) = embedded.inbox.receive(Lane.NORMAL, most=1, hold=SECOND)
    embedded.inbox.delete([old])
    clock.advance(SECOND)
    assert new.receipt != old.receipt
    assert len(embedded.inbox.receive(Lane.NORMAL, most=1, hold=SECOND)) == 1


# The due index, where DynamoDB's entries expire.


def test_what_was_dealt_with_is_gone(embedded: Stores) -> None:
    entries = [DueEntry(NOW, DueKind.JOB, f"default/job-{n}", 0) for n in range(3)]
    embedded.due.arm(entries)
    embedded.due.done(entries[:2])
    assert embedded.due.read(0, after=None, upto=NOW, limit=10) == entries[2:]


def test_an_entry_written_behind_the_watermark_is_found_by_the_next_sweep(embedded: Stores) -> None:
    lease = embedded.shards.take(0, owner="a", now=NOW, until=NOW + MINUTE)
    assert lease is not None
    embedded.shards.release(lease, watermark=NOW)
    late = DueEntry(NOW - SECOND, DueKind.JOB, "default/late", 0)
    embedded.due.arm([late, DueEntry(NOW - HOUR, DueKind.JOB, "default/elsewhere", 1)])

    again = embedded.shards.take(0, owner="a", now=NOW + SECOND, until=NOW + MINUTE)
    assert again is not None
    assert embedded.due.read(0, after=again.watermark, upto=NOW + SECOND, limit=10) == [late]
    embedded.due.done([late])
    embedded.shards.release(again, watermark=NOW + SECOND)
    last = embedded.shards.take(0, owner="a", now=NOW + MINUTE, until=NOW + HOUR)
    assert last is not None
    assert last.watermark == NOW + SECOND


# The feed.


def test_the_feed_gives_every_changed_run_once_in_the_order_of_its_last_write(embedded: Stores) -> None:
    assert embedded.feed.read(0, 10) == []
    a, b, c = runs = [run_at(NOW + n * SECOND) for n in range(3)]
    embedded.runs.create(runs)
    first = embedded.feed.read(0, 10)
    assert [run for _, run in first] == [a, b, c]
    position = first[-1][0]
    assert embedded.feed.read(position, 10) == []

    assert embedded.runs.move(b, claimed(b))
    assert embedded.runs.move(a, claimed(a))
    done = claimed(b).succeeded(now=NOW, nonce="done", output=None)
    assert embedded.runs.move(claimed(b), done)
    assert embedded.runs.move(c, claimed(c))
    assert [run for _, run in embedded.feed.read(position, 10)] == [claimed(a), done, claimed(c)]
    assert [run for _, run in embedded.feed.read(0, 10)] == [claimed(a), done, claimed(c)]


def test_pages_of_the_feed_meet(embedded: Stores) -> None:
    runs = [run_at(NOW + n * SECOND) for n in range(10)]
    embedded.runs.create(runs)
    found: list[Run] = []
    position = 0
    while page := embedded.feed.read(position, 3):
        assert len(page) <= 3
        found += [run for _, run in page]
        position = page[-1][0]
    assert found == runs


def test_what_changed_nothing_is_not_in_the_feed(embedded: Stores) -> None:
    run = run_at()
    embedded.runs.create([run])
    ((position, _),) = embedded.feed.read(0, 10)
    embedded.runs.create([run, run_at(nonce="rival")])
    embedded.runs.move(claimed(run), claimed(claimed(run)))
    assert embedded.feed.read(position, 10) == []


# Cost.


def test_no_call_reads_more_of_a_table_than_it_needs(clock: VirtualClock) -> None:
    stores = open_stores(None, clock=clock)
    seen: list[str] = []
    stores.database.write(lambda connection: connection.set_trace_callback(seen.append))
    _call_everything(stores)
    stores.database.write(lambda connection: connection.set_trace_callback(None))

    statements = {text for text in seen if text.split()[0] in {"SELECT", "UPDATE", "DELETE", "INSERT", "WITH"}}
    assert len(statements) > 30
    offences = []
    for text in statements:
        for *_, step in stores.database.rows(f"EXPLAIN QUERY PLAN {text}"):
            small = any(name in step for name in ("shard_count", "dead_letters", "found", "CONSTANT ROW"))
            sorts = "TEMP B-TREE" in step and "dead_letters" not in text
            if (step.startswith("SCAN") and not small) or sorts:
                offences.append((step, text))
    assert offences == []
    stores.close()


def test_pages_of_the_view_and_active_runs_are_read_from_their_place_in_an_index(clock: VirtualClock) -> None:
    stores = open_stores(None, clock=clock)
    seen: list[str] = []
    stores.database.write(lambda connection: connection.set_trace_callback(seen.append))
    run = run_at()
    stores.runs.active(JOB, until=run.key.run_id)
    stores.views.rows(DEFAULT, since=NOW, until=NOW + HOUR, before=run.key, limit=10)
    stores.database.write(lambda connection: connection.set_trace_callback(None))

    selects = [text for text in seen if text.startswith("SELECT")]
    plans = [step for text in selects for *_, step in stores.database.rows(f"EXPLAIN QUERY PLAN {text}")]
    assert plans == [
        "SEARCH runs USING INDEX runs_active (job=? AND run_id<?)",
        "SEARCH status_rows USING PRIMARY KEY (namespace=? AND run_id>? AND (run_id,job)<(?,?))",
    ]
    stores.close()


def _call_everything(embedded: Stores) -> None:
    head, run, entry = head_of(), run_at(), DueEntry(NOW, DueKind.JOB, str(JOB), 0)
    embedded.jobs.change(None, head, change_of(head), version_of(), entry)
    embedded.jobs.advance([(head, head.advanced(planned_upto=NOW, plan_at=NOW, nonce="x"))])
    embedded.jobs.head(JOB)
    embedded.jobs.heads_of([JOB])
    embedded.jobs.namespaces()
    embedded.jobs.heads(DEFAULT, limit=10)
    embedded.jobs.sought(DEFAULT, "r", after=JOB.name, limit=10)
    embedded.jobs.each_version([(JOB, 1)])
    embedded.jobs.soonest(DEFAULT, now=NOW, upto=NOW, limit=10)
    embedded.jobs.versions(JOB, before=5, limit=10)
    embedded.jobs.version(JOB, 1)
    embedded.jobs.timeline(JOB)
    embedded.jobs.timeline(JOB, since=NOW)
    embedded.jobs.count(DEFAULT)
    embedded.trail.append(deed_at())
    embedded.trail.deeds(DEFAULT, limit=10)
    embedded.trail.deeds(DEFAULT, before=deed_at(), limit=10)
    embedded.runs.create([run, run])
    embedded.runs.move(run, claimed(run))
    for newest_first in (True, False):
        embedded.runs.of_job(JOB, since=run.key.run_id, until=run.key.run_id, newest_first=newest_first, limit=10)
    embedded.runs.active(JOB, until=run.key.run_id)
    embedded.runs.recent([JOB], until=run.key.run_id, limit=10)
    embedded.runs.dropped(JOB, since=NOW, until=NOW)
    embedded.runs.pages(JOB, since=NOW, until=NOW)
    embedded.runs.remember(DEFAULT, "k", "v", until=NOW)
    embedded.due.read(0, after=NOW - TICK, upto=NOW, limit=10)
    embedded.due.read(0, after=None, upto=NOW, limit=10, beyond=entry)
    embedded.due.done([entry])
    for _ in range(2):
        lease = embedded.shards.take(0, owner="a", now=NOW, until=NOW)
        assert lease is not None
        embedded.shards.release(lease, watermark=NOW)
    embedded.slots.get("s")
    embedded.shared.get(DEFAULT, "k", "n")
    embedded.shared.put(DEFAULT, "k", "n", {}, expected=3)
    embedded.shared.listed(DEFAULT, "k", after="m", limit=10)
    embedded.shared.delete(DEFAULT, "k", "n", expected=3)
    reply = Reply("asked", "me", NOW)
    embedded.replies.reserve(DEFAULT, "k", reply, now=NOW, until=NOW)
    embedded.replies.settle(DEFAULT, "k", reply, until=NOW)
    embedded.replies.release(DEFAULT, "k", reply)
    offer = Offer(NOW, run.key)
    embedded.offers.offer("gpu", offer)
    embedded.offers.open(DEFAULT, "gpu", limit=10)
    embedded.offers.withdraw("gpu", [offer])
    embedded.queue.send([Letter(AttemptRun(run.key))])
    embedded.await_work(timedelta(0))
    embedded.await_work(timedelta(0))
    (delivery,) = embedded.inbox.receive(Lane.NORMAL, most=10, hold=MINUTE)
    embedded.inbox.keep(delivery, MINUTE)
    embedded.inbox.delete([delivery])
    embedded.views.append(DEFAULT, "b", [status_row(run)])
    embedded.views.rows(DEFAULT, since=NOW, until=NOW + HOUR)
    embedded.views.standing(DEFAULT, since=NOW, until=NOW + HOUR, late_before=NOW)
    embedded.views.rows(DEFAULT, since=NOW, until=NOW + HOUR, before=run.key, limit=10)
    embedded.views.clear(DEFAULT)
    embedded.feed.read(0, 10)


def test_the_pace_of_one_machine_is_short() -> None:
    assert (PACE.lookahead, PACE.step, PACE.spread, PACE.margin) == (5 * SECOND, *[timedelta(0)] * 3)
    assert (PACE.lease_grace, PACE.sweep_lease) == (30 * SECOND, 10 * SECOND)
