"""The stores under test, and the clock that they are given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from sweephand import ports
from sweephand.artifacts import Artifacts
from sweephand.dags import Dags
from sweephand.documents import Shared
from sweephand.embedded import open_stores
from sweephand.logs import Logs
from sweephand.packs import Packs
from sweephand.secrets import Secrets
from sweephand.views import Views
from tests.contract.samples import NOW

SQLITE: Final = ("sqlite-memory", "sqlite-file")
ENGINES: Final = (*SQLITE, "moto")


class VirtualClock:
    """Time that passes only when a test says so."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def advance(self, by: timedelta) -> None:
        self.at += by


class Stores(Protocol):
    """What every engine provides."""

    @property
    def jobs(self) -> ports.Jobs: ...

    @property
    def runs(self) -> ports.Runs: ...

    @property
    def dags(self) -> Dags: ...

    @property
    def due(self) -> ports.Due: ...

    @property
    def shards(self) -> ports.Shards: ...

    @property
    def slots(self) -> ports.Slots: ...

    @property
    def shared(self) -> Shared: ...

    @property
    def trail(self) -> ports.Trail: ...

    @property
    def replies(self) -> ports.Replies: ...

    @property
    def offers(self) -> ports.Offers: ...

    @property
    def queue(self) -> ports.Queue: ...

    @property
    def inbox(self) -> ports.Inbox: ...

    @property
    def views(self) -> Views: ...

    @property
    def logs(self) -> Logs: ...

    @property
    def artifacts(self) -> Artifacts: ...

    @property
    def packs(self) -> Packs: ...

    @property
    def secrets(self) -> Secrets: ...


@contextmanager
def opened(engine: str, clock: VirtualClock, folder: Path) -> Iterator[Stores]:
    """The stores of one engine, empty."""
    if engine == "moto":
        from tests.moto_world import moto_world

        with moto_world(clock) as stores:
            yield stores
        return
    embedded = open_stores(None if engine == "sqlite-memory" else folder / "sweephand.db", clock=clock)
    try:
        yield embedded
    finally:
        embedded.close()
