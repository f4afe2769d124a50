"""Triggering, running again, cancelling, reporting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import RunKey
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.cancel import cancel
from sweephand.engine.complete import complete
from sweephand.engine.delete import delete
from sweephand.engine.heartbeat import heartbeat
from sweephand.engine.planning import letter_for
from sweephand.engine.rerun import rerun
from sweephand.engine.trigger import trigger
from sweephand.errors import Conflict, NotFound, StaleEpoch
from tests.engine.faults import dying_before
from tests.engine.world import PERMANENT, TRANSIENT, Crash, Town, at, code_of, dies, job, run_key

LEASE = timedelta(minutes=5)


def claimed(town: Town, **more: object) -> RunKey:
    """A run whose worker is gone and whose lease is live: as an external worker's run is, between its words."""
    town.target.answers("job", dies)
    town.put(**{"schedule": None, "timeout": "10m", **more})  # type: ignore[arg-type]
    key = trigger(town.world, job()).key
    town.drive()
    assert town.run(key).state is RunState.RUNNING
    return key


def test_a_triggered_run_starts_at_once_with_its_parameters(either: Town) -> None:
    either.put(schedule=None, params={"a": 1, "b": 1})
    run = trigger(either.world, job(), params={"b": 2})
    either.drive()
    (call,) = either.calls()
    assert (call.run, call.params) == (run.key, {"a": 1, "b": 2})
    assert either.run(run.key).trigger is Trigger.MANUAL


def test_a_trigger_of_a_paused_job_starts_and_of_a_deleted_one_is_refused(town: Town) -> None:
    town.put()
    town.pause()
    run = trigger(town.world, job())
    town.drive()
    assert town.run(run.key).state is RunState.SUCCEEDED
    delete(town.world, job(), actor="ann")
    with pytest.raises(NotFound):
        trigger(town.world, job())


def test_a_job_deleted_before_its_triggered_run_started_skips_it(town: Town) -> None:
    town.put(schedule=None)
    run = trigger(town.world, job())
    delete(town.world, job(), actor="ann")
    town.drive()
    assert (town.run(run.key).state, code_of(town.run(run.key))) == (RunState.SKIPPED, ReasonCode.DELETED)


def test_five_triggers_in_parallel_with_one_key_are_one_run(town: Town) -> None:
    town.put(schedule=None)

    def once(_n: int) -> Run:
        return trigger(town.world, job(), idempotency_key="k")

    with ThreadPoolExecutor(5) as pool:
        keys = {run.key for run in pool.map(once, range(5))}
    town.advance(minutes=10)
    assert len(keys) == len(town.runs()) == len(town.calls()) == 1


def test_one_key_means_another_run_for_another_job_and_after_a_day(town: Town) -> None:
    town.put(schedule=None)
    town.put("other", None)
    first = trigger(town.world, job(), idempotency_key="k")
    other = trigger(town.world, job("other"), idempotency_key="k")
    town.clock.at += timedelta(hours=24, seconds=1)
    later = trigger(town.world, job(), idempotency_key="k")
    assert len({first.key, other.key, later.key}) == 3


def test_a_trigger_that_dies_before_its_message_is_repaired_by_the_sweep(town: Town) -> None:
    town.put(schedule=None)
    with pytest.raises(Crash):
        trigger(dying_before(town.world, "queue.send"), job())
    town.advance(minutes=6)
    assert [run.state for run in town.runs()] == [RunState.SUCCEEDED]


def test_a_trigger_repeated_after_it_died_before_its_message_starts_at_once(town: Town) -> None:
    town.put(schedule=None)
    with pytest.raises(Crash):
        trigger(dying_before(town.world, "queue.send"), job(), idempotency_key="k")
    trigger(town.world, job(), idempotency_key="k")
    town.drive()
    assert [run.state for run in town.runs()] == [RunState.SUCCEEDED]


def test_reruns_are_generations_beside_the_run(town: Town) -> None:
    town.put(schedule="5 12 * * *")
    town.advance(minutes=5)
    original = run_key(at("12:05"))
    first, second = rerun(town.world, original), rerun(town.world, original, note="again")
    third = rerun(town.world, first.key) if town.drive() else None
    town.drive()
    assert [run.key.run_id for run in town.runs()] == [original.run_id + end for end in ("", ".1", ".2", ".3")]
    assert third is not None
    assert third.rerun_of == first.key.run_id
    assert second.note == "again"
    assert all(run.state is RunState.SUCCEEDED for run in town.runs())
    assert not town.holes()


def test_only_an_ended_run_is_run_again(town: Town) -> None:
    key = claimed(town)
    with pytest.raises(Conflict):
        rerun(town.world, key)
    with pytest.raises(NotFound):
        rerun(town.world, run_key(at("00:00")))


def test_a_planned_run_that_is_cancelled_never_starts(town: Town) -> None:
    town.put()
    cancelled = cancel(town.world, run_key(at("12:05")), actor="ann", note="no need")
    town.advance(minutes=6)
    assert not town.calls()
    assert str(cancelled.reason) == "cancelled: by ann: no need"
    assert cancel(town.world, cancelled.key, actor="bob") == cancelled


def test_a_run_that_ended_otherwise_is_not_cancelled(town: Town) -> None:
    town.put()
    town.advance(minutes=5)
    with pytest.raises(Conflict, match="succeeded"):
        cancel(town.world, run_key(at("12:05")), actor="ann")


def test_an_attempt_cancelled_while_it_runs_is_fenced(town: Town) -> None:
    def cancels(call: Call) -> Outcome:
        cancel(town.world, call.run.key, actor="ann")
        return Succeeded({"rows": 1})

    town.target.answers("job", cancels)
    town.put(schedule=None)
    key = trigger(town.world, job()).key
    assert "fenced" in town.drive()
    run = town.run(key)
    assert (run.state, run.output) == (RunState.CANCELLED, None)
    town.advance(hours=2)
    assert len(town.calls()) == 1


def test_a_run_cancelled_between_attempts_is_not_tried_again(town: Town) -> None:
    town.target.answers("job", TRANSIENT)
    town.put(schedule=None, retry={"attempts": 3, "backoff": "fixed", "delay": "1m"})
    key = trigger(town.world, job()).key
    town.drive()
    assert town.run(key).state is RunState.RETRYING
    cancel(town.world, key, actor="ann")
    town.advance(minutes=5)
    assert len(town.calls()) == 1


def test_a_heartbeat_keeps_the_lease_and_the_progress(town: Town) -> None:
    key = claimed(town)
    for _ in range(4):
        town.advance(minutes=4)
        heartbeat(town.world, key, epoch=1, lease=LEASE, progress=40)
    assert town.run(key).progress == 40
    assert len(town.calls()) == 1
    town.advance(minutes=12)
    assert (town.run(key).state, town.run(key).epoch) == (RunState.SUCCEEDED, 2)


def test_a_heartbeat_of_a_stale_or_cancelled_attempt_is_refused(town: Town) -> None:
    key = claimed(town)
    for epoch in (0, 2):
        with pytest.raises(StaleEpoch):
            heartbeat(town.world, key, epoch=epoch, lease=LEASE)
    cancel(town.world, key, actor="ann")
    with pytest.raises(StaleEpoch):
        heartbeat(town.world, key, epoch=1, lease=LEASE)
    with pytest.raises(NotFound):
        heartbeat(town.world, run_key(at("00:00")), epoch=1, lease=LEASE)


def test_completing_twice_is_completing_once(town: Town) -> None:
    key = claimed(town)
    first = complete(town.world, key, epoch=1, outcome=Succeeded({"rows": 1}))
    again = complete(town.world, key, epoch=1, outcome=PERMANENT)
    assert again == first == town.run(key)


def test_completing_under_a_stale_epoch_is_refused_and_changes_nothing(town: Town) -> None:
    key = claimed(town, timeout="1m")
    town.target.answers("job", dies)
    town.advance(minutes=2)
    assert town.run(key).epoch == 2
    with pytest.raises(StaleEpoch):
        complete(town.world, key, epoch=1, outcome=Succeeded())
    assert town.run(key).state is RunState.RUNNING
    assert complete(town.world, key, epoch=2, outcome=Succeeded()).state is RunState.SUCCEEDED


def test_completing_after_a_cancel_is_refused(town: Town) -> None:
    key = claimed(town)
    cancel(town.world, key, actor="ann")
    with pytest.raises(StaleEpoch):
        complete(town.world, key, epoch=1, outcome=Succeeded())


def test_a_message_delivered_again_hours_after_the_end_has_no_effect(town: Town) -> None:
    town.put(schedule=None)
    key = trigger(town.world, job(), idempotency_key="k").key
    town.drive()
    ended = town.run(key)
    town.clock.at += timedelta(hours=5)
    town.world.queue.send([letter_for(ended, None, now=town.clock.at)] * 3)
    assert town.drive() == ["ended"] * 3
    assert town.run(key) == ended
