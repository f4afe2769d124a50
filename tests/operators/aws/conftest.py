"""A neighbourhood in virtual time, and the operators in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sweephand.operators import Operators
from sweephand.testing.virtual import VirtualClock
from tests.operators.aws.account import Neighbourhood, neighbourhood, operators
from tests.operators.calls import FIRE_AT


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(FIRE_AT)


@pytest.fixture
def place(clock: VirtualClock) -> Iterator[Neighbourhood]:
    with neighbourhood(clock) as made:
        yield made


@pytest.fixture
def there(tmp_path: Path, place: Neighbourhood, clock: VirtualClock) -> Operators:
    """The operators of the function `call`."""
    return operators(tmp_path, clock)
