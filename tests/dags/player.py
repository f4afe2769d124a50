"""A scripted DAG played with our pure functions, its tasks ending in any order: what an engine does, without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import Any

from sweephand.domain.dag import blank, byte_of, byte_of_mapped, compiled, is_over, state_of
from sweephand.domain.definition import parse
from sweephand.domain.job import Job
from sweephand.domain.mapping import gathered, instance_id
from sweephand.domain.ready import ready
from sweephand.domain.task import TaskEvent, TaskState
from tests.dags.scripts import JSON, Script

NOW = datetime(2026, 11, 15, 6, tzinfo=UTC)


def job_of(document: JSON) -> Job:
    """The job that a document defines."""
    return parse(document, namespace="default", now=NOW)


class Player:
    """One run. `going` are the task runs that were released and did not end."""

    def __init__(self, script: Script, random: Random) -> None:
        self.script = script
        self.random = random
        self.job = job_of(script.document)
        self.graph = compiled(self.job)
        self.states = blank(self.graph)
        self.instances: dict[int, dict[int, TaskState]] = {}
        self.outputs: dict[int, dict[int, Any]] = {}
        self.known: JSON = {"params": self.job.params, "tasks": {}}
        self.going: list[tuple[int, int | None]] = []
        self.reasons: dict[str, str] = {}

    def play(self) -> dict[str, str]:
        """The state of every task and instance in the end."""
        self.decide(None)
        while self.going:
            changed = {self.end_one() for _ in range(min(len(self.going), self.random.randint(1, 4)))}
            self.decide(changed)
            assert not ready(self.graph, self.states, None, self.known).moves, "looking at everything finds more"
        assert is_over(self.states), "something waits for ever"
        return self.ends()

    def decide(self, changed: Iterable[int] | None) -> None:
        count = sum(map(len, self.instances.values()))
        decided = ready(self.graph, self.states, changed, self.known, instances=count)
        self.states = decided.states
        for move in decided.moves:
            task = self.graph.tasks[move.task]
            assert (move.reason is None) == (move.event is TaskEvent.RELEASED)
            self.reasons[task.id] = str(move.reason)
            if move.event is not TaskEvent.RELEASED:
                self.known["tasks"][task.id] = {"output": None}
            elif not move.instances:
                self.going.append((move.task, None))
            else:
                skipped = {one.index for one in move.instances if one.skipped is not None}
                self.instances[move.task] = {
                    one.index: TaskState.SKIPPED if one.index in skipped else TaskState.QUEUED for one in move.instances
                }
                self.outputs[move.task] = {}
                self.going += [(move.task, one.index) for one in move.instances if one.skipped is None]

    def end_one(self) -> int:
        """Have one task run end as its script says."""
        task, index = self.going.pop(self.random.randrange(len(self.going)))
        name = self.graph.tasks[task].id
        states = bytearray(self.states)
        if index is None:
            ending = self.script.final(name)
            states[task] = byte_of(TaskState(ending.how))
            self.known["tasks"][name] = {"output": ending.output}
        else:
            ending = self.script.final(instance_id(name, index))
            self.instances[task][index] = TaskState(ending.how)
            self.outputs[task][index] = ending.output
            states[task] = byte_of_mapped(Counter(self.instances[task].values()))
            self.known["tasks"][name] = {"output": gathered(len(self.instances[task]), self.outputs[task])}
        self.states = bytes(states)
        return task

    def ends(self) -> dict[str, str]:
        found = {task.id: str(state_of(byte)) for task, byte in zip(self.graph.tasks, self.states, strict=True)}
        for place, instances in self.instances.items():
            name = self.graph.tasks[place].id
            found |= {instance_id(name, index): str(state) for index, state in instances.items()}
        return found
