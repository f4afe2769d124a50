"""A place to call, in real or in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.client import Served, Virtual


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as place:
        yield place


@pytest.fixture
def virtual() -> Iterator[Virtual]:
    with Virtual() as place:
        yield place
