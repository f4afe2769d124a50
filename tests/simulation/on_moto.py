"""The simulated world over DynamoDB and SQS as moto plays them, with faults at the botocore level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sweephand.local.cloud.account import next_visible_at
from sweephand.ports import Clock, Lane, Stores
from tests.moto_world import NAMES, Fault, broken, moto_world, throttled, timed_out, unreachable
from tests.simulation.faults import Weather


@dataclass(frozen=True)
class MotoGround:
    stores: Stores

    def next_visible(self, lanes: Sequence[Lane]) -> datetime | None:
        moments = (next_visible_at(NAMES.queue(lane)) for lane in lanes)
        return min((moment for moment in moments if moment is not None), default=None)


@contextmanager
def moto_ground(clock: Clock, weather: Weather) -> Iterator[MotoGround]:
    """Ports that never fail by themselves, over clients that do."""
    weather.below_ports = True

    def faults(service: str, operation: str, params: Mapping[str, Any]) -> Fault | None:
        odds, rng = weather.odds, weather.work.rng
        if weather.strikes("refused", odds.refused):
            weather.work.tell(service, f"{operation} fails")
            return rng.choice((throttled(operation), broken(operation), unreachable()))
        if weather.strikes("unheard", odds.unheard):
            weather.work.tell(service, f"{operation} takes effect, answer lost")
            return timed_out()
        return None

    with moto_world(clock, faults=faults, shards=2) as stores:
        yield MotoGround(stores)
