"""What can start, and what never will: decided for the tasks after those that changed, and for all that follows.

A decision depends on the parents alone, never on which of them ended first: what is decided early would be decided the
same with all of them over. So looking again, at everything and at any moment, changes nothing.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.conditions import holds, is_about_items
from sweephand.domain.dag import (
    ENDED,
    FAILED,
    HELD_UP,
    SKIPPED,
    SUCCEEDED,
    Graph,
    byte_of,
    byte_of_mapped,
    chosen,
    state_of,
)
from sweephand.domain.job import OnFailure, Task, TriggerRule
from sweephand.domain.mapping import Instance, expand
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.task import TASK_LIFECYCLE, TaskEvent, TaskState
from sweephand.errors import InvalidInput

__all__ = ["Decided", "Move", "ready", "verdict"]

_SEEN: Final = SUCCEEDED | FAILED | SKIPPED | HELD_UP


class Move(Struct, frozen=True):
    """What happens to a task now, and why; a mapped task is released with its instances."""

    task: int
    event: TaskEvent
    reason: Reason | None = None
    instances: tuple[Instance, ...] = ()


class Decided(Struct, frozen=True):
    """The moves, parents before children, and the vector after all of them."""

    moves: tuple[Move, ...]
    states: bytes


def ready(
    graph: Graph,
    states: bytes,
    changed: Iterable[int] | None,
    known: Mapping[str, Any],
    *,
    instances: int = 0,
) -> Decided:
    """What the changed tasks mean for those after them, and so on; None looks at every task, as a run's start must.

    `known` is what templates know: `params`, `run`, and `tasks` with the `output` of each that ended, null where it
    gave none; it may be a mapping that reads them when asked, as only conditions, branches and maps do. `instances`
    is how many the run has already. Only waiting tasks are decided: repeating a call decides nothing more.
    """
    deciding = _Deciding(graph, states, known, instances)
    deciding.cascade(changed)
    return Decided(tuple(deciding.moves), bytes(deciding.states))


class _Rule(Struct, frozen=True):
    """A trigger rule: what decides as soon as it is seen, what once all parents ended, and what is left then."""

    otherwise: TaskEvent
    at_once: tuple[int, TaskEvent] = (0, TaskEvent.RELEASED)
    in_the_end: tuple[int, TaskEvent] = (0, TaskEvent.RELEASED)


_RUN, _SKIP, _HOLD_UP = TaskEvent.RELEASED, TaskEvent.SKIPPED, TaskEvent.HELD_UP
_BAD: Final = FAILED | HELD_UP

_RULES: Final[Mapping[TriggerRule, _Rule]] = {
    TriggerRule.ALL_SUCCESS: _Rule(_RUN, at_once=(_BAD, _HOLD_UP), in_the_end=(SKIPPED, _SKIP)),
    TriggerRule.ALL_FAILED: _Rule(_RUN, at_once=(SUCCEEDED | SKIPPED, _SKIP)),
    TriggerRule.ALL_DONE: _Rule(_RUN),
    TriggerRule.ONE_SUCCESS: _Rule(_SKIP, at_once=(SUCCEEDED, _RUN), in_the_end=(_BAD, _HOLD_UP)),
    TriggerRule.ONE_FAILED: _Rule(_SKIP, at_once=(_BAD, _RUN)),
    TriggerRule.ONE_DONE: _Rule(_SKIP, at_once=(SUCCEEDED | FAILED, _RUN)),
    TriggerRule.NONE_FAILED: _Rule(_RUN, at_once=(_BAD, _HOLD_UP)),
    TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS: _Rule(_SKIP, at_once=(_BAD, _HOLD_UP), in_the_end=(SUCCEEDED, _RUN)),
    TriggerRule.NONE_SKIPPED: _Rule(_RUN, at_once=(SKIPPED, _SKIP)),
    TriggerRule.ALWAYS: _Rule(_RUN),
}


def verdict(rule: TriggerRule, seen: int, *, is_done: bool) -> TaskEvent | None:
    """What a trigger rule says of parents that did what is `seen`; None while it cannot tell, which ends at `is_done`.

    Where Airflow's answer depends on which parent it noticed first, a failure wins: of a skipped and a failed parent
    Airflow's `all_success` makes a skipped or a held-up task, whichever ended first; here the task is held up.
    """
    decides = _RULES[rule]
    if rule is TriggerRule.ALWAYS:
        return decides.otherwise
    flags, event = decides.at_once
    if seen & flags:
        return event
    if not is_done:
        return None
    flags, event = decides.in_the_end
    return event if seen & flags else decides.otherwise


class _Deciding:
    """One call: the vector as it changes, and the moves so far."""

    __slots__ = ("_choices", "_ended", "_graph", "_instances", "_known", "moves", "states")

    def __init__(self, graph: Graph, states: bytes, known: Mapping[str, Any], instances: int) -> None:
        self._graph = graph
        # What is decided here ends without an output, which conditions after it may ask for.
        self._ended: dict[str, Any] = {}
        self._known = {**known, "tasks": ChainMap(self._ended, known.get("tasks") or {})}
        self._instances = instances
        self._choices: dict[int, frozenset[int] | None] = {}
        self.states = bytearray(states)
        self.moves: list[Move] = []

    def cascade(self, changed: Iterable[int] | None) -> None:
        """Decide by level: a task comes after all that it needs, and so is looked at once."""
        graph, states = self._graph, self.states
        if changed is None:
            changed = range(len(states))
            queued = set(changed)
        else:
            changed = tuple(changed)
            queued = {child for task in changed for child in graph.children[task]}
        if graph.on_failure is OnFailure.STOP and (failed := next(filter(self._is_failed, changed), None)) is not None:
            self._stop(failed)
            return
        ahead = [(graph.level[task], task) for task in queued if not states[task]]
        heapify(ahead)
        while ahead:
            _, task = heappop(ahead)
            move = self._move(task)
            if move is None:
                continue
            self._make(move)
            if not states[task] & _SEEN:
                continue  # it was released; a mapped one of which instances were skipped is news already
            if move.event is TaskEvent.FAILED and graph.on_failure is OnFailure.STOP:
                self._stop(task)
                return
            for child in graph.children[task]:
                if child not in queued and not states[child]:
                    queued.add(child)
                    heappush(ahead, (graph.level[child], child))

    def _make(self, move: Move) -> None:
        state = state_of(self.states[move.task])
        target = TASK_LIFECYCLE.after(state, move.event, what=f"Task '{self._graph.tasks[move.task].id}'")
        byte = byte_of(target)
        if move.instances:
            self._instances += len(move.instances)
            skipped = sum(one.skipped is not None for one in move.instances)
            byte = byte_of_mapped({target: len(move.instances) - skipped, TaskState.SKIPPED: skipped})
        self.states[move.task] = byte
        self.moves.append(move)
        if byte in ENDED:
            self._ended[self._graph.tasks[move.task].id] = {"output": None}

    # Failing fast.

    def _is_failed(self, task: int) -> bool:
        return bool(self.states[task] & FAILED)

    def _stop(self, failed: int) -> None:
        """Cancel what has not started, what was only just released, and the instances of a map that have not; whoever
        carries it out lets be what has. A scan, but a run does this once."""
        unstarted = (TaskState.WAITING, TaskState.QUEUED)
        reason = Reason(ReasonCode.STOPPED, f"Task '{self._graph.tasks[failed].id}' failed, and onFailure is stop.")
        self.moves = [move for move in self.moves if move.event is not TaskEvent.RELEASED]
        for task, byte in enumerate(bytes(self.states)):
            mapped = self._graph.tasks[task].map is not None
            if state_of(byte) in unstarted or (mapped and byte not in ENDED):
                self._make(Move(task, TaskEvent.CANCELLED, reason))

    # One task.

    def _move(self, task: int) -> Move | None:
        """What its parents make of a waiting task, then its condition, then its map."""
        definition = self._graph.tasks[task]
        move = self._by_parents(task, definition)
        if move is None or move.event is not TaskEvent.RELEASED:
            return move
        try:
            return self._by_itself(task, definition)
        except InvalidInput as refused:
            code = ReasonCode.CONDITION if refused.path == "if" else ReasonCode.MAP
            return Move(task, TaskEvent.FAILED, Reason(code, refused.message))

    def _by_parents(self, task: int, definition: Task) -> Move | None:
        parents = self._graph.parents[task]
        if not parents or definition.when is TriggerRule.ALWAYS:
            return Move(task, TaskEvent.RELEASED)
        # However many parents, there are few different bytes.
        found = set(map(self.states.__getitem__, parents))
        is_done = found <= ENDED
        seen = 0
        for byte in found:
            seen |= byte & _SEEN
        branches = self._graph.branches[task]
        for branch in branches:
            if self.states[branch] not in ENDED:
                # It may yet say that this task is skipped, whatever the other parents did.
                return None
            choice = self._choice(branch)
            if choice is not None and task not in choice:
                detail = f"Branch '{self._graph.tasks[branch].id}' did not choose it."
                return Move(task, TaskEvent.SKIPPED, Reason(ReasonCode.BRANCH, detail))
        event = verdict(definition.when, seen, is_done=is_done)
        if event is None:
            return None
        if event is TaskEvent.RELEASED:
            return Move(task, event)
        return Move(task, event, self._blamed(definition.when, event, parents))

    def _by_itself(self, task: int, definition: Task) -> Move:
        condition = definition.condition
        mapped = definition.map is not None
        if condition is not None and not (mapped and is_about_items(condition)) and not holds(condition, self._known):
            return Move(task, TaskEvent.SKIPPED, Reason(ReasonCode.CONDITION, f"{condition} does not hold."))
        if not mapped:
            return Move(task, TaskEvent.RELEASED)
        found = expand(definition, self._known, instances=self._instances)
        if not found:
            return Move(task, TaskEvent.SKIPPED, Reason(ReasonCode.MAP, "The list that it is mapped over is empty."))
        if all(one.skipped is not None for one in found):
            detail = f"{condition} holds for none of {len(found)} items."
            return Move(task, TaskEvent.SKIPPED, Reason(ReasonCode.CONDITION, detail))
        return Move(task, TaskEvent.RELEASED, instances=found)

    def _choice(self, branch: int) -> frozenset[int] | None:
        """The children that a branch chose; None where it did not succeed, or was marked without a choice."""
        if branch not in self._choices:
            choice = None
            if self.states[branch] & SUCCEEDED:
                try:
                    choice = chosen(self._graph, branch, self._output(branch))
                except InvalidInput:
                    pass  # a branch of such an output fails; only a person can have made it succeed, and chose nothing
            self._choices[branch] = choice
        return self._choices[branch]

    def _output(self, task: int) -> Any:
        ended = self._known["tasks"].get(self._graph.tasks[task].id)
        return ended.get("output") if ended is not None else None

    def _blamed(self, rule: TriggerRule, event: TaskEvent, parents: tuple[int, ...]) -> Reason:
        """The rule, and a parent that it did not like."""
        names = self._graph.tasks
        for flag, words in _BLAMED[event is TaskEvent.HELD_UP, rule is TriggerRule.ALL_FAILED]:
            culprit = next((parent for parent in parents if self.states[parent] & flag), None)
            if culprit is not None:
                return Reason(ReasonCode.UPSTREAM, f"{rule}: task '{names[culprit].id}' {words}.")
        return Reason(ReasonCode.UPSTREAM, f"{rule}: no task that it needs did so.")


_FAILURES: Final = ((FAILED, "failed"), (HELD_UP, "was held up by a failure"))
_OTHERS: Final = ((SKIPPED, "was skipped"), (SUCCEEDED, "succeeded"), (HELD_UP, "was held up by a failure"))
_BLAMED: Final[Mapping[tuple[bool, bool], tuple[tuple[int, str], ...]]] = {
    (True, False): _FAILURES,
    (False, True): (_OTHERS[1], _OTHERS[0]),
    (False, False): _OTHERS,
}
