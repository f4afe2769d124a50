"""What becomes of a scripted DAG, the slow and simple way: every task is judged once, when all before it is over.

Written from what Airflow documents, and with nothing of ours, so that the two can hardly be wrong together.
"""

from __future__ import annotations

from collections.abc import Collection
from graphlib import TopologicalSorter
from typing import Any, Final

from tests.dags.scripts import JSON, Script, Value

RUN, HOLD_UP, SKIP = "run", "upstream_failed", "skipped"
GOOD, SKIPPED, FAILED = {"succeeded"}, {"skipped"}, {"failed", "cancelled"}
BAD = FAILED | {"upstream_failed"}
ANY = GOOD | SKIPPED | BAD

RULES: Final = {
    "all_success": ((BAD, HOLD_UP), (SKIPPED, SKIP)),
    "all_failed": ((GOOD | SKIPPED, SKIP),),
    "all_done": (),
    "one_success": ((GOOD, RUN), (BAD, HOLD_UP), (ANY, SKIP)),
    "one_failed": ((BAD, RUN), (ANY, SKIP)),
    "one_done": ((GOOD | FAILED, RUN), (ANY, SKIP)),
    "none_failed": ((BAD, HOLD_UP),),
    "none_failed_min_one_success": ((BAD, HOLD_UP), (GOOD, RUN), (ANY, SKIP)),
    "none_skipped": ((SKIPPED, SKIP),),
    "always": (),
}
"""How parents end, and what comes of it: the first that is found in a row counts, and where none is the task runs.

The first of a row counts as soon as it is seen, the others once all parents are over.
"""


def ruled(rule: str, ends: Collection[str]) -> str:
    """What a rule makes of how all parents, with their instances, have ended."""
    return next((verdict for those, verdict in RULES[rule] if not those.isdisjoint(ends)), RUN)


class Reference:
    """One run of a script: `ends` has the state of every task and every instance in the end."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.tasks: dict[str, JSON] = {task["id"]: task for task in script.document["tasks"]}
        self.ends: dict[str, str] = {}
        self.parts: dict[str, list[str]] = {}
        self.above: dict[str, set[str]] = {}
        self.gave: dict[str, Any] = {}
        for name in TopologicalSorter({name: task["needs"] for name, task in self.tasks.items()}).static_order():
            self.above[name] = {name}.union(*(self.above[need] for need in self.tasks[name]["needs"]))
            self.parts[name], self.gave[name] = [name], None
            self.ends[name] = self.end_of(name, self.tasks[name])

    def end_of(self, name: str, task: JSON) -> str:
        condition, over = self.script.conditions.get(name), self.script.lists.get(name)
        verdict = ruled(task["when"], [self.ends[part] for part in self.needed(name)])
        if task["when"] != "always" and not all(self.goes_on(name, need) for need in task["needs"]):
            return SKIP
        if verdict == RUN and condition is not None and condition.of is not None:
            value = self.value(condition.of)
            verdict = "failed" if value is None else RUN if value > 3 else SKIP
        if verdict != RUN:
            return verdict
        items = [None] if over is None else self.value(over)
        if not isinstance(items, list) or (over is not None and len(items) > task["map"]["max"]):
            return "failed"
        runs = [name] if over is None else [f"{name}[{index}]" for index in range(len(items))]
        skipped = runs[:1] if condition is not None and condition.of is None else []
        if runs == skipped:
            return SKIP  # it never came to instances
        ends = {run: SKIP if run in skipped else self.script.final(run).how for run in runs}
        outputs = [None if run in skipped else self.script.final(run).output for run in runs]
        self.parts[name], self.gave[name] = runs, outputs[0] if over is None else outputs
        self.ends |= ends
        return next((end for end in ("failed", "succeeded") if end in ends.values()), ends[runs[0]])

    def needed(self, name: str) -> list[str]:
        return [part for need in self.tasks[name]["needs"] for part in self.parts[need]]

    def goes_on(self, name: str, need: str) -> bool:
        """Whether a task comes after what the branch that it needs has chosen."""
        if not self.tasks[need].get("branch") or self.ends[need] != "succeeded":
            return True
        picked = self.gave[need]
        return not self.above[name].isdisjoint([picked] if isinstance(picked, str) else picked)

    def value(self, of: Value) -> Any:
        gave = self.gave[of.task] if of.task else of.known
        return gave if not of.field else gave.get(of.field) if isinstance(gave, dict) else None
