"""What becomes of a scripted DAG, the slow and simple way: every task is judged once, when all before it is over.

Written from what Airflow documents, and with nothing of ours, so that the two can hardly be wrong together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.dags.scripts import JSON, Script


class Ends:
    """How many of a task's parents, with their instances, ended how."""

    def __init__(self, ends: list[str]) -> None:
        count = Counter(ends)
        self.succeeded, self.failed, self.skipped = count["succeeded"], count["failed"], count["skipped"]
        self.bad = count["failed"] + count["upstream_failed"]


RULES: dict[str, Callable[[Ends], str]] = {
    "all_success": lambda of: "held up" if of.bad else "skipped" if of.skipped else "run",
    "all_failed": lambda of: "skipped" if of.succeeded or of.skipped else "run",
    "all_done": lambda of: "run",
    "one_success": lambda of: "run" if of.succeeded else "skipped" if not of.bad else "held up",
    "one_failed": lambda of: "run" if of.bad else "skipped",
    "one_done": lambda of: "run" if of.succeeded or of.failed else "skipped",
    "none_failed": lambda of: "held up" if of.bad else "run",
    "none_failed_min_one_success": lambda of: "held up" if of.bad else "run" if of.succeeded else "skipped",
    "none_skipped": lambda of: "skipped" if of.skipped else "run",
    "always": lambda of: "run",
}


class Reference:
    """One run of a script: `ends` has the state of every task and every instance in the end."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.tasks: dict[str, JSON] = {task["id"]: task for task in script.document["tasks"]}
        self.ends: dict[str, str] = {}
        self.parts: dict[str, list[str]] = {}
        self.outputs: dict[str, Any] = {}
        while len(self.parts) < len(self.tasks):
            for name, task in self.tasks.items():
                if name not in self.parts and all(need in self.parts for need in task["needs"]):
                    self.parts[name] = [name]
                    self.ends[name] = self.judged(name, task)

    def judged(self, name: str, task: JSON) -> str:
        parents = [self.ends[part] for need in task["needs"] for part in self.parts[need]]
        for need in task["needs"]:
            if self.tasks[need].get("branch") and self.ends[need] == "succeeded" and task["when"] != "always":
                picked = self.outputs[need]
                if name not in self.after([picked] if isinstance(picked, str) else picked):
                    return "skipped"
        verdict = RULES[task["when"]](Ends(parents)) if parents else "run"
        if verdict != "run":
            return {"held up": "upstream_failed"}.get(verdict, verdict)
        each = task.get("if") == "${index} > 0"
        if "if" in task and not each and (no := self.condition(task["if"])):
            return no
        if "map" not in task:
            self.outputs[name] = self.script.final(name).output
            return self.script.final(name).how
        items = self.items(task["map"]["over"])
        if not isinstance(items, list) or len(items) > task["map"]["max"]:
            return "failed"
        return self.mapped(name, len(items), each)

    def mapped(self, name: str, count: int, each: bool) -> str:
        runs = [f"{name}[{index}]" for index in range(count)]
        ends = {run: "skipped" if each and run.endswith("[0]") else self.script.final(run).how for run in runs}
        if all(end == "skipped" for end in ends.values()) and (not ends or (each and count == 1)):
            return "skipped"  # it never came to instances
        self.ends |= ends
        self.parts[name] = runs
        self.outputs[name] = [self.script.final(run).output if ends[run] == "succeeded" else None for run in runs]
        return next((end for end in ("failed", "succeeded") if end in ends.values()), "skipped")

    def after(self, names: list[str]) -> set[str]:
        found = set(names)
        while more := {name for name, task in self.tasks.items() if found & set(task["needs"])} - found:
            found |= more
        return found

    def condition(self, text: str) -> str | None:
        named = re.fullmatch(r"\$\{tasks\.(\w+)\.output\.n\} > 3", text)
        if named is None:
            return "skipped"  # the other condition compares a list with null
        output = self.output(named[1])
        if not isinstance(output, dict):
            return "failed"
        return None if output["n"] > 3 else "skipped"

    def items(self, over: Any) -> Any:
        if isinstance(over, list):
            return over
        named = re.fullmatch(r"\$\{tasks\.(\w+)\.output(\.items)?\}", over)
        if named is None:
            return self.script.document["params"]["list"]
        output = self.output(named[1])
        if not named[2]:
            return output
        return output.get("items") if isinstance(output, dict) else None

    def output(self, name: str) -> Any:
        """What a task gave: a mapped one a list, even if some of its instances failed."""
        mapped = "map" in self.tasks[name]
        return self.outputs.get(name) if mapped or self.ends[name] == "succeeded" else None
