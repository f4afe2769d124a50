"""A place to call, in real or in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.client import ENGINES, Served, Virtual, VirtualCloud, VirtualEmbedded


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as place:
        yield place


@pytest.fixture(params=ENGINES)
def virtual(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Virtual]:
    with VirtualEmbedded() if request.param == "sqlite" else VirtualCloud(tmp_path) as place:
        yield place
