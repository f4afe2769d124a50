"""What runs and their tasks gave, wherever it is kept: read when somebody asks for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.artifacts import Artifacts
from sweephand.calls import Outcome, Succeeded
from sweephand.domain.dag import Graph
from sweephand.domain.ids import RunId, RunKey
from sweephand.domain.job import Job
from sweephand.domain.limits import OUTPUT_BYTES_MAX, OUTPUT_KEPT_MAX
from sweephand.domain.mapping import gathered, parts_of
from sweephand.domain.output import Kept, too_large
from sweephand.domain.run import Run
from sweephand.domain.templates import run_facts
from sweephand.engine.lookup import definition_of, graph_of
from sweephand.errors import Defect
from sweephand.logs import LogKey
from sweephand.ports import Stores, World

_PAGE: Final = 500
_NAMED: Final = re.compile(r"\$\{tasks\.([^}]*)\}")


def output_of(artifacts: Artifacts, run: Run) -> Any:
    """The run's output, wherever it is; None where its file, kept as long as artifacts, is gone. Reads only."""
    if not isinstance(run.output, Kept):
        return run.output
    kept = run.output
    # Of this job, whatever the run says: an output that was taken over is another run's, and never another job's.
    content = artifacts.read_output(LogKey(RunKey(run.key.job, RunId(kept.run_id)), kept.task, kept.attempt))
    return None if content is None else json.loads(content)


KeepOutput = Callable[[LogKey, bytes], None]
"""Keeps an output that is too large for its run."""


def log_key_of(run: Run, task: str) -> LogKey:
    """Under what an attempt of a task keeps what it leaves; an instance of a mapped task is one by itself."""
    return LogKey(run.key.whole, run.key.task or task, run.attempt)


def fitted(outcome: Outcome, key: LogKey, keep: KeepOutput) -> Outcome:
    """The outcome as its run can hold it: an output that is too large for that is kept in a file.

    `Unavailable` where it cannot be kept. Repeating it replaces the file by the same.
    """
    if not isinstance(outcome, Succeeded) or isinstance(outcome.output, Kept):
        return outcome
    content = json.dumps(outcome.output, ensure_ascii=False, separators=(",", ":")).encode()
    if len(content) <= OUTPUT_BYTES_MAX:
        return outcome
    if len(content) > OUTPUT_KEPT_MAX:
        return too_large()
    keep(key, content)
    return Succeeded(Kept(key.run.run_id, key.task, key.attempt, len(content)))


class Outputs(Mapping[str, Any]):
    """What templates call `tasks`: each task's `output`, null where it has given none."""

    def __init__(self, stores: Stores, run: RunKey, graph: Graph, counts: Mapping[int, int]) -> None:
        """`counts` are the instances of mapped tasks, by their places."""
        self._runs = stores.runs
        self._artifacts = stores.artifacts
        self._run = run
        self._graph = graph
        self._counts = counts
        self._read: dict[str, Any] = {}

    def __getitem__(self, task: str) -> Mapping[str, Any]:
        place = self._graph.places[task]
        if task not in self._read:
            mapped = self._graph.tasks[place].map is not None
            self._read[task] = self._gathered(task, self._counts.get(place, 0)) if mapped else self._output(task)
        return {"output": self._read[task]}

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph.places)

    def __len__(self) -> int:
        return len(self._graph.places)

    def _output(self, task: str) -> Any:
        run = self._runs.get(self._run.of_task(task))
        return None if run is None else output_of(self._artifacts, run)

    def _gathered(self, task: str, count: int) -> list[Any]:
        found: dict[int, Any] = {}
        after = f"{task}["  # sorts before its instances, and behind the task itself
        while page := self._runs.tasks(self._run, after=after, limit=_PAGE):
            for run in page:
                own, index = parts_of(run.key.task)
                if own != task or index is None:
                    return gathered(count, found)
                found[index] = output_of(self._artifacts, run)
            after = page[-1].key.task
        return gathered(count, found)


def known_of(world: World, run: Run, job: Job, graph: Graph, counts: Mapping[int, int]) -> dict[str, Any]:
    """What conditions, branches and maps of a run know; outputs are read when somebody asks for them."""
    asked = [(task.condition, task.map.over if task.map else None) for task in job.tasks if task.condition or task.map]
    asking = replace(job.tasks[0], spec={"asked": asked})
    return {
        "params": {**job.params, **run.params},
        "run": run_facts(run, job, asking),
        "tasks": Outputs(world, run.key, graph, counts),
    }


class Upstream(Struct, frozen=True):
    """What a task's run knows of the whole run: its parameters, and what its templates name besides."""

    params: Mapping[str, Any]
    known: Mapping[str, Any] = MappingProxyType({})


def upstream_of(world: World, run: Run) -> Upstream:
    """What an attempt of this run gets from what came before it. Reads only."""
    if not run.key.task:
        return Upstream(run.params)
    whole = world.runs.get(run.key.whole)
    job = definition_of(world, whole) if whole is not None else None
    if whole is None or whole.version is None or job is None:
        raise Defect(f"The task {run.key} has no run.")
    graph = graph_of(world, whole.key.job, whole.version, job)
    task = graph.tasks[graph.named(parts_of(run.key.task)[0])]
    named = named_in([task.spec, task.cache.key if task.cache else ""], graph.places)
    if not named:
        return Upstream(whole.params, run.params)
    mapped = any(graph.tasks[graph.places[task]].map is not None for task in named)
    progress = world.dags.get(whole.key) if mapped else None
    counts = {place: len(one) for place, one in progress.instances.items()} if progress else {}
    outputs = Outputs(world, whole.key, graph, counts)
    return Upstream(whole.params, {"tasks": {task: outputs[task] for task in sorted(named)}, **run.params})


def named_in(spec: Any, tasks: Container[str]) -> set[str]:
    """The tasks whose outputs the templates of a spec name; a task's id may have dots in it."""
    if isinstance(spec, str):
        paths = (path.split(".") for path in _NAMED.findall(spec))
        return {name for path in paths if (name := _longest(path, tasks)) is not None}
    parts = spec.values() if isinstance(spec, Mapping) else spec if isinstance(spec, list | tuple) else ()
    return {name for part in parts for name in named_in(part, tasks)}


def _longest(path: Sequence[str], tasks: Container[str]) -> str | None:
    names = (".".join(path[:count]) for count in range(len(path), 0, -1))
    return next((name for name in names if name in tasks), None)
