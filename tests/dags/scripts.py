"""Random DAGs: plain job documents, and a script that says how each attempt of each task ends.

A seed makes the same DAG for ever, so that any engine can run it and be compared with `reference`. What a document says
in templates and conditions the script has as data too, so that `reference` need not read them.
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


class Value(Struct, frozen=True):
    """A value that a job names: known before the run, or what a task gives, or a field of that."""

    text: Any
    known: Any = None
    task: str = ""
    field: str = ""


class Condition(Struct, frozen=True):
    """Holds where a value is more than 3; without one, it is asked of each item and holds of all but the first."""

    text: str
    of: Value | None = None


class Script(Struct, frozen=True):
    """A job, and how the attempts of its tasks end, by the id of the task or of the instance: `load` or `load[2]`.

    `lists` and `conditions` are what tasks are mapped over and what they ask, by the id of the task.
    """

    document: JSON
    endings: Mapping[str, tuple[Ending, ...]]
    lists: Mapping[str, Value]
    conditions: Mapping[str, Condition]

    def final(self, task_run: str) -> Ending:
        """How the last attempt ends, which is how the task does."""
        return self.endings[task_run][-1]


_PARAM: Final = Value("${params.list}", known=[1, 2])
_NEVER: Final = Condition("${params.list} == null", Value("", known=0))
_ALL_BUT_THE_FIRST: Final = Condition("${index} > 0")


def script_of(seed: int, *, tasks_min: int = 1, tasks_max: int = 60, attempts_max: int = 1) -> Script:
    """A random DAG; with more than one attempt, failures before the last are retried away."""
    random = Random(seed)
    count = random.randint(tasks_min, tasks_max)
    density = random.choice((1, 2, 3, 6))
    calm = random.random() < 0.3
    made = [_task(random, n, density) for n in range(count)]
    tasks = [task for task, _, _ in made]
    lists = {task["id"]: over for task, over, _ in made if over is not None}
    conditions = {task["id"]: condition for task, _, condition in made if condition is not None}
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
    document = {"name": f"dag-{seed}", "params": {"list": _PARAM.known}, "tasks": tasks}
    return Script(document, endings, lists, conditions)


def _task(random: Random, n: int, density: int) -> tuple[JSON, Value | None, Condition | None]:
    """A task, what it is mapped over, and what it asks."""
    needs = [f"t{one}" for one in sorted(random.sample(range(n), min(n, random.randint(0, density))))]
    rule = TriggerRule.ALL_SUCCESS if random.random() < 0.4 else random.choice(list(TriggerRule))
    task: JSON = {"id": f"t{n}", "needs": needs, "when": str(rule), "run": {"external": {}}}
    if random.random() < 0.3:
        task["group"] = random.choice(("extract", "extract.raw", "load"))
    parent = random.choice(needs) if needs and rule not in _EARLY else None
    over, condition = None, None
    if random.random() < 0.2:
        lists = [_PARAM, Value(["a", "b", "c"], known=["a", "b", "c"]), Value([], known=[])]
        over = random.choice([*lists, *([_given(parent, "items"), _given(parent)] if parent else [])])
        task["map"] = {"over": over.text, "max": INSTANCES_MAX - 1}
    if random.random() < 0.15:
        condition = _NEVER if parent is None else _more(_given(parent, "n"))
        if over is not None and random.random() < 0.5:
            condition = _ALL_BUT_THE_FIRST
        task["if"] = condition.text
    return task, over, condition


def _given(task: str, field: str = "") -> Value:
    return Value(f"${{tasks.{task}.output{field and '.'}{field}}}", task=task, field=field)


def _more(of: Value) -> Condition:
    return Condition(f"{of.text} > 3", of)


def after(script: Script, task: str) -> list[str]:
    """The tasks that need one."""
    return [other["id"] for other in script.document["tasks"] if task in other["needs"]]


def output_of(random: Random, children: list[str] | None) -> Any:
    """What a task gives; a branch, some of the tasks that need it."""
    output: Any = {"n": random.randint(0, 9), "items": list(range(random.randint(0, INSTANCES_MAX)))}
    if random.random() < 0.05:
        output["items"] = "no list"
    if children is not None:
        picked = random.sample(children, random.randint(0, len(children)))
        output = picked[0] if len(picked) == 1 else picked
    return output


def _endings(random: Random, children: list[str] | None, attempts_max: int, *, calm: bool) -> tuple[Ending, ...]:
    last = Ending("succeeded", output_of(random, children))
    if random.random() < (0.05 if calm else 0.3):
        last = Ending(random.choice(("failed", "failed", "skipped")))
    # A failure that is not for good comes before any end but a failure, which needs every attempt.
    before = attempts_max - 1 if last.how == "failed" else random.randint(0, attempts_max - 1)
    return (*(Ending("failed") for _ in range(before)), last)
