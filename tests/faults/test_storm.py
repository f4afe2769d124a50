"""Everything goes wrong at once, for half an hour; then it is calm, and nothing was lost or doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.retry import Failure
from sweephand.domain.run import RunState
from sweephand.local.cloud.account import AwsCall
from sweephand.local.cloud.functions import Later
from sweephand.orders import encode_outcome
from tests.faults.checker import violations
from tests.faults.place import MINUTE, Effect, Entry, Place, Trap, opened
from tests.moto_world import Fault, Partial, broken, refused, timed_out, unreachable

SEEDS, SOAK_SEEDS = range(2), range(2, 40)
STORM, CALM = 30 * MINUTE, 48 * MINUTE
"""The audit finds within 20 minutes what a worker took and died of; then a queue of one drains, and is seen on time."""

THROTTLED = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "sqs": "RequestThrottled",
    "lambda": "TooManyRequestsException",
    "stepfunctions": "ThrottlingException",
    "firehose": "ServiceUnavailableException",
}
JOBS: dict[str, dict[str, Any]] = {
    "cron": {"schedule": "*/5 * * * *"},
    "interval": {"schedule": {"every": "4m"}},
    "retrying": {"schedule": "*/6 * * * *", "retry": {"attempts": 4, "backoff": "fixed", "delay": "20s"}},
    "alone": {"schedule": "*/5 * * * *", "overlap": "skip", "timeout": "2m"},
    "queued": {"schedule": "*/7 * * * *", "concurrency": {"runs": 1}, "timeout": "3m"},
    "once": {"schedule": "*/8 * * * *", "guarantee": "at-most-once"},
    "follower": {"schedule": {"after": ["cron"]}},
}


@dataclass
class Storm:
    """Decides from the seed and from what is asked, so that the order of threads makes little difference."""

    seed: int
    happened: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    def faults(self, call: AwsCall) -> Fault | Partial | None:
        random = self._random(f"{call.function} {call.operation} {_subject(call)}")
        if call.operation in {"SendMessageBatch", "BatchWriteItem"} and random.random() < 0.1:
            self.happened["partial"] += 1
            return Partial(0)
        if random.random() >= 0.2:
            return None
        what = random.choice(["throttled", "broken", "unreachable", "timed out", "timed out, applied"])
        self.happened[what] += 1
        match what:
            case "throttled":
                return refused(call.operation, THROTTLED.get(call.service, "ThrottlingException"))
            case "broken":
                return broken(call.operation)
            case "unreachable":
                return unreachable()
            case _:
                return timed_out(applied=what.endswith("applied"))

    def kills(self, call: AwsCall) -> bool:
        killed = self._random(f"kill {call.function} {call.operation} {_subject(call)}").random() < 0.01
        self.happened["killed"] += killed
        return killed

    def transit(self, entry: Entry) -> Sequence[Entry]:
        random = self._random(entry["MessageBody"])
        chance = random.random()
        if chance < 0.25:
            self.happened["doubled"] += 1
            return [entry, entry]
        if chance < 0.4:
            self.happened["late"] += 1
            return [{**entry, "DelaySeconds": min(entry["DelaySeconds"] + random.randrange(1, 240), 900)}]
        return [entry]

    def keeps_deleted(self) -> bool:
        kept = self._random("delete").random() < 0.2
        self.happened["delivered again"] += kept
        return kept

    def _random(self, what: str) -> Random:
        self.asked[what] += 1
        return Random(f"{self.seed} {what} {self.asked[what]}")


def _subject(call: AwsCall) -> str:
    key = call.params.get("Key") or call.params.get("Item") or {}
    return f"{key.get('pk')} {key.get('sk')}"


def _fails_twice(effect: Effect) -> Any:
    """Two attempts of each run fail, whichever they are."""
    return encode_outcome(Failure("Busy", "come back later") if effect.attempt < 3 else Succeeded())


def _takes(span: timedelta) -> Any:
    return lambda _effect: Later(encode_outcome(Succeeded()), span)


def _weather(place: Place, storm: Storm) -> None:
    place.faults, place.transit, place.keeps_deleted = storm.faults, storm.transit, storm.keeps_deleted
    place.traps = [Trap(storm.kills, after=False, times=1_000), Trap(storm.kills, after=True, times=1_000)]


def _assert_survived(tmp: Path, seed: int) -> None:
    storm = Storm(seed)
    with opened(tmp, seed=seed) as place:
        place.silent = {"live"}
        place.target.does = {"retrying": _fails_twice, "alone": _takes(MINUTE), "queued": _takes(MINUTE)}
        for name, document in JOBS.items():
            place.put(name, **document)
        place.step()
        calm = (place.faults, place.transit, place.keeps_deleted)
        _weather(place, storm)
        place.pass_time(STORM)
        place.faults, place.transit, place.keeps_deleted = calm
        place.traps.clear()
        place.pass_time(CALM)
        found = list(violations(place))
        found += [f"I10 {letter.body} is among the dead letters" for letter in place.dead()]
        found += _outcomes(place)
    assert not found, f"seed {seed}, after {dict(storm.happened)}:\n" + "\n".join(found)
    assert storm.happened.total() > 150, f"seed {seed} is no storm: {storm.happened}"


def _outcomes(place: Place) -> list[str]:
    """What the jobs themselves may ask for, beyond the invariants: above all, that the calm is one."""
    found = []
    for name in JOBS.keys() - {"follower"}:
        calm = [row for row in place.ledger(name, until=place.now - MINUTE) if row.fire_at > place.now - 16 * MINUTE]
        on_time = [row for row in calm if row.skew_ms is not None and row.skew_ms < 2_000]
        if not calm or calm != on_time:
            found.append(f"{name} has not recovered: {calm}")
    successes = {run.key.run_id for run in place.runs("cron") if run.state is RunState.SUCCEEDED}
    followed = Counter(run.params["after"]["cron"] for run in place.runs("follower"))
    if set(followed.values()) != {1} or not followed.keys() <= successes:
        found.append(f"the follower ran {followed}, after {successes}")
    if missing := successes - followed.keys():
        found.append(f"nobody followed {missing}")
    doubled = [key for key, times in Counter(one.run for one in place.target.of("once")).items() if times > 1]
    return found + [f"I6 {key} is at most once, and was executed more often" for key in doubled]


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_doubled_in_a_storm(tmp_path: Path, seed: int) -> None:
    _assert_survived(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_nothing_is_lost_or_doubled_in_many_storms(tmp_path: Path, seed: int) -> None:
    _assert_survived(tmp_path, seed)
