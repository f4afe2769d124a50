"""Random DAGs come to the same ends, in an order that their needs allow: on SQLite, by the functions and their machine,
and by a naive interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest

from tests.dags.played import Engine, OnFunctions, OnTown, Played, misplaced
from tests.dags.reference import Reference
from tests.dags.scripts import script_of
from tests.engine.world import town_of
from tests.faults.place import opened

SOAK: Final = os.environ.get("SWEEPHAND_SOAK") == "1"


@pytest.fixture(scope="module", params=("sqlite", "moto"))
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if request.param == "sqlite":
        with town_of() as town:
            yield OnTown(town)
        return
    with opened(tmp_path_factory.mktemp("functions")) as place:
        yield OnFunctions(place)


@pytest.mark.parametrize("seed", range(300 if SOAK else 30))
def test_a_random_dag_ends_as_the_reference_says(engine: Engine, seed: int) -> None:
    script = script_of(seed, attempts_max=1 + seed % 3)
    played = Played(engine, script)
    assert played.ends == Reference(script).ends
    assert list(misplaced(played)) == []
