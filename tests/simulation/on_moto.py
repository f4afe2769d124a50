"""The simulated world over DynamoDB and SQS as moto plays them, with faults at the botocore level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sqs.models import sqs_backends

from sweephand.ports import Clock, Lane, Stores
from tests.moto_world import NAMES, REGION, Fault, broken, moto_world, throttled, timed_out, unreachable
from tests.simulation.faults import Weather

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class MotoGround:
    stores: Stores

    def next_visible(self, lanes: Sequence[Lane]) -> datetime | None:
        backend = sqs_backends[DEFAULT_ACCOUNT_ID][REGION]
        moments = [
            max(message.visible_at, message.delayed_until)
            for lane in lanes
            for message in backend.queues[NAMES.queue(str(lane))]._messages
        ]
        return _EPOCH + timedelta(milliseconds=min(moments)) if moments else None


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
