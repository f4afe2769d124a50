"""I8: what became of the tasks of a run, by the rules of the reference: told how each of them that ran has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from sweephand.domain.ids import RunKey
from sweephand.domain.mapping import parts_of
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from tests.dags.order import decided
from tests.dags.reference import BAD, Reference
from tests.dags.scripts import JSON, Ending, Script
from tests.simulation.record import Step

NEVER = datetime.max.replace(tzinfo=UTC)


class Endings(dict[str, tuple[Ending, ...]]):
    """How those ended that ran."""

    def __missing__(self, task_run: str) -> tuple[Ending, ...]:
        return (Ending("never run"),)


class Told(Reference):
    """The reference, told besides which tasks somebody has ended, whatever the rules say, and what they had come to."""

    def __init__(self, script: Script, words: Mapping[str, str], instances: Mapping[str, Mapping[str, str]]) -> None:
        self.words = words
        self.instances = instances
        super().__init__(script)

    def end_of(self, name: str, task: JSON) -> str:
        if name not in self.words:
            return super().end_of(name, task)
        if name in self.instances:
            self.parts[name] = list(self.instances[name])
            self.ends |= self.instances[name]
        return self.words[name]

    def goes_on(self, name: str, need: str) -> bool:
        return need in self.words or super().goes_on(name, need)


@dataclass
class Case:
    """A run of tasks that is over: the vector that it left, by task and instance, and the runs of its tasks."""

    script: Script
    run: Run
    vector: Mapping[str, str]
    tasks: Sequence[Run]
    steps: Mapping[RunKey, Sequence[Step]]

    def offences(self) -> Iterator[str]:
        for part, end in self.told.ends.items():
            if (self.is_settled or part in self.began) and _plain(end) != _plain(self.ends.get(part, "nothing")):
                yield f"I8 {self.run.key}/{part} {self.ends.get(part)}, by the rules it is {end}"
        yield from self._too_early()
        last = [name for name in self.told.tasks if not any(name in one["needs"] for one in self.told.tasks.values())]
        is_failed = any(self.told.ends[name] in BAD for name in last)
        if self.is_settled and is_failed != (self.run.state is RunState.FAILED):
            yield f"I8 {self.run.key} {self.run.state}, and its last tasks {[self.told.ends[name] for name in last]}"

    @property
    def is_settled(self) -> bool:
        """Whether it ended since its tasks had, and not because somebody, or its time, was up."""
        failure = self.run.failure
        return self.run.state is RunState.SUCCEEDED or (failure is not None and failure.error == "TaskFailed")

    @cached_property
    def ends(self) -> dict[str, str]:
        """The runs of tasks know best: whoever closed the vector may not have seen all of them."""
        return {**self.vector, **{task.key.task: str(task.state) for task in self.tasks}}

    @cached_property
    def told(self) -> Told:
        words = {name: end for name, end in self.ends.items() if end == "cancelled" and "[" not in name}
        for task in self.tasks:
            if task.reason is not None and task.reason.code is ReasonCode.MARKED and "[" not in task.key.task:
                words[task.key.task] = str(task.state)
        instances: dict[str, dict[str, str]] = {}
        for part, end in self.ends.items():
            name, index = parts_of(part)
            if index is not None:
                instances.setdefault(name, {})[part] = end
        endings = Endings({task.key.task: (Ending(_plain(str(task.state)), task.output),) for task in self.tasks})
        script = Script(self.script.document, endings, self.script.lists, self.script.conditions)
        return Told(script, words, instances)

    @cached_property
    def began(self) -> dict[str, datetime]:
        found = {}
        for task in self.tasks:
            moments = [step.at for step in self.steps[task.key] if step.run.state is RunState.RUNNING]
            if moments:
                found[task.key.task] = moments[0]
        return found

    def _too_early(self) -> Iterator[str]:
        over: dict[str, datetime] = {}
        closed = NEVER if self.run.rerun_of is None else datetime.min.replace(tzinfo=UTC)  # or taken over as it was
        last = {task.key.task: self.steps[task.key][-1].at for task in self.tasks if task.is_terminal}
        for name in self.told.above:
            when = decided(self.told, name, over, self.steps[self.run.key][0].at)
            for part in {name, *self.told.parts[name]}:
                over[part] = last.get(part, closed if name in self.told.words else when)
                if part in self.began and self.began[part] < when:
                    yield f"I8 {self.run.key}/{part} began at {self.began[part]}, and could not before {when}"


def _plain(end: str) -> str:
    """One that was cancelled counts as failed."""
    return "failed" if end == "cancelled" else end
