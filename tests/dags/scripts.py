"""Random DAGs: plain job documents, and a script that says how each attempt of each task ends.

A seed makes the same DAG for ever, so that any engine can run it and be compared with `reference`.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.job import TriggerRule

JSON = dict[str, Any]

INSTANCES_MAX: Final = 4
"""The longest list that a generated task gives; one is longer than its map allows."""

_EARLY: Final = frozenset({TriggerRule.ONE_SUCCESS, TriggerRule.ONE_FAILED, TriggerRule.ONE_DONE, TriggerRule.ALWAYS})
"""Rules by which a task may start before its parents ended, so that it must not ask for their outputs."""


class Ending(Struct, frozen=True):
    """How an attempt ends: succeeded, failed or skipped."""

    how: str
    output: Any = None


class Script(Struct, frozen=True):
    """A job, and how the attempts of its tasks end, by the id of the task or of the instance: `load` or `load[2]`."""

    document: JSON
    endings: Mapping[str, tuple[Ending, ...]]

    def final(self, task_run: str) -> Ending:
        """How the last attempt ends, which is how the task does."""
        return self.endings[task_run][-1]


def script_of(seed: int, *, tasks_max: int = 60, attempts_max: int = 1) -> Script:
    """A random DAG; with more than one attempt, failures before the last are retried away."""
    random = Random(seed)
    count = random.randint(1, tasks_max)
    density = random.choice((1, 2, 3, 6))
    calm = random.random() < 0.3
    tasks = [_task(random, n, density) for n in range(count)]
    needed = {need for task in tasks for need in task["needs"]}
    endings: dict[str, tuple[Ending, ...]] = {}
    for task in tasks:
        name = task["id"]
        # A branch is one only if something needs it; a mapped task cannot be one.
        if name in needed and "map" not in task and random.random() < 0.15:
            task["branch"] = True
        children = [other["id"] for other in tasks if name in other["needs"]]
        if attempts_max > 1:
            task["retry"] = {"attempts": attempts_max, "delay": 0}
        for run in [name] if "map" not in task else [f"{name}[{index}]" for index in range(INSTANCES_MAX)]:
            endings[run] = _endings(random, children if "branch" in task else None, attempts_max, calm=calm)
    random.shuffle(tasks)
    return Script({"name": f"dag-{seed}", "params": {"list": [1, 2]}, "tasks": tasks}, endings)


def _task(random: Random, n: int, density: int) -> JSON:
    needs = [f"t{one}" for one in sorted(random.sample(range(n), min(n, random.randint(0, density))))]
    rule = TriggerRule.ALL_SUCCESS if random.random() < 0.4 else random.choice(list(TriggerRule))
    task: JSON = {"id": f"t{n}", "needs": needs, "when": str(rule), "run": {"external": {}}}
    if random.random() < 0.3:
        task["group"] = random.choice(("extract", "extract.raw", "load"))
    parent = random.choice(needs) if needs and rule not in _EARLY else None
    if random.random() < 0.2:
        over = ["${params.list}", ["a", "b", "c"], []]
        over += [f"${{tasks.{parent}.output.items}}", f"${{tasks.{parent}.output}}"] if parent else []
        task["map"] = {"over": random.choice(over), "max": INSTANCES_MAX - 1}
    if random.random() < 0.15:
        task["if"] = "${params.list} == null" if parent is None else f"${{tasks.{parent}.output.n}} > 3"
        if "map" in task and random.random() < 0.5:
            task["if"] = "${index} > 0"
    return task


def _endings(random: Random, children: list[str] | None, attempts_max: int, *, calm: bool) -> tuple[Ending, ...]:
    output: Any = {"n": random.randint(0, 9), "items": list(range(random.randint(0, INSTANCES_MAX)))}
    if random.random() < 0.05:
        output["items"] = "no list"
    if children is not None:
        picked = random.sample(children, random.randint(0, len(children)))
        output = picked[0] if len(picked) == 1 else picked
    last = Ending("succeeded", output)
    if random.random() < (0.05 if calm else 0.3):
        last = Ending(random.choice(("failed", "failed", "skipped")))
    # A failure that is not for good comes before any end but a failure, which needs every attempt.
    before = attempts_max - 1 if last.how == "failed" else random.randint(0, attempts_max - 1)
    return (*(Ending("failed") for _ in range(before)), last)
