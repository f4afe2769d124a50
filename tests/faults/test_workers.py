"""Workers that die, hang, come too late, fail at one of many messages, or cannot even start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from sweephand.calls import Succeeded
from sweephand.domain.run import Run, RunState
from sweephand.local.cloud.account import AwsCall
from sweephand.local.cloud.functions import Later
from sweephand.orders import encode_outcome
from sweephand.topology import ATTEMPT, RUNS
from tests.faults.checker import assert_sound
from tests.faults.place import LEASE, MINUTE, ROOT, SECOND, Effect, Place, opened
from tests.moto_world import Fault, broken, throttled, timed_out

VISIBILITY = 6 * ATTEMPT.timeout
"""When a message comes back whose worker did not say."""


def _begin(place: Place, **more: Any) -> Run:
    place.only("normal", "machines")
    place.put("report", **more)
    return place.run("report")


def _assert_ended(place: Place, run: Run, *, attempts: int, effects: int) -> None:
    after = place.look(run)
    assert (after.state, after.attempt, after.lost) == (RunState.SUCCEEDED, attempts, attempts - 1)
    assert [effect.epoch for effect in place.target.effects] == list(range(attempts - effects + 1, attempts + 1))
    assert len({effect.key for effect in place.target.effects}) == 1
    place.pass_time(VISIBILITY)
    assert place.waiting() == 0
    assert_sound(place)


def test_a_worker_that_dies_before_it_claims_costs_no_attempt(place: Place) -> None:
    """Row 29."""
    run = _begin(place)
    place.die_before("attempt", "UpdateItem", RUNS)
    place.step()
    assert place.look(run) == run
    place.pass_time(VISIBILITY)
    _assert_ended(place, run, attempts=1, effects=1)


@pytest.mark.parametrize(("operation", "back_after"), [("UpdateItem", VISIBILITY), ("ChangeMessageVisibility", LEASE)])
def test_a_worker_that_dies_after_it_claimed_is_followed_by_a_second_attempt(
    place: Place, operation: str, back_after: timedelta
) -> None:
    """Row 30: before it kept its message for itself, or after."""
    run = _begin(place)
    place.die_after("attempt", operation)
    place.step()
    assert (place.look(run).state, place.target.effects) == (RunState.RUNNING, [])
    place.pass_time(back_after - SECOND)
    assert place.look(run).attempt == 1
    place.pass_time(SECOND)
    _assert_ended(place, run, attempts=2, effects=1)


def _dies_with_the_answer(place: Place) -> None:
    place.die_after("attempt", "Invoke")


def _dies_before_the_completion(place: Place) -> None:
    seen: list[AwsCall] = []

    def fits(call: AwsCall) -> bool:
        if call.function == "attempt" and call.operation == "UpdateItem":
            seen.append(call)
        return len(seen) == 2

    place.die_before("attempt", "UpdateItem")
    place.traps[0].fits = fits


def _times_out(place: Place) -> None:
    def too_long(effect: Effect) -> None:
        if effect.epoch == 1:
            place.clock.move(place.now + ATTEMPT.timeout + SECOND)

    place.target.does["report"] = too_long


def _loses_the_answer(place: Place) -> None:
    place.faults = _once("Invoke", timed_out())


def _loses_half_of_the_answer(place: Place) -> None:
    class Cut:
        def read(self) -> bytes:
            raise ReadTimeoutError(endpoint_url="https://aws.test")

    def cut(call: AwsCall, answer: Any) -> Any:
        is_first = call.operation == "Invoke" and len(place.target.effects) == 1
        return {**answer, "Payload": Cut()} if is_first else answer

    place.garbles = cut


def _cannot_complete(place: Place) -> None:
    """The completion is refused as often as it is tried, by this worker."""
    tries: list[AwsCall] = []

    def refuse(call: AwsCall) -> Fault | None:
        if call.operation == "UpdateItem" and place.target.effects and len(tries) < 3:
            tries.append(call)
            return broken(call.operation)
        return None

    place.faults = refuse


def _once(operation: str, fault: Fault) -> Callable[[AwsCall], Fault | None]:
    coming = [fault]
    return lambda call: coming.pop() if coming and call.operation == operation else None


@pytest.mark.parametrize(
    "happens",
    [
        _dies_with_the_answer,
        _dies_before_the_completion,
        _times_out,
        _loses_the_answer,
        _loses_half_of_the_answer,
        _cannot_complete,
    ],
)
def test_a_worker_lost_after_the_side_effect_is_followed_by_one_with_the_same_key(
    place: Place, happens: Callable[[Place], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Row 31: the target, which knows the key, sees one effect."""
    run = _begin(place)
    happens(place)
    place.pass_time(ATTEMPT.timeout)
    _assert_ended(place, run, attempts=2, effects=2)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_worker_that_hangs_past_its_lease_cannot_complete_any_more(place: Place) -> None:
    """Row 32: another has taken over and is done; whatever it says is without effect."""
    run = _begin(place)
    ended: list[Run] = []

    def hang(effect: Effect) -> None:
        if effect.epoch == 1:
            place.clock.move(place.now + LEASE)
            place.deployment.invoke("attempt", place.deliveries["attempt"][0])
            ended.append(place.look(run))

    place.target.does["report"] = hang
    place.step()
    assert place.look(run) == ended[0]
    _assert_ended(place, run, attempts=2, effects=2)


def test_a_machine_that_reports_after_the_lease_is_too_late(place: Place) -> None:
    """Row 32: and of two reports, only that of the new owner counts."""
    run = _begin(place, timeout="2m")
    answer = {1: {"succeeded": {"output": "late"}}, 2: {"succeeded": {"output": "in time"}}}
    place.target.does["report"] = lambda effect: Later(answer[effect.epoch], (10 if effect.epoch == 1 else 1) * MINUTE)
    place.pass_time(4 * MINUTE)
    assert place.look(run).output == "in time"
    place.pass_time(10 * MINUTE)
    assert place.answers["attempt"][-1]["event"] == "fenced"
    assert place.look(run).output == "in time"
    _assert_ended(place, run, attempts=2, effects=2)


def test_an_external_worker_whose_heartbeats_fail_for_longer_than_its_lease_is_fenced(place: Place) -> None:
    """Row 33: there is no grace, and never two accepted completions."""
    place.only("normal")
    place.put("outside", timeout="10m", run={"external": {}}, command=None)
    run = place.run("outside")
    place.step()
    (first,) = place.api("POST", "/v1/leases", {"workerId": "first"})[1]["items"]
    place.faults = lambda call: throttled(call.operation) if call.operation == "UpdateItem" else None
    for _ in range(4):
        place.pass_time(20 * SECOND)
        assert place.api("POST", f"/v1/leases/{first['lease']}/heartbeat", {"epoch": 1})[0] == 503
    place.faults = lambda _call: None
    place.pass_time(10 * MINUTE)
    (second,) = place.api("POST", "/v1/leases", {"workerId": "second"})[1]["items"]
    assert (second["epoch"], second["idempotencyKey"]) == (2, first["idempotencyKey"])
    assert place.api("POST", f"/v1/leases/{first['lease']}/complete", {"epoch": 1})[0] == 409
    assert place.api("POST", f"/v1/leases/{second['lease']}/complete", {"epoch": 2})[0] == 200
    assert place.api("POST", f"/v1/leases/{first['lease']}/complete", {"epoch": 1})[0] == 409
    accepted = [one for one in place.history()[run.key] if one.state is RunState.SUCCEEDED]
    assert [one.epoch for one in accepted] == [2]


def test_of_a_batch_of_ten_only_the_one_that_throws_comes_back(place: Place) -> None:
    """Row 34."""
    place.only("normal")
    place.put("report")
    runs = [place.run("report") for _ in range(10)]
    struck: list[AwsCall] = []

    def throw(call: AwsCall) -> Fault | None:
        is_fourth = call.params.get("Key", {}).get("sk", {}).get("S", "").endswith(runs[3].key.run_id)
        if struck or not is_fourth or call.operation != "GetItem":
            return None
        struck.append(call)
        return broken(call.operation)

    place.faults = throw
    place.step()
    (event,), (answer,) = place.deliveries["attempt"], place.answers["attempt"]
    assert len(event["Records"]) == 10
    (left,) = answer["batchItemFailures"]
    (message,) = [one for one in event["Records"] if one["messageId"] == left["itemIdentifier"]]
    assert str(runs[3].key) in message["body"]
    assert len(place.target.effects) == 9
    place.pass_time(5 * SECOND)
    assert len(place.target.effects) == 10
    assert {effect.run for effect in place.target.effects} == {run.key for run in runs}
    assert all(place.look(run).state is RunState.SUCCEEDED for run in runs)
    assert_sound(place)


def test_a_deployment_that_cannot_even_start_loses_nothing_until_it_is_rolled_back(tmp_path: Path) -> None:
    """Row 37."""
    root = tmp_path / "deployed"
    for folder in ("functions", "statemachines"):
        shutil.copytree(ROOT / folder, root / folder)
    handler = root / "functions" / "attempt" / "handler.py"
    sound = handler.read_text()
    handler.write_text("import something_that_was_never_packed\n")
    with opened(tmp_path, root=root) as place:
        place.only("normal", "machines")
        place.put("report", "*/10 * * * *")
        place.put("long", timeout="10m")
        long = place.run("long")
        place.pass_time(3 * VISIBILITY)
        assert place.target.effects == []
        assert place.dead() == []
        handler.write_text(sound)
        place.pass_time(2 * VISIBILITY)
        assert len(place.target.of("report")) == len(place.runs("report")) > 0
        assert all(run.state is RunState.SUCCEEDED for run in [*place.runs("report"), place.look(long)])
        assert place.waiting() == 0


def test_users_code_that_kills_its_process_fails_its_run_and_not_its_neighbours(place: Place) -> None:
    """Row 38: a payload that always crashes, in the function where users' code runs."""
    place.only("normal", "machines")

    def crash(_effect: Effect) -> None:
        raise MemoryError("out of memory")

    for name, timeout in (("poison", "30s"), ("poison-long", "5m"), ("sound", "30s")):
        place.put(name, timeout=timeout, retry={"attempts": 2, "backoff": "fixed", "delay": "10s"})
        place.target.does[name] = crash if name != "sound" else lambda _effect: encode_outcome(Succeeded())
    runs = {name: place.run(name) for name in ("poison", "poison-long", "sound")}
    place.pass_time(MINUTE)
    states = {name: place.look(run) for name, run in runs.items()}
    assert {name: (run.state, run.attempt) for name, run in states.items()} == {
        "poison": (RunState.FAILED, 2),
        "poison-long": (RunState.FAILED, 2),
        "sound": (RunState.SUCCEEDED, 1),
    }
    failures = [run.failure.error for run in states.values() if run.failure is not None]
    assert failures == ["MemoryError", "MemoryError"]
    assert_sound(place)
