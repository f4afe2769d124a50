"""External workers: they pull runs, say that they are alive, and report."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.ids import Namespace, RunId
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.cancel import cancel
from sweephand.engine.checkpoint import save_checkpoint
from sweephand.engine.delete import delete
from sweephand.engine.follow import follow
from sweephand.engine.lease import Leased, beat, lease, report, worker_of
from sweephand.engine.offer import LEASE, Puller
from sweephand.engine.rerun import rerun
from sweephand.engine.share import put_pool
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_run
from sweephand.engine.workers import seen, workers
from sweephand.errors import NotFound, StaleEpoch, Unavailable
from sweephand.ports import Lane, Offer, World
from tests.engine.faults import Fault, dying_before, failing_at, with_another
from tests.engine.world import NS, PERMANENT, TRANSIENT, Crash, Town, at, code_of, job, run_key

RETRY = {"attempts": 2, "backoff": "fixed", "delay": "2m"}
A_SECOND = timedelta(seconds=1)


def offered(town: Town, **more: Any) -> Run:
    """A run that waits for a worker."""
    town.put_external(schedule=None, **more)
    run = trigger(town.world, job())
    town.drive()
    return town.run(run.key)


def open_offers(town: Town, queue: str = "default") -> list[str]:
    return [offer.run.run_id for offer in town.stores.offers.open(NS, queue, limit=100)]


def says(town: Town, leased: Leased, outcome: Outcome, *, world: World | None = None) -> Run:
    return report(world or town.world, leased.lease.id, NS, epoch=leased.lease.run.epoch, outcome=outcome)


def beats(town: Town, leased: Leased, *, progress: int | None = None) -> Run:
    return beat(town.world, leased.lease.id, NS, epoch=leased.lease.run.epoch, progress=progress)


def forget_messages(town: Town) -> None:
    town.stores.database.run("DELETE FROM messages", ())
    town.stores.database.run("DELETE FROM due", ())


# Pulling.


def test_a_run_is_offered_leased_by_one_and_reported(either: Town) -> None:
    run = offered(either, params={"of": 3})
    assert (run.state, code_of(run), open_offers(either)) == (RunState.QUEUED, ReasonCode.WORKER, [run.key.run_id])
    (leased,) = either.lease()
    assert either.lease(worker="walter") == []
    assert (leased.call.params, leased.checkpoint, leased.call.task.kind) == ({"of": 3}, None, "external")
    owned = either.run(run.key)
    assert (owned.state, owned.epoch, worker_of(owned)) == (RunState.RUNNING, 1, "wanda")
    assert owned.lease_until == either.clock.at + LEASE
    assert open_offers(either) == []
    ended = says(either, leased, Succeeded({"rows": 1}))
    assert (ended.state, ended.output) == (RunState.SUCCEEDED, {"rows": 1})
    assert says(either, leased, Succeeded({"rows": 2})) == ended
    assert either.target.calls == []  # nobody here ran it


def test_of_two_workers_that_come_at_once_one_gets_the_run(either: Town) -> None:
    run = offered(either)
    others: list[Leased] = []
    elsewhere = either.another()
    rival = with_another(either.world, "runs.move", lambda: others.extend(either.lease(elsewhere, worker="walter")))
    assert either.lease(rival) == []
    assert len(others) == 1
    assert (worker_of(either.run(run.key)), either.run(run.key).epoch) == ("walter", 1)


def test_a_worker_gets_as_many_as_it_asks_for_the_oldest_first(either: Town) -> None:
    either.put_external(schedule=None)
    keys = []
    for _ in range(3):
        either.clock.at += A_SECOND
        keys.append(trigger(either.world, job()).key)
    either.drive()
    assert [one.lease.run.key for one in either.lease(most=2)] == keys[:2]
    assert [one.lease.run.key for one in either.lease(most=2)] == keys[2:]


def test_a_worker_gets_nothing_of_another_queue_or_namespace(either: Town) -> None:
    run = offered(either, queue="gpu")
    assert either.lease() == []
    assert lease(either.world, Namespace("other"), "wanda", ["gpu"], most=1) == []
    (leased,) = lease(either.world, NS, "wanda", ["default", "gpu"], most=1)
    assert leased.lease.run.key == run.key


def test_the_timer_goes_before_the_claim(town: Town) -> None:
    run = offered(town)
    with pytest.raises(Crash):
        town.lease(dying_before(town.world, "runs.move"))
    sent = [one.body for one in town.stores.inbox.receive(Lane.NORMAL, most=9, hold=A_SECOND)]
    town.clock.at += LEASE
    sent += [one.body for one in town.stores.inbox.receive(Lane.NORMAL, most=9, hold=A_SECOND)]
    assert len(sent) == 1
    assert str(run.key) in sent[0]


def test_what_was_claimed_reaches_the_worker_though_the_next_offer_fails(town: Town) -> None:
    town.put_external(schedule=None)
    trigger(town.world, job())
    trigger(town.world, job())
    town.drive()
    failing = failing_at(town.world, "runs.get", Fault.REFUSED, nth=3)
    assert len(town.lease(failing)) == 1
    with pytest.raises(Unavailable):
        town.lease(failing_at(town.world, "offers.open", Fault.REFUSED))


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNHEARD])
@pytest.mark.parametrize("has_failed", [False, True])
def test_a_claim_stands_though_its_offer_could_not_be_withdrawn(town: Town, fault: Fault, has_failed: bool) -> None:
    run = offered(town, retry=RETRY)
    (leased,) = town.lease(failing_at(town.world, "offers.withdraw", fault))
    assert open_offers(town) == ([run.key.run_id] if fault is Fault.REFUSED else [])
    if has_failed:
        says(town, leased, TRANSIENT)
    assert (town.lease(worker="walter"), open_offers(town)) == ([], [])  # there is nothing to take yet
    assert town.run(run.key).epoch == 1


# Silence.


def test_a_lost_workers_run_goes_to_another_under_the_next_epoch_with_the_checkpoint(either: Town) -> None:
    run = offered(either)
    (first,) = either.lease()
    stale = beats(either, first)
    save_checkpoint(either.world, stale, {"line": 7})
    either.advance(seconds=50)
    assert either.lease(worker="walter") == []
    either.advance(seconds=15)
    (second,) = either.lease(worker="walter")
    assert (second.lease.run.key, second.lease.run.epoch, second.checkpoint) == (run.key, 2, {"line": 7})
    assert (second.lease.run.lost, second.call.idempotency_key) == (1, first.call.idempotency_key)
    with pytest.raises(StaleEpoch):
        says(either, first, Succeeded())
    with pytest.raises(StaleEpoch):
        beats(either, first)
    save_checkpoint(either.world, beats(either, second), {"line": 9})
    save_checkpoint(either.world, stale, {"line": 8})  # it slept between its heartbeat and this
    (kept,) = either.stores.shared.listed(NS, "checkpoint", limit=9)
    assert kept.document["value"] == {"line": 9}
    assert says(either, second, Succeeded("second")).output == "second"
    with pytest.raises(StaleEpoch):
        says(either, first, Succeeded("first"))
    assert either.stores.shared.listed(NS, "checkpoint", limit=9) == []


def test_a_silent_worker_whom_nobody_replaced_is_still_heard(town: Town) -> None:
    offered(town)
    (leased,) = town.lease()
    town.advance(minutes=3)
    assert beats(town, leased, progress=40).lease_until == town.clock.at + LEASE
    assert town.lease(worker="walter") == []
    assert says(town, leased, Succeeded()).state is RunState.SUCCEEDED


def test_at_most_once_a_lost_worker_ends_the_run(either: Town) -> None:
    run = offered(either, guarantee="at-most-once")
    (leased,) = either.lease()
    either.advance(seconds=62)
    ended = either.run(run.key)
    assert (ended.state, code_of(ended)) == (RunState.FAILED, ReasonCode.LOST)
    with pytest.raises(StaleEpoch):
        says(either, leased, Succeeded())
    assert either.lease() == []


def test_effectively_once_waits_until_the_clocks_cannot_be_apart(town: Town) -> None:
    offered(town, guarantee="effectively-once")
    town.lease()
    town.advance(seconds=62)
    assert town.lease(worker="walter") == []
    town.advance(minutes=3)
    assert len(town.lease(worker="walter")) == 1


def test_a_run_that_loses_every_worker_fails(town: Town) -> None:
    run = offered(town)
    for _ in range(5):
        town.lease()
        town.advance(seconds=62)
    assert (town.run(run.key).state, code_of(town.run(run.key))) == (RunState.FAILED, ReasonCode.LOST)


def test_a_worker_that_is_heard_for_hours_wears_out_no_message(town: Town) -> None:
    run = offered(town, timeout="3h")
    (leased,) = town.lease()
    for _ in range(4 * 60):
        town.advance(seconds=30)
        beats(town, leased)
    assert town.stores.inbox.dead(most=9) == []
    assert town.stores.database.row("SELECT COUNT(*), MAX(receives) FROM messages", ())[0] == 1
    assert town.run(run.key).epoch == 1
    town.advance(seconds=62)  # and then it falls silent
    assert town.lease(worker="walter")[0].lease.run.epoch == 2


def test_the_timer_of_an_earlier_attempt_does_not_go_on_beside_that_of_the_present_one(town: Town) -> None:
    offered(town, retry=RETRY | {"delay": "5s"}, timeout="1h")
    (first,) = town.lease()
    says(town, first, TRANSIENT)
    town.advance(seconds=6)
    (second,) = town.lease()
    for _ in range(8):
        town.advance(seconds=30)
        beats(town, second)
    assert town.stores.database.row("SELECT COUNT(*) FROM messages", ()) == (1,)


# Time-outs and deadlines.


def test_a_worker_that_is_heard_for_too_long_is_stopped(either: Town) -> None:
    run = offered(either, timeout="2m")
    (leased,) = either.lease()
    for _ in range(5):
        either.clock.at += timedelta(seconds=20)
        beats(either, leased)
    either.clock.at += timedelta(seconds=20)
    with pytest.raises(StaleEpoch):
        beats(either, leased)
    ended = either.run(run.key)
    assert (ended.state, code_of(ended)) == (RunState.FAILED, ReasonCode.TIMEOUT)


def test_a_time_out_is_no_lost_worker_though_it_is_noticed_by_the_timer(town: Town) -> None:
    run = offered(town, timeout="2m")
    (leased,) = town.lease()
    for _ in range(5):
        town.advance(seconds=20)
        beats(town, leased)
    town.advance(seconds=25)
    ended = town.run(run.key)
    assert (ended.state, code_of(ended), ended.lost) == (RunState.FAILED, ReasonCode.TIMEOUT, 0)
    with pytest.raises(StaleEpoch):
        beats(town, leased)


def test_a_time_out_is_tried_again_as_the_job_says(town: Town) -> None:
    run = offered(town, timeout=30, retry=RETRY)
    town.lease()
    town.advance(seconds=62)
    assert (town.run(run.key).state, code_of(town.run(run.key))) == (RunState.RETRYING, ReasonCode.RETRY)
    town.advance(minutes=3)
    assert town.lease()[0].lease.run.attempt == 2


def test_a_run_whose_time_is_up_ends_though_no_worker_comes(town: Town) -> None:
    run = offered(town, runTimeout="10m")
    town.lease()
    town.advance(minutes=20)
    assert town.run(run.key).state is RunState.RUNNING  # its last worker is lost, and it is on offer
    town.audit()
    town.drive()
    assert (town.run(run.key).state, code_of(town.run(run.key))) == (RunState.FAILED, ReasonCode.TIMEOUT)


@pytest.mark.parametrize("deadline", ["10m", "2h"])
def test_a_start_deadline_ends_a_run_that_nobody_comes_for(either: Town, deadline: str) -> None:
    either.put_external(schedule="5 12 * * *", startDeadline=deadline)
    either.advance(minutes=10)
    assert either.run(at("12:05")).state is RunState.QUEUED
    either.ticks_every = timedelta(minutes=10)
    either.advance(hours=2, minutes=16)
    run = either.run(at("12:05"))
    assert (run.state, code_of(run)) == (RunState.SKIPPED, ReasonCode.START_DEADLINE)
    assert either.lease() == []


def test_a_start_deadline_does_not_keep_a_retry_from_workers(town: Town) -> None:
    town.put_external(schedule="5 12 * * *", startDeadline="1h", retry=RETRY)
    town.advance(minutes=5)
    says(town, town.lease()[0], TRANSIENT)
    town.advance(minutes=3)
    assert town.lease()[0].lease.run.attempt == 2


def test_a_start_deadline_counts_from_a_blackouts_end(town: Town) -> None:
    closed = {"from": at("12:00").isoformat(), "to": at("12:30").isoformat(), "policy": "hold"}
    town.put_external(schedule={"cron": "5 12 * * *", "blackouts": [closed]}, startDeadline="10m")
    town.advance(to=at("12:35"))
    assert town.run(at("12:05")).state is RunState.QUEUED
    town.advance(to=at("12:45"))
    assert town.run(at("12:05")).state is RunState.SKIPPED


# Failures.


def test_a_failure_that_is_tried_again_is_offered_after_its_delay(either: Town) -> None:
    run = offered(either, retry=RETRY)
    says(either, either.lease()[0], TRANSIENT)
    assert either.run(run.key).state is RunState.RETRYING
    either.advance(seconds=110)
    assert either.lease() == []
    either.advance(seconds=20)
    (second,) = either.lease()
    assert (second.lease.run.attempt, second.lease.run.epoch) == (2, 2)
    assert says(either, second, PERMANENT).state is RunState.FAILED


def test_a_report_whose_worker_died_in_the_middle_is_repeated_to_the_same_end(town: Town) -> None:
    run = offered(town, concurrency={"runs": 1})
    (leased,) = town.lease()
    with pytest.raises(Crash):
        says(town, leased, Succeeded(1), world=dying_before(town.world, "slots.get"))
    assert says(town, leased, Succeeded(2)).output == 1
    assert town.stores.slots.get(f"job/{job()}").holders == ()
    assert town.run(run.key).state is RunState.SUCCEEDED


# Slots.


def test_slots_are_held_while_leased_and_given_back(either: Town) -> None:
    put_pool(either.world, NS, "gpus", 1, expected=0)
    either.put_external(schedule=None, concurrency={"pool": "gpus"})
    for _ in range(2):
        either.clock.at += A_SECOND
        trigger(either.world, job())
    either.drive()
    (first,) = either.lease()
    (holder,) = either.stores.slots.get(f"pool/{NS}/gpus").holders
    assert holder.run == first.lease.run.key
    waiting = either.runs()[1]
    assert (waiting.state, code_of(waiting), open_offers(either)) == (RunState.QUEUED, ReasonCode.POOL, [])
    says(either, first, Succeeded())
    either.drive()  # the waiter was woken, and is on offer again
    (second,) = either.lease()
    assert second.lease.run.key == waiting.key
    says(either, second, Succeeded())
    assert either.stores.slots.get(f"pool/{NS}/gpus").holders == ()


def test_of_many_on_offer_only_as_many_are_leased_as_may_run(town: Town) -> None:
    town.put_external(schedule=None, concurrency={"runs": 2})
    for _ in range(5):
        trigger(town.world, job())
    town.drive()
    done = 0
    while done < 5:
        held = town.lease()
        assert len(held) == min(2, 5 - done)
        for one in held:
            says(town, one, Succeeded())
        done += len(held)
        town.advance(minutes=2)
    assert {run.state for run in town.runs()} == {RunState.SUCCEEDED}


def test_overlap_is_decided_when_a_worker_comes(town: Town) -> None:
    town.put_external(schedule="5,6 12 * * *", overlap="skip")
    town.advance(to=at("12:05:30"))
    town.lease()
    town.advance(to=at("12:06:01"))
    assert town.lease() == []
    assert (town.run(at("12:06")).state, code_of(town.run(at("12:06")))) == (RunState.SKIPPED, ReasonCode.OVERLAP)


# People.


def test_a_cancelled_run_is_taken_from_its_worker(either: Town) -> None:
    run = offered(either, concurrency={"runs": 1})
    (leased,) = either.lease()
    cancel(either.world, run.key, actor="ann")
    with pytest.raises(StaleEpoch):
        says(either, leased, Succeeded())
    with pytest.raises(StaleEpoch):
        beats(either, leased)
    assert either.run(run.key).state is RunState.CANCELLED
    assert either.stores.slots.get(f"job/{job()}").holders == ()
    assert either.lease() == []


def test_a_cancelled_offer_is_moot(town: Town) -> None:
    run = offered(town)
    cancel(town.world, run.key, actor="ann")
    assert (town.lease(), open_offers(town)) == ([], [])


def test_a_paused_jobs_run_leaves_the_offers_and_comes_back(either: Town) -> None:
    either.put_external(schedule="*/5 * * * *")
    either.advance(to=at("12:03"))
    either.pause()
    either.stores.offers.offer("default", Offer(at("12:05"), run_key(at("12:05"))))  # by a clock that is ahead
    either.advance(to=at("12:06"))
    assert (either.lease(), open_offers(either)) == ([], [])
    assert code_of(either.run(at("12:05"))) is ReasonCode.PAUSED
    either.resume(catchup="all")
    either.advance(seconds=10)
    assert [one.lease.run.key for one in either.lease()] == [run_key(at("12:05"))]


def test_a_deleted_jobs_offer_ends_skipped(town: Town) -> None:
    run = offered(town)
    delete(town.world, job(), actor="ann")
    assert town.lease() == []
    assert (town.run(run.key).state, code_of(town.run(run.key))) == (RunState.SKIPPED, ReasonCode.DELETED)


def test_a_run_whose_job_is_no_longer_external_is_run_here_and_not_by_a_worker(either: Town) -> None:
    run = offered(either)
    either.put(schedule=None, expected=1)
    assert either.lease() == []
    either.drive()
    assert either.run(run.key).state is RunState.SUCCEEDED
    assert len(either.calls()) == 1


def test_a_run_whose_job_moved_to_another_queue_is_offered_there(either: Town) -> None:
    run = offered(either)
    either.put_external(schedule=None, queue="gpu", expected=1)
    assert either.lease() == []
    assert (open_offers(either), open_offers(either, "gpu")) == ([], [run.key.run_id])
    (leased,) = lease(either.world, NS, "greta", ["gpu"], most=1)
    assert leased.lease.run.version == 2


def test_a_rerun_of_an_external_run_is_offered(town: Town) -> None:
    offered(town)
    ended = town.work()[0]
    again = rerun(town.world, ended.key)
    town.drive()
    assert [run.key for run in town.work()] == [again.key]


# Hints.


def test_a_lost_offer_is_repaired_by_the_audit(either: Town) -> None:
    offered(either)
    either.stores.offers.withdraw("default", either.stores.offers.open(NS, "default", limit=1))
    assert open_offers(either) == []
    either.sleep_through(minutes=6)
    assert either.lease() == []
    assert either.audit().resent == 0  # nothing was late: that no worker came is no fault
    either.drive()
    assert len(either.lease()) == 1


def test_an_offer_made_again_outlives_the_withdrawal_of_the_first(either: Town) -> None:
    run = offered(either)
    sleepy = with_another(either.world, "offers.withdraw", lambda: either.advance(minutes=3))
    assert len(either.lease(sleepy)) == 1  # its lease ended, and the run was offered again, while it slept
    assert open_offers(either) == [run.key.run_id]
    assert either.lease(worker="walter")[0].lease.run.epoch == 2


def test_a_lost_timer_of_a_dead_worker_is_repaired_by_the_audit(town: Town) -> None:
    offered(town)
    town.lease()
    forget_messages(town)
    town.sleep_through(minutes=7)
    assert town.lease(worker="walter") == []
    assert town.audit().resent == 1
    town.drive()
    assert town.lease(worker="walter")[0].lease.run.epoch == 2


def test_offers_of_what_ended_or_never_was_are_cleared_away(town: Town) -> None:
    run = offered(town)
    town.work()
    never = replace(run.key, run_id=RunId("20270615T000000Z"))
    for key in (run.key, never):
        town.stores.offers.offer("default", Offer(run.start_at, key))
    assert (town.lease(), open_offers(town)) == ([], [])


def test_moot_offers_do_not_hide_the_rest(town: Town) -> None:
    run = offered(town)
    for second in range(15):
        ghost = replace(run.key, run_id=RunId(f"20270615T0000{second:02}Z"))
        town.stores.offers.offer("default", Offer(at("00:00"), ghost))
    assert len(town.lease(most=1)) == 1


# Whose lease it is.


def test_a_lease_is_known_by_its_own_id_only(either: Town) -> None:
    run = offered(either)
    (leased,) = either.lease()
    own = leased.lease.id
    forged = urlsafe_b64encode(f"{run.key}|{'A' * 43}".encode()).decode().rstrip("=")
    foreign = urlsafe_b64encode(f"{run.key}|sécret".encode()).decode().rstrip("=")
    for wrong in (forged, foreign):
        with pytest.raises(StaleEpoch):
            report(either.world, wrong, NS, epoch=1, outcome=Succeeded())
    absent = urlsafe_b64encode(b"shop/job/20270101T000000Z|x").decode().rstrip("=")
    for nothing in ("", "a", "é", "%%%", own[:-10] + "!", absent, urlsafe_b64encode(b"\xff\xfe|x").decode()):
        with pytest.raises((NotFound, StaleEpoch)):
            report(either.world, nothing, NS, epoch=1, outcome=Succeeded())
    with pytest.raises(NotFound):
        report(either.world, own, Namespace("other"), epoch=1, outcome=Succeeded())
    with pytest.raises(StaleEpoch):
        report(either.world, own, NS, epoch=2, outcome=Succeeded())
    assert either.run(run.key).state is RunState.RUNNING


def test_a_run_of_ours_has_no_lease_to_be_guessed(town: Town) -> None:
    town.put(schedule=None)
    run = trigger(town.world, job())
    town.drive()
    guess = urlsafe_b64encode(f"{run.key}|".encode()).decode()
    with pytest.raises(NotFound):
        report(town.world, guess, NS, epoch=1, outcome=Succeeded())


@pytest.mark.parametrize("name", ["wanda", "a|b", "", "wärter"])
def test_whatever_a_worker_is_called_its_secret_stays_beside_its_name(town: Town, name: str) -> None:
    run = offered(town)
    (leased,) = town.lease(worker=name)
    assert worker_of(town.run(run.key)) == name
    puller = Puller.of(town.run(run.key))
    assert puller is not None
    assert (puller.secret, puller.claimed_at) == (leased.lease.secret, town.clock.at)
    assert leased.lease.secret not in why_run(town.world, run.key).summary
    assert says(town, leased, Succeeded()).state is RunState.SUCCEEDED


def test_workers_are_shown_with_what_they_hold(either: Town) -> None:
    run = offered(either)
    seen(either.world, NS, "wanda", ["default"])
    either.lease()
    follow(either.world, "batch", either.runs())
    (wanda,) = workers(either.world, NS)
    assert (wanda.id, wanda.queues, wanda.seen_at) == ("wanda", ("default",), either.clock.at)
    assert wanda.holds == [{"jobId": "job", "runId": run.key.run_id, "attempt": 1}]
    either.clock.at += timedelta(days=1)
    assert workers(either.world, NS) == []


# Through every fault, on each engine: never lost, never two at once.


@pytest.mark.parametrize("call", ["queue.send", "runs.move", "offers.withdraw", "shared.get"])
def test_a_server_that_dies_while_leasing_delays_the_run_and_no_more(either: Town, call: str) -> None:
    run = offered(either)
    with pytest.raises(Crash):
        either.lease(dying_before(either.world, call))
    for _ in range(3):
        either.advance(seconds=40)
        either.work()
    ended = either.run(run.key)
    assert (ended.state, ended.epoch) == (RunState.SUCCEEDED, 1 + ended.lost)
