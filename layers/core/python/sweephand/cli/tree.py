"""The tasks of a run as a tree: what needs what, and which belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["as_tree"]

_DEPTH_SHOWN: Final = 12
_INSTANCE: Final = "["


def as_tree(tasks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tasks as they came, under their groups: each further in than the deepest that it needs, and instances within
    theirs."""
    return [*_under("", tasks, _levels(tasks))]


def _under(group: str, tasks: Sequence[Mapping[str, Any]], levels: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
    """The members of a group; one within it stands where its first member came."""
    inside = len(group.split(".")) if group else 0
    told = set()
    for task in tasks:
        own = str(task.get("group") or "")
        if own == group:
            yield {**task, "id": "  " * (levels[task["id"]] + inside) + task["id"]}
            continue
        below = ".".join(own.split(".")[: inside + 1])
        if below in told:
            continue
        told.add(below)
        members = [one for one in tasks if f"{one.get('group') or ''}.".startswith(f"{below}.")]
        level = min(levels[one["id"]] for one in members)
        yield {"id": "  " * (level + inside) + f"{below.rpartition('.')[2]}:", "state": _counted(members)}
        yield from _under(below, members, levels)


def _counted(tasks: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(str(task["state"]) for task in tasks)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


def _levels(tasks: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for _ in range(_DEPTH_SHOWN):
        before = dict(levels)
        for task in tasks:
            needs = [before[need] for need in task.get("needs") or () if need in before]
            levels[task["id"]] = min(max(needs, default=-1) + 1 + (_INSTANCE in task["id"]), _DEPTH_SHOWN)
        if levels == before:
            break
    return levels
