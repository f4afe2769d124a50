"""Every test of a port runs on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from sweephand import embedded as embedded_stores
from sweephand.embedded import open_stores
from sweephand.embedded.database import Database
from tests.contract.world import ENGINES, SQLITE, Stores, VirtualClock, opened


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def stores(engine: str, clock: VirtualClock, tmp_path: Path) -> Iterator[Stores]:
    with opened(engine, clock, tmp_path) as found:
        yield found


@pytest.fixture(params=SQLITE)
def embedded(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Iterator[embedded_stores.Stores]:
    """The embedded stores alone, for what only they promise."""
    opened = open_stores(None if request.param == "sqlite-memory" else tmp_path / "sweephand.db", clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """The file beneath the stores; it waits for others only a moment."""
    opened = Database(tmp_path / "sweephand.db", busy_s=0.05)
    yield opened
    opened.close()


@pytest.fixture
def examples(engine: str) -> settings:
    """How many examples of a property: few on moto, which is slow."""
    return settings(max_examples=15) if engine == "moto" else settings()
