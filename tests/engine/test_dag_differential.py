"""Random DAGs come to the same ends, in an order that their needs allow, on every store and by a naive interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.dag import state_of
from sweephand.domain.ids import JobKey, JobName
from sweephand.domain.job import TriggerRule
from sweephand.domain.mapping import instance_id, parts_of
from sweephand.domain.retry import Failure, FailureClass
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from tests.dags.reference import Reference
from tests.dags.scripts import Script, script_of
from tests.engine.world import NS, Town, town_of

SOAK: Final = os.environ.get("SWEEPHAND_SOAK") == "1"
WAITS_FOR_ALL: Final = frozenset(TriggerRule) - {
    TriggerRule.ONE_SUCCESS,
    TriggerRule.ONE_FAILED,
    TriggerRule.ONE_DONE,
    TriggerRule.ALWAYS,
}


class Played:
    """A script on a town: what became of every task, and when each began and ended."""

    def __init__(self, town: Town, script: Script) -> None:
        self.town = town
        self.script = script
        self.journal: list[tuple[str, str]] = []
        name = script.document["name"]
        tasks = [{**task, "run": {"command": ["true"]}} for task in script.document["tasks"]]
        town.target.rules[name] = self.answer
        put(town.world, NS, {**script.document, "tasks": tasks}, actor="ann", expected=None)
        self.key = trigger(town.world, JobKey(NS, JobName(name))).key
        town.drive()
        while not town.run(self.key).is_terminal:  # those that are tried again may have to wait for it
            town.advance(minutes=15, ticking=False)

    def answer(self, call: Call) -> Outcome:
        task = call.run.key.task or call.task.id
        self.journal.append(("begins", task))
        ending = self.script.endings[task][call.run.attempt - 1]
        match ending.how:
            case "succeeded":
                return Succeeded(ending.output)
            case "skipped":
                return Skipped("as scripted")
            case _:
                return Failure("Scripted", "as scripted", FailureClass.TRANSIENT)

    @property
    def ends(self) -> dict[str, str]:
        """The states of all tasks and instances."""
        run, progress = self.town.run(self.key), self.town.stores.dags.get(self.key)
        job = version_of(self.town.world, self.key.job, run.version or 0).job
        assert job is not None
        assert run.is_terminal
        if not job.is_dag:
            return {job.tasks[0].id: str(run.state)}
        graph = graph_of(self.town.world, self.key.job, run.version or 0, job)
        found = {task.id: str(state_of(byte)) for task, byte in zip(graph.tasks, progress.states, strict=True)}
        for place, states in progress.instances.items():
            task = graph.tasks[place].id
            found |= {instance_id(task, n): str(state_of(byte)) for n, byte in enumerate(states)}
        return found

    def misplaced(self) -> list[str]:
        """Tasks that began before one that they had to wait for: of one, the last attempt is its end."""
        last = {task: n for n, (_, task) in enumerate(self.journal)}
        first: dict[str, int] = {}
        for n, (_, task) in enumerate(self.journal):
            first.setdefault(task, n)
        wrong = []
        for task in self.script.document["tasks"]:
            if TriggerRule(task["when"]) not in WAITS_FOR_ALL:
                continue
            begins = min((n for name, n in first.items() if parts_of(name)[0] == task["id"]), default=None)
            needed = [n for name, n in last.items() if parts_of(name)[0] in task["needs"]]
            if begins is not None and any(n > begins for n in needed):
                wrong.append(task["id"])
        return wrong


@pytest.fixture(scope="module", params=("sqlite", "moto"))
def place(request: pytest.FixtureRequest) -> Iterator[Town]:
    with town_of(request.param) as town:
        yield town


@pytest.mark.parametrize("seed", range(300 if SOAK else 30))
def test_a_random_dag_ends_as_the_reference_says(place: Town, seed: int) -> None:
    script = script_of(seed, attempts_max=1 + seed % 3)
    played = Played(place, script)
    assert played.ends == Reference(script).ends
    assert played.misplaced() == []
