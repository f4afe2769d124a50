"""What really happened, written below all faults: the transitions that the store accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.ids import JobKey, RunKey
from sweephand.domain.job import Change
from sweephand.domain.run import Run
from tests.simulation.clockwork import Actor, Clockwork


@dataclass(frozen=True)
class Step:
    """An accepted write of a run: at what true time, by whom with a clock how far off, and what it became."""

    at: datetime
    skew: timedelta
    by: str
    run: Run


@dataclass
class Record:
    """Every accepted write of every run, in order."""

    work: Clockwork
    steps: dict[RunKey, list[Step]] = field(default_factory=dict)
    ended: list[Step] = field(default_factory=list)
    """The ends of tasks, as a stream of changes would bring them."""
    changed: dict[tuple[JobKey, datetime], datetime] = field(default_factory=dict)
    """When a change that calls itself of one moment truly came into force: its author may have slept in between."""

    def add(self, run: Run, actor: Actor) -> None:
        step = Step(self.work.now, actor.skew, str(actor), run)
        self.steps.setdefault(run.key, []).append(step)
        if run.key.task and run.is_terminal:
            self.ended.append(step)


class RecordedJobs:
    """The job store, with the true moment of every change noted."""

    def __init__(self, jobs: Any, record: Record) -> None:
        self._jobs = jobs
        self._record = record

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._jobs, verb)

    def change(self, before: Any, after: Any, change: Change, version: Any, entry: Any) -> bool:
        changed: bool = self._jobs.change(before, after, change, version, entry)
        if changed:
            self._record.changed.setdefault((change.key, change.at), self._record.work.now)
        return changed


class RecordedRuns:
    """The run store, with every accepted write noted as the store holds it."""

    def __init__(self, runs: Any, record: Record, actor: Actor) -> None:
        self._runs = runs
        self._record = record
        self._actor = actor

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._runs, verb)

    def create(self, runs: Sequence[Run]) -> list[bool]:
        answers: list[bool] = self._runs.create(runs)
        for run, created in zip(runs, answers, strict=True):
            if created:
                self._note(run)
        return answers

    def move(self, before: Run, after: Run) -> bool:
        moved: bool = self._runs.move(before, after)
        if moved:
            self._note(after)
        return moved

    def _note(self, run: Run) -> None:
        """Each revision once: a repeated write that was recognised as one's own is not another."""
        noted = self._record.steps.get(run.key, [])
        if not any(step.run.rev == run.rev and step.run.nonce == run.nonce for step in noted[-3:]):
            self._record.add(run, self._actor)
