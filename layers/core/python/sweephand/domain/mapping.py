"""A mapped task: one that runs once for each item of a list which is known only when the run gets there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.conditions import holds, is_about_items
from sweephand.domain.fields import json_bytes, shown
from sweephand.domain.job import Task
from sweephand.domain.limits import ITEM_BYTES_MAX, RUN_INSTANCES_MAX
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.templates import resolve
from sweephand.errors import InvalidInput

__all__ = ["Instance", "expand", "gathered", "instance_id", "known_to", "parts_of"]

_INSTANCE: Final = re.compile(r"(?P<task>[^\[\]]+)\[(?P<index>0|[1-9][0-9]{0,8})\]")


class Instance(Struct, frozen=True):
    """One of a mapped task's runs: its place in the list, and what templates call `item`."""

    index: int
    item: Any
    skipped: Reason | None = None
    """Why it does not run, where the task's condition is about the item and does not hold."""


def expand(task: Task, known: Mapping[str, Any], *, instances: int = 0) -> tuple[Instance, ...]:
    """The instances of a mapped task in a run that has so many already, none for an empty list; or a refusal, with
    which the task fails."""
    if task.map is None:
        raise InvalidInput(f"Task '{task.id}' is not mapped.", "map")
    items = resolve(task.map.over, known, "map.over")
    if not isinstance(items, list | tuple):
        raise InvalidInput(f"{shown(items)} is not a list: a task is mapped over the items of one.", "map.over")
    if len(items) > task.map.max:
        raise InvalidInput(f"The list has {len(items)} items: map.max of the task is {task.map.max}.", "map.over")
    if len(items) + instances > RUN_INSTANCES_MAX:
        raise InvalidInput(
            f"The list has {len(items)} items, and the mapped tasks of this run have {instances} instances already: "
            f"at most {RUN_INSTANCES_MAX} are right.",
            "map.over",
        )
    for index, item in enumerate(items):
        if (size := json_bytes(item)) > ITEM_BYTES_MAX:
            raise InvalidInput(
                f"Item {index} takes {size} bytes as JSON: at most {ITEM_BYTES_MAX} are right. Write them as "
                "artifacts, and map over their names.",
                "map.over",
            )
    if task.condition is None or not is_about_items(task.condition):
        return tuple(Instance(index, item) for index, item in enumerate(items))
    return tuple(_judged(task.condition, index, item, known) for index, item in enumerate(items))


def _judged(condition: str, index: int, item: Any, known: Mapping[str, Any]) -> Instance:
    if holds(condition, known_to(known, index, item)):
        return Instance(index, item)
    return Instance(index, item, Reason(ReasonCode.CONDITION, f"{condition} does not hold for item {index}."))


def known_to(known: Mapping[str, Any], index: int, item: Any) -> dict[str, Any]:
    """What the templates of one instance know."""
    return {**known, "item": item, "index": index}


def gathered(count: int, outputs: Mapping[int, Any]) -> list[Any]:
    """The output of a mapped task: those of its instances in their order, null where one gave none."""
    return [outputs.get(index) for index in range(count)]


def instance_id(task: str, index: int) -> str:
    """What an instance is called: `load[0]`."""
    return f"{task}[{index}]"


def parts_of(task_run: str) -> tuple[str, int | None]:
    """A task run's task and, where it is an instance, its index."""
    found = _INSTANCE.fullmatch(task_run)
    return (found["task"], int(found["index"])) if found else (task_run, None)
