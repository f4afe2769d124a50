"""The stores that a simulated world stands on, and how to see what they would deliver next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sweephand import embedded
from sweephand.ports import Lane
from tests.simulation.clockwork import Clockwork
from tests.simulation.faults import Weather

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TrueClock:
    """What the services' own clocks show."""

    work: Clockwork

    def now(self) -> datetime:
        return self.work.now


class Ground(Protocol):
    """Stores without faults of their own, and a look into their queues that no actor has."""

    @property
    def stores(self) -> Any: ...

    def next_visible(self, lanes: Sequence[Lane]) -> datetime | None:
        """When the next message can be received."""


@dataclass(frozen=True)
class SqliteGround:
    stores: embedded.Stores

    def next_visible(self, lanes: Sequence[Lane]) -> datetime | None:
        marks = ",".join("?" * len(lanes))
        query = f"SELECT min(visible_at) FROM messages WHERE lane IN ({marks})"
        ((earliest,),) = self.stores.database.rows(query, tuple(str(lane) for lane in lanes))
        return None if earliest is None else _EPOCH + timedelta(microseconds=earliest)


@contextmanager
def ground(engine: str, work: Clockwork, weather: Weather) -> Iterator[Ground]:
    """An empty store of the named engine; on moto, calls fail at the botocore level."""
    clock = TrueClock(work)
    if engine == "sqlite":
        stores = embedded.open_stores(None, clock=clock)
        yield SqliteGround(stores)
        stores.close()
        return
    from tests.simulation.on_moto import moto_ground

    with moto_ground(clock, weather) as found:
        yield found
