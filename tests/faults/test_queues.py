"""Messages that are lost, doubled, late, half sent, dead, or readable to nobody."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from sweephand.domain.job import CatchupPolicy
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import RunState
from sweephand.engine.delete import delete
from sweephand.engine.pause import pause
from sweephand.engine.resume import resume
from sweephand.local.cloud.account import AwsCall
from sweephand.messages import AttemptRun, encode
from sweephand.topology import ATTEMPT, QUEUES, RUNS
from tests.faults.checker import assert_sound
from tests.faults.place import HOUR, LEASE, MINUTE, SECOND, Effect, Entry, Place
from tests.moto_world import Fault, Partial, refused

VISIBILITY = 6 * ATTEMPT.timeout
"""When a message comes back that was received and not delivered."""


def test_of_a_batch_that_was_half_taken_only_the_rest_is_sent_again(place: Place) -> None:
    """Row 21: three of ten are refused, then one of those three."""
    place.only("normal")
    coming = [Partial(7), Partial(2)]
    arrived: Counter[str] = Counter()

    def note(entry: Entry) -> list[Entry]:
        arrived[entry["MessageBody"]] += 1
        return [entry]

    place.transit = note
    place.faults = lambda call: coming.pop(0) if coming and call.operation == "SendMessageBatch" else None
    document = {"name": "report", "command": "report", "timeout": "30s", "schedule": "* * * * *"}
    assert place.api("POST", "/v1/jobs", document)[0] == 201
    assert [len(call.params["Entries"]) for call in place.calls if _sends(call, "api")] == [10, 3, 1, 4]
    assert len(arrived) == 14
    assert set(arrived.values()) == {1}
    place.pass_time(14 * MINUTE)
    assert len(place.target.effects) == 14
    assert all(run.state is RunState.SUCCEEDED for run in place.runs("report"))


def _sends(call: AwsCall, function: str) -> bool:
    return call.operation == "SendMessageBatch" and call.function == function


@pytest.mark.parametrize("winner_dies", [False, True])
def test_of_two_deliveries_at_one_moment_one_claims_and_the_other_waits_for_its_death(
    place: Place, winner_dies: bool
) -> None:
    """Row 23."""
    place.only("normal")
    place.put("report")
    run = place.run("report")
    answers = []

    def deliver_again(effect: Effect) -> None:
        if effect.epoch == 1:
            answers.append(place.deployment.invoke("attempt", place.deliveries["attempt"][0]))

    place.target.does["report"] = deliver_again
    if winner_dies:
        place.die_after("attempt", "Invoke")
    place.step()
    (message,) = place.deliveries["attempt"][0]["Records"]
    assert answers == [{"batchItemFailures": [{"itemIdentifier": message["messageId"]}]}]
    assert len(place.target.effects) == 1
    place.pass_time(LEASE - SECOND)
    assert place.look(run).attempt == 1
    place.pass_time(SECOND)
    after = place.look(run)
    assert (after.state, after.attempt) == (RunState.SUCCEEDED, 2 if winner_dies else 1)
    assert len({effect.key for effect in place.target.effects}) == 1
    assert place.waiting() == 0
    assert_sound(place)


def test_a_message_delivered_again_hours_after_its_run_has_ended_does_nothing(place: Place) -> None:
    """Row 24."""
    place.only("normal")
    place.put("report")
    run = place.run("report")
    place.step()
    ended = place.look(run)
    place.clock.move(place.now + 5 * HOUR)
    again = place.deployment.invoke("attempt", place.deliveries["attempt"][0])
    assert again == {"batchItemFailures": []}
    assert place.look(run) == ended
    assert len(place.target.effects) == 1


def test_a_message_that_is_lost_is_sent_again_and_not_doubled_by_its_late_arrival(place: Place) -> None:
    """Row 25."""
    place.only("normal", "audit")
    place.put("report", "*/5 * * * *")
    sqs, url = place.deployment.sqs, place.deployment.sqs.get_queue_url(QueueName="sweephand-normal")["QueueUrl"]
    sqs.purge_queue(QueueUrl=url)
    assert place.waiting() == 0
    place.pass_time(30 * MINUTE)
    lost = [run for run in place.runs("report") if run.created_at < place.now - 25 * MINUTE]
    assert len(lost) == 2
    assert all(run.state is RunState.SUCCEEDED for run in lost)
    for run in lost:
        place.send_raw(encode(AttemptRun(run.key)))
    place.pass_time(MINUTE)
    assert [len([one for one in place.target.effects if one.run == run.key]) for run in lost] == [1, 1]
    assert [place.look(run) for run in lost] == lost
    assert place.waiting() == 0
    assert_sound(place)


def test_messages_that_cannot_be_received_for_an_hour_wait_and_each_runs_once(place: Place) -> None:
    """Row 27: the poller has too many in flight; the backlog grows, and can be seen."""
    place.only("audit")
    place.put("report")
    runs = [place.run("report") for _ in range(12)]
    place.pass_time(HOUR)
    assert place.target.effects == []
    assert place.waiting() >= 12
    place.only("audit", "normal")
    place.pass_time(SECOND)
    assert sorted(effect.run for effect in place.target.effects) == sorted(run.key for run in runs)
    assert all(place.look(run).state is RunState.SUCCEEDED for run in runs)
    assert_sound(place)


@pytest.mark.parametrize("change", ["pause", "delete", "edit"])
def test_a_delayed_message_of_a_schedule_that_has_changed_since_starts_nothing(place: Place, change: str) -> None:
    """Row 28: the run was planned, and its message is on its way; three minutes on either side would be a blur."""
    place.only("normal")
    key = place.put("report", "10 6 * * *")
    (planned,) = place.runs("report")
    place.pass_time(4 * MINUTE)
    match change:
        case "pause":
            pause(place.world, key, actor="test")
        case "delete":
            delete(place.world, key, actor="test")
        case _:
            place.put("report", "10 7 * * *", expected=1)
    place.pass_time(8 * MINUTE)
    run = place.look(planned)
    states = {
        "pause": (RunState.QUEUED, ReasonCode.PAUSED),
        "delete": (RunState.VOID, ReasonCode.NOT_IN_FORCE),
        "edit": (RunState.VOID, ReasonCode.NOT_IN_FORCE),
    }
    assert (run.state, run.reason and run.reason.code) == states[change]
    if change == "pause":
        resume(place.world, key, catchup=CatchupPolicy.NONE, actor="test")
        place.pass_time(MINUTE)
        run = place.look(planned)
        assert (run.state, run.reason and run.reason.code) == (RunState.SKIPPED, ReasonCode.PAUSED)
    place.clock.move(place.now + 15 * MINUTE)
    assert place.target.effects == []
    assert place.waiting() == 0
    assert_sound(place)


@pytest.mark.parametrize(("receives", "dead"), [(5, 0), (QUEUES[0].receives_max + 1, 1)])
def test_a_function_without_room_kills_no_message_for_hours_and_a_dead_one_is_sent_again(
    place: Place, receives: int, dead: int
) -> None:
    """Row 36: every receive without a delivery counts."""
    place.only("normal")
    place.put("report")
    run = place.run("report")
    place.throttled.add("attempt")
    place.pass_time(receives * VISIBILITY)
    assert len(place.dead()) == dead
    place.throttled.clear()
    place.only("normal", *(["watch"] if dead else []))
    place.pass_time(10 * MINUTE if dead else VISIBILITY)
    after = place.look(run)
    assert (after.state, after.attempt) == (RunState.SUCCEEDED, 1)
    assert len(place.target.effects) == 1
    assert_sound(place)


def test_a_message_that_nobody_can_read_ends_among_the_dead_and_its_neighbours_run(place: Place) -> None:
    """Row 38: one that says nothing."""
    place.only("normal")
    place.put("report")
    place.send_raw("not a message")
    place.send_raw(json.dumps({"v": 1, "sweep": [0]}))
    run = place.run("report")
    place.step()
    assert len(place.deliveries["attempt"][0]["Records"]) == 3
    assert place.look(run).state is RunState.SUCCEEDED
    place.pass_time(2 * HOUR)
    assert place.waiting() == 0
    assert sorted(letter.body for letter in place.dead()) == ["not a message", '{"v": 1, "sweep": [0]}']
    place.only("normal", "watch")
    place.pass_time(10 * MINUTE)
    # The misplaced sweep is not needed; what cannot be read stays to be seen.
    assert [letter.body for letter in place.dead()] == ["not a message"]
    assert_sound(place, dead=1)


def test_a_run_that_can_never_be_dealt_with_fails_with_the_reason_and_its_neighbours_run(place: Place) -> None:
    """Row 38: one whose item makes every worker fail."""
    place.only("normal")
    place.put("report")
    poison, run = place.run("report"), place.run("report")

    def spoil(call: AwsCall) -> Fault | None:
        is_poison = call.params.get("Key", {}).get("sk", {}).get("S", "").endswith(poison.key.run_id)
        spoilt = is_poison and call.function == "attempt" and place.is_of(call, RUNS)
        return refused(call.operation, "ValidationException") if spoilt else None

    place.faults = spoil
    place.step()
    assert place.look(run).state is RunState.SUCCEEDED
    for _ in range(4):
        place.only("normal")
        place.pass_time(80 * MINUTE)
        assert len(place.dead()) == 1
        place.only("watch")
        place.pass_time(6 * MINUTE)
        assert place.dead() == []
    ended = place.look(poison)
    assert (ended.state, ended.attempt) == (RunState.FAILED, 0)
    assert ended.reason is not None
    assert ended.reason.code is ReasonCode.POISON
    assert [effect.run for effect in place.target.effects] == [run.key]
    assert_sound(place)


def test_a_dead_letter_of_a_run_that_has_ended_is_not_needed(place: Place) -> None:
    """Row 39."""
    place.only("normal", "watch")
    place.put("report")
    run = place.run("report")
    place.step()
    ended = place.look(run)
    place.send_raw(encode(AttemptRun(run.key)), "normal-dead")
    place.pass_time(6 * MINUTE)
    assert place.answers["watch"][-1] == {"not_needed": 1}
    assert place.look(run) == ended
    assert len(place.target.effects) == 1
    assert_sound(place)


def test_a_dead_letter_that_cannot_be_sent_again_stays_where_it_is(place: Place) -> None:
    """Row 40: the queue's key or policy says no, for twenty minutes."""
    place.only("watch")
    place.put("report")
    run = place.run("report")
    place.deployment.sqs.purge_queue(
        QueueUrl=place.deployment.sqs.get_queue_url(QueueName="sweephand-normal")["QueueUrl"]
    )
    place.send_raw(encode(AttemptRun(run.key)), "normal-dead")
    place.faults = lambda call: refused(call.operation, "KMS.AccessDeniedException") if _sends(call, "watch") else None
    place.pass_time(20 * MINUTE)
    assert len(place.dead()) == 1
    assert place.undelivered() >= 4
    place.faults = lambda _call: None
    place.only("normal", "watch")
    place.pass_time(6 * MINUTE)
    assert place.look(run).state is RunState.SUCCEEDED
    assert len(place.target.effects) == 1
    assert_sound(place)
