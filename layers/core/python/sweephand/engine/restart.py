"""Where a rerun begins, and which of its tasks are over by somebody's word: checked against the run that it repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from sweephand.domain.dag import state_of
from sweephand.domain.fields import nearest, refusal, shown
from sweephand.domain.mapping import parts_of
from sweephand.domain.reruns import MARKABLE, MARKS_MAX, Marks, Rerun, marked
from sweephand.domain.run import Run, RunState
from sweephand.domain.task import TaskState
from sweephand.engine.carry import FAILED, Past, beginning, chosen, instances_kept, past_of
from sweephand.engine.lookup import job_of, present_head
from sweephand.engine.overview import Overview, overview_of
from sweephand.engine.whereabouts import APPROVAL
from sweephand.errors import Conflict, InvalidInput
from sweephand.ports import World

ALL: Final = "all"
TASK: Final = "task"
_SHOWN: Final = 64


class Restart(Struct, frozen=True):
    """What a rerun is told: where it begins, None for all of it, and what is over without having been done."""

    start: str | None = None
    marks: Marks | None = None


def restart_of(
    world: World,
    old: Run,
    begin: str = ALL,
    *,
    task: str | None = None,
    marks: Mapping[str, str] | None = None,
    actor: str = "",
) -> Restart:
    """Where a rerun of an ended run begins: at `all`, at what `failed`, or at a `task`. Reads only.

    What is wrong is refused by its path. That the run has not ended, whoever reruns it says.
    """
    seen = overview_of(world, old)
    if marks and begin != FAILED:
        raise InvalidInput('\'mark\' goes with "from": "failed".', "mark")
    if begin == TASK:
        if task not in seen.graph.places:
            raise InvalidInput(f"There is no such task{nearest(task or '', list(seen.graph.places))}", "task")
        return Restart(beginning(str(task)) if seen.is_dag else None)
    if task is not None:
        raise InvalidInput('\'task\' goes with "from": "task".', "task")
    if begin != FAILED or not old.is_terminal:
        return Restart()
    past = past_of(world, old) if seen.is_dag else None
    again = chosen(past, FAILED) if past is not None else None
    if not again.anew if again is not None else old.state is not RunState.FAILED:
        raise Conflict(f"Run {old.key} has no failed task: it {old.state}.")
    checked = _checked(world, seen, past, again, marks, actor) if marks else None
    return Restart(FAILED if past is not None else None, checked)


def _checked(
    world: World, seen: Overview, past: Past | None, again: Rerun | None, marks: Mapping[str, str], actor: str
) -> Marks:
    """The marks, of which each is about something that would be done again."""
    errors = [error for name, state in marks.items() for error in _errors(seen, name, state)]
    if len(marks) > MARKS_MAX:
        errors.append(("mark", f"These are {len(marks)} tasks: at most {MARKS_MAX} are right."))
    if errors:
        raise refusal(errors)
    head = present_head(world, seen.run.key.job)
    job = job_of(world, head)
    if job is None or job.is_dag is not seen.is_dag:
        raise Conflict(f"Job {head.key} has been edited since: its tasks are others than those of run {seen.run.key}.")
    found = Marks(actor, {name: TaskState(state) for name, state in marks.items()})
    if seen.is_dag:
        if past is None or again is None:
            raise Conflict(f"Run {seen.run.key} never began: run all of it, and mark tasks while they wait.")
        known = instances_kept(past, again) if head.version == seen.run.version else frozenset()
        for name, state in found.tasks.items():
            if not marked(past.graph, again, past.instances, known, Marks(actor, {name: state})):
                raise Conflict(_why_not(past, again, known, name))
    return found


def _errors(seen: Overview, name: str, state: str) -> Iterator[tuple[str, str]]:
    path = f"mark.{name[:_SHOWN]}"
    if state not in MARKABLE:
        yield path, f"{shown(state)} is unknown: use {' or '.join(MARKABLE)}."
    task, index = parts_of(name)
    place = seen.graph.places.get(task)
    if place is None:
        yield path, f"There is no such task{nearest(task, list(seen.graph.places))}"
    elif index is not None and index >= len(seen.instances.get(place, b"")):
        yield path, f"Task '{task}' has no instance {index}."
    elif seen.graph.tasks[place].kind == APPROVAL:
        yield path, f"Task '{task}' asks for approval: in the rerun it asks again."


def _why_not(past: Past, again: Rerun, known: frozenset[int], name: str) -> str:
    task, index = parts_of(name)
    place = past.graph.named(task)
    if place in again.anew and index is not None and place not in known:
        return f"The list of task '{task}' may be another this time: mark the task itself."
    own = past.instances.get(place, b"")
    state = state_of(own[index] if index is not None and index < len(own) else past.states[place])
    return f"Task '{name}' {state}: nothing of it would be done again."
