"""The engine keeps its promises in every seeded world, on both engines."""

from __future__ import annotations

from statistics import median

import pytest

from tests.simulation.__main__ import again, summary
from tests.simulation.scenario import Result, simulate

SQLITE_SEEDS, SQLITE_BATCH = 300, 10
MOTO_SEEDS, MOTO_BATCH = 10, 1
DAG_SEEDS, MOTO_DAG_SEEDS = 100, 2
MACHINE_SEEDS, MOTO_MACHINE_SEEDS = 100, 2


def _check(results: list[Result], record_property: object, **world: bool) -> None:
    assert callable(record_property)
    for one in results:
        record_property(f"seed {one.engine}", (one.jobs, one.fires, one.faults, one.crashes))
    failed = [one for one in results if one.violations]
    if failed:
        first = failed[0]
        story = "\n".join(first.story[-200:])
        pytest.fail(f"{story}\n\n{summary(results, 0)}\n{again(first, **world)}\n" + "\n".join(first.violations[:10]))


@pytest.mark.parametrize("batch", range(SQLITE_SEEDS // SQLITE_BATCH))
def test_nothing_is_lost_or_doubled_on_sqlite(batch: int, record_property: object) -> None:
    _check([simulate(batch * SQLITE_BATCH + number) for number in range(SQLITE_BATCH)], record_property)


@pytest.mark.parametrize("batch", range(DAG_SEEDS // SQLITE_BATCH))
def test_nothing_is_lost_or_doubled_where_jobs_have_several_tasks(batch: int, record_property: object) -> None:
    _check(
        [simulate(batch * SQLITE_BATCH + number, dags=True) for number in range(SQLITE_BATCH)],
        record_property,
        dags=True,
    )


@pytest.mark.parametrize("batch", range(MACHINE_SEEDS // SQLITE_BATCH))
def test_nothing_is_lost_or_doubled_where_executions_advance_runs(batch: int, record_property: object) -> None:
    _check(
        [simulate(batch * SQLITE_BATCH + number, machines=True) for number in range(SQLITE_BATCH)],
        record_property,
        machines=True,
    )


@pytest.mark.parametrize("seed", range(MOTO_MACHINE_SEEDS))
def test_executions_lose_and_double_nothing_on_dynamodb_and_sqs(seed: int, record_property: object) -> None:
    _check([simulate(seed, "moto", machines=True)], record_property, machines=True)


@pytest.mark.parametrize("seed", range(MOTO_DAG_SEEDS))
def test_tasks_are_not_lost_or_doubled_on_dynamodb_and_sqs(seed: int, record_property: object) -> None:
    _check([simulate(seed, "moto", dags=True)], record_property, dags=True)


@pytest.mark.parametrize("seed", range(MOTO_SEEDS))
def test_nothing_is_lost_or_doubled_on_dynamodb_and_sqs(seed: int, record_property: object) -> None:
    _check([simulate(seed, "moto")], record_property)


def test_a_seed_is_a_world_and_its_repetition_the_same_world() -> None:
    assert simulate(7).story == simulate(7).story


def test_the_median_seed_is_a_rough_day() -> None:
    results = [simulate(seed) for seed in range(12)]
    assert median(one.jobs for one in results) >= 10
    assert median(one.fires for one in results) >= 200
    assert median(one.faults for one in results) >= 30
    assert median(one.crashes for one in results) >= 5
