"""When a task of a DAG can have been decided: what the rules say of the order in which its parents end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from tests.dags.reference import RULES, Reference

T = TypeVar("T", bound=Any)


def decided(reference: Reference, name: str, over: Mapping[str, T], at_once: T) -> T:
    """The end after which a task is decided: the first that its rule looks for, or else the last of all.

    One that needs a branch waits for it, and for nothing else where that does not choose it. `over` is when tasks and
    instances were over.
    """
    task, parts = reference.tasks[name], reference.needed(name)
    if not parts or task["when"] == "always":
        return at_once
    if unchosen := [over[need] for need in task["needs"] if not reference.goes_on(name, need)]:
        return min(unchosen)
    deciding = [part for those, _ in RULES[task["when"]][:1] for part in parts if reference.ends[part] in those]
    branches = [over[need] for need in task["needs"] if reference.tasks[need].get("branch")]
    return max([min(over[part] for part in deciding) if deciding else max(over[part] for part in parts), *branches])
