"""DynamoDB throttles, breaks, or is gone for hours; the key that everything is encrypted with is disabled."""

from __future__ import annotations

from datetime import datetime
from random import Random

import pytest

from sweephand.domain.ledger import FireStatus
from sweephand.domain.run import RunState
from sweephand.local.cloud.account import AwsCall
from sweephand.local.cloud.functions import FunctionFailed
from tests.faults.checker import assert_sound
from tests.faults.place import HOUR, MINUTE, SECOND, START, Place
from tests.moto_world import Fault, broken, refused, throttled, unreachable

FIRE_AT = datetime(2026, 11, 16, 6, 5, tzinfo=START.tzinfo)


def _partition(call: AwsCall) -> str:
    key = call.params.get("Key") or call.params.get("Item") or {}
    values = call.params.get("ExpressionAttributeValues") or {}
    return str((key.get("pk") or values.get(":pk") or {}).get("S", ""))


def test_one_partition_that_is_throttled_for_a_minute_is_late_and_the_others_are_not(place: Place) -> None:
    """Row 14."""
    place.only("tick", "sweep", "normal")
    for name in ("hot", "calm"):
        place.put(name, "*/5 * * * *")

    def hot(call: AwsCall) -> Fault | None:
        is_hot = _partition(call) == "default/hot" and FIRE_AT <= place.now < FIRE_AT + MINUTE
        return throttled(call.operation) if is_hot else None

    place.faults = hot
    place.pass_time(20 * MINUTE)
    (late, *rest), calm = place.ledger("hot"), place.ledger("calm")
    assert late.skew_ms is not None
    assert 60_000 <= late.skew_ms < 120_000
    assert [row.status for row in calm] == [FireStatus.FIRED] * 4
    assert all(row.skew_ms is not None and row.skew_ms < 1_000 for row in [*rest, *calm])
    assert len(place.target.effects) == 8
    assert_sound(place)


def test_with_every_fifth_call_broken_the_result_is_the_same_later(place: Place) -> None:
    """Row 19: also where a second try is not allowed, since nothing was begun."""
    random, struck = Random(19), []

    def fifth(call: AwsCall) -> Fault | None:
        if call.service != "dynamodb" or random.random() >= 0.2:
            return None
        struck.append(call)
        return broken(call.operation)

    place.put("report", "*/5 * * * *")
    place.put("once", "*/5 * * * *", guarantee="at-most-once")
    place.step()
    place.faults = fifth
    place.pass_time(20 * MINUTE)
    place.faults = lambda _call: None
    fires = [row.fire_at for row in place.ledger("report")]
    place.pass_time(22 * MINUTE)
    assert len(struck) > 50
    assert len(fires) == 4
    for name in ("report", "once"):
        rows = [row for row in place.ledger(name) if row.fire_at in fires]
        assert [row.status for row in rows] == [FireStatus.FIRED] * 4
    assert all(run.state is RunState.SUCCEEDED for run in place.runs("report") if run.fire_at in fires)
    assert_sound(place)


def test_through_an_outage_of_three_hours_the_api_says_so_and_everything_is_caught_up(place: Place) -> None:
    """Row 20."""
    place.only("tick", "sweep", "normal", "audit", "watch")
    place.put("report", "*/30 * * * *", catchup="all")
    place.pass_time(MINUTE)
    under_way = place.run("report")
    place.faults = lambda call: unreachable() if call.service == "dynamodb" else None
    place.pass_time(5 * MINUTE)
    status, answer = place.api("POST", "/v1/jobs", {"name": "other", "command": "other"})
    assert (status, answer["status"]) == (503, 503)
    with pytest.raises(FunctionFailed):
        place.deployment.invoke("authorize", {"type": "REQUEST", "headers": {"Authorization": "Bearer swh_0_0"}})
    assert place.undelivered() >= 5
    place.silent.add("tick")  # none of those to come would get anywhere
    place.pass_time(3 * HOUR)
    assert place.target.effects == []
    place.silent.remove("tick")
    place.faults = lambda _call: None
    back_at = place.now
    place.pass_time(25 * MINUTE)
    rows = [row for row in place.ledger("report") if row.fire_at < back_at]
    assert [row.status for row in rows] == [FireStatus.FIRED] * 6
    assert place.look(under_way).state is RunState.SUCCEEDED
    assert place.api("GET", "/v1/jobs/other")[0] == 404
    assert_sound(place)


def test_while_the_key_is_disabled_nothing_is_done_and_afterwards_everything_is(place: Place) -> None:
    """Row 68: ten minutes; the poller cannot receive either, as long as the key is disabled."""
    place.only("tick", "sweep", "normal", "audit")
    place.put("report", "*/5 * * * *")
    codes = {"dynamodb": "AccessDeniedException", "sqs": "KMS.DisabledException"}
    place.faults = lambda call: refused(call.operation, codes[call.service]) if call.service in codes else None
    place.silent |= {"normal", "sweep"}
    place.pass_time(10 * MINUTE)
    assert place.target.effects == []
    assert place.undelivered() >= 10
    place.faults = lambda _call: None
    place.silent -= {"normal", "sweep"}
    place.pass_time(15 * MINUTE)
    rows = place.ledger("report")
    assert [row.status for row in rows] == [FireStatus.FIRED] * 5
    assert rows[0].skew_ms is not None
    assert rows[0].skew_ms <= (6 * MINUTE + SECOND).total_seconds() * 1000
    assert len(place.target.effects) == 5
    assert_sound(place)
