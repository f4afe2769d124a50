"""The towns that the tests of the engine happen in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sweephand import embedded
from tests.engine.world import Town, town_of


@pytest.fixture
def town() -> Iterator[Town]:
    """In memory, with the look-ahead of the AWS engine."""
    with town_of() as found:
        yield found


@pytest.fixture
def hamlet() -> Iterator[Town]:
    """In memory, with the pace of the local engine: two seconds of look-ahead."""
    with town_of(pace=embedded.PACE) as found:
        yield found


@pytest.fixture(params=("sqlite", "moto"))
def either(request: pytest.FixtureRequest) -> Iterator[Town]:
    """On each engine."""
    with town_of(request.param) as found:
        found.ticks_every = timedelta(minutes=2)  # moto is slow
        yield found
