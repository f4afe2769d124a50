"""Overlap, concurrency and pools: who gets a place, who waits, who is skipped."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sweephand.calls import Succeeded
from sweephand.domain.ids import RunKey
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import RunState
from sweephand.engine.complete import complete
from sweephand.engine.share import put_pool
from sweephand.engine.trigger import trigger
from tests.engine.faults import dying_before, with_another
from tests.engine.world import NS, TRANSIENT, Town, at, code_of, dies, job, run_key

BUSY = "5,10,15 12 * * *"


def busy(town: Town, until: str, *, schedule: str = BUSY, **more: Any) -> None:
    """The first run's worker works on for an hour."""
    town.target.answers("job", dies)
    town.put(schedule=schedule, timeout="1h", **more)
    town.advance(to=at(until))


def start(town: Town, name: str) -> RunKey:
    key = trigger(town.world, job(name)).key
    town.drive()
    return key


def test_overlap_skip_leaves_a_fire_out_while_another_run_is_active(either: Town) -> None:
    busy(either, "12:11", schedule="5,10 12 * * *", overlap="skip")
    skipped = either.run(at("12:10"))
    assert (skipped.state, code_of(skipped)) == (RunState.SKIPPED, ReasonCode.OVERLAP)
    assert either.fates()["12:10"] == "skipped"


def test_overlap_queue_starts_the_next_as_soon_as_the_first_ends(either: Town) -> None:
    busy(either, "12:11", schedule="5,10 12 * * *", overlap="queue")
    waiting = either.run(at("12:10"))
    assert (waiting.state, code_of(waiting)) == (RunState.QUEUED, ReasonCode.OVERLAP)
    complete(either.world, run_key(at("12:05")), epoch=1, outcome=Succeeded())
    either.drive()  # woken, not by its own timer
    assert either.run(at("12:10")).state is RunState.SUCCEEDED


def test_overlap_replace_cancels_the_older_run(town: Town) -> None:
    busy(town, "12:11", overlap="replace")
    older = town.run(at("12:05"))
    assert (older.state, code_of(older)) == (RunState.CANCELLED, ReasonCode.REPLACED)
    assert town.run(at("12:10")).state is RunState.SUCCEEDED


def test_overlap_replace_never_lets_an_older_fire_replace_a_newer_one(town: Town) -> None:
    town.target.answers("job", dies)
    town.put(schedule="5,10 12 * * *", timeout="1h", overlap="replace")
    town.stores.database.run("UPDATE messages SET visible_at = visible_at + 360000000 WHERE id = 1", ())
    town.advance(to=at("12:12"))
    assert town.run(at("12:10")).state is RunState.RUNNING
    late = town.run(at("12:05"))
    assert (late.state, code_of(late)) == (RunState.SKIPPED, ReasonCode.OVERLAP)


def test_a_manual_run_waits_where_a_scheduled_one_is_skipped(town: Town) -> None:
    busy(town, "12:06", overlap="skip")
    key = start(town, "job")
    assert town.run(key).state is RunState.QUEUED
    complete(town.world, run_key(at("12:05")), epoch=1, outcome=Succeeded())
    town.drive()
    assert town.run(key).state is RunState.SUCCEEDED


def test_concurrency_bounds_all_runs_of_a_job(town: Town) -> None:
    town.target.answers("job", *[dies] * 5)
    town.put(schedule=None, timeout="1h", concurrency={"runs": 2})
    keys = [start(town, "job") for _ in range(3)]
    assert [town.run(key).state for key in keys] == [RunState.RUNNING, RunState.RUNNING, RunState.QUEUED]
    assert code_of(town.run(keys[2])) is ReasonCode.CONCURRENCY


def test_a_pool_counts_weights_across_jobs(town: Town) -> None:
    put_pool(town.world, NS, "p", 3, expected=0)
    for name, slots in (("two", 2), ("deux", 2), ("one", 1)):
        town.target.answers(name, dies)
        town.put(name, None, timeout="1h", concurrency={"pool": "p", "slots": slots})
    keys = [start(town, name) for name in ("two", "deux", "one")]
    assert [town.run(key).state for key in keys] == [RunState.RUNNING, RunState.QUEUED, RunState.RUNNING]
    assert code_of(town.run(keys[1])) is ReasonCode.POOL


def test_what_is_heavier_than_its_pool_runs_alone(town: Town) -> None:
    put_pool(town.world, NS, "p", 2, expected=0)
    town.put("light", None, timeout="1h", concurrency={"pool": "p"})
    town.put("heavy", None, timeout="1h", concurrency={"pool": "p", "slots": 9})
    town.target.answers("light", dies)
    light, heavy = start(town, "light"), start(town, "heavy")
    assert town.run(heavy).state is RunState.QUEUED
    complete(town.world, light, epoch=1, outcome=Succeeded())
    town.drive()
    assert town.run(heavy).state is RunState.SUCCEEDED


def test_a_holder_that_died_before_its_claim_is_evicted_and_fenced(town: Town) -> None:
    town.put(schedule=None, timeout="1h", concurrency={"runs": 1})
    first = trigger(town.world, job()).key
    town.drive(dying_before(town.world, "runs.move"))
    before = town.run(first)
    (slot_holder,) = town.stores.slots.get(f"job/{job()}").holders
    assert (before.state, slot_holder.run) == (RunState.QUEUED, first)
    far_away = int(timedelta(hours=3) / timedelta(microseconds=1))
    town.stores.database.run("UPDATE messages SET visible_at = visible_at + ?", (far_away,))
    town.clock.at += timedelta(minutes=5)
    second = start(town, "job")
    assert (town.run(second).state, town.run(first).state) == (RunState.SUCCEEDED, RunState.QUEUED)
    assert town.run(first).rev > before.rev
    assert not town.world.runs.move(
        before, before.claimed(now=town.clock.at, nonce="x", owner="slow", lease=timedelta(1), version=1)
    )


def test_an_ended_holder_is_evicted_wherever_it_stands_among_the_holders(town: Town) -> None:
    town.put(schedule=None, timeout="10h", concurrency={"runs": 7})
    town.target.answers("job", *[dies] * 6)
    for _ in range(6):
        start(town, "job")
    trigger(town.world, job())
    town.drive(dying_before(town.world, "slots.get", nth=2))  # it ends, and dies before it gives its place back
    assert len(town.stores.slots.get(f"job/{job()}").holders) == 7
    last = start(town, "job")
    town.advance(minutes=5)
    assert town.run(last).state is RunState.SUCCEEDED


def test_a_waiters_own_timer_finds_the_place_when_the_wake_is_lost(town: Town) -> None:
    busy(town, "12:11", overlap="queue")
    complete(town.world, run_key(at("12:05")), epoch=1, outcome=Succeeded())
    lost = town.stores.database.rows("SELECT max(id) FROM messages")[0][0]
    town.stores.database.run("DELETE FROM messages WHERE id = ?", (lost,))
    town.advance(minutes=1, seconds=5)
    assert town.run(at("12:10")).state is RunState.SUCCEEDED


def test_a_timer_that_comes_before_the_wait_it_was_sent_for_is_stored_is_kept(town: Town) -> None:
    busy(town, "12:11", schedule="5,10 12 * * *", overlap="queue")
    wake_at = town.run(at("12:10")).wake_at
    assert wake_at is not None
    town.clock.at = wake_at

    def meanwhile() -> None:
        town.sleep_through(seconds=65)  # the one who waits is slow, and its timer is not
        town.drive()

    assert "lost race" in town.drive(with_another(town.world, "runs.move", meanwhile))
    complete(town.world, run_key(at("12:05")), epoch=1, outcome=Succeeded())
    lost = town.stores.database.rows("SELECT max(id) FROM messages")[0][0]
    town.stores.database.run("DELETE FROM messages WHERE id = ?", (lost,))
    town.advance(minutes=2, ticking=False)
    assert town.run(at("12:10")).state is RunState.SUCCEEDED


def test_messages_of_a_run_that_waits_for_an_hour_do_not_breed(town: Town) -> None:
    busy(town, "12:06", schedule="5,10 12 * * *", overlap="queue")
    dealt = town.dealt
    town.advance(minutes=55, ticking=False)
    assert town.run(at("12:10")).state is RunState.QUEUED
    assert town.dealt - dealt < 60  # one a minute
    assert len(town.stores.database.rows("SELECT id FROM messages WHERE lane != 'sweep'")) <= 3


def test_doubled_messages_of_a_waiting_run_die_out(town: Town) -> None:
    busy(town, "12:11", schedule="5,10 12 * * *", overlap="queue")
    town.stores.database.run(
        "INSERT INTO messages (lane, visible_at, namespace, body, receives)"
        " SELECT lane, visible_at, namespace, body, 0 FROM messages",
        (),
    )
    town.advance(minutes=10, ticking=False)
    assert len(town.stores.database.rows("SELECT id FROM messages WHERE lane != 'sweep'")) <= 3


def test_a_pools_place_is_free_between_attempts_and_the_jobs_is_not(town: Town) -> None:
    put_pool(town.world, NS, "p", 1, expected=0)
    town.target.answers("job", TRANSIENT)
    retry = {"attempts": 2, "backoff": "fixed", "delay": "5m"}
    town.put(schedule=None, retry=retry, concurrency={"runs": 1, "pool": "p"})
    town.put("other", None, concurrency={"pool": "p"})
    first = start(town, "job")
    second, other = start(town, "job"), start(town, "other")
    assert [town.run(key).state for key in (first, second, other)] == ["retrying", "queued", "succeeded"]
    town.advance(minutes=7)
    assert [town.run(key).state for key in (first, second)] == ["succeeded", "succeeded"]
