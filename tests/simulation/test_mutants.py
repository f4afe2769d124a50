"""The simulation finds the bugs that it is there to find."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import DAG_MUTANTS, MACHINE_MUTANTS, MUTANTS, RULE_MUTANTS, Mutant, applied
from tests.simulation.scenario import simulate

SEEDS = 300


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_world_with_this_bug_breaks_a_promise(mutant: Mutant, record_property: object) -> None:
    assert callable(record_property)
    with applied(mutant):
        for seed in range(SEEDS):
            violations = simulate(seed).violations
            if violations:
                record_property("mutant", f"{mutant}: seed {seed}: {violations[0]}")
                return
    pytest.fail(f"{SEEDS} seeds did not notice: {mutant}")


@pytest.mark.parametrize("mutant", DAG_MUTANTS + RULE_MUTANTS, ids=str)
def test_a_world_of_tasks_with_this_bug_breaks_a_promise(mutant: Mutant, record_property: object) -> None:
    _assert_noticed(mutant, record_property, dags=True)


@pytest.mark.parametrize("mutant", MACHINE_MUTANTS, ids=str)
def test_a_world_of_executions_with_this_bug_breaks_a_promise(mutant: Mutant, record_property: object) -> None:
    _assert_noticed(mutant, record_property, machines=True)


def _assert_noticed(mutant: Mutant, record_property: object, **world: bool) -> None:
    assert callable(record_property)
    with applied(mutant):
        for seed in range(0, SEEDS, 2):  # in the others, a run is looked after whatever happens
            violations = simulate(seed, "sqlite", **world).violations
            if violations:
                record_property("mutant", f"{mutant}: seed {seed}: {violations[0]}")
                return
    pytest.fail(f"{SEEDS // 2} seeds did not notice: {mutant}")


def test_a_mutant_leaves_no_trace() -> None:
    with applied(MUTANTS[1]):
        pass
    assert simulate(0).violations == []
