"""The graph of a job's tasks: who needs whom, and what no graph may have.

Nothing here recurses: 10,000 tasks in a row are legal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sweephand.domain.fields import nearest
from sweephand.domain.job import TriggerRule

__all__ = ["graph_errors", "rule_errors"]

_NAMES_SHOWN: Final = 10


def graph_errors(tasks: Sequence[Any], path: str) -> Iterator[tuple[str, str]]:
    """What is wrong with the edges of these task documents; one that has no readable id is somebody else's refusal."""
    needs: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    for n, task in enumerate(tasks):
        name = task.get("id") if isinstance(task, Mapping) else None
        if not isinstance(name, str):
            continue
        if name in places:
            yield f"{path}[{n}].id", f"Task '{name}' is already at {path}[{places[name]}]: ids are unique."
            continue
        places[name] = n
        needs[name] = _names(task.get("needs"))
    for name, parents in needs.items():
        for at, parent in enumerate(parents):
            if parent == name:
                yield f"{path}[{places[name]}].needs[{at}]", f"Task '{name}' cannot need itself."
            elif parent not in needs:
                yield (
                    f"{path}[{places[name]}].needs[{at}]",
                    f"There is no task '{parent[:128]}'{nearest(parent, needs)}",
                )
    cycle = _cycle({name: [one for one in parents if one != name] for name, parents in needs.items()})
    if cycle:
        yield f"{path}[{places[cycle[0]]}].needs", f"These tasks need each other: {_drawn(cycle)}."


def rule_errors(tasks: Sequence[Any], path: str, *, is_stopping: bool) -> Iterator[tuple[str, str]]:
    """What these task documents cannot be for each other, although their edges are right."""
    needed = {one for task in tasks if isinstance(task, Mapping) for one in _names(task.get("needs"))}
    for n, task in enumerate(tasks):
        if not isinstance(task, Mapping):
            continue
        if task.get("branch") is True and task.get("map") is None and task.get("id") not in needed:
            yield f"{path}[{n}].branch", "No task needs this one: there is nothing for its output to choose."
        if is_stopping and task.get("when") not in (None, TriggerRule.ALL_SUCCESS):
            yield (
                f"{path}[{n}].when",
                'With "onFailure: stop" nothing starts after a failure: all tasks are "all_success".',
            )


def _names(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Tasks of which each needs the next, and the last the first; empty where all can be put in an order."""
    waiting = {name: sum(parent in needs for parent in set(parents)) for name, parents in needs.items()}
    children: dict[str, list[str]] = {name: [] for name in needs}
    for name, parents in needs.items():
        for parent in set(parents):
            if parent in children:
                children[parent].append(name)
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        done = ready.pop()
        del waiting[done]
        for child in children[done]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if not waiting:
        return []
    # Whatever is left waits for something that is left, so going from need to need must come round.
    walk: dict[str, int] = {}
    at = next(iter(waiting))
    while at not in walk:
        walk[at] = len(walk)
        at = next(parent for parent in needs[at] if parent in waiting)
    return list(walk)[walk[at] :]


def _drawn(cycle: Sequence[str]) -> str:
    names = [*cycle, cycle[0]]
    if len(names) > _NAMES_SHOWN:
        names = [*names[: _NAMES_SHOWN - 2], f"… ({len(cycle)} tasks) …", cycle[0]]
    return " → ".join(names)
